"""The check of the prose finds what it is for, and nothing in plain sentences."""

from __future__ import annotations

from pathlib import Path

from ..doc_blocks import load_tool

TOOL = load_tool("check_english")
WRONG = {
    "something that is no token": "is no",
    "the bytes behind the cut": "behind",
    "Nothing can be let go": "let go",
    "whoever has it": "whoever",
    "two copies of what is held": "of what",
    "What is small comes first.": "What is",
    "the limit is reached just so": "just so",
    "immutable but for its caches": "but for",
    "the trie has a ring": "a ring",
    "at each place of the text": "each place",
}
RIGHT = """
There is no coordinator. The file is no longer needed. It stands for itself. Say what to do.
A look-behind cannot be compiled; put it behind a proxy. Write it in place. What is streamtok?
"""


def test_what_is_wrong_and_what_is_right() -> None:
    for sentence, words in WRONG.items():
        (find,) = TOOL.finds(f"Right.\n{sentence}", "page.md")
        assert (find.where, find.text) == ("page.md:2", words)
    assert list(TOOL.finds(RIGHT, "page.md")) == []


def test_code_is_not_prose() -> None:
    page = "a `b behind c`\n```sh\nbehind\n```\n\n    behind\n[text](behind.md) behind\n"
    assert [find.where for find in TOOL.finds(TOOL.prose(page), "page.md")] == ["page.md:7"]


def test_sentences_are_whole_and_without_code() -> None:
    found = TOOL.sentences()
    assert len(found) > 700  # those of the documents alone, outside of a checkout
    assert not [one for one in found if "```" in one or ">>>" in one or one.endswith(",")]


def test_messages_and_docstrings_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""Doc here."""\nraise ValueError(f"{x} is no token")  # a remark\n')
    assert list(TOOL.strings(path)) == [(True, "Doc here.", 1), (False, " is no token", 2)]
    assert list(TOOL.comments(path)) == [("# a remark", 2)]
    core = tmp_path / "core.pxi"
    core.write_text('"""Doc\nhere."""\ncdef int n = 1  # a remark\nname = "#1"\n')
    assert list(TOOL.comments(core)) == [('"""Doc\nhere."""', 1), ("# a remark", 3)]
    header = tmp_path / "core.h"
    header.write_text("/* one\n   two */\nint n; // three\n")
    assert list(TOOL.comments(header)) == [("/* one\n   two */", 1), ("// three", 3)]
