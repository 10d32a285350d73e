"""The host: collectors of /proc and /sys, processes, control groups, the PCI bus."""
