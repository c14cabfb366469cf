"""HTML of notebooks: read by a parser, it has the text that was shown, and no more elements."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from ...encodings import SINGLES, make_encoding

EVIL = """<script>alert("1")</script><img src=x onerror='alert(1)'>&lt;&amp;"></span><!--]]>"""


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.spans: list[str] = []
        self.titles: list[str] = []
        self.text = ""
        self._is_open = False

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "span":
            assert [name for name, _ in attrs] == ["style", "title"]
            self.spans.append("")
            self.titles.append(dict(attrs)["title"])
            self._is_open = True

    def handle_endtag(self, tag):
        self._is_open = self._is_open and tag != "span"

    def handle_data(self, data):
        self.text += data
        if self._is_open:
            self.spans[-1] += data

    def handle_comment(self, data):
        pytest.fail(f"a comment: {data}")


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader


@pytest.mark.parametrize("text", [EVIL, "a\n<b>\n\n", "", "\x1b[31m\u202e<", EVIL * 100])
def test_text_is_escaped(enc, text):
    shown = enc.show(text)
    reader = read(shown._repr_html_())
    assert reader.spans == [one.token.shown for one in shown.tokens[:2000]]
    more = {"i"} if shown.n_tokens > 2000 else set()
    assert {*reader.tags} <= {"div", "pre", "span"} | more
    assert "".join(one.token.shown for one in shown.tokens) == "".join(reader.spans) or more
    for one, title in zip(shown.tokens, reader.titles, strict=False):
        assert title.startswith(f"id {one.token.id}, rank {one.token.id}, ")


def test_tokens_and_names_that_are_html():
    ranks = dict(SINGLES)
    for size in range(2, len(EVIL) + 1):
        ranks[EVIL[:size].encode()] = 254 + size
    enc = make_encoding(r"<script>|[^z]+|z", ranks, {EVIL[1:]: 5000}, name=EVIL)
    reader = read(enc.show(EVIL)._repr_html_())
    assert reader.text.startswith(f"{EVIL}: ")
    assert "".join(reader.spans) == EVIL.replace(" ", "·")
    table = read(enc._repr_html_())
    assert {*table.tags} == {"table", "tr", "th", "td"}
    assert EVIL in table.text
    assert r"<script>|[^z]+|z" in table.text
