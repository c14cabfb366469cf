"""Benchmarks: equal ids first, then time. README.md describes the method and the columns."""
