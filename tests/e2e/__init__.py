"""Tests from end to end: real Prometheus, real TensorFlow, real agents."""
