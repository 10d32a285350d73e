"""Tests of the demo's made-up story."""
