"""Tests of the parts together, real processes included."""
