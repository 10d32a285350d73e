"""Tests of the workloads' pure parts."""
