"""Tests of comparisons: like ranked with like, prices, published figures, estimates."""
