"""The tutorial and the how-to guides: their blocks run in order and print what they show.

A block of Python or shell is run unless `<!-- not run -->` stands before it. A block of text below
it is all that it prints; `<!-- ends with -->` between them says that it is only the end.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

from ..cli.test_cli import POSIX
from ..doc_blocks import DOCS, run_shell

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
]
STAND_INS = {
    "langchain_text_splitters": "langchain_text_splitters.py",
    "llama_index": "llama_index",
}
_BLOCK = re.compile(
    r"(?P<not_run><!-- not run -->\n)?```(?P<language>python|sh)\n(?P<code>.*?)^```\n"
    r"(?:(?:<!-- (?P<end>ends with) -->\n)?```text\n(?P<shown>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)


@pytest.mark.parametrize("guide", GUIDES)
def test_guide(guide: str, tmp_path: Path) -> None:
    shutil.copytree(DOCS.parent / "examples", tmp_path / "examples")
    for name, path in STAND_INS.items():
        if importlib.util.find_spec(name) is None:
            source = Path(__file__).parent / "stand_ins" / path
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, tmp_path / path)
    found = list(_BLOCK.finditer((DOCS / guide).read_text("utf-8")))
    assert sum(not block["not_run"] for block in found) >= 2
    for block in found:
        if block["not_run"]:
            continue
        code = block["code"]
        if block["language"] == "python":
            (tmp_path / "block.py").write_text(code, "utf-8")
            code = "python -W error::ResourceWarning block.py"
        printed = run_shell(code, tmp_path)
        if block["end"]:
            assert printed.endswith(block["shown"]), code
        elif block["shown"] is not None:
            assert printed == block["shown"], code


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
