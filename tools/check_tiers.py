"""Compare the SIMD tiers of windows and substitutes with plain C, also for other processors.

    python tools/check_tiers.py
    CC=aarch64-linux-gnu-gcc RUN=qemu-aarch64 python tools/check_tiers.py
    CC="x86_64-w64-mingw32-gcc -D_UCRT" RUN=wine python tools/check_tiers.py

The script compiles a small static C program with the headers ($CC, or cc), and runs it ($RUN, if
set) on random text with the tables of each bundled encoding. It exits with an error if any masks
differ. `tests/core/test_fast_paths.py` does the same on the processor that runs the tests; this
script is for NEON and for Windows.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import streamtok
from streamtok.patterns.pattern import Pattern
from streamtok.vocabulary.bundled import BUNDLED_NAMES

CORE = Path(__file__).resolve().parent.parent / "streamtok" / "_core"
PROGRAM = r"""
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include "scan/substitutes.h"
#include "scan/windows.h"

enum { BLOCKS = 1000, SIZE = 64 * BLOCKS + 64 };
enum { PACKED = offsetof(st_windows, n_classes) }; /* what `Windows.to_bytes` gives */

static uint8_t text[SIZE], squeezed[SIZE + 64], true_squeezed[SIZE + 64];
static uint8_t substitutes[ST_SUBSTITUTES_SIZE];
static uint64_t begins[BLOCKS], open[BLOCKS], true_begins[BLOCKS], true_open[BLOCKS];

static int load(const char *name, void *to, size_t size) {
    FILE *file = fopen(name, "rb");
    int is_read = file && fread(to, 1, size, file) == size;
    if (file) fclose(file);
    return is_read;
}

static void make_text(int round) {
    static const char *const some[] = {"\xc3\xa9", "\xe4\xb8\xad", "\xe0\xa4\xbe", "\xe3\x80\x80",
                                       "\xf0\x9f\x98\x80", "\xed\xa0\x80", "\xe0\x80\x80"};
    srand(round);
    for (size_t i = 0; i < SIZE; i++) {
        int kind = rand() % 40;
        const char *wide = some[rand() % 7];
        if (round % 2 && kind < 20 && i + 4 < SIZE) {
            while (*wide) text[i++] = (uint8_t)*wide++;
            i--;
            continue;
        }
        text[i] = kind < 26   ? 'a' + kind
                  : kind < 30 ? ' '
                  : kind < 32 ? '\n'
                  : kind < 33 ? '\''
                  : kind < 34 ? '0' + rand() % 10
                  : kind < 35 ? rand() % 256
                              : 32 + rand() % 95;
    }
}

static uint64_t true_deposit(uint64_t bits, uint64_t places) {
    uint64_t result = 0;
    for (; places; places &= places - 1, bits >>= 1)
        if (bits & 1) result |= places & (0 - places);
    return result;
}

/* Blocks for which a byte for each character, or bits in their places, differ. */
static size_t compare_squeezed(int most) {
    unsigned skip = 0, true_skip = 0, size;
    size_t count, true_count = 0, differing = 0;
    count = st_squeeze_tier(most)(substitutes, text, BLOCKS, SIZE, &skip, squeezed, begins);
    memset(true_begins, 0, sizeof true_begins);
    for (size_t i = 0; i < 64 * BLOCKS; i += size, true_skip = i - 64 * BLOCKS) {
        true_begins[i / 64] |= (uint64_t)1 << i % 64;
        true_squeezed[true_count++] = st_squeeze_one(substitutes, text + i, SIZE - i, &size);
    }
    differing += count != true_count || skip != true_skip || memcmp(squeezed, true_squeezed, count);
    for (int i = 0; i < BLOCKS; i++) {
        uint64_t bits = (uint64_t)rand() << 40 ^ (uint64_t)rand() << 20 ^ (uint64_t)rand();
        uint64_t one = bits, other = ~bits, places = begins[i];
        st_deposit_tier(most)(&one, &other, places);
        differing += places != true_begins[i] || one != true_deposit(bits, places) ||
                     other != true_deposit(~bits, places);
    }
    return differing;
}

int main(int count, char **files) {
    size_t differing = 0, tiers = 0;
    for (int k = 1; k + 1 < count; k += 2) {
        st_windows windows;
        if (!load(files[k], &windows, PACKED)) return 2;
        if (!load(files[k + 1], substitutes, sizeof substitutes)) return 2;
        st_fill_tables(&windows);
        for (int round = 0; round < 40; round++) {
            make_text(round);
            st_mark_plain(&windows, text + ST_MARGIN, BLOCKS, true_begins, true_open);
            const char *name;
            size_t from, extra;
            for (int tier = 0;; tier++) {
                st_mark_function *mark = st_mark_tier(tier, &name, &from, &extra);
                if (!mark) break;
                if (k == 1 && round == 0) printf("%s\n", name);
                tiers++;
                mark(&windows, text + ST_MARGIN, BLOCKS, begins, open);
                for (int i = 0; i < BLOCKS; i++)
                    differing += begins[i] != true_begins[i] || open[i] != true_open[i];
            }
            differing += compare_squeezed(ST_PLAIN) + compare_squeezed(ST_ANY);
        }
    }
    printf("%zu runs, %zu blocks differ\n", tiers, differing);
    return differing != 0;
}
"""
SUBSTITUTES = 0x10000 + 4  # bytes of the table in the program
# 13 classes of characters, where the bundled ones have at most 9
MANY_CLASSES = r"[as]+v?|[vl]+d?|[dS]+A?|/+1?|'+s?|\d+,?|\s+|[^\s\dasvldS/']"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "check.c"), Path(folder, "check.exe")
        source.write_text(PROGRAM)
        files = []
        patterns = {name: streamtok.get_encoding(name).pattern for name in BUNDLED_NAMES}
        patterns["many classes"] = Pattern.compile(MANY_CLASSES)
        for name, pattern in patterns.items():
            assert pattern is not None
            assert pattern.windows is not None
            assert pattern.substitutes is not None
            files += [Path(folder, name), Path(folder, f"{name}.substitutes")]
            files[-2].write_bytes(pattern.windows.to_bytes())
            table = pattern.substitutes.tobytes()
            table = table[:128] + table[128:].replace(b"\0", b"\xff")  # as `Scanner` makes it
            files[-1].write_bytes(table.ljust(SUBSTITUTES, b"\0"))
        compiler = shlex.split(os.environ.get("CC", "cc"))
        options = ["-O2", "-Wall", "-static", f"-I{CORE}", str(source), "-o", str(program)]
        subprocess.run([*compiler, *options], check=True)
        run = shlex.split(os.environ.get("RUN", ""))
        return subprocess.run([*run, str(program), *map(str, files)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
