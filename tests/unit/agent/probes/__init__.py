"""Tests of agent.probes."""
