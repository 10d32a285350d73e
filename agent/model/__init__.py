"""The data that flows through heatsoak: frozen structs, closed vocabularies, the quantities table.

This package imports nothing else of the agent; exporters see this package only.
"""
