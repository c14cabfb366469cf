"""The core's C headers: each compiles by itself, with warnings as errors, also as plain C11.

Those of `vector/` are parts of the headers that include `vector/each_tier.h`.

Without SIMD, what remains is what other processors and compilers get.
"""

from __future__ import annotations

import os
import platform
import random
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from ..doc_blocks import need

CORE = Path(__file__).resolve().parents[2] / "streamtok" / "_core"
TOOL = CORE.parents[1] / "tools" / "check_tiers.py"
ALL = sorted(path.relative_to(CORE).as_posix() for path in CORE.rglob("*.h"))
HEADERS = [name for name in ALL if not name.startswith("vector/")]
CONDITIONS = (
    "(defined(__x86_64__) || defined(_M_X64)) && !(defined(_MSC_VER) && defined(__clang__))",
    "defined(__aarch64__)",
)
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-Wno-unused-parameter"]


def compilers() -> list[str]:
    """The one that builds the core, and clang if it is there."""
    first = shlex.split(os.environ.get("CC", "cc"))[-1]
    return [first, *(["clang"] if shutil.which("clang") and first != "clang" else [])]


def check(compiler: str, folder: Path, *options: str) -> None:
    """Compile a file that includes a header twice and nothing else of the core; of each third."""
    need(compiler)
    python = sysconfig.get_path("include")
    sources = []
    for name in HEADERS[random.randrange(3) :: 3]:
        source = folder / f"{name.replace('/', '_')}.c"
        is_about_python = "Py_" in (CORE / name).read_text("utf-8")
        python_h = "#include <Python.h>\n" if is_about_python else ""
        twice = f'#include "{name}"\n' * 2
        source.write_text(f"{python_h}{twice}extern int some;\n")  # a file of nothing is no C
        sources.append(str(source))
    command = [compiler, "-fsyntax-only", *options, *WARNINGS, "-isystem", python, *sources]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_there_are_headers() -> None:
    assert "scan/windows.h" in HEADERS


@pytest.mark.parametrize("compiler", compilers())
def test_each_header_compiles_by_itself(compiler: str, tmp_path: Path) -> None:
    check(compiler, tmp_path, "-O2", f"-I{CORE}")


@pytest.mark.parametrize("compiler", compilers())
def test_each_header_is_plain_c11_without_simd(compiler: str, tmp_path: Path) -> None:
    found = ""
    for name in ALL:
        text = (CORE / name).read_text("utf-8")
        found += text
        for condition in CONDITIONS:
            text = text.replace(condition, "0")
        assert "immintrin.h" not in text.partition("#if 0")[0], name
        copy = tmp_path / name
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(text, "utf-8")
    assert all(condition in found for condition in CONDITIONS)
    # memory in huge pages is asked for by functions that C11 alone does not have
    check(compiler, tmp_path, "-std=c11", "-pedantic", "-D_DEFAULT_SOURCE", f"-I{tmp_path}")


@pytest.mark.parametrize("compiler", compilers())
def test_a_big_endian_processor_gets_no_build(compiler: str, tmp_path: Path) -> None:
    need(compiler)
    source = tmp_path / "one.c"
    source.write_text('#include "base/native.h"\n')
    big = ["-U__BYTE_ORDER__", "-D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__"]
    for options, expected in ([], 0), (big, 1):
        command = [compiler, "-fsyntax-only", *options, f"-I{CORE}", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == expected, done.stderr
        assert ("streamtok needs a little-endian processor" in done.stderr) == bool(expected)


if TOOL.is_file() and HEADERS and sys.platform == "linux":  # a static program

    @pytest.mark.parametrize("compiler", compilers())
    def test_the_program_that_compares_tiers_does(compiler: str) -> None:
        """For other processors it is run by hand, with their compiler and an emulator."""
        need(compiler)
        command = [sys.executable, str(TOOL)]
        env = {**os.environ, "CC": compiler}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("plain")
        assert done.stdout.endswith("runs, 0 results differ\n")


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64") or sys.platform == "win32",
    reason="GCC and clang ask an x86 processor what it has",
)
@pytest.mark.parametrize("compiler", compilers())
def test_the_level_is_what_the_compiler_finds(compiler: str, tmp_path: Path) -> None:
    """`setup.py` defines ST_MOST where STREAMTOK_SIMD says so."""
    need(compiler)
    source = tmp_path / "level.c"
    levels = [
        ["ssse3", "sse4.1", "sse4.2", "popcnt"],
        ["avx2", "bmi", "bmi2"],
        ["avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512cd"],
        ["avx512vbmi", "avx512vbmi2"],
    ]
    asked = ", ".join(
        " && ".join(f'__builtin_cpu_supports("{name}")' for name in names) for names in levels
    )
    source.write_text(
        '#include <stdio.h>\n#include "base/cpu.h"\nint main(void) {'
        f'printf("%d %d %d %d %d", st_level(ST_ANY), {asked}); return 0; }}\n'
    )

    def found(*options: str) -> list[int]:
        made = tmp_path / "level"
        subprocess.run([compiler, *options, f"-I{CORE}", str(source), "-o", str(made)], check=True)
        shown = subprocess.run([str(made)], capture_output=True, text=True, check=True).stdout
        return [int(one) for one in shown.split()]

    level, *has = found()
    assert level == [*has, 0].index(0)
    for most, name in enumerate(["ST_PLAIN", "ST_SSE4", "ST_AVX2", "ST_AVX512", "ST_VBMI2"]):
        assert found(f"-DST_MOST={name}")[0] == min(level, most)
