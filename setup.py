"""Builds the Cython core. Everything else is in pyproject.toml."""

import os
import sys
from glob import glob

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

CORE = [
    "ints",
    "signals",
    "guard",
    "text",
    "vocab",
    "merge",
    "makers",
    "stretches",
    "frontier",
    "scanner",
    "special",
    "known",
    "cells",
    "output",
    "encoder",
    "source",
    "cuts",
    "parallel",
    "batch",
    "delimited",
    "calls",
    "stream",
    "stream_calls",
    "decoder",
    "decoder_calls",
    "pieces",
    "counter",
    "pair_queue",
    "pair_floor",
    "merge_loop",
]

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "embedsignature": False,
    "freethreading_compatible": True,
    "auto_pickle": False,
    "autotestdict": False,
}

compile_args = [] if sys.platform == "win32" else ["-O3", "-fno-strict-aliasing"]
link_args: list[str] = []
sanitizers = os.environ.get("STREAMTOK_SANITIZE")  # e.g. "address,undefined"
if sanitizers:
    flags = ["-O1", "-g", "-fno-omit-frame-pointer", f"-fsanitize={sanitizers}"]
    compile_args += [*flags, "-fno-sanitize-recover=undefined"]
    link_args = [f"-fsanitize={sanitizers}"]

setup(
    ext_modules=cythonize(
        [
            Extension(
                f"streamtok._core.{name}",
                [f"streamtok/_core/{name}.pyx"],
                include_dirs=[numpy.get_include()] if name == "output" else [],
                define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
                depends=sorted(glob("streamtok/_core/*.h") + glob("streamtok/_core/*.pxd")),
                extra_compile_args=compile_args,
                extra_link_args=link_args,
            )
            for name in CORE
        ],
        compiler_directives=DIRECTIVES,
        show_all_warnings=False,
    )
)
