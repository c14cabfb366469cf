"""Old defects, put back one at a time: does the adversary find each of them, and how soon?

    python -m tests.long.put_back                  # all of them, as a table
    python -m tests.long.put_back --only 2,5,12    # some

Each works in a copy of the tree: a few lines are changed to what they were, or to what does the
same harm in the code as it is now; the core is built again, and `tests.long.fuzz --states` runs
until it finds a difference, a crash or a hang. The seconds are those of the search, from the start
of its process. What is changed must be there word for word, so that a defect which can no longer be
put back is noticed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
CORE = "streamtok/_core/"


class Change(NamedTuple):
    path: str
    old: str
    new: str


class Defect(NamedTuple):
    number: str
    what: str
    machines: str
    changes: tuple[Change, ...]
    options: tuple[str, ...] = ()


SLOW = ("--slowest", "12")
DEFECTS = [
    Defect(
        "1", "room for the UTF-8 of a cut is too small", "whole",
        (Change(CORE + "scan/cuts.pxi", "malloc(transcode_room(s, stop - first))",
                "malloc(4 * (stop - first) + 32)"),),
    ),
    Defect(
        "2", "a failed call moves bytes that are held", "stream",
        (Change(CORE + "stream/tail.pxi", "floor = tail.mark.size", "floor = 0"),),
    ),
    Defect(
        "3", "a bytearray that is written to meanwhile", "whole",
        (Change(CORE + "text/text.pxi", "base == NULL or not PyBytes_CheckExact(<object>base)",
                "False"),),
    ),
    Defect(
        "5", "a resolved hypothesis is saved with old positions", "stream",
        (Change(CORE + "stream/tail.pxi",
                "            if not m.has_other:                 # nobody looks at it then\n"
                "                m.other = m.scan\n            check_mark(self, &m)\n", ""),
         Change(CORE + "stream/mark.pxi", "    if m.has_other and not (m.scan.committed",
                "    if not fits(tail, &m.other, m.size):\n        raise damaged('other')\n"
                "    if m.has_other and not (m.scan.committed")),
    ),
    Defect(
        "6", "a failed call loses an unfinished character", "stream",
        (Change(CORE + "stream/utf8.pxi", "    m.partial_size = 0\n    if is_clean",
                "    m.partial_size = tail.mark.partial_size = 0\n    if is_clean"),),
    ),
    Defect(
        "9", "a sequence of splits is trained as a regular expression", "trainer",
        (Change("streamtok/training/vocabulary_trainer.py",
                "pattern = self.pattern if self.pattern.is_composed else self.pattern.source",
                "pattern = self.pattern.source"),),
    ),
    Defect(
        "11", "repair copies all before each character", "stream",
        (Change(CORE + "stream/utf8.pxi",
                '    cdef bytes text = p[:raw - held].decode("utf-8", "replace").encode()\n',
                '    cdef bytes text = b""\n'
                '    for one in p[:raw - held].decode("utf-8", "replace"):\n'
                '        text = text + one.encode()\n'),),
        SLOW,
    ),
    Defect(
        "28", "a heap for runs, and a certificate for each kilobyte", "stream",
        (Change(CORE + "merge/merge.pxi", "    if t.ties == NULL:          # else the rank",
                "    if False:          # else the rank"),
         Change(CORE + "merge/stable_prefix.pxi", "WORK_PER_BYTE = 32 ",
                "WORK_PER_BYTE = 1 << 30 "),
         Change(CORE + "merge/long_pretokens.pxi",
                "        if n - done < SECTION or memcmp(p + done, w.section, SECTION) != 0:\n"
                "            break\n", "")),
        SLOW,
    ),
    Defect(
        "29", "a certificate encodes each prefix again, at any cost", "stream",
        (Change(CORE + "merge/stable_prefix.pxi", "WORK_PER_BYTE = 32 ",
                "WORK_PER_BYTE = 1 << 30 "),
         Change(CORE + "merge/stable_prefix.pxi", "FIRST_OVERLAP = 32 ",
                "FIRST_OVERLAP = 1 << 30 "),
         Change(CORE + "merge/merge.pxi", "    if t.ties == NULL:          # else the rank",
                "    if False:          # else the rank"),
         Change(CORE + "texts/encoder.pxi", "    retry_at[0] = 2 * (certain - s.start)\n", "")),
        SLOW,
    ),
    Defect(
        "12", "Python's len() under the lock of a batch", "whole",
        (Change(CORE + "texts/batch.pxi", "            at += 1\n        run.count",
                "            len(self.texts[at])\n            at += 1\n        run.count"),),
    ),
    Defect(
        "13", "a StreamDecoder has no guard", "decoder",
        (Change(CORE + "decode/stream_decoder.pxi", "        enter(&self.busy)\n",
                "        pass\n"),),
    ),
    Defect(
        "38", "a decoder moves on before the call is sure to succeed", "decoder",
        (Change(CORE + "decode/stream_decoder.pxi",
                "            try:\n                text = PyUnicode_DecodeUTF8Stateful(",
                "            self.reached.tokens_in = after.tokens_in\n"
                "            try:\n                text = PyUnicode_DecodeUTF8Stateful("),),
    ),
]  # fmt: skip


def put_back(defect: Defect, seconds: float, seed: int) -> tuple[float | None, str]:
    """(seconds until it was found, or None; what was said) of one defect."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        shutil.copytree(
            ROOT,
            tree,
            ignore=shutil.ignore_patterns(".git", ".nox", ".hypothesis", "dist", "*.egg-info"),
        )
        is_built = False
        for path, old, new in defect.changes:
            text = (tree / path).read_text("utf-8")
            (tree / path).write_text(text.replace(old, new), "utf-8")
            is_built |= path.startswith(CORE)
        if is_built:
            build = [sys.executable, "setup.py", "build_ext", "--inplace"]
            subprocess.run(build, cwd=tree, check=True, capture_output=True)
        command = [
            sys.executable,
            "-m",
            "tests.long.fuzz",
            "--states",
            "--machines",
            defect.machines,
        ]
        command += ["--seconds", str(seconds), "--seed", str(seed), "--shrink-seconds", "0"]
        start = time.monotonic()
        ran = subprocess.Popen(
            [*command, *defect.options], cwd=tree, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=os.environ | {"MALLOC_PERTURB_": "165"},
        )  # fmt: skip
        assert ran.stdout is not None
        found, said = None, ""
        for line in ran.stdout:
            if found is None and line.startswith("DIFFERENCE"):
                found, said = time.monotonic() - start, line.partition(" steps: ")[2].strip()
        ran.wait()
        return found, said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", help="numbers of defects, with commas")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else [defect.number for defect in DEFECTS]
    gone = [
        f"defect {defect.number}: {path} has no {old!r}"
        for defect in DEFECTS
        for path, old, _ in defect.changes
        if defect.number in chosen and old not in (ROOT / path).read_text("utf-8")
    ]
    if gone:
        sys.exit("\n".join(["cannot be put back:", *gone]))
    print("| defect | what was put back | machine | seconds | what was said |")
    print("|---|---|---|--:|---|")
    missed = 0
    for defect in DEFECTS:
        if defect.number in chosen:
            found, said = put_back(defect, options.seconds, options.seed)
            missed += found is None
            shown = "not found" if found is None else f"{found:.1f}"
            print(
                f"| {defect.number} | {defect.what} | {defect.machines} | {shown} | {said[:70]} |",
                flush=True,
            )
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
