"""Tests of parts working together: real child processes, real threads."""
