"""The Spark package: throughput, retries, cost."""
