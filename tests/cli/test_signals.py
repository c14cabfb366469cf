"""Signals at the worst moments: no text that was read is lost, and messages name what is left."""

import json
import os
import signal
import subprocess
import sys

import pytest

import streamtok
from streamtok.cli.stop_signals import Signals

from .test_cli import ENV, FOREGROUND, POSIX, spawn, wrapped

pytestmark = POSIX
CL100K = streamtok.get_encoding("cl100k_base")

# A signal that arrives when the system call has the bytes, and Python has not returned them yet.
IN_READ = f"""{FOREGROUND}
import os
read = os.read
def read_and_signal(fd, size):
    block = read(fd, size)
    if b"two" in block:
        os.kill(os.getpid(), signal.SIGTERM)
    return block
os.read = read_and_signal
"""


def test_a_signal_between_a_read_and_its_use_loses_nothing(tmp_path):
    log, out = tmp_path / "app.log", tmp_path / "out.jsonl"
    log.write_text("one\ntwo\nthree\n")
    done = spawn(wrapped(IN_READ, "encode", "--follow", str(log), "--lines", "-o", str(out)))
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line)["input_ids"] for line in out.read_text().splitlines()]
    assert rows == CL100K.encode_batch(["one", "two", "three"])


def test_the_second_signal_is_heard_at_once():
    for is_waiting in (False, True):
        signals = Signals()
        signals._is_held = True
        if not is_waiting:
            signals._handle(signal.SIGTERM, None)
        with pytest.raises(Signals.Paused), signals.heard():
            signals._handle(signal.SIGTERM, None)
        with pytest.raises(Signals.Stopped) as stop:
            signals._handle(signal.SIGINT, None)
        assert not isinstance(stop.value, Signals.Paused)


def test_no_moment_of_leaving_a_wait_stops_it_at_once():
    """Before each line of `heard`, a signal is `Paused` or waits; it is never `Stopped`."""
    code = Signals.heard.__wrapped__.__code__
    lines = sorted({line for _, _, line in code.co_lines() if line})
    seen = 0
    for line in lines:
        signals = Signals()
        signals._is_held = True
        fired = False

        def trace(frame, event, arg, line=line, signals=signals):
            nonlocal fired
            if frame.f_code is code and event == "line" and frame.f_lineno == line and not fired:
                fired = True
                sys.settrace(None)
                signals._handle(signal.SIGTERM, None)
            return trace if frame.f_code is code else None

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            with signals.heard():
                pass
        except Signals.Paused:
            pass
        else:
            if fired:
                with pytest.raises(Signals.Paused), signals.heard():
                    pass
        finally:
            sys.settrace(before)
        seen += fired
    assert seen >= 5


def test_count_says_what_it_had_counted(tmp_path):
    read_end, write_end = os.pipe()
    os.write(write_end, b"one\ntwo\n")
    command = wrapped(IN_READ, "count", "--lines")
    with subprocess.Popen(
        command, env=ENV, stdin=read_end, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        os.close(read_end)
        out, said = process.communicate(timeout=60)
    os.close(write_end)
    assert process.returncode == 128 + signal.SIGTERM
    expected = CL100K.count("one") + CL100K.count("two")
    assert out == b"%d\n" % expected
    assert said == b"streamtok: interrupted: standard input was counted only in part\n"


def test_count_of_several_files_stops_with_a_total(tmp_path):
    (tmp_path / "a").write_text("zero one")
    (tmp_path / "b").write_text("two")
    (tmp_path / "c").write_text("never read")
    names = [str(tmp_path / name) for name in "abc"]
    for args in ([], ["--json"]):
        done = spawn(wrapped(IN_READ, "count", *args, *names))
        assert done.returncode == 128 + signal.SIGTERM
        lines = done.stdout.decode().splitlines()
        if args:
            rows = [json.loads(line) for line in lines]
            assert [(row["name"], row["tokens"]) for row in rows] == [
                (names[0], 2), (names[1], 1), ("total", 3)
            ]  # fmt: skip
            assert [row.get("interrupted", False) for row in rows] == [False, True, True]
        else:
            assert [line.split() for line in lines] == [
                ["2", names[0]], ["1", names[1]], ["3", "total"]
            ]  # fmt: skip
        assert done.stderr.decode() == (
            f"streamtok: interrupted: {names[1]} was counted only in part\n"
        )


# Ctrl-C before the n-th line that runs in the modules that make files, each in a process of its own
# that has the vocabulary already; other lines are left out each time. A line of output: number of
# the line, exit code, files left.
AT_EVERY_LINE = f"""{FOREGROUND}
import atexit, os, random, sys
import streamtok
from streamtok.cli import cmd_encode, main
folder, where = sys.argv[1], ("files.py", "locks.py", "shards.py", "outputs.py")
streamtok.get_encoding("cl100k_base")
os.fsync = lambda fd: None

def run(n):
    lines = 0
    def trace(frame, event, arg):
        nonlocal lines
        if not frame.f_code.co_filename.endswith(where):
            return None
        if event == "line":
            lines += 1
            if lines == n:
                os.kill(os.getpid(), signal.SIGINT)
        return trace
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.settrace(trace)
    code = main(sys.argv[2:])
    sys.settrace(None)
    return lines, code

n = total = 0
while n <= total:
    reading, writing = os.pipe()
    if not (child := os.fork()):
        lines, code = run(n)
        os.write(writing, b"%d %d" % (lines, code))
        atexit._run_exitfuncs()
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    lines, code = map(int, os.read(reading, 64).split())
    os.close(reading)
    total = total or lines
    print(n, code, *sorted(os.listdir(folder)))
    for name in os.listdir(folder):
        os.remove(os.path.join(folder, name))
    n += random.randint(1, 9)
"""


def test_no_moment_of_ctrl_c_leaves_a_hidden_file(tmp_path):
    text, folder = tmp_path / "text", tmp_path / "out"
    text.write_text("one two\nthree\n")
    folder.mkdir()
    command = ["encode", "-q", "-o", str(folder / "out.bin"), str(text)]
    done = subprocess.run(
        [sys.executable, "-c", AT_EVERY_LINE, str(folder), *command],
        env=ENV,
        timeout=300,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split()[1:] for line in done.stdout.splitlines()]
    assert rows[0] == ["0", "out.bin", "out.bin.json"]  # the signal comes at no line
    assert len(rows) > 25
    # All or nothing: while files get their names, a signal waits.
    assert {" ".join(row) for row in rows} == {"130", " ".join(rows[0])}
