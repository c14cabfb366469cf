"""Check a built site: its links work, and nothing in it is loaded from another host.

    python tools/check_site.py build/site

A link to another page must name an existing page, and an anchor on it. Styles, scripts and pictures
must be files of the site. `nox -s links` checks links to other hosts, which needs a network.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Elements that a browser fetches by itself, and the attribute with the URL.
FETCHED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}
_CSS = re.compile(r"url\(\s*[\"']?([^\"')]+)|@import\s+[\"']([^\"']+)")


class Page(HTMLParser):
    """The anchors of a page, its links, and what a browser fetches for it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors = {""}  # the top
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if "id" in found:
            self.anchors.add(found["id"])
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in FETCHED and found.get(FETCHED[tag]):
            self.fetched.append(found[FETCHED[tag]])


def is_elsewhere(link: str) -> bool:
    """Whether a link names another host, or another program such as mail."""
    parts = urlsplit(link)
    return bool(parts.netloc or parts.scheme not in ("", "data"))


def problems(site: Path) -> list[str]:
    """One message for each problem."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    found = [] if pages else [f"{site}: there are no pages"]
    for path, page in pages.items():
        where = path.relative_to(site)
        for link in page.fetched:
            if is_elsewhere(link):
                found.append(f"{where}: {link} comes from another host")
        for link in page.links + [one for one in page.fetched if not is_elsewhere(one)]:
            parts = urlsplit(link)
            if is_elsewhere(link) or parts.scheme == "data":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{where}: there is no {link}")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{where}: there is no anchor {link}")
    for path in sorted(site.rglob("*.css")):
        for groups in _CSS.findall(path.read_text("utf-8")):
            link = groups[0] or groups[1]
            if is_elsewhere(link):
                found.append(f"{path.relative_to(site)}: {link} comes from another host")
    return found


def main() -> None:
    found = problems(Path(sys.argv[1]).resolve())
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
