"""Pre-tokenization patterns: from a regular expression to tables that a scanner follows."""

from .pattern import Pattern

__all__ = ["Pattern"]
