"""Everything that reads what others write, fed with a million inputs: python -m tests.fuzz."""
