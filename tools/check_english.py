"""Find the constructions that mark prose as translated, and words with two meanings.

    python tools/check_english.py             fail if documents or messages have one; count comments
    python tools/check_english.py --comments  show those of docstrings and comments, too
    python tools/check_english.py --sample 50 --seed 1  print sentences at random

Documents are Markdown without code blocks and change log. Messages are the other strings of the
package: help texts, errors, output. Comments are those of Python, Cython and C. `RULES` says what
to write instead; docstrings and comments may have at most `LIMIT` per 1,000 words.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 2.0
_CLAUSE = "a noun: 'the ids that …', 'the text after it'"
_PERSON = "a noun: the caller, a client, other users"
RULES: list[tuple[str, str]] = [
    (
        r"(?<!there )(?<!There )\b(?:is|are|was|were|becomes?) no "
        r"(?!longer|more|less|other|later|different)",
        "is not a …",
    ),
    (r"(?<![Ll]ook-)\bbehind\b(?! (?:a proxy|systemd|the commands))", "after"),
    (r"\b(?:let|lets|letting) go\b|\b(?:give|gives|given|gave) out\b", "emit"),
    (r"\b(?:[Ww]hoever|[Nn]obody|[Ss]omebody|[Aa]nybody|[Ee]verybody)\b", _PERSON),
    (r"\bthose who\b|\bthe one who\b|(?:^|(?<=[.:;]\s))Who \w+s\b(?![^.]*\?)", _PERSON),
    (r"\b(?:all|of|with|for|from|by|beside|than|as) what\b", _CLAUSE),
    (r"(?:^|(?<=[.:;]\s))What (?:is|are|was|has|may|can|does|no)\b(?![^.]*\?)", _CLAUSE),
    (r"\bstands? (?!for\b|alone\b|out\b)", "is"),
    (r"\bbut for\b", "except for"),
    (r"\bjust so\b", "barely"),
    (r"\bat the (?:most|least)\b", "at most, at least"),
    (r"\bfor ever\b", "forever, without end"),
    (r"\bhad better\b|\bas right\b|\bbe it\b", "say it directly"),
    (r"\bknows? (?:no|nothing)\b", "does not know"),
    (r"\bnothing has come\b", "idle for"),
    (r"\bmend(?:s|ed|ing)?\b", "fix"),
    (r"\b(?:a|has|in) rings?\b", "cycle"),
    (r"\bdearest\b", "most expensive"),
    (r"\bblanks?\b", "space, white space"),
    (r"\bmarks? of\b", "the field's word: delimiter, position, window"),
    (r"\b(?:a|the|each|no|some|any|which|what) places?\b", "offset, position, rank, URL, line"),
]
_RULES = [(re.compile(pattern), instead) for pattern, instead in RULES]


class Find(NamedTuple):
    """A construction, and where it is."""

    where: str  # path:line
    text: str
    instead: str

    def __str__(self) -> str:
        return f"{self.where}: '{self.text}'; write: {self.instead}"


def finds(text: str, where: str, line: int = 1) -> Iterator[Find]:
    """The constructions in a text whose first line has this number."""
    for pattern, instead in _RULES:
        for match in pattern.finditer(text):
            number = line + text.count("\n", 0, match.start())
            yield Find(f"{where}:{number}", match[0].strip().replace("\n", " "), instead)


def prose(markdown: str, code: bool = False) -> str:
    """A document without code, links' targets and generated parts; lines stay where they are.

    code: keep text in single backticks.
    """

    def blank(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n")

    text = re.sub(r"^ *```.*?^ *```$", blank, markdown, flags=re.S | re.M)
    text = re.sub(r"^    .*$", "", text, flags=re.M)
    text = re.sub(r"\]\([^)]*\)|<!--.*?-->", "]" if code else "`", text)
    return text if code else re.sub(r"`[^`\n]*`", "`", text)


def documents() -> list[Path]:
    """All Markdown."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("streamtok/**/*.md")]
    found += [*ROOT.glob("benchmarks/*.md"), *ROOT.glob("examples/*.md")]
    return sorted(found)


def strings(path: Path) -> Iterator[tuple[bool, str, int]]:
    """(whether it is a docstring, the text, its line) of each string with a space in it."""
    tree = ast.parse(path.read_text("utf-8"))
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, holders) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            if "(?" in node.value:  # a regular expression
                continue
            yield id(node) in docs, node.value, node.lineno


def comments(path: Path) -> Iterator[tuple[str, int]]:
    """The comments of a file, and the docstrings of one in Cython, with their lines."""
    if path.suffix != ".py":
        text = path.read_text("utf-8")
        form = r"//[^\n]*|/\*.*?\*/" if path.suffix == ".h" else r'"""[^"]*"""|(?:^|(?<=\s))# .*'
        for match in re.finditer(form, text, re.M if path.suffix != ".h" else re.S):
            yield match[0], 1 + text.count("\n", 0, match.start())
        return
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.string, token.start[0]


def sentences() -> list[str]:
    """The sentences of documents and docstrings, each with its file."""
    texts = [(path, prose(path.read_text("utf-8"), code=True)) for path in documents()]
    for path in sorted((ROOT / "streamtok").rglob("*.py")):
        texts += [(path, text) for is_docstring, text, _ in strings(path) if is_docstring]
    found = []
    for path, text in texts:
        text = re.sub(r"^ *(?:[|#<:]|>>>|\.\.\.).*$", "", text, flags=re.M)
        for paragraph in re.split(r"\n\s*\n|\n *(?:-|\d\.) ", text):
            words = " ".join(paragraph.split())
            for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z`*\[])", words):
                if len(sentence.split()) > 5 and sentence[-1] in ".?!":
                    found.append(f"{path.relative_to(ROOT).as_posix()}: {sentence}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--comments", action="store_true", help="show docstrings and comments, too")
    parser.add_argument("--sample", type=int, metavar="N", help="only print N sentences at random")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.sample is not None:
        print(*random.Random(options.seed).sample(sentences(), options.sample), sep="\n")
        return 0
    wrong: list[Find] = []
    remarks: list[Find] = []
    words = 0
    for path in documents():
        name = path.relative_to(ROOT).as_posix()
        wrong += finds(prose(path.read_text("utf-8")), name)
    for path in sorted((ROOT / "streamtok").rglob("*.*")):
        if path.suffix not in (".py", ".pyx", ".pxi", ".pxd", ".h"):
            continue
        name = path.relative_to(ROOT).as_posix()
        for is_docstring, text, line in strings(path) if path.suffix == ".py" else ():
            (remarks if is_docstring else wrong).extend(finds(text, name, line))
            words += len(text.split()) if is_docstring else 0
        for text, line in comments(path):
            remarks += finds(text, name, line)
            words += len(text.split())
    if options.comments:
        print(*remarks, sep="\n")
    share = 1000 * len(remarks) / words
    print(f"docstrings and comments: {share:.1f} in 1,000 words; at most {LIMIT}")
    if wrong:
        print(*wrong, sep="\n", file=sys.stderr)
    return bool(wrong) or share > LIMIT


if __name__ == "__main__":
    sys.exit(main())
