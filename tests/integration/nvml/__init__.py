"""The real reader child on a fake NVML."""
