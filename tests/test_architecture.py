"""The house rules that a program can check: floors, cycles, rooms. See `docs/architecture.md`."""

from __future__ import annotations

import ast
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import streamtok

from .doc_blocks import load_tool

TOP = Path(__file__).resolve().parents[1]
PACKAGE = Path(streamtok.__file__).parent


architecture = load_tool("architecture")
GRAPH = architecture.import_graph(PACKAGE)
FLOORS = architecture.read_floors((TOP / "tools" / "floors.txt").read_text("utf-8"))


def test_the_graph_has_what_is_there() -> None:
    """Imports in functions and for types are seen, and so are those of compiled modules' stubs."""
    assert "chunker" in GRAPH["encoding"]  # in a function
    assert "definition" in GRAPH["chunker"]  # for types
    assert "encoding" in GRAPH["registry"]
    assert any(module.startswith("_core.") for module in GRAPH["engines.plain"])
    assert len(GRAPH) > 100


def test_every_module_has_a_floor() -> None:
    assert [module for module in GRAPH if architecture.floor_of(module, FLOORS) < 0] == []
    named = [member for floor in FLOORS for member in floor.members]
    gone = [m for m in named if not any(x == m or x.startswith(f"{m}.") for x in GRAPH)]
    assert gone == []


def test_no_import_goes_up() -> None:
    assert architecture.upward_imports(GRAPH, FLOORS) == []


def test_there_is_no_cycle() -> None:
    assert architecture.cycles(GRAPH) == []


@pytest.mark.parametrize(
    ("module", "other"),
    [
        ("encoding", "registry"),
        ("engines.whole_texts", "encoding"),
        ("patterns.dfa", "patterns.pattern"),
        ("engines.texts", "encoding"),
    ],
)
def test_a_cycle_that_is_put_back_is_found(module: str, other: str) -> None:
    graph = {name: set(others) for name, others in GRAPH.items()}
    graph[module].add(other)
    found = architecture.cycles(graph)
    assert len(found) == 1
    assert {module, other} <= set(found[0])


def test_an_import_that_goes_up_is_found() -> None:
    graph = GRAPH | {"errors": {"cli.main"}}
    assert architecture.upward_imports(graph, FLOORS) == [("errors", "cli.main")]


# Of objects that have no other name for it: named tuples, and tiktoken's encodings.
NAMES_OF_OTHERS = {"_asdict", "_field_defaults", "_fields", "_replace"}
NAMES_OF_OTHERS |= {"_mergeable_ranks", "_pat_str", "_special_tokens"}


OWN = ("self", "cls", "twin")  # a twin is a copy of self


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in NAMES_OF_OTHERS


def private_uses(tree: ast.Module) -> list[tuple[int, str]]:
    """(line, name) of private names of other objects and modules."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            owner = node.value
            if not (isinstance(owner, ast.Name) and owner.id in OWN):
                found.append((node.lineno, node.attr))
        elif isinstance(node, ast.ImportFrom):
            found += [(node.lineno, one.name) for one in node.names if is_private(one.name)]
    return found


def private_names(tree: ast.Module) -> set[str]:
    """Those that a module gives to something."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    return set(filter(is_private, names))


def test_no_package_uses_private_names_of_another() -> None:
    """And a package not many of its own: a name that another object needs has no underscore."""
    trees = {}
    for path in PACKAGE.rglob("*.py"):
        package = path.relative_to(PACKAGE).parts[0]  # of a module at the top, itself
        trees[path] = package, ast.parse(path.read_text("utf-8"))
    owners: dict[str, set[str]] = {}
    for package, tree in trees.values():
        for name in private_names(tree):
            owners.setdefault(name, set()).add(package)
    crossing, uses, lines = [], 0, 0
    for path, (package, tree) in trees.items():
        lines += path.read_text("utf-8").count("\n")
        for line, name in private_uses(tree):
            uses += name in owners
            if name in owners and package not in owners[name]:
                crossing.append(f"{path.relative_to(PACKAGE)}:{line} {name}")
    assert crossing == []
    assert uses <= 3 * lines / 1000


def test_the_top_floor_is_small() -> None:
    modules = sorted(path.name for path in PACKAGE.glob("*.py"))
    assert len(modules) <= 16, modules  # three of them only name what tiktoken's modules do


def test_no_two_modules_have_one_name() -> None:
    names = [path.stem for path in PACKAGE.rglob("*.py") if path.stem != "__init__"]
    names += [path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()]
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_the_page_has_the_layers() -> None:
    page = (TOP / "docs" / "architecture.md").read_text("utf-8")
    table = architecture.layers(FLOORS)
    assert table.count("\n| **") == 5
    assert architecture.page_with(table, page) == page, "run python tools/architecture.py --write"


def test_no_two_functions_of_the_core_have_one_name() -> None:
    """Those that are no methods. What `encode.pxd` declares is defined elsewhere."""
    definition = re.compile(r"^cdef (?:inline )?[\w* ]+?(\w+)\([^:]*?\)[\w ?*-]*:$", re.MULTILINE)
    found: Counter[str] = Counter()
    for path in (PACKAGE / "_core").rglob("*.px*"):
        found.update(definition.findall(path.read_text("utf-8")))
    assert len(found) > 200 or not found  # a wheel has no sources
    assert [name for name, count in found.items() if count > 1] == []


def test_the_files_of_the_core_may_be_included_in_any_order(tmp_path: Path) -> None:
    """Cython takes them in another one, too: no file depends on what comes before it."""
    if not (PACKAGE / "_core" / "encode.pyx").exists():  # a wheel has no sources
        return
    core = tmp_path / "streamtok" / "_core"
    shutil.copytree(PACKAGE / "_core", core, ignore=shutil.ignore_patterns("*.so", "*.c", "*.pyd"))
    (tmp_path / "streamtok" / "__init__.py").touch()
    unit = core / "encode.pyx"
    include = re.compile("^include .*$", re.MULTILINE)
    files = include.findall(unit.read_text("utf-8"))
    random.Random(1).shuffle(files)
    order = iter(files)
    unit.write_text(include.sub(lambda _: next(order), unit.read_text("utf-8")), "utf-8")
    command = [sys.executable, "-m", "cython", "-3", "-X", "cdivision=True", str(unit)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(files) > 40
