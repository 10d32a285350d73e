"""What measures heatsoak itself; each script prints JSON and says which command made it."""
