"""Tests of heatsoak."""
