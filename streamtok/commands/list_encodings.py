"""`streamtok list`: the encodings."""

from __future__ import annotations

import argparse
from typing import Any

from .. import registry
from ..vocabulary import PACKED_NAMES
from . import options


def add_parser(subparsers: Any) -> None:
    options.add_command(subparsers, "list", run, "list the encodings")


def run(args: argparse.Namespace) -> int:
    print(f"{'encoding':<15}{'ids':>8}{'special':>9}  vocabulary")
    for name in registry.list_encoding_names():
        # From the table, not from Encoding objects: p50k_base would have to be downloaded.
        spec = registry._SPECS[name]
        n_vocab = spec.explicit_n_vocab or max(spec.special_tokens.values()) + 1
        where = "packed" if spec.vocabulary in PACKED_NAMES else "cache or download"
        print(f"{name:<15}{n_vocab:>8}{len(spec.special_tokens):>9}  {where}")
    return 0
