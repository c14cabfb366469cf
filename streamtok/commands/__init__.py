"""The commands of `streamtok`, one module each, and what they share.

A command has `add_parser(subparsers)`, which names the function that `cli.main` calls.
"""
