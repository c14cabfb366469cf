"""Builds the Cython core. Everything else is in pyproject.toml."""

import hashlib
import os
import shutil
import sys
from pathlib import Path
from typing import ClassVar

import Cython
import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, PlatformError

if sys.byteorder != "little":
    sys.exit(
        "streamtok needs a little-endian processor: it reads text as words, and ids would be wrong "
        "on this one. Encode on another machine, or use tokenizers or tiktoken here."
    )

# Largest first: they are compiled in parallel.
UNITS = ["encode", "train", "hf_rows", "_testing"]
FOR_TESTS = ("_testing", "_failing")  # in tests/core, built in a checkout only, never in a wheel
NEED_NUMPY = ("encode",)
SOURCES = sorted(
    file
    for folder in ("streamtok/_core", "tests/core")
    for file in Path(folder).rglob("*.*")
    if file.suffix in (".pyx", ".pxd", ".pxi", ".h")
)

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "embedsignature": False,
    "auto_pickle": False,
    "freethreading_compatible": True,  # shared data is immutable, or changed under a lock
    "autotestdict": False,
}

# No debug information: it doubles the C compiler's work. Sanitizers ask for it below. Functions
# begin at cache lines: otherwise, a change to one function can slow down calls of another with a
# text of eleven letters by up to 12 %.
compile_args = ["-O3", "-falign-functions=64", "-fno-strict-aliasing", "-g0"]
if sys.platform == "win32":
    compile_args = []
link_args = ["-Wl,-s"] if sys.platform == "linux" else []
macros = [("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")]
if os.environ.get("STREAMTOK_TESTING"):  # with allocations that fail on request, for gcc and clang
    UNITS.append("_failing")
    compile_args += ["-O1", "-include", "tests/core/failing_alloc.h"]
LEVELS = ["plain", "sse4", "avx2", "skylake", "avx512"]  # in the order of base/cpu.h
simd = os.environ.get("STREAMTOK_SIMD")  # the highest level to use, for tests
if simd:
    if simd not in LEVELS:
        sys.exit(f"STREAMTOK_SIMD must be one of {', '.join(LEVELS)}, not {simd!r}")
    macros.append(("ST_MOST", str(LEVELS.index(simd))))
sanitizers = os.environ.get("STREAMTOK_SANITIZE")  # e.g. "address,undefined"
if sanitizers:
    flags = ["-O1", "-g1", "-fno-omit-frame-pointer", f"-fsanitize={sanitizers}"]
    compile_args += [*flags, "-fno-sanitize-recover=undefined"]
    link_args = [f"-fsanitize={sanitizers}"]


def extension(name: str) -> Extension:
    folder = "tests/core" if name in FOR_TESTS else "streamtok/_core"
    return Extension(
        f"streamtok._core.{name}",
        [f"{folder}/{name}.pyx"],
        include_dirs=["streamtok/_core", *([numpy.get_include()] if name in NEED_NUMPY else [])],
        define_macros=macros + ([("STREAMTOK_KEEP_MALLOC", "1")] if name == "_failing" else []),
        depends=[str(file) for file in SOURCES if file.suffix != ".pyx"],
        extra_compile_args=compile_args,
        extra_link_args=link_args,
    )


NO_COMPILER = """
streamtok's core is compiled here, because there is no wheel for this Python and platform. It needs
a C compiler and Python's headers:
  Debian, Ubuntu   apt install gcc python3-dev
  Fedora, RHEL     dnf install gcc python3-devel
  Alpine           apk add gcc musl-dev python3-dev
  macOS            xcode-select --install
  Windows          Build Tools for Visual Studio, with "Desktop development with C++"
CC=clang chooses another compiler. pip install --only-binary :all: streamtok compiles nothing.
"""


class Build(build_ext):
    """Caches builds by sources and settings.

    pip builds in a new environment each time, where everything looks newer than the last build, and
    an editable install builds in another folder than an ordinary one. Extensions for tests are
    built in a checkout, or alone with --for-tests, for an installed streamtok.
    """

    user_options: ClassVar = [
        *build_ext.user_options,
        ("for-tests", None, "build only the extensions for tests"),
    ]
    boolean_options: ClassVar = [*build_ext.boolean_options, "for-tests"]

    def initialize_options(self) -> None:
        super().initialize_options()
        self.for_tests = False

    def finalize_options(self) -> None:
        super().finalize_options()
        if self.for_tests or not self.inplace:
            self.extensions = [
                ext
                for ext in self.extensions
                if ext.name.endswith(FOR_TESTS) == bool(self.for_tests)
            ]

    def run(self) -> None:
        if not self.inplace and not self.for_tests:
            for name in FOR_TESTS:  # an earlier build in the checkout may have left one
                Path(self.get_ext_fullpath(f"streamtok._core.{name}")).unlink(missing_ok=True)
        try:
            super().run()
        except (CompileError, PlatformError) as error:
            sys.exit(f"error: {error}\n{NO_COMPILER}")

    def build_extension(self, ext: Extension) -> None:
        made = Path(self.get_ext_fullpath(ext.name))
        kept = Path("build", f"kept-{fingerprint()}", made.name)
        if kept.exists():
            made.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(kept, made)
            return
        self.force = True
        super().build_extension(ext)
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_name(f"{kept.name}.{os.getpid()}.part")
        shutil.copyfile(made, part)
        part.replace(kept)  # a build that is stopped leaves no partial file


def fingerprint() -> str:
    """A hash of everything that goes into the core."""
    how = [Cython.__version__, numpy.__version__, UNITS, DIRECTIVES, compile_args, link_args]
    settings = [os.environ.get(name) for name in ("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS")]
    hashed = hashlib.sha256(repr([how, settings]).encode())
    for file in SOURCES:
        hashed.update(file.as_posix().encode() + file.read_bytes())
    return hashed.hexdigest()[:12]


if __name__ == "__main__":  # processes that compile .pyx files may import this file
    processes = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    setup(
        ext_modules=cythonize(
            [extension(name) for name in UNITS],
            compiler_directives=DIRECTIVES,
            nthreads=processes,
            show_all_warnings=False,
        ),
        cmdclass={"build_ext": Build},
        options={"build_ext": {"parallel": processes}},
    )
