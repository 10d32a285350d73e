"""A libnvidia-ml.so.1 without a card, driven by scenario files (see README.md)."""
