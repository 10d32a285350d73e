"""One rule a file: pure functions over a view and the thresholds."""
