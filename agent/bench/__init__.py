"""Benchmarks whose results compare across cards, images and prices: run, compare, estimate."""
