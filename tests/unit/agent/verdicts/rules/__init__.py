"""Tests of the rules, one file each."""
