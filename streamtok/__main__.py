"""`python -m streamtok`: the command line."""

from .cli.process import run

if __name__ == "__main__":
    run()
