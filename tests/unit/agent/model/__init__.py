"""Tests of agent/model."""
