"""Tests of exporters."""
