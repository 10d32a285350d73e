"""What survives a restart, behind the one door to SQLite.

``Store`` is that door. Its file is ``heatsoak.db`` in the state directory; while the file cannot be used
the same tables live in memory, and what they gained is merged into the file once it can be used again.
"""
