"""What stands between heatsoak and trustworthy numbers on this machine, one check at a time."""
