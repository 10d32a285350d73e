"""A week's storm in less time: the real agent among failing cards, swapped drivers, bad probes and bad scrapers."""
