"""Blocks of Markdown that are marked `<!-- run -->`, to run as they stand; programs as modules."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from .serve_clients import ENV

DOCS = Path(__file__).resolve().parent.parent / "docs"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


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


def blocks(name: str, language: str) -> list[tuple[str, str]]:
    """(code, the output shown below it or "") of each marked block of this language."""
    text = (DOCS / name).read_text("utf-8")
    found = []
    for part in text.split("<!-- run -->\n")[1:]:
        code = _BLOCK.match(part)
        assert code, part[:80]
        if code[1] == language:
            shown = _BLOCK.match(part, code.end())
            found.append((code[2], shown[2] if shown and shown[1] == "text" else ""))
    assert found
    return found


def block_that_has(name: str, language: str, text: str) -> str:
    """The code of the page's only block of this language that has the text."""
    found = [
        block[2]
        for block in _BLOCK.finditer((DOCS / name).read_text("utf-8"))
        if block[1] == language and text in block[2]
    ]
    assert len(found) == 1, (name, text, found)
    return found[0]


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
