"""The heatsoak agent: reads cards and host, runs probes, judges, and hands out immutable snapshots."""
