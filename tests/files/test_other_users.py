"""What another user puts where a run will open, create or replace a file.

Whatever it is and wherever it waits: the victim's file keeps its bytes, nothing hangs, and the
message names the path.
"""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamtok import files
from streamtok.cli.main import main
from streamtok.files import ForeignFileError, create_own, hidden_path, open_own, why_foreign
from streamtok.jobs.job import EncodeJob
from streamtok.jobs.record import Record
from streamtok.jobs.sources import unit_ends

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links, FIFOs and owners are POSIX")

SECRET = b"the only copy\n"
Encode = Callable[..., tuple[int, str]]
OTHER = 12345  # a user


@pytest.fixture(autouse=True)
def _nothing_hangs() -> Iterator[None]:
    def late(*args: Any) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def encode(capsys: pytest.CaptureFixture[str]) -> Encode:
    """Runs `streamtok encode` on lines; returns the exit code and standard error."""

    def run(text: Path, out: Path, *args: str) -> tuple[int, str]:
        code = main(["encode", "-e", "gpt2", "--lines", "-q", str(text), "-o", str(out), *args])
        return code, capsys.readouterr().err

    return run


def symlink(path: Path, victim: Path) -> None:
    path.symlink_to(victim)


def dangling(path: Path, victim: Path) -> None:
    path.symlink_to(victim.parent / "new")


def hard_link(path: Path, victim: Path) -> None:
    os.link(victim, path)


def fifo(path: Path, victim: Path) -> None:
    os.mkfifo(path)


def folder(path: Path, victim: Path) -> None:
    path.mkdir()


def of_another(path: Path, victim: Path) -> None:
    path.write_bytes(SECRET)
    if os.geteuid() == 0:
        os.chown(path, OTHER, OTHER)


TRAPS: list[Callable[[Path, Path], None]] = [
    symlink, dangling, hard_link, fifo, folder, of_another
]  # fmt: skip

# The paths of a run with --resume, relative to the output.
PLACES = {
    "hidden part": lambda out: hidden_path(str(out), "part"),
    "hidden index": lambda out: hidden_path(f"{out}.index", "part"),
    "hidden sidecar": lambda out: hidden_path(f"{out}.json", "part"),
    "lock": lambda out: hidden_path(str(out), "lock"),
    "checkpoint": lambda out: f"{out}.checkpoint",
}


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.__name__)
@pytest.mark.parametrize("place", PLACES)
def test_a_trap_where_only_our_own_files_are(
    encode: Encode, tmp_path: Path, place: str, trap: Callable[[Path, Path], None]
) -> None:
    if trap is of_another and os.geteuid() != 0 and place != "checkpoint":
        trap = hard_link  # nobody but root can give a file away; `why_foreign` is tested below
    (tmp_path / "secrets").mkdir()
    victim = tmp_path / "secrets" / "victim"
    victim.write_bytes(SECRET)
    text, out = tmp_path / "text", tmp_path / "work" / "out.ds"
    out.parent.mkdir()
    text.write_bytes(b"a few words\n" * 20)
    at = Path(PLACES[place](out))
    trap(at, victim)
    before = os.lstat(at)
    code, message = encode(text, out, "--resume")
    assert victim.read_bytes() == SECRET
    assert os.listdir(victim.parent) == ["victim"]
    assert code == 1
    assert at.name in message, message
    assert "Traceback" not in message
    after = os.lstat(at)
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)  # nor removed
    assert not out.exists()


@pytest.mark.parametrize("trap", [symlink, hard_link, fifo, folder], ids=lambda trap: trap.__name__)
def test_a_trap_in_place_of_the_part_that_a_checkpoint_describes(
    encode: Encode,
    tmp_path: Path,
    trap: Callable[[Path, Path], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would be truncated to the saved size, and written to."""
    text, out, victim = tmp_path / "text", tmp_path / "out.u32", tmp_path / "victim"
    text.write_bytes(b"a few words\n" * 20 + b"\xff\n" + b"more words\n" * 20)
    monkeypatch.setattr(unit_ends, "UNIT", 64)
    more = ["--resume", "--checkpoint-every", "0", "--chunk-size", "64"]
    _, message = encode(text, out, *more)
    assert "is not UTF-8" in message
    part = Path(hidden_path(str(out), "part"))
    victim.write_bytes(part.read_bytes() + SECRET)  # even if it begins as the part did
    before = victim.read_bytes()
    part.unlink()
    trap(part, victim)
    code, message = encode(text, out, "--resume", "--checkpoint-every", "0", "--chunk-size", "64")
    assert code == 1
    assert part.name in message, message
    assert victim.read_bytes() == before


@pytest.mark.parametrize("name", ["out.ds", "out.ds.index", "out.ds.metadata", "out.ds.json"])
@pytest.mark.parametrize("trap", [symlink, dangling], ids=lambda trap: trap.__name__)
def test_a_link_of_another_user_to_the_output(
    encode: Encode, tmp_path: Path, name: str, trap: Callable[[Path, Path], None]
) -> None:
    """In a folder such as /tmp: the kernel forbids to open it, not to rename onto its target."""
    (tmp_path / "secrets").mkdir()
    victim = tmp_path / "secrets" / "victim"
    victim.write_bytes(SECRET)
    if os.geteuid() != 0:
        pytest.skip("only root can make a link of another user")
    text, out = tmp_path / "text", tmp_path / "out.ds"
    text.write_bytes(b"a few words\n" * 20)
    trap(tmp_path / name, victim)
    os.chown(tmp_path / name, OTHER, OTHER, follow_symlinks=False)
    code, message = encode(text, out, "--force")
    assert code == 1
    assert name in message, message
    assert "link of another user" in message
    assert victim.read_bytes() == SECRET
    assert os.listdir(victim.parent) == ["victim"]


def test_the_links_of_the_user_are_followed(encode: Encode, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "out.u32").symlink_to(tmp_path / "disk" / "out.u32")
    text = tmp_path / "text"
    text.write_bytes(b"a few words\n")
    assert encode(text, tmp_path / "out.u32") == (0, "")
    assert (tmp_path / "disk" / "out.u32").stat().st_size > 0


# The rules, without another user


def status(mode: int, links: int = 1, user: int = 7) -> os.stat_result:
    return os.stat_result((mode, 1, 1, links, user, 7, 0, 0, 0, 0))


def test_what_is_foreign() -> None:
    regular = stat.S_IFREG | 0o600
    assert why_foreign(status(regular), 7) is None
    assert why_foreign(status(regular), None) is None
    assert why_foreign(status(regular, links=0), 7) is None  # removed while it is open
    assert "another user" in str(why_foreign(status(regular), 8))
    assert "hard link" in str(why_foreign(status(regular, links=2), 7))
    kinds = {stat.S_IFLNK: "symbolic link", stat.S_IFDIR: "folder", stat.S_IFIFO: "FIFO"}
    for kind, word in (kinds | {stat.S_IFSOCK: "socket", stat.S_IFCHR: "device"}).items():
        assert word in str(why_foreign(status(kind | 0o600), 7))


def test_a_disk_that_maps_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root's files on a network disk belong to nobody: they are still those of this process."""
    path = tmp_path / "file"
    path.write_bytes(b"ours")
    user = os.geteuid()
    monkeypatch.setattr(files.os, "geteuid", lambda: user + 1)
    os.close(open_own(str(path), os.O_RDONLY))
    assert os.listdir(tmp_path) == ["file"]


def test_an_old_file_of_ours_is_replaced_not_truncated(tmp_path: Path) -> None:
    """Who has it open, for instance the process that made it, keeps what it sees."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with path.open("rb") as old:
        os.close(create_own(str(path), os.O_RDWR, 0o600))
        assert old.read() == b"old"
    assert path.read_bytes() == b""
    path.unlink()
    path.mkdir()
    with pytest.raises(ForeignFileError, match="folder"):
        create_own(str(path), os.O_RDWR, 0o600)


def test_a_checkpoint_is_not_written_through_a_link_that_comes_later(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    record = Record(str(tmp_path / "c"), EncodeJob(encoding="gpt2"), [])
    record.load()
    assert not record.is_begun
    (tmp_path / "c").symlink_to(victim)
    with pytest.raises(ForeignFileError, match="symbolic link"):
        record.begin()
    assert not victim.exists()
