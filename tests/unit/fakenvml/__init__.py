"""Tests of the fake NVML, through nvidia-ml-py in fresh processes."""
