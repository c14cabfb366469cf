"""All tokenizers that are installed, side by side: `python -m benchmarks.compare`.

Equality first: a mode whose ids differ from the reference's is reported and not timed. Then each
sample is a process of its own, on one core, and the contenders take turns; medians of the samples
and of the ratios within a turn are shown. See README.md for what is measured, and for the columns.

This file reads the command; `sampling.py` asks for samples, `worker.py` takes one, `tables.py`
and `headline.py` show them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from streamtok._core._testing import tier

from . import corpus, headline, peers, tables
from .sampling import KINDS, collect

_FIGURES = Path("build/benchmarks.md")
_QUICK: dict[str, Any] = {"rounds": 2, "limit": 1_000_000}
_FULL: dict[str, Any] = {"rounds": 4, "limit": None}


def check_outputs(page: Path | None, others: list[Path]) -> None:
    """Raise before anything is measured what would go wrong when it is written.

    page: Markdown with the markers of this processor; others: what is made anew. OSError if one
    cannot be written, ValueError if the page has no markers.
    """
    if page:
        with_table(page, tier(), "")
    for path in [*([page] if page else []), *others]:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        path.open("ab").close()
        if is_new:
            path.unlink()


def with_table(page: Path, name: str, table: str) -> str:
    """The text of the page with this table between the markers of a tier."""
    try:
        return headline.written_into(page.read_text("utf-8"), name, table)
    except ValueError as error:
        raise ValueError(f"{page}: {error}") from None


def write(data: dict[str, Any], page: Path) -> None:
    """Put the table into the page, and draw its chart beside it. ValueError without markers."""
    chart = headline.picture(data["tier"], page)
    text = with_table(page, data["tier"], "\n".join(tables.short(data, chart.name)))
    page.write_text(text, "utf-8")
    chart.write_text(headline.draw(headline.read(text, data["tier"])), "utf-8")


def new_file() -> Path:
    handle, name = tempfile.mkstemp(prefix="streamtok-samples-", suffix=".json")
    os.close(handle)
    return Path(name)


def say_who_is_equal(data: dict[str, Any]) -> int:
    """Print whose ids are the judge's; 1 if a mode of streamtok is not among them."""
    parts = data["encodings"]
    for encoding, part in parts.items():
        equal = ", ".join(f"{peer} `{mode}`" for peer, mode in part["contenders"])
        print(f"{encoding}: {equal}")
        print("".join(f"- {note}\n" for note in part["notes"]), end="")
    return any(note.startswith("streamtok ") for part in parts.values() for note in part["notes"])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument(
        "--write",
        type=Path,
        metavar="PAGE",
        help="put the table between the markers of this kind of processor in docs/benchmarks.md",
    )
    parser.add_argument(
        "--figures", type=Path, default=_FIGURES, metavar="FILE", help="all figures (%(default)s)"
    )
    parser.add_argument("--encodings", nargs="+", default=list(peers.ENCODINGS), metavar="NAME")
    parser.add_argument(
        "--models",
        nargs="+",
        default=[],
        type=Path,
        metavar="FILE",
        help="real vocabularies, too: tokenizer.json files, or folders that have one",
    )
    names = [peer.name for peer in peers.installed()]
    parser.add_argument("--peers", nargs="+", default=names, choices=names, help="only these")
    parser.add_argument("--corpora", nargs="+", default=list(corpus.NAMES), choices=corpus.NAMES)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument(
        "--equal",
        action="store_true",
        help="only compare the ids: exit code 1 if a mode of streamtok has others",
    )
    parser.add_argument("--quick", action="store_true", help="1 MB of each text, 2 turns")
    parser.add_argument("--rounds", type=int, help="turns (4; 2 with --quick)")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write all samples, as they come (a file in the temporary folder)",
    )
    parser.add_argument(
        "--from", dest="samples", type=Path, metavar="FILE", help="show these samples; take none"
    )
    options = parser.parse_args()
    outputs = [] if options.equal else [options.figures]
    try:
        check_outputs(options.write, outputs + ([options.json] if options.json else []))
        models = peers.models(options.models)
    except (OSError, ValueError) as error:
        parser.error(f"nothing is measured, for the results could not be written: {error}")
    if options.samples:
        data = json.loads(options.samples.read_text())
    else:
        plan = _QUICK if options.quick else _FULL
        samples = options.json or (None if options.equal else new_file())
        if samples:
            print(f"the samples are kept in {samples}", file=sys.stderr)
        data = collect(
            options.encodings,
            models,
            options.corpora,
            [] if options.equal else options.kinds,
            rounds=options.rounds or plan["rounds"],
            limit=plan["limit"],
            peer_names=["streamtok", *options.peers],
            save=lambda data: samples and samples.write_text(json.dumps(data)),
        )
    if options.equal:
        return say_who_is_equal(data)
    if options.write:
        write(data, options.write)
    options.figures.write_text("\n".join([*tables.report(data), ""]), "utf-8")
    print("\n".join(tables.short(data, headline.picture(data["tier"]).name)))
    print(f"\nall figures: {options.figures}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
