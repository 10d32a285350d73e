"""Tests of benchmark results: what is measured, what follows, how results compare."""
