"""Tests of who holds which card."""
