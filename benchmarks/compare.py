"""All installed tokenizers, side by side: `python -m benchmarks.compare`.

Ids are compared first: a mode whose ids differ from the reference's is reported and not timed. Then
each sample is a process of its own, on one core, and the contenders take turns. The tables show
medians of the samples, and of the ratios within a turn. README.md describes the measurements and
the columns.

This file reads the command; `sampling.py` asks for samples, `worker.py` takes one, `tables.py` and
`headline.py` show them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from streamtok._core._testing import tier

from . import corpus, headline, peers, tables
from .sampling import KINDS, collect


def check_outputs(page: Path | None, others: Iterable[Path]) -> None:
    """Check, before anything is measured, that the results can be written.

    page: Markdown with the markers of this processor; others: new files. Raises OSError if one
    cannot be written, ValueError if the page has no markers.
    """
    if page:
        headline.written_into(page.read_text("utf-8"), tier(), "")
    for path in [*([page] if page else []), *others]:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        path.open("ab").close()
        if is_new:
            path.unlink()


def write(data: dict[str, Any], page: Path) -> None:
    """Put the table into the page, and draw its chart beside it. ValueError without markers."""
    chart = headline.picture(data["tier"], page)
    table = "\n".join(tables.short(data, chart.name))
    text = headline.written_into(page.read_text("utf-8"), data["tier"], table)
    page.write_text(text, "utf-8")
    chart.write_text(headline.draw(headline.read(text, data["tier"])), "utf-8")


def say_who_is_equal(data: dict[str, Any]) -> int:
    """Print whose ids equal the reference's; return 1 if those of a mode of streamtok do not."""
    parts = data["encodings"]
    for encoding, part in parts.items():
        equal = ", ".join(f"{peer} `{mode}`" for peer, mode in part["contenders"])
        print("\n- ".join([f"{encoding}: {equal}", *part["notes"]]))
    return any(note.startswith("streamtok ") for part in parts.values() for note in part["notes"])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    add = parser.add_argument
    to_file: dict[str, Any] = {"type": Path, "metavar": "FILE"}
    some: dict[str, Any] = {"nargs": "+", "metavar": "NAME"}
    page = "put the table between the markers of this kind of processor in docs/benchmarks.md"
    add("--write", type=Path, metavar="PAGE", help=page)
    add("--figures", default="build/benchmarks.md", help="all figures (%(default)s)", **to_file)
    add("--json", default="build/samples.json", help="all samples (%(default)s)", **to_file)
    add("--from", dest="samples", help="show these samples instead of taking some", **to_file)
    add("--encodings", default=list(peers.ENCODINGS), **some)
    models = "real vocabularies, too: tokenizer.json files, or folders that have one"
    add("--models", nargs="+", default=[], help=models, **to_file)
    names = [peer.name for peer in peers.installed()]
    add("--peers", default=names, choices=names, help="only these", **some)
    add("--corpora", default=list(corpus.NAMES), choices=corpus.NAMES, **some)
    add("--kinds", default=list(KINDS), choices=KINDS, **some)
    equal = "only compare the ids; exit code 1 if a mode of streamtok differs"
    add("--equal", action="store_true", help=equal)
    add("--quick", action="store_true", help="1 MB of each text, 2 turns")
    add("--rounds", type=int, help="turns (4; 2 with --quick)")
    options = parser.parse_args()
    try:
        outputs = [options.figures] if options.samples else [options.figures, options.json]
        check_outputs(options.write, [] if options.equal else outputs)
        found = peers.models(options.models)
    except (OSError, ValueError) as error:
        parser.error(f"nothing was measured, because the results cannot be written: {error}")
    if options.samples:
        data = json.loads(options.samples.read_text())
    else:
        data = collect(
            options.encodings,
            found,
            options.corpora,
            [] if options.equal else options.kinds,
            rounds=options.rounds or (2 if options.quick else 4),
            limit=1_000_000 if options.quick else None,
            peer_names=["streamtok", *options.peers],
            save=lambda data: options.json.write_text(json.dumps(data)),
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
