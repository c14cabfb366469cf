"""Imports between modules, and the floors that they must respect, for a test and a table.

    python tools/architecture.py            the table of layers, in Markdown
    python tools/architecture.py --write    the same, into docs/architecture.md

All imports count: at the top of a file, inside functions, and for types only.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parents[1]
FLOORS = Path(__file__).with_name("floors.txt")
PAGE = TOP / "docs" / "architecture.md"
BEGIN, END = "<!-- layers: python tools/architecture.py --write -->", "<!-- end of layers -->"
ROOT = "streamtok"

Graph = Mapping[str, set[str]]


class Floor(NamedTuple):
    """One line of `floors.txt`."""

    layer: str  # and what it does
    name: str
    members: list[str]
    purpose: str


def read_floors(text: str) -> list[Floor]:
    """The floors, the lowest first."""
    floors, layer = [], ""
    for line in text.splitlines():
        if line.startswith("["):
            layer = line.strip("[]")
        elif line and not line.startswith("#"):
            name, _, rest = line.partition(": ")
            members, _, purpose = rest.partition(" | ")
            floors.append(Floor(layer, name, members.split(), purpose))
    return floors


def import_graph(package: Path) -> dict[str, set[str]]:
    """Each module of the package (`encoding`, `formats.gpt2`; the root is `streamtok`), and the
    modules of the package that it imports. Compiled modules are found by their stub or source.
    """
    files: dict[str, list[Path]] = {}
    for path in sorted(package.rglob("*")):
        if path.suffix in (".py", ".pyi", ".pyx", ".pxi", ".pxd"):
            parts = path.relative_to(package).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or ROOT
            files.setdefault(name, []).append(path)
    return {
        name: {found for path in paths for found in _imports(name, path, files)} - {name}
        for name, paths in files.items()
    }


def _imports(name: str, path: Path, files: Container[str]) -> set[str]:
    text = path.read_text("utf-8")
    if path.suffix not in (".py", ".pyi"):
        found = re.findall(rf"^\s*(?:from|import) {ROOT}\.([\w.]+)", text, re.MULTILINE)
        return {module for module in found if module in files}
    is_package = path.stem == "__init__"
    home = [] if name == ROOT else name.split(".")[: None if is_package else -1]
    result: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            targets = [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = [ROOT, *home[: len(home) - node.level + 1], *filter(None, [node.module])]
            targets = [(".".join(base), alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            targets = [(node.module or "", alias.name) for alias in node.names]
        else:
            continue
        for module, member in targets:
            if module != ROOT and not module.startswith(f"{ROOT}."):
                continue
            short = module[len(ROOT) + 1 :]
            inner = ".".join(filter(None, [short, member]))
            if member and inner in files:
                result.add(inner)
            elif short in files:
                result.add(short)
            elif not short:
                result.add(ROOT)
    return result


def floor_of(module: str, floors: Iterable[Floor]) -> int:
    """The number of a module's floor, by the longest matching name; -1 if none matches."""
    best, number = "", -1
    for at, floor in enumerate(floors):
        for member in floor.members:
            is_in = module == member or module.startswith(f"{member}.")
            if is_in and len(member) > len(best):
                best, number = member, at
    return number


def upward_imports(graph: Graph, floors: list[Floor]) -> list[tuple[str, str]]:
    """(module, a module that it imports from a higher floor)."""
    return [
        (module, other)
        for module, others in sorted(graph.items())
        for other in sorted(others)
        if floor_of(other, floors) > floor_of(module, floors)
    ]


def cycles(graph: Graph) -> list[list[str]]:
    """Modules that import one another, however indirectly: strongly connected components of more
    than one module (Tarjan, 1972).
    """
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = low[module] = len(order)
        stack.append(module)
        for other in sorted(graph.get(module, ())):
            if other not in order:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], order[other])
        if low[module] == order[module]:
            at = stack.index(module)
            component, stack[at:] = stack[at:], []
            if len(component) > 1:
                found.append(sorted(component))

    for module in sorted(graph):
        if module not in order:
            visit(module)
    return found


def layers(floors: list[Floor]) -> str:
    """A Markdown table: a row for each layer, the highest first, with its modules."""
    rows = ["| layer | what it does | modules |", "|---|---|---|"]
    for layer in dict.fromkeys(floor.layer for floor in reversed(floors)):
        name, _, purpose = layer.partition(": ")
        inside = [floor for floor in reversed(floors) if floor.layer == layer]
        modules = "; ".join(" ".join(f"`{one}`" for one in floor.members) for floor in inside)
        rows.append(f"| **{name}** | {purpose} | {modules} |")
    return "\n".join(rows)


def page_with(table: str, page: str) -> str:
    """The page, with the table between its markers."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table}\n{END}{tail}"


if __name__ == "__main__":
    table = layers(read_floors(FLOORS.read_text("utf-8")))
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page_with(table, PAGE.read_text("utf-8")), "utf-8")
    else:
        print(table)
