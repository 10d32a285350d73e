"""Labelled faults and labelled health, with noise as measured, played to the verdicts on a fake clock."""
