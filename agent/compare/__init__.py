"""What follows from results: comparisons, ranks by throughput, price and power, and how long a training takes."""
