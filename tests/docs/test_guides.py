"""The tutorial and the how-to guides: their blocks run in order and print what they show.

A block of Python or shell is run unless `<!-- not run -->` stands before it. A block of text below
it is all that it prints; `<!-- ends with -->` between them says that it is only the end.
"""

from __future__ import annotations

import importlib.util
import itertools
import re
import shutil
from pathlib import Path

import pytest

from ..cli.test_cli import POSIX
from ..doc_blocks import DOCS, Block, blocks_of, run_shell

pytestmark = POSIX
GUIDES = [
    "tutorial.md",
    "howto/counting.md",
    "see.md",
    "howto/migrating.md",
    "howto/pytorch.md",
    "howto/many_machines.md",
    "howto/frameworks.md",
    "howto/stack.md",
    "howto/prompts-from-users.md",
]
STAND_INS = {
    "langchain_text_splitters": "langchain_text_splitters.py",
    "litellm": "litellm.py",
    "semchunk": "semchunk.py",
    "llama_index": "llama_index",
}
_END = "\x1e"  # of what a block of Python prints


@pytest.mark.parametrize("guide", GUIDES)
def test_guide(guide: str, tmp_path: Path) -> None:
    shutil.copytree(DOCS.parent / "examples", tmp_path / "examples")
    for name, path in STAND_INS.items():
        if importlib.util.find_spec(name) is None:
            source = Path(__file__).parent / "stand_ins" / path
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, tmp_path / path)
    found = [
        block
        for block in blocks_of((DOCS / guide).read_text("utf-8"))
        if block.language in ("python", "sh") and block.mark != "not run"
    ]
    assert len(found) >= 2
    for language, group in itertools.groupby(found, lambda block: block.language):
        blocks = list(group)
        if language == "python":
            (tmp_path / "blocks.py").write_text(_of_blocks(blocks), "utf-8")
            printed = run_shell("python -W error::ResourceWarning blocks.py", tmp_path).split(_END)
        else:
            printed = [run_shell(block.code, tmp_path) for block in blocks]
        for block, shown in zip(blocks, printed, strict=False):
            if block.is_end:
                assert shown.endswith(block.shown or ""), block.code
            elif block.shown is not None:
                assert shown == block.shown, block.code


def _of_blocks(blocks: list[Block]) -> str:
    """A program that runs one after the other, each as a program of its own: libraries that they
    import take a while.
    """
    lines = [f"CODES = {[block.code for block in blocks]!r}"]
    lines.append("for number, code in enumerate(CODES):")
    lines.append("    exec(compile(code, f'block {number}', 'exec'), {'__name__': '__main__'})")
    return "\n".join([*lines, f"    print(end={_END!r})"])


def test_the_site_has_all_pages() -> None:
    """A page that no table of contents names is one that nobody finds."""
    index = (DOCS / "index.md").read_text("utf-8")
    named = {
        line
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", index, re.S)
        for line in tree.splitlines()
        if line and not line.startswith(":")
    }
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}
    assert named | {"index"} == pages
