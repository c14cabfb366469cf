"""What `streamtok train` says at its end: what was counted and trained, and how to use it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..patterns.named import PATTERNS
from .messages import say, shown

if TYPE_CHECKING:
    from ..encoding import Encoding
    from ..training.trainer import Trainer


def say_what_was_done(
    args: argparse.Namespace, trainer: Trainer, encoding: Encoding, format: str, seconds: float
) -> None:
    """Print the summary of a training whose result is in `args.output`, in lines.

    format: of that file. seconds: that all of it took.
    """
    _say_totals(args, trainer, encoding.n_vocab, seconds)
    is_bare = format == "tiktoken"  # tokens and their ids, and no more
    note = "; a .tiktoken file cannot hold it" if is_bare else ""
    for text, token in encoding._special_tokens.items():
        say(f"special token {text!r} has id {token}{note}")
    if is_bare:
        say(f"a .tiktoken file has no pattern: {_how_to_name(args.output, args.pattern)}")


def _say_totals(args: argparse.Namespace, trainer: Trainer, n_vocab: int, seconds: float) -> None:
    say(
        f"{trainer.bytes_in:,} bytes, {trainer.n_pieces:,} distinct pre-tokens, {n_vocab:,} tokens "
        f"in {shown(args.output)}, {seconds:.2f} s"
    )
    if n_vocab < args.vocab_size:
        say(f"fewer than the requested {args.vocab_size:,} tokens: no pair is left to merge")


def _how_to_name(path: str, pattern: str) -> str:
    """The option with which the file is used with the pattern of its training."""
    if pattern in PATTERNS:
        return f"other commands take it as -e {shown(path)}@{pattern}"
    return f'streamtok.load({path!r}, pattern=...) takes it, and "tokenizer.json" as -o holds it'
