"""Tests of unit."""
