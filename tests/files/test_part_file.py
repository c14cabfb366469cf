"""Files that appear only when they are complete."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from streamtok.files import part_file
from streamtok.files.part_file import PartFile, write_whole


def test_a_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with PartFile(os.fspath(path)) as file:
        file.write(b"all of it")
        assert not path.exists()
        (hidden,) = tmp_path.iterdir()
        assert hidden.name.startswith(".streamtok-")
    assert path.read_bytes() == b"all of it"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write_whole(path, b"old")
    with contextlib.suppress(ZeroDivisionError), PartFile(os.fspath(path)) as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_mode_and_the_target_of_a_link_are_kept(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_file_that_cannot_be_made_is_not_remembered(tmp_path: Path) -> None:
    """What is remembered is removed at exit: a service would remember more and more."""
    missing = os.fspath(tmp_path / "missing" / "out")
    before = set(part_file._unpublished)
    with pytest.raises(FileNotFoundError) as caught:
        write_whole(missing, b"data")
    assert caught.value.filename == missing
    assert part_file._unpublished == before
