"""Tests of agent/config."""
