"""`streamtok list`: lists the named encodings."""

from __future__ import annotations

import argparse
import json
from typing import Any

from .. import registry
from . import options
from .options import add_option


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "list",
        run,
        "list the encodings that have a name",
        ["@", "@ --json | jq -r .name"],
    )
    add_option(parser, "--json", "one line of JSON for each encoding")


def run(args: argparse.Namespace) -> int:
    if not args.json:
        print(f"{'encoding':<15}{'ids':>8}{'special':>9}")
    for name in registry.list_encoding_names():
        spec = registry.SPECS[name]
        n_vocab = spec.explicit_n_vocab or max(spec.special_tokens.values()) + 1
        n_special = len(spec.special_tokens)
        if args.json:
            row = {"name": name, "n_vocab": n_vocab, "n_special": n_special}
            print(json.dumps(row))
        else:
            print(f"{name:<15}{n_vocab:>8}{n_special:>9}")
    return 0
