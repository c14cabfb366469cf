"""The command line: `main` and a `cmd_` module for each command."""

from .main import main

__all__ = ["main"]
