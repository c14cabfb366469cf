"""Give autodoc signatures of compiled methods, examples, and docstrings as plain text.

The core is compiled without types in its signatures; its stubs (`.pyi`) have them. Examples that
are not in a docstring are in `reference/examples/*.txt`: a line `# name`, then the example. Tests
run them (`tests/docs/test_reference.py`). Docstrings are plain text with code in single backticks.
Characters that would be reStructuredText markup are escaped.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent.parent
_NAME = re.compile(r"^# (\S+)\n", re.MULTILINE)
_MARKUP = re.compile(r"([*|_\\\\])")


def read_examples(folder: Path = DOCS / "reference" / "examples") -> dict[str, str]:
    """Map public names ("Encoding.encode") to their examples. Raises ValueError for duplicates."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.txt")):
        parts = _NAME.split(path.read_text("utf-8"))
        for name, example in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise ValueError(f"{path}: the second example of {name}")
            found[name] = example.strip() + "\n"
    return found


@cache
def stub_signatures() -> dict[str, tuple[str, str]]:
    """Map methods and functions in the core's stub to (arguments without self, result)."""
    import streamtok

    stub = Path(streamtok.__file__).parent / "_core" / "encode.pyi"
    found = {}
    for node in ast.walk(ast.parse(stub.read_text("utf-8"))):
        for method in getattr(node, "body", []) if isinstance(node, ast.ClassDef) else []:
            if isinstance(method, ast.FunctionDef) and node.name.startswith("Fast"):
                arguments = ast.unparse(method.args).removeprefix("self").removeprefix(", ")
                result = ast.unparse(method.returns) if method.returns else ""
                found[f"{node.name}.{method.name}"] = (f"({arguments})", result)
    for function in ast.parse(stub.read_text("utf-8")).body:
        if isinstance(function, ast.FunctionDef) and function.returns:
            signature = f"({ast.unparse(function.args)})", ast.unparse(function.returns)
            found[function.name] = signature
    return found


def add_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: Any, result: Any
) -> tuple[str, str] | None:
    """Replace the signature that autodoc found with the stub's, if there is one."""
    if what not in ("method", "function"):
        return None
    return stub_signatures().get(getattr(obj, "__qualname__", ""))


def escaped(lines: list[str]) -> list[str]:
    """The lines of a docstring, with markup escaped outside of code and examples."""
    done, is_example = [], False
    for line in lines:
        is_example = line.lstrip().startswith(">>>") or (is_example and bool(line.strip()))
        parts = line.split("`")
        if not is_example:
            parts[::2] = [_MARKUP.sub(r"\\\1", part) for part in parts[::2]]
        done.append("`".join(parts))
    return done


def edit_docstring(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Escape a docstring, and append the example of `reference/examples` if it has none."""
    lines[:] = escaped(lines)
    example = app.streamtok_examples.get(name.removeprefix("streamtok."))  # type: ignore[attr-defined]
    if example and not any(">>>" in line for line in lines):
        lines += ["", *example.splitlines(), ""]


def setup(app: Sphinx) -> dict[str, bool]:
    app.streamtok_examples = read_examples()  # type: ignore[attr-defined]
    app.connect("autodoc-process-signature", add_signature)
    app.connect("autodoc-process-docstring", edit_docstring)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
