"""Tests of agent/host."""
