"""Compare the code that uses `_core/vector/` with plain C, on this processor or an emulated one.

    python tools/check_tiers.py
    CC=aarch64-linux-gnu-gcc RUN=qemu-aarch64 python tools/check_tiers.py
    CC="x86_64-w64-mingw32-gcc -D_UCRT" RUN=wine python tools/check_tiers.py

The script compiles a small static C program with the headers ($CC, or cc), and runs it ($RUN, if
set) on random text with the tables of each bundled encoding, at each level that the processor has.
It exits with an error if any results differ. `tests/core` does the same on the processor that runs
the tests; this script is for NEON and for Windows.
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
#include "scan/find_pair.h"
#include "scan/substitutes.h"
#include "scan/windows.h"
#include "text/valid_utf8.h"
#include "transform/leads.h"

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
    int is_utf8 = round % 4 == 3;
    srand(round);
    for (size_t i = 0; i < SIZE; i++) {
        int kind = rand() % 40;
        const char *wide = some[rand() % (is_utf8 ? 5 : 7)];
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
                  : kind < 35 ? rand() % (is_utf8 ? 128 : 256)
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

/* The end of the character at p[i], or i if none is there: table 3-7 of Unicode. */
static size_t character_end(const uint8_t *p, size_t i, size_t n) {
    uint8_t a = p[i], low = a == 0xE0 ? 0xA0 : a == 0xF0 ? 0x90 : 0x80;
    uint8_t high = a == 0xED ? 0x9F : a == 0xF4 ? 0x8F : 0xBF;
    size_t end = i + (a < 0x80 ? 1 : a < 0xC2 ? 0 : a < 0xE0 ? 2 : a < 0xF0 ? 3 : a < 0xF5 ? 4 : 0);
    if (end > n) return i;
    for (size_t k = i + 1; k < end; k++, low = 0x80, high = 0xBF)
        if (p[k] < low || p[k] > high) return i;
    return end;
}

/* Searches whose results differ: of pairs, of bytes in a set, of what is not UTF-8. */
static size_t compare_searches(int most, int round) {
    size_t differing = 0, well = 0, n = SIZE - (size_t)rand() % 200, next;
    uint8_t first = (uint8_t)rand(), second = (uint8_t)rand();
    st_leads set;
    for (size_t at = 0; at < n; at += 1 + (size_t)rand() % 300) {
        size_t size = (size_t)rand() % (n - at), here = rand() % 2 ? at : at + size / 2;
        if (rand() % 4 && here + 1 < n) first = text[here], second = text[here + 1];
        differing += st_find_pair_tier(most)(text + at, size, first, second) !=
                     st_find_pair_plain(text + at, size, first, second);
    }
    memset(&set, 0, sizeof set);
    set.leaves_ascii = round % 2;
    for (int k = 0; k < 4; k++)
        st_leads_add(&set, (uint8_t)(round % 2 ? 0xC0 + rand() % 64 : rand() % 128));
    for (size_t at = 0; at + 64 <= SIZE; at += 1 + (size_t)rand() % 90)
        differing += st_leads_tier(most)(&set, text + at) != st_leads_plain(&set, text + at);
    while (well < n && (next = character_end(text, well, n)) > well) well = next;
    for (size_t at = 0; at <= well; at = at < well ? character_end(text, at, n) : at + 1) {
        size_t end = at + st_valid_utf8_tier(most)(text + at, n - at), k = at;
        while (k < end) k = character_end(text, k, n);
        differing += end > well || k != end || (most > ST_PLAIN && end + 128 < well);
        if (at % 7 == 0 && at > 200) break;
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
            for (int most = ST_PLAIN; most <= ST_ANY; most++) {
                if (st_level(most) != most) continue;
                if (k == 1 && round == 0) printf("%s\n", st_level_name(most));
                tiers++;
                st_mark_tier(most)(&windows, text + ST_MARGIN, BLOCKS, begins, open);
                for (int i = 0; i < BLOCKS; i++)
                    differing += begins[i] != true_begins[i] || open[i] != true_open[i];
                differing += compare_searches(most, round);
            }
            for (int most = ST_PLAIN; most <= ST_ANY; most++)
                if (st_level(most) == most) differing += compare_squeezed(most);
        }
    }
    printf("%zu runs, %zu results differ\n", tiers, differing);
    return differing != 0;
}
"""
SUBSTITUTES = 0x10000 + 4  # bytes of the table in the C program
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
            table = table[:128] + table[128:].replace(b"\0", b"\xff")  # as in `Scanner`
            files[-1].write_bytes(table.ljust(SUBSTITUTES, b"\0"))
        compiler = shlex.split(os.environ.get("CC", "cc"))
        options = ["-O2", "-Wall", "-static", f"-I{CORE}", str(source), "-o", str(program)]
        subprocess.run([*compiler, *options], check=True)
        run = shlex.split(os.environ.get("RUN", ""))
        return subprocess.run([*run, str(program), *map(str, files)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
