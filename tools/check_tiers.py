"""Compare the SIMD tiers of `_core/windows.h` with the plain C version, also for other processors.

    python tools/check_tiers.py
    CC=aarch64-linux-gnu-gcc RUN=qemu-aarch64 python tools/check_tiers.py

The script compiles a small static C program with the header ($CC, or cc), and runs it ($RUN, if
set) on random text with the tables of each bundled encoding. It exits with an error if any masks
differ. `tests/core/test_fast_paths.py` does the same on the processor that runs the tests; this
script is for NEON.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import streamtok
from streamtok.vocabulary.bundled import BUNDLED_NAMES

CORE = Path(__file__).resolve().parent.parent / "streamtok" / "_core"
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include "windows.h"

enum { BLOCKS = 1000, SIZE = 64 * BLOCKS + 64 };

int main(int count, char **files) {
    static uint8_t text[SIZE];
    static uint64_t begins[BLOCKS], open[BLOCKS], true_begins[BLOCKS], true_open[BLOCKS];
    size_t differing = 0, tiers = 0;
    for (int k = 1; k < count; k++) {
        st_windows windows;
        FILE *file = fopen(files[k], "rb");
        if (!file || fread(&windows, 1, sizeof windows, file) != sizeof windows) return 2;
        fclose(file);
        for (int round = 0; round < 40; round++) {
            srand(round);
            for (size_t i = 0; i < SIZE; i++) {
                int kind = rand() % 40;
                text[i] = kind < 26   ? 'a' + kind
                          : kind < 30 ? ' '
                          : kind < 32 ? '\n'
                          : kind < 33 ? '\''
                          : kind < 34 ? '0' + rand() % 10
                          : kind < 35 ? rand() % 256
                                      : 32 + rand() % 95;
            }
            st_mark_plain(&windows, text + ST_MARGIN, BLOCKS, true_begins, true_open);
            const char *name;
            for (int tier = 0;; tier++) {
                st_mark_function *mark = st_mark_tier(tier, &name);
                if (!mark) break;
                if (k == 1 && round == 0) printf("%s\n", name);
                tiers++;
                mark(&windows, text + ST_MARGIN, BLOCKS, begins, open);
                for (int i = 0; i < BLOCKS; i++)
                    differing += begins[i] != true_begins[i] || open[i] != true_open[i];
            }
        }
    }
    printf("%zu runs, %zu blocks differ\n", tiers, differing);
    return differing != 0;
}
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "check.c"), Path(folder, "check")
        source.write_text(PROGRAM)
        files = []
        for name in BUNDLED_NAMES:
            pattern = streamtok.get_encoding(name).pattern
            assert pattern is not None
            assert pattern.windows is not None
            files.append(Path(folder, name))
            files[-1].write_bytes(pattern.windows.to_bytes())
        compiler = shlex.split(os.environ.get("CC", "cc"))
        options = ["-O2", "-Wall", "-static", f"-I{CORE}", str(source), "-o", str(program)]
        subprocess.run([*compiler, *options], check=True)
        run = shlex.split(os.environ.get("RUN", ""))
        return subprocess.run([*run, str(program), *map(str, files)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
