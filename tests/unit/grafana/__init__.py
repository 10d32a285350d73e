"""Tests of the dashboards' generator and of what it wrote."""
