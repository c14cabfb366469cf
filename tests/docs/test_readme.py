"""The README: its code runs, its pictures are current, its figures stand where it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import headline
from streamtok.cli.main import _parser

from ..cli.test_cli import POSIX
from ..doc_blocks import load_tool, run_shell

TOP = Path(__file__).resolve().parents[2]
README = (TOP / "README.md").read_text("utf-8")
FIGURES = headline.FIGURES.read_text("utf-8")
SVG = "{http://www.w3.org/2000/svg}"


@POSIX
def test_the_first_example_prints_what_it_shows(tmp_path: Path) -> None:
    found = re.search(r"```python\n(.*?)```\n```text\n(.*?)```", README, re.S)
    assert found
    assert len(found[1].splitlines()) <= 8
    (tmp_path / "first.py").write_text(found[1], "utf-8")
    assert run_shell("python first.py", tmp_path) == found[2]


def test_commands_are_understood() -> None:
    """Those of the README's first shell block; recipes and guides run the same ones."""
    found = re.search(r"```sh\n(streamtok .*?)```", README, re.S)
    assert found
    for line in found[1].splitlines():
        _, *words = shlex.split(line, comments=True)
        assert _parser(words).parse_known_args(words)[1] == []


def test_figures_about_others_are_those_of_the_tables() -> None:
    page = (TOP / "docs" / "explanation" / "which_tokenizer.md").read_text("utf-8")

    def row(tier: str, name: str) -> list[float]:
        (line,) = (
            x for x in headline.part_of(FIGURES, tier).splitlines() if x.startswith(f"| {name} |")
        )
        return [float(x) for x in line.split("|")[2:9]]  # five kinds of text, cold, warm

    ratios = row("avx512", "**`encode_to_numpy` ÷ tiktoken**")[:5]
    assert "10 to 40 times" in page
    assert 9.5 < min(ratios) < max(ratios) < 42
    new, old = (
        row("avx512", "tokenizers 1.0 `encode().ids_array`"),
        row("avx512", "tokenizers `encode_batch_fast`"),
    )
    assert "14 times as fast" in page
    assert min(a / b for a, b in zip(new, old, strict=True)) > 14
    ours, rival = (row("plain", x) for x in ("streamtok `encode_to_numpy`", "gigatoken `encode`"))
    assert "without SIMD (1.4 times)" in page
    assert 1.3 < rival[-1] / ours[-1] < 1.45


def test_picture_of_cuts_is_current() -> None:
    tool = load_tool("draw_cuts")
    assert (TOP / "docs" / "cuts.svg").read_text("utf-8") == tool.draw(), "run tools/draw_cuts.py"


def test_picture_of_cuts_says_what_is_true() -> None:
    tool = load_tool("draw_cuts")
    rows = tool.rows()
    assert rows["streamtok"] == rows["the whole text"]
    right = tool.placed(rows["the whole text"])
    wrong = len(tool.placed(rows["naive chunks"]) - right)
    assert (wrong, len(rows["naive chunks"])) == (6, 9)


def test_sentence_is_current() -> None:
    found = headline.read(FIGURES, headline.IN_README)
    assert headline.written_into(README, "headline", headline.sentence(found)) == README
    assert found.ratios["best"] * (1 - found.spread) > 1, "the spread does not carry the claim"
    assert f"(docs/{headline.picture(headline.IN_README).name})" in README


@pytest.mark.parametrize("tier", headline.measured(FIGURES))
def test_chart_is_current_and_to_scale(tier: str) -> None:
    found = headline.read(FIGURES, tier)
    drawn = headline.picture(tier).read_text("utf-8")
    assert drawn == headline.draw(found), "python -m benchmarks.headline"
    assert f"({headline.picture(tier).name})" in headline.part_of(FIGURES, tier)
    root = ElementTree.fromstring(drawn)
    bars = [float(bar.get("width", "")) for bar in root.iter(f"{SVG}rect")]
    speeds = list(found.speeds.values())
    assert len(bars) == len(speeds) >= 5
    for bar, speed in zip(bars, speeds, strict=True):
        assert bar / bars[0] == pytest.approx(speed / speeds[0], abs=0.002)
    for line in root.iter(f"{SVG}line"):
        assert float(line.get("x2", "")) < headline.WIDTH - 30


def test_no_figures_without_tables() -> None:
    with pytest.raises(ValueError, match="no table of avx2"):
        headline.read("nothing", "avx2")
    with pytest.raises(ValueError, match="once each"):
        headline.written_into("nothing", "headline", "new")


def test_links_of_the_papers_lead_somewhere() -> None:
    """README and the papers beside it, on GitHub and in the sdist: files and headings."""
    for name in (
        *("README.md", "CONTRIBUTING.md", "NOTES.md", "SECURITY.md"),
        *("examples/README.md", "benchmarks/README.md"),
    ):
        text = (TOP / name).read_text("utf-8")
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, heading = link.partition("#")
            target = (TOP / name).parent / path if path else TOP / name
            assert target.exists(), (name, link)
            if heading:
                headings = re.findall(r"^#+ (.*)$", target.read_text("utf-8"), re.M)
                slugs = {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}
                assert heading in slugs, (name, link)
