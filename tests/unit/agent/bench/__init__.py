"""Tests of the benchmark: its plan, its search, what it says."""
