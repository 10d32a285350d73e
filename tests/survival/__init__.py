"""What the agent must survive: one class a case, each against the real process, a fake driver and real HTTP."""
