"""Check that the files which documents name are there, and that the core's README lists its files.

    python tools/check_names.py

A name is what stands in backticks and ends as a source file does, or begins with a folder of the
project. It may start at the top, at the document's folder, or anywhere in `streamtok`. Names that
end in `_x.py` stand for any name. The change log is left out: it speaks of files that are gone.

`streamtok/_core/README.md` has one line for each source file of the core.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = r"(?:[\w.]+/)*\w+\.(?:py|pyx|pxd|pxi|pyi|h)"
BELOW = r"(?:streamtok|tests|tools|benchmarks|docs|\.ci)/[\w./-]*"
NAME = re.compile(f"`({SOURCE}|{BELOW})`")
CORE = ROOT / "streamtok" / "_core"
LISTED = re.compile(rf"^- `({SOURCE})`: \w", re.MULTILINE)


def is_there(name: str, document: Path) -> bool:
    """Whether a file or folder has this name."""
    if (ROOT / name).exists() or (document.parent / name).exists():
        return True
    return any((ROOT / "streamtok").rglob(name))


def missing_names(document: Path) -> list[str]:
    """One message for each name in a document that no file has."""
    where = document.relative_to(ROOT)
    return [
        f"{where}:{number}: there is no {name}"
        for number, line in enumerate(document.read_text("utf-8").splitlines(), 1)
        for name in NAME.findall(line)
        if not name.endswith("_x.py") and not is_there(name.rstrip("/"), document)
    ]


def unlisted_names(core: Path) -> list[str]:
    """One message for each source file of the core that its README does not list exactly once."""
    lines = Counter(LISTED.findall((core / "README.md").read_text("utf-8")))
    names = [path.relative_to(core).as_posix() for path in core.rglob("*")]
    return [
        f"{core.name}/README.md: {lines[name]} lines for {name}, not one"
        for name in sorted(names)
        if re.fullmatch(SOURCE, name) and lines[name] != 1
    ]


def main() -> None:
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("*/*.md"))]
    documents += [*sorted(ROOT.glob("docs/*/*.md")), CORE / "README.md"]
    missing = [message for document in documents for message in missing_names(document)]
    missing += unlisted_names(CORE)
    if missing:
        sys.exit("\n".join(missing))


if __name__ == "__main__":
    main()
