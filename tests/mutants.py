"""Change one operator or constant of a source at a time: does a test fail?

    python -m tests.mutants streamtok/training tests/training tests/states --number 40
    python -m tests.mutants streamtok/_core/stream tests/states tests/api --number 100

The first argument is a file or folder of Python or Cython, the others are tests. Each mutant is
tried in a copy of the tree, whose core is built again where the mutant is in it. What is not found
may mean the same as before: look at each.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
COPIED = shutil.ignore_patterns(".git", ".nox", ".hypothesis", "dist", "*.egg-info")
INSTEAD = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+",
    "+=": "-=", "and": "or", "or": "and", "not": "", "True": "False", "False": "True",
    "0": "1", "1": "2", "break": "pass", "continue": "pass",
}  # fmt: skip


class Mutant(NamedTuple):
    path: str
    line: int
    column: int
    old: str

    def write(self, tree: Path) -> None:
        lines = (ROOT / self.path).read_text("utf-8").split("\n")
        text, end = lines[self.line - 1], self.column + len(self.old)
        lines[self.line - 1] = text[: self.column] + INSTEAD[self.old] + text[end:]
        (tree / self.path).write_text("\n".join(lines), "utf-8")


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every operator and constant between blanks or brackets, outside of texts and comments."""
    name = path.relative_to(ROOT).as_posix()
    try:
        for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
            (line, column), around = token.start, token.line
            is_apart = around[token.end[1] : token.end[1] + 1] in " ,):]\n"
            if token.string in INSTEAD and is_apart and around[column - 1 : column] in " ([":
                yield Mutant(name, line, column, token.string)
    except (tokenize.TokenError, IndentationError):  # Cython; what came before is enough
        return


def outcome(mutant: Mutant, tree: Path, tests: list[str], seconds: float) -> str:
    """What notices it: a test, the time or the compiler; or "not found"."""
    try:
        if not mutant.path.endswith(".py"):
            build = [sys.executable, "setup.py", "build_ext", "--inplace"]
            if subprocess.run(build, cwd=tree, check=False, capture_output=True).returncode:
                return "the compiler"
        command = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", *tests]
        ran = subprocess.run(
            command, cwd=tree, timeout=seconds, check=False, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(tree)},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "the time"
    failed = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if ran.returncode == 0:
        return "not found"
    return failed[0].split(" - ")[0].partition(" ")[2] if failed else f"exit code {ran.returncode}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("source")
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600, help="for the tests of one mutant")
    options = parser.parse_args()
    source = ROOT / options.source
    kinds = (".py", ".pyx", ".pxi")
    files = [source] if source.is_file() else sorted(source.rglob("*"))
    every = [one for path in files if path.suffix in kinds for one in mutants_of(path)]
    chosen = random.Random(options.seed).sample(every, min(options.number, len(every)))
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        shutil.copytree(ROOT, tree, ignore=COPIED)
        for mutant in chosen:
            mutant.write(tree)
            begun = time.monotonic()
            found = outcome(mutant, tree, options.tests, options.seconds)
            missed += found == "not found"
            change = f"`{mutant.old}` -> `{INSTEAD[mutant.old]}`"
            place = f"{mutant.path}:{mutant.line}:{mutant.column}"
            print(f"{place} {change}: {found}, {time.monotonic() - begun:.0f} s", flush=True)
            shutil.copy(ROOT / mutant.path, tree / mutant.path)
    print(f"{len(chosen) - missed} of {len(chosen)} were found (seed {options.seed})")


if __name__ == "__main__":
    main()
