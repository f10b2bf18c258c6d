"""The Spark job. Only this package and functions.py import pyspark."""
