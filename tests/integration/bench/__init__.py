"""``heatsoak bench`` as a user calls it."""
