"""Tests of agent.state."""
