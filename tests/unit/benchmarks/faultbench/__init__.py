"""Tests of benchmarks.faultbench."""
