"""Check that the files that documents name exist.

    python tools/check_names.py

A name is text in backticks that ends like a source file, or begins with a folder of the project. It
may be relative to the top, to the document's folder, or to any folder in `streamtok`. Names that
end in `_x.py` are placeholders. The change log is skipped: it names files that no longer exist.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = r"(?:[\w.]+/)*\w+\.(?:py|pyx|pxd|pxi|pyi|h)"
BELOW = r"(?:streamtok|tests|tools|benchmarks|docs|\.ci)/[\w./-]*"
NAME = re.compile(f"`({SOURCE}|{BELOW})`")
CORE = ROOT / "streamtok" / "_core"


def is_there(name: str, document: Path) -> bool:
    """Whether a file or folder has this name."""
    if (ROOT / name).exists() or (document.parent / name).exists():
        return True
    return any((ROOT / "streamtok").rglob(name))


def missing_names(document: Path) -> list[str]:
    """One message for each name in a document for which there is no file."""
    where = document.relative_to(ROOT)
    return [
        f"{where}:{number}: there is no {name}"
        for number, line in enumerate(document.read_text("utf-8").splitlines(), 1)
        for name in NAME.findall(line)
        if not name.endswith("_x.py") and not is_there(name.rstrip("/"), document)
    ]


def main() -> None:
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("*/*.md"))]
    documents += [*sorted(ROOT.glob("docs/*/*.md")), CORE / "README.md"]
    missing = [message for document in documents for message in missing_names(document)]
    if missing:
        sys.exit("\n".join(missing))


if __name__ == "__main__":
    main()
