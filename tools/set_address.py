"""Write the project's address into what PyPI shows: the links, and a README for PyPI.

    python tools/set_address.py https://github.com/OWNER/streamtok v1.2.3

The release workflow runs this before it builds, with the address of its own repository. So the tree
has no address, and a fork publishes its own. PyPI shows the README without the files next to it, so
in PYPI.md relative links become links to the files of the tag.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
_README = 'readme = "README.md"\n'
_TABLE = "[project.optional-dependencies]\n"  # the links go before it
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?![a-z]+:|#)([^()\s]+)\)")


def with_urls(pyproject: str, address: str, tag: str) -> str:
    """The text of pyproject.toml with `[project.urls]` added. Raises ValueError if it already has
    them.
    """
    if (
        "[project.urls]" in pyproject
        or not pyproject.count(_TABLE) == pyproject.count(_README) == 1
    ):
        raise ValueError("pyproject.toml has an address already, or another form")
    pyproject = pyproject.replace(_README, _README.replace("README", "PYPI"))
    files = f"{address}/blob/{tag}"
    urls = {
        "Source": address,
        "Documentation": f"{files}/docs/index.md",
        "Changelog": f"{files}/CHANGELOG.md",
        "Issues": f"{address}/issues",
        "Security": f"{files}/SECURITY.md",
    }
    rows = "".join(f'{name} = "{url}"\n' for name, url in urls.items())
    return pyproject.replace(_TABLE, f"[project.urls]\n{rows}\n{_TABLE}")


def with_absolute_links(readme: str, address: str, tag: str) -> str:
    """The text of the README with links to the files of the tag; pictures as their bytes."""

    def replace(found: re.Match[str]) -> str:
        bang, text, path = found.groups()
        return f"{bang}[{text}]({address}/{'raw' if bang else 'blob'}/{tag}/{path})"

    return _LINK.sub(replace, readme)


def main() -> None:
    if len(sys.argv) != 3 or not re.fullmatch(r"https://[^\s\"]+[^\s\"/]", sys.argv[1]):
        raise SystemExit("usage: python tools/set_address.py https://HOST/OWNER/NAME TAG")
    address, tag = sys.argv[1:]
    for source, target, change in (
        ("pyproject.toml", "pyproject.toml", with_urls),
        ("README.md", "PYPI.md", with_absolute_links),
    ):
        text = change((TOP / source).read_text("utf-8"), address, tag)
        (TOP / target).write_text(text, "utf-8", newline="\n")


if __name__ == "__main__":
    main()
