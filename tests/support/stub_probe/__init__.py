"""Stands in for the workloads package: a probe child that behaves as it is told, well or badly.

The option ``behaviour`` of the first request, or STUB_BEHAVIOUR, names a function of ``__main__``; without
either the child answers well.
"""
