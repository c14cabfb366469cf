"""All tokenizers that are installed, side by side: `python -m benchmarks.compare --markdown`.

Equality first: a mode whose ids differ from the reference's is reported and not timed. Then each
sample is a process of its own, on one core, and the contenders take turns; medians of the samples
and of the ratios within a turn are shown. See README.md for what is measured, and for the columns.

This file reads the command; `sampling.py` asks for samples, `worker.py` takes one, `results.py`
gives figures, `goals.py`, `tables.py` and `chart.py` show them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from . import chart, corpus, peers, tables
from .corpus import parse_size
from .sampling import KINDS, collect

_PICTURE = Path("docs/benchmarks.svg")
_MB = 1_000_000
_QUICK: dict[str, Any] = {"rounds": 2, "limit": _MB, "size": 100 * _MB, "endless": 40 * _MB}
_FULL: dict[str, Any] = {"rounds": 4, "limit": None, "size": 1000 * _MB, "endless": 120 * _MB}


def check_outputs(files: list[Path], others: list[Path]) -> None:
    """Raise before anything is measured what would go wrong when it is written.

    files: Markdown with markers; others: what is made anew. OSError if one cannot be written,
    ValueError if a file has no markers.
    """
    for file in files:
        written_into(file, {"": "", " details": ""})
    for path in [*files, *others]:
        if not path.parent.is_dir():
            raise FileNotFoundError(
                f"{path}: there is no folder {path.parent}; choose another file"
            )
        is_new = not path.exists()
        path.open("ab").close()
        if is_new:
            path.unlink()


def written_into(file: Path, parts: dict[str, str]) -> str:
    try:
        return tables.written_into(file.read_text("utf-8"), parts)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


def write(data: dict[str, Any], files: list[Path], picture: Path) -> None:
    """Put the report into Markdown files, between their markers, and draw the plot.

    ValueError if a file has no markers; then nothing is written.
    """
    texts = {}
    for file in files:
        seen = Path(os.path.relpath(picture, file.parent)).as_posix()
        parts = {
            "": "\n".join(tables.summary(data, seen)),
            " details": "\n".join(tables.details(data)),
        }
        texts[file] = written_into(file, parts)
    for file, text in texts.items():
        file.write_text(text, "utf-8")
    picture.write_text(chart.draw(data), "utf-8")


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
        "--markdown", action="store_true", help="print the summary, and draw the plot"
    )
    parser.add_argument(
        "--write",
        nargs="+",
        default=[],
        type=Path,
        metavar="FILE",
        help="put it between the markers of docs/benchmarks.md; draw the plot",
    )
    parser.add_argument("--svg", type=Path, default=_PICTURE, metavar="FILE", help="the plot")
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
    parser.add_argument("--size", type=parse_size, help="of the file that is read once (1GB)")
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
    pictures = [options.svg] if options.write or options.markdown else []
    try:
        check_outputs(options.write, pictures + ([options.json] if options.json else []))
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
            big_bytes=options.size or plan["size"],
            endless_bytes=plan["endless"],
            peer_names=["streamtok", *options.peers],
            save=lambda data: samples and samples.write_text(json.dumps(data)),
        )
    if options.equal:
        return say_who_is_equal(data)
    if options.write:
        write(data, options.write, options.svg)
    elif options.markdown:
        options.svg.write_text(chart.draw(data), "utf-8")
    print("\n".join(tables.summary(data, options.svg.as_posix())))
    if not options.markdown:
        print()
        print("\n".join(tables.details(data)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
