"""Blocks of Markdown, to run as they stand; programs as modules."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from .serve_clients import ENV

DOCS = Path(__file__).resolve().parent.parent / "docs"
_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>run|not run|until a signal) -->\n)?"
    r"^```(?P<language>\w+)\n(?P<code>.*?)^```\n"
    r"(?:(?:<!-- (?P<end>ends with) -->\n)?```text\n(?P<shown>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)


class Block(NamedTuple):
    """mark: the comment before it. shown: the text below it, or None; is_end: only its end."""

    mark: str | None
    language: str
    code: str
    shown: str | None
    is_end: bool


def module_at(path: Path) -> ModuleType:
    """A file of Python that is in no package, as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_tool(name: str) -> ModuleType:
    return module_at(DOCS.parent / "tools" / f"{name}.py")


def blocks_of(text: str) -> list[Block]:
    """All blocks of a page, in order."""
    return [
        Block(one["mark"], one["language"], one["code"], one["shown"], bool(one["end"]))
        for one in _BLOCK.finditer(text)
    ]


def blocks(name: str, language: str) -> list[tuple[str, str]]:
    """(code, the output shown below it or "") of each block of this language marked `run`."""
    every = blocks_of((DOCS / name).read_text("utf-8"))
    found = [
        (one.code, one.shown or "")
        for one in every
        if (one.mark, one.language) == ("run", language)
    ]
    assert found
    return found


def block_that_has(name: str, language: str, text: str) -> str:
    """The code of the page's only block of this language that has the text."""
    every = blocks_of((DOCS / name).read_text("utf-8"))
    [code] = [one.code for one in every if one.language == language and text in one.code]
    return code


def need(*programs: str) -> None:
    """Skip the test where one of them is missing; fail it where they were promised.

    STREAMTOK_NEEDS: programs that the machine is said to have, separated by blanks.
    """
    from shutil import which

    for program in programs:
        if which(program) is None:
            reason = f"{program} is not installed"
            if program in os.environ.get("STREAMTOK_NEEDS", "").split():
                pytest.fail(reason)
            pytest.skip(reason)


def run_shell(script: str, folder: Path) -> str:
    """str: what the script prints. Raises CalledProcessError if any command of it fails."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    command = programs / "streamtok"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m streamtok "$@"\n')
    command.chmod(0o755)
    here = os.path.dirname(sys.executable)
    env = {**ENV, "PATH": os.pathsep.join([str(programs), here, os.environ["PATH"]])}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=env, check=True, timeout=60,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return done.stdout
