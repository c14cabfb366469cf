"""Benchmarks: equal ids first, then time. README.md says how, and what each column is."""
