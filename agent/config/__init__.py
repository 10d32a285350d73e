"""Configuration: frozen settings with defaults, and the strict loader."""
