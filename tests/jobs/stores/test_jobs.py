"""Jobs in a store: the files are those of a folder of this machine, whatever the store does."""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import random
import re
import tempfile
import threading
from pathlib import Path
from typing import Any

import fsspec
import pytest

from streamtok import PlanError, commit, plan, run_part
from streamtok.cli.main import main
from streamtok.jobs.parts.commit import MANIFEST
from streamtok.jobs.sources import unit_ends
from streamtok.jobs.stores import objects, places
from streamtok.jobs.stores.object_reader import read_blocks

from ...cli.test_cli import POSIX, run
from ...long.crash import make_text

pytestmark = POSIX


def files_of(folder: str) -> dict[str, str]:
    """SHA-256 of the parts and of what belongs to them."""
    found = {}
    for name in places.names_in(folder):
        if name.startswith("part-"):
            data = places.read_whole(places.join(folder, name))
            data = re.sub(rb'"job": "\w+"', b"", data)  # which has the names of the inputs in it
            found[name] = hashlib.sha256(data).hexdigest()
    return found


def rows_of(folder: str) -> list[dict[str, Any]]:
    """The manifest, without what names the plan or the job."""
    rows = [json.loads(line) for line in places.read_whole(f"{folder}/{MANIFEST}").splitlines()]
    rows[0].pop("plan")
    for row in rows[1:]:
        row["files"] = [one[:2] for one in row["files"]]
    return rows


def put(store: str, name: str, data: bytes, tmp_path: Path) -> tuple[str, str]:
    """The same input in the store and here."""
    (tmp_path / name).write_bytes(data)
    objects.write(f"{store}/{name}", data)
    return f"{store}/{name}", str(tmp_path / name)


def store_of(url: str) -> Any:
    """fsspec's object for the store, which is one for all that use it."""
    return fsspec.core.url_to_fs(url, use_listings_cache=False)[0]


def here(tmp_path: Path, inputs: str, **options: Any) -> str:
    """The folder of the same job on this machine."""
    made = plan(inputs, tmp_path / "out", encoding="gpt2", **options)
    for number in range(len(made)):
        run_part(made, number)
    commit(made)
    return str(tmp_path / "out")


def test_two_drivers_that_save_at_once(memory, tmp_path, monkeypatch):
    url, _ = put(memory, "in", make_text(random.Random(1), 1000).encode(), tmp_path)
    made = plan(url, f"{memory}/out", encoding="gpt2", part_size=500)
    other = plan(url, f"{memory}/out", encoding="gpt2", part_size=400)
    exists = places.exists

    def late(folder):
        found = exists(folder)
        monkeypatch.setattr(places, "exists", exists)
        other.save()  # another driver, between the look and the writing
        return found

    monkeypatch.setattr(places, "exists", late)
    with pytest.raises(PlanError, match="holds the parts of another plan"):
        made.save()


def test_two_jobs_with_one_plan_at_once(s3, tmp_path):
    url, path = put(s3, "in", make_text(random.Random(1), 30_000).encode(), tmp_path)
    made = plan(url, f"{s3}/out", encoding="gpt2", part_size=5000)
    errors = []

    def job():
        try:
            made.save()
            for number in range(len(made)):
                run_part(made, number)
            commit(made)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=job) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert files_of(made.output) == files_of(here(tmp_path, path, part_size=5000))


def test_a_store_that_fails(s3, tmp_path, monkeypatch):
    """A part that fails leaves nothing; the same job goes on later."""
    url, path = put(s3, "in", make_text(random.Random(1), 3000).encode(), tmp_path)
    made = plan(url, f"{s3}/out", encoding="gpt2", part_size=1000)
    made.save()

    def broken(*args, **options):
        raise RuntimeError("it is away")

    with monkeypatch.context() as patch:
        patch.setattr(store_of(url), "put_file", broken)
        with pytest.raises(OSError, match="the store failed: it is away") as caught:
            run_part(made, 1)
    assert str(caught.value.filename).startswith("s3://")
    assert files_of(made.output) == {}  # what is not complete is not there
    for number in range(len(made)):
        run_part(made, number)
    commit(made)
    assert files_of(made.output) == files_of(here(tmp_path, path, part_size=1000))


def test_the_order_of_writes(s3, tmp_path, monkeypatch):
    url, _ = put(s3, "in", make_text(random.Random(1), 3000).encode(), tmp_path)
    made = plan(url, f"{s3}/out", encoding="gpt2", format="megatron")
    written = []
    store = store_of(url)
    for name, which in (("put_file", 1), ("pipe_file", 0)):

        def noted(do, at, *args, **options):
            written.append(args[at].rpartition("/")[2])
            do(*args, **options)

        monkeypatch.setattr(store, name, functools.partial(noted, getattr(store, name), which))
    run_part(made, 0)
    name = "part-000000-of-000001"
    assert [one.removeprefix(name) for one in written] == [
        ".bin.json", ".bin", ".idx",
    ]  # fmt: skip


def test_the_ordinary_command(s3, tmp_path):
    url, path = put(s3, "in.txt", make_text(random.Random(1), 30_000).encode(), tmp_path)
    args = ["encode", "-q", "-e", "gpt2", "--lines"]
    assert main([*args, path, "-o", str(tmp_path / "out.ds")]) == 0
    assert main([*args, url, "-o", f"{s3}/out.ds"]) == 0
    made = sorted(one.name for one in tmp_path.glob("out*"))
    assert sorted(one for one in objects.names_in(s3) if one.startswith("out")) == made
    for name in made:
        assert objects.read_whole(f"{s3}/{name}") == (tmp_path / name).read_bytes()
    objects.write(f"{s3}/{made[0]}", b"somebody's data")
    assert main([*args, url, "-o", f"{s3}/out.ds"]) == 1
    assert objects.read_whole(f"{s3}/{made[0]}") == b"somebody's data"
    assert main([*args, url, "-o", f"{s3}/out.ds", "--force"]) == 0


def test_commands_that_read(s3, tmp_path):
    text = make_text(random.Random(1), 20_000).encode()
    url, path = put(s3, "in.txt", text, tmp_path)
    objects.write(f"{s3}/in.txt.gz", gzip.compress(text))
    expected = run("split", "-n", "50", path).stdout
    assert expected == run("split", "-n", "50", url).stdout
    assert expected == run("split", "-n", "50", f"{url}.gz").stdout
    assert main(["encode", "-q", url, "-o", f"{s3}/ids.npy"]) == 0
    assert run("count", f"{s3}/ids.npy").returncode == 1  # holds ids, as its sidecar says
    counted = run("count", "--glob", f"{s3}/in.*", "--json")
    assert len(counted.stdout.splitlines()) == 3


def test_decoding_to_a_store(s3, tmp_path, capsys):
    text = make_text(random.Random(1), 20_000).encode()
    _, path = put(s3, "in.txt", text, tmp_path)
    for ids in (f"{s3}/ids.npy", str(tmp_path / "ids.npy")):
        assert main(["encode", "-q", path, "-o", ids]) == 0
        objects.remove(f"{s3}/out.txt")
        assert main(["decode", ids, "-o", f"{s3}/out.txt"]) == 0
        assert objects.read_whole(f"{s3}/out.txt") == text
    assert main(["decode", ids, "-o", f"{s3}/out.txt"]) == 1
    assert "exists; --force replaces it" in capsys.readouterr().err
    assert main(["decode", ids, "-o", f"{s3}/out.txt", "--force"]) == 0
    assert objects.read_whole(f"{s3}/out.txt") == text
    assert main(["decode", f"{s3}/ids.npy", "-o", f"{s3}/ids.npy"]) == 1
    assert "is also an input" in capsys.readouterr().err


def test_decoding_that_fails_leaves_nothing(memory, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    ids = tmp_path / "ids.txt"
    ids.write_text("1 " * 200_000 + "99999999 2\n")
    objects.write(f"{memory}/out", b"")
    assert main(["decode", "-e", "gpt2", str(ids), "-o", f"{memory}/out"]) == 1
    assert main(["decode", "-e", "gpt2", str(ids), "-o", f"{memory}/new"]) == 1
    assert objects.names_in(memory) == ["out"]
    assert objects.describe(f"{memory}/out").size == 0
    assert list((tmp_path / "temporary").iterdir()) == []


def test_what_urls_cannot_do(memory, tmp_path, capsys):
    url, path = put(memory, "in.txt", b"text", tmp_path)
    assert main(["encode", path, "-o", f"{memory}/out.npy", "--resume"]) == 2
    assert "--task writes parts to a URL" in capsys.readouterr().err
    assert main(["encode", path, "-o", "http://127.0.0.1/out.npy"]) == 1
    assert "outputs can be paths, or URLs of s3://" in capsys.readouterr().err
    assert main(["encode", url, "--follow", "-o", str(tmp_path / "out")]) == 2
    assert "--follow needs a file of this machine" in capsys.readouterr().err
    assert main(["encode", url, "-o", url]) == 1
    assert "is also an input" in capsys.readouterr().err
    assert main(["count", f"{memory}/nothing"]) == 1
    assert "nothing: No such file or directory" in capsys.readouterr().err
    assert main(["decode", path, "-o", "http://127.0.0.1/out.txt"]) == 1
    assert "outputs can be paths, or URLs of s3://" in capsys.readouterr().err


def test_an_input_can_be_resumed(memory, tmp_path, monkeypatch):
    monkeypatch.setattr(unit_ends, "UNIT", 1000)
    url, _ = put(memory, "in.txt", make_text(random.Random(1), 30_000).encode(), tmp_path)
    bad, _ = put(memory, "bad.txt", b"\xff", tmp_path)
    args = ["encode", "-q", "--resume", "--checkpoint-every", "0", "-o", str(tmp_path / "out.npy")]
    assert main([*args, "--chunk-size", "1000", url, bad]) == 1
    assert (tmp_path / "out.npy.checkpoint").exists()
    assert main([*args, url, bad]) == 1
    assert not (tmp_path / "out.npy").exists()


def test_the_command_line_of_a_job(s3, tmp_path):
    url, path = put(s3, "in.txt", make_text(random.Random(1), 40_000).encode(), tmp_path)
    args = ["encode", "-q", "-e", "gpt2", "--lines", "--part-size", "10000", "--format", "npy"]
    done = run(*args, url, "-o", f"{s3}/out", "--task", "1/2")
    assert done.returncode == 0, done
    assert not places.exists(f"{s3}/out/{MANIFEST}")
    done = run(*args, url, "-o", f"{s3}/out", "--task", "0/1")
    assert done.returncode == 0, done
    assert main([*args, path, "-o", str(tmp_path / "out"), "--task", "0/1"]) == 0
    assert files_of(f"{s3}/out") == files_of(str(tmp_path / "out"))
    assert rows_of(f"{s3}/out") == rows_of(str(tmp_path / "out"))


def test_inputs_of_a_web_server(s3, s3_port, tmp_path):
    text = make_text(random.Random(1), 2_000_000).encode()
    _, path = put(s3, "in.txt", text, tmp_path)
    url = f"http://127.0.0.1:{s3_port}/{s3.removeprefix('s3://')}/in.txt"
    made = plan(url, tmp_path / "made", encoding="gpt2", part_size=700_000)
    for number in range(len(made)):
        run_part(made, number)
    commit(made)
    assert files_of(made.output) == files_of(here(tmp_path, path, part_size=700_000))
    whole = objects.describe(url)
    assert b"".join(read_blocks(url, whole, 0, None)) == text
    with pytest.raises(FileNotFoundError):
        objects.describe(f"{url}.gz")
