"""Tests of what is shipped to run beside the agent."""
