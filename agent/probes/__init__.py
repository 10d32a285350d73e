"""The agent's side of probing: whether to probe, starting and watching the child, judging what it says."""
