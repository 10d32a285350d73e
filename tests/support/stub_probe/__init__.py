"""Stands in for the workloads package: a probe child that behaves as it is told, well or badly."""
