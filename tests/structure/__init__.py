"""Tests of how the code is written: size, names, docstrings, imports."""
