"""Options and inputs that change between the runs of a job, against a model of what is refused.

The model: a run continues if there is a checkpoint, the contents of the input are those that the
first run saw, and the options on which written ids depend are the same. It stops at the first line
that its own policy does not accept and that no run before it has passed. When it ends, the files
are those of a run from the beginning, unless other policies decided about some lines.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from streamtok.cli.main import main

TOKEN = "<|endoftext|>"
GOOD = json.dumps({"text": "some words, more words"})
LINES = st.lists(
    st.sampled_from([GOOD] * 6 + ["{broken", "", json.dumps({"text": f"a {TOKEN}"})]),
    min_size=20, max_size=60,
)  # fmt: skip
DEPENDS: list[list[str]] = [[], ["--append", TOKEN], ["--skip-empty"]]
NAMES = ["--append", "--skip-empty"]


class Policies(RuleBasedStateMachine):
    """One output, whose run is begun, stopped by its text and continued."""

    def __init__(self) -> None:
        super().__init__()
        self._root = tempfile.TemporaryDirectory()
        self._folder = Path(self._root.name)
        self._input = self._folder / "input"
        self._lines: list[str] = [GOOD] * 30
        self._write()
        self._begun: tuple[list[str], list[str]] | None = None  # the lines and options it had
        self._policies: list[tuple[int | None, bool]] = []  # of all runs of the job
        self._stop = 0  # the line at which the last one stopped; all before it may be done

    def teardown(self) -> None:
        self._root.cleanup()

    def _write(self) -> None:
        self._input.write_text("".join(f"{line}\n" for line in self._lines))

    @rule(lines=LINES)
    def change(self, lines: list[str]) -> None:
        self._lines = lines
        self._write()

    @rule()
    def touch(self) -> None:
        os.utime(self._input, (1, 1))

    @rule()
    def forget(self) -> None:
        for path in self._folder.glob("*out*"):
            path.unlink()
        self._begun = None

    @rule(
        depends=st.sampled_from(DEPENDS),
        skips=st.sampled_from([None, 0, 3, 1000]),
        accepts=st.booleans(),
        size=st.sampled_from(["100", "1000"]),
    )
    def run(self, depends: list[str], skips: int | None, accepts: bool, size: str) -> None:
        policy = [] if skips is None else ["--max-bad-lines", str(skips)]
        policy += ["--special", "plain"] if accepts else []
        args = ["encode", "-q", "-e", "gpt2", str(self._input), "--jsonl", "text", *depends]
        args += ["--format", "jsonl", *policy]
        resume = ["--resume", "--checkpoint-every", "0", "--chunk-size", size, "--force"]
        out = self._folder / "out"
        is_there = (self._folder / "out.checkpoint").exists()
        code, said = command([*args, *resume, "-o", str(out)])
        if is_there and self._begun is not None and self._begun != (self._lines, depends):
            assert code == 1
            assert re.search(f"has changed since|with(out)? ({'|'.join(NAMES)})", said), said
            return
        if not is_there:
            self._begun, self._policies, self._stop = (self._lines, depends), [], 0
        self._policies.append((skips, accepts))
        bad = [i + 1 for i, line in enumerate(self._lines) if line == "{broken"][skips or 0 :]
        special = [i + 1 for i, line in enumerate(self._lines) if TOKEN in line]
        stops = [*bad, *([] if accepts else special)]
        if code:
            assert code == 1
            named = re.search(f"{re.escape(str(self._input))} line (\\d+): ", said)
            assert named is not None, said
            self._stop = int(named[1])
            assert self._stop in stops, (said, stops)
            if len(self._policies) == 1:  # a block is parsed before it is encoded
                assert self._stop in (*bad[:1], *special[:1]), (said, stops)
            return
        assert all(line < self._stop for line in stops), stops
        assert (code, said) == (0, "")
        assert not (self._folder / "out.checkpoint").exists()
        self._begun = None
        if len(set(self._policies)) > 1:
            return
        with tempfile.TemporaryDirectory() as other:
            assert command([*args, "-o", f"{other}/out"]) == (0, "")
            good = {one.name: one.read_bytes() for one in Path(other).iterdir()}
        found = {one.name: one.read_bytes() for one in self._folder.glob("*out*")}
        assert found == good


def command(args: list[str]) -> tuple[int, str]:
    """The exit code, and what is said on standard error."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = main(args)
    return code, said.getvalue()


def test_what_may_change_while_a_job_goes_on() -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Policies,
        settings=settings(max_examples=15, stateful_step_count=20, deadline=None),
    )
