"""Texts in the columns of other engines' batches: Ray Data, Hugging Face's datasets, Spark.

These engines read, divide and write by themselves. What they need is a callable that turns one
batch into another one.
"""
