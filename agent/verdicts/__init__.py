"""Pure rules over what was seen, and the engine that composes them into verdicts."""
