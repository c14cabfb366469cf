"""The options of a job in parts. `encode_parts` does that of `streamtok encode`."""

from __future__ import annotations

import argparse

from ..parts import PART_SIZE
from .argument_types import parse_positive, parse_positive_size, parse_task
from .options import add_option


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a job in parts."""
    group = parser.add_argument_group(
        "in parts",
        "OUTPUT is a folder then, with a file for each part, a plan and a manifest.\n"
        "The same command continues a job that was stopped.",
    )
    add_option(group, "--workers N", "encode in N processes (default: 1)", parse_positive)
    add_option(
        group,
        "--ray ADDRESS",
        "encode on a Ray cluster: its address, auto for the one that runs here, or local",
    )
    add_option(
        group,
        "--task I/N",
        "only every N-th part, from number I on: the same command with 0/N to (N-1)/N, on "
        "any machines, does the job; the last one to finish writes the manifest",
        parse_task,
    )
    add_part_size(group, "an input")


def add_part_size(parser: argparse._ActionsContainer, of: str) -> None:
    """Add --part-size. of: what is cut."""
    add_option(
        parser,
        "--part-size SIZE",
        f"approximate bytes of {of} in a part (default: {PART_SIZE >> 20}MiB)",
        parse_positive_size,
        PART_SIZE,
    )
