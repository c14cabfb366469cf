"""The command line: `main`, and a module `cmd_NAME` for each command."""

from .main import main

__all__ = ["main"]
