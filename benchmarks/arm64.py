"""Python for arm64 under qemu, with the checkout's core and the rivals that have wheels for it.

`python -m benchmarks.instructions --arm64` uses it to count instructions. It needs Debian's or
Ubuntu's `qemu-user` and `gcc-aarch64-linux-gnu`, pip, and packages of arm64 that apt can download
(`dpkg --add-architecture arm64; apt-get update`). What it downloads and builds stays in
`build/arm64`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "arm64"
RIVALS = ("gigatoken", "fastokens")
VERSION = "{}.{}".format(*sys.version_info)  # Debian's Python must have the version that runs this
_PYTHON = f"libpython{VERSION}"
_PACKAGES = [
    *(f"python{VERSION}", f"python{VERSION}-minimal", f"{_PYTHON}-minimal", f"{_PYTHON}-stdlib"),
    *(f"{_PYTHON}-dev", "libc6", "libexpat1", "zlib1g", "libgcc-s1", "libstdc++6", "libssl3"),
    *("libffi8", "libbz2-1.0", "liblzma5", "libuuid1", "libcrypt1"),
]
_COUNTED = 999_999  # an unused system call number, which signals the plugin

# The API of qemu's plugins; no package has its header.
PLUGIN = r"""
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
typedef struct qemu_plugin_tb block;
typedef void on_block(uint64_t id, block *);
typedef void on_call(uint64_t id, unsigned cpu, int64_t number, uint64_t, uint64_t, uint64_t,
                     uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, on_block *);
extern void qemu_plugin_register_vcpu_tb_exec_inline(block *, int add, void *to, uint64_t n);
extern size_t qemu_plugin_tb_n_insns(const block *);
extern void qemu_plugin_register_vcpu_syscall_cb(uint64_t id, on_call *);
int qemu_plugin_version = 1;
static uint64_t count;
static FILE *out;
static void add(uint64_t id, block *b) {
    qemu_plugin_register_vcpu_tb_exec_inline(b, 0, &count, qemu_plugin_tb_n_insns(b));
}
static void answer(uint64_t id, unsigned cpu, int64_t number, uint64_t is_end, uint64_t b,
                   uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
    if (number != REQUEST) return;
    if (is_end) fprintf(out, "%llu\n", (unsigned long long)count), fflush(out);
    count = 0;
}
int qemu_plugin_install(uint64_t id, const void *info, int n, char **options) {
    out = fopen(options[0] + sizeof "out", "w");
    qemu_plugin_register_vcpu_tb_trans_cb(id, add);
    qemu_plugin_register_vcpu_syscall_cb(id, answer);
    return out == NULL;
}
"""


class Requests:
    """Used in the process whose instructions are counted: `begin` a count, `end` and write it."""

    def __init__(self) -> None:
        import ctypes

        self._call: Any = ctypes.CDLL(None).syscall

    def begin(self) -> None:
        self._call(_COUNTED, 0)

    def end(self, name: bytes) -> None:
        self._call(_COUNTED, 1)


def missing() -> str | None:
    """A program that has to be installed first, or None."""
    needed = ("qemu-aarch64", "aarch64-linux-gnu-gcc", "apt-get", "dpkg-deb", "cc")
    return next((name for name in needed if shutil.which(name) is None), None)


def prepare() -> None:
    """Download and build whatever `command` needs that is missing."""
    root, site, core = FOLDER / "root", FOLDER / "site", FOLDER / "tree" / "streamtok" / "_core"
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not root.exists():
        debs = FOLDER / "debs"
        debs.mkdir(exist_ok=True)
        _run("apt-get", "download", "-qq", *(f"{name}:arm64" for name in _PACKAGES), cwd=debs)
        for package in debs.iterdir():
            _run("dpkg-deb", "-x", str(package), str(root))
    if not site.exists():
        platforms = ("manylinux2014_aarch64", "manylinux_2_28_aarch64")
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps")
        _run(
            *(*pip, "--target", str(site), *(f"--platform={platform}" for platform in platforms)),
            *(f"--python-version={VERSION}", "--only-binary=:all:", "numpy", "regex", *RIVALS),
        )
    source = FOLDER / "count.c"
    source.write_text(PLUGIN)
    plugin = (f"-DREQUEST={_COUNTED}", str(source), "-o", str(FOLDER / "count.so"))
    _run("cc", "-O1", "-fPIC", "-shared", *plugin)
    shutil.rmtree(core.parents[1], ignore_errors=True)
    for package in ("streamtok", "benchmarks", "tests/core"):
        no_builds = shutil.ignore_patterns("*.so", "*.c", "__pycache__")
        shutil.copytree(ROOT / package, core.parents[1] / package, ignore=no_builds)
    include = root / "usr" / "include"
    _run(
        *(sys.executable, str(ROOT / "setup.py"), "--quiet", "build_ext", "--inplace"),
        cwd=core.parents[1],
        env=os.environ
        | {
            "CC": "aarch64-linux-gnu-gcc",
            "LDSHARED": "aarch64-linux-gnu-gcc -shared",
            "CFLAGS": f"-I{include / f'python{VERSION}'} -I{include}",
        },
    )
    for built in core.glob("*.so"):
        built.rename(built.with_name(f"{built.name.partition('.')[0]}.abi3.so"))


def command(out: Path) -> list[str]:
    """The command that runs Python and writes the counts into a file, one per line."""
    root, plugin = FOLDER / "root", f"{FOLDER / 'count.so'},out={out}"
    python = str(root / "usr" / "bin" / f"python{VERSION}")
    return ["qemu-aarch64", "-L", str(root), "-plugin", plugin, python]


def environment() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join([str(FOLDER / "tree"), str(FOLDER / "site")])}


def _run(*command: str, **options: Any) -> None:
    subprocess.run(command, check=True, **options)
