"""Tests of agent.probes with real child processes."""
