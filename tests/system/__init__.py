"""Tests on real parts that need root: a booted systemd, containers, Kubernetes tools."""
