"""Tests of agent.verdicts."""
