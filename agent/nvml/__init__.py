"""Reading the cards: the child that speaks to the driver, and the agent's side of it."""
