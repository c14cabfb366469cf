"""Change one operator or constant of a source at a time: does a test fail?

    python -m tests.long.mutants streamtok/training tests/training --number 40
    python -m tests.long.mutants --at streamtok/_core/stream/tail.pxi:60:15 tests/api

The first argument is a file or folder of Python, Cython or C, the others are tests. Each mutant is
tried in a copy of the tree, where the modules of the core that it is in are built again, without
optimisation: some ten seconds. The first test that fails ends it. What is not found may mean the
same as before, or be code that this processor does not run: look at each, and try it with more
tests (`--at`).
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
CORE = "streamtok/_core"
COPIED = shutil.ignore_patterns(".git", ".nox", ".hypothesis", "build", "dist", "*.egg-info")
MEMORY = 8 << 30  # for a test: a loop without end may allocate
INSTEAD = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+",
    "+=": "-=", "and": "or", "or": "and", "not": "", "True": "False", "False": "True",
    "0": "1", "1": "2", "break": "pass", "continue": "pass", "&&": "||", "||": "&&",
}  # fmt: skip
IN_C = {"break": "", "continue": ""}
TEXTS = (
    r'"""[\s\S]*?"""|/\*[\s\S]*?\*/|#.*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''  # or comments
)
OLD = "|".join(map(re.escape, sorted(INSTEAD, key=len, reverse=True)))
TOKEN = re.compile(rf"{TEXTS}|(?<=[ (\[])({OLD})(?=[ ,;:)\]\n])")
NO_TESTS = ["--ignore=tests/core/test_build.py"]  # it finds any change of the sources
BUILD = """
import sys, setup as core
core.compile_args += ["-O0", "-w"]
made = [core.extension(name) for name in sys.argv[1:]]
made = core.cythonize(made, compiler_directives=core.DIRECTIVES, force=True)
core.setup(ext_modules=made, script_args=["-q", "build_ext", "--inplace", "--force"])
"""


class Mutant(NamedTuple):
    path: str
    line: int
    column: int
    old: str

    @property
    def new(self) -> str:
        instead = INSTEAD[self.old]
        return IN_C.get(self.old, instead) if self.path.endswith(".h") else instead

    def write(self, tree: Path) -> None:
        lines = (ROOT / self.path).read_text("utf-8").split("\n")
        text, end = lines[self.line - 1], self.column + len(self.old)
        lines[self.line - 1] = text[: self.column] + self.new + text[end:]
        (tree / self.path).write_text("\n".join(lines), "utf-8")


def mutants_of(path: Path) -> Iterator[Mutant]:
    """All of a file."""
    text = path.read_text("utf-8")
    for match in TOKEN.finditer(text):
        if match[1]:
            start = text.rfind("\n", 0, match.start()) + 1
            name = path.relative_to(ROOT).as_posix()
            line = text.count("\n", 0, start) + 1
            yield Mutant(name, line, match.start() - start, match[1])


def units_with(path: str) -> list[str]:
    """The modules of the core that a file is a part of."""
    folder = ROOT / CORE

    def parts(name: str, found: set[str]) -> set[str]:
        if name not in found and (folder / name).exists():
            found.add(name)
            text = (folder / name).read_text("utf-8")
            for other in re.findall(r'(?:include|extern from) "([^"]+)"', text):
                parts(other, found)
            for module in [Path(name).stem, *re.findall(r"_core\.(\w+) cimport", text)]:
                parts(f"{module}.pxd", found)  # a module has the one of its name
        return found

    name = Path(path).relative_to(CORE).as_posix()
    units = [*(unit.name for unit in folder.glob("*.pyx")), "../../tests/core/_testing.pyx"]
    return sorted(Path(unit).stem for unit in units if name in parts(unit, set()))


def run(command: list[str], tree: Path, seconds: float) -> tuple[int, str]:
    """Exit code and output. Raises TimeoutExpired when it, and all it started, has been ended."""
    process = subprocess.Popen(
        command, cwd=tree, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True, env={**os.environ, "PYTHONPATH": str(tree)},
    )  # fmt: skip
    resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return process.returncode, output


def outcome(mutant: Mutant, tree: Path, tests: list[str], seconds: float) -> str:
    """What notices it: a test, the time or the compiler; or "not found"."""
    try:
        if mutant.path.startswith(CORE) and not mutant.path.endswith(".py"):
            units = units_with(mutant.path)
            if run([sys.executable, "-c", BUILD, *units], tree, seconds)[0]:
                return "the compiler"
        command = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider"]
        code, output = run([*command, *NO_TESTS, *tests], tree, seconds)
    except subprocess.TimeoutExpired:
        return "the time"
    failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if code == 0:
        return "not found"
    return failed[0].split(" - ")[0].partition(" ")[2] if failed else f"exit code {code}"


def restore(mutant: Mutant, tree: Path) -> None:
    """Put back the source and what was built of it."""
    shutil.copy(ROOT / mutant.path, tree / mutant.path)
    if mutant.path.startswith(CORE):
        for built in (ROOT / CORE).glob("*.so"):
            shutil.copy2(built, tree / CORE / built.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("paths", nargs="*", metavar="SOURCE TESTS", help="with --at: tests only")
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600, help="for the tests of one mutant")
    parser.add_argument("--at", action="append", default=[], metavar="FILE:LINE:COLUMN")
    options = parser.parse_args()
    if options.at:
        names = {at.split(":")[0] for at in options.at}
        files, tests = [ROOT / name for name in sorted(names)], options.paths
    elif options.paths:
        source, tests = ROOT / options.paths[0], options.paths[1:]
        files = [source] if source.is_file() else sorted(source.rglob("*"))
    else:
        parser.error("name a source")
    if not tests:
        parser.error("name tests")
    kinds = (".py", ".pyx", ".pxi", ".h")
    every = [one for path in files if path.suffix in kinds for one in mutants_of(path)]
    if options.at:
        chosen = [m for m in every if f"{m.path}:{m.line}:{m.column}" in options.at]
    else:
        chosen = random.Random(options.seed).sample(every, min(options.number, len(every)))
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        shutil.copytree(ROOT, tree, ignore=COPIED)
        for mutant in chosen:
            mutant.write(tree)
            begun = time.monotonic()
            found = outcome(mutant, tree, tests, options.seconds)
            missed += found == "not found"
            change = f"`{mutant.old}` -> `{mutant.new}`"
            place = f"{mutant.path}:{mutant.line}:{mutant.column}"
            print(f"{place} {change}: {found}, {time.monotonic() - begun:.0f} s", flush=True)
            restore(mutant, tree)
    print(f"{len(chosen) - missed} of {len(chosen)} were found (seed {options.seed})")


if __name__ == "__main__":
    main()
