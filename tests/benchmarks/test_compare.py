"""What `benchmarks.compare` says about samples: figures, verdicts, tables, plot, markers."""

from __future__ import annotations

import itertools
import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2]))  # last: an installed one goes first
from benchmarks import chart, compare, goals, peers, tables, two_cores
from benchmarks.results import Results

from ..samples import SPEEDS, samples_of_all, timed

TOP = Path(__file__).resolve().parents[2]
WIDE = 7.9  # px for a letter of 12 px, in a wide typeface, bold
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def data():
    return samples_of_all()


def rows(data):
    """Goal → its cells, from the table."""
    lines = list(goals.table(tables.results_of(data)))[2:]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {cell[1]: cell for cell in cells}


def test_medians_and_ratios_within_a_turn():
    def text(speed):
        return {"cold": timed(speed), "unseen": timed(speed), "warm": timed(speed)}

    records = [
        {"kind": "text", "text": "code", "peer": p, "mode": "encode", "turn": t, "got": text(s)}
        for p, speeds in [("streamtok", (100, 300, 200)), ("tiktoken", (10, 20, 10))]
        for t, s in enumerate(speeds)
    ]
    own, other = ("streamtok", "encode"), ("tiktoken", "encode")
    results = Results(records)
    assert results.median("text", "code", own, "unseen", "mb_s") == 200
    assert results.quotient("text", "code", own, other, "unseen", "mb_s") == 15  # of 10, 15, 20
    records.append(records[0] | {"peer": "slow", "got": text(50)})  # only in turn 0
    results = Results(records)
    slow = ("slow", "encode")
    assert results.quotient("text", "code", own, slow, "unseen", "mb_s") == 2
    best = results.against("text", "code", own, [own, other, slow], "unseen", "mb_s")
    assert best == (2, slow)
    times = results.against("text", "code", own, [other], "unseen", "s", is_time=True)
    assert times is not None
    assert times.value == pytest.approx(15)
    failed = Results([*records, records[3] | {"turn": 5, "got": "MemoryError"}])
    assert failed.figures("text", "code", other, "cold", "mb_s") == "MemoryError"
    assert failed.quotient("text", "code", own, other, "cold", "mb_s") is None


def test_goals_follow_from_the_samples(data):
    table = rows(data)
    assert len(table) == len(goals.GOALS)
    assert {row[0] for row in table.values()} == set("1234567")
    mean = table["unseen, ÷ the best peer, mean"]  # 200 ÷ 150
    assert mean[3:] == ["1.33 (english 1.33)"] * 3 + ["no: 89%"]
    worst = table["unseen, ÷ the best peer, worst text"]
    assert worst[3:] == ["**1.33** (english, fastokens)"] * 3 + ["yes"]
    assert table["unseen, ÷ tiktoken, mean"][-1] == "yes"
    assert table["`encode` ÷ the best peer's lists, unseen, mean"][-1] == "no: 67%"
    assert table["1 MB in one piece, first call, ÷ rs-bpe, worst"][-1] == "yes"
    growth = table["memory growth over endless new words"]
    assert growth[3:] == ["5.00 (100 MB read)"] * 3 + ["no: 80%"]
    line = table["time for a log line in a stream ÷ the fastest peer's call"]
    assert line[3] == "**0.75** (fastokens)"
    assert table["public names that bound the caches"][3:] == ["0"] * 3 + ["no: 0%"]
    assert table[f"`{two_cores.COMMAND}`, two cores ÷ one"][-1] == "yes"
    assert table["the same with `--workers 2`"][-1] == "yes"
    memory = table["the same on one thread ÷ in memory, chunks of 64 KiB"]
    assert memory[3:] == ["0.90"] * 3 + ["no: 95%"]


def test_a_goal_that_is_nearly_met_is_not_met(data):
    for record in data["encodings"]["o200k_base"]["records"]:
        if record["kind"] == "threads":
            record["got"]["share"] = 0.94999
    batch = rows(data)["`encode_batch`, two threads ÷ the ceiling"]
    good = "**0.97** (1.90 of one)"
    assert batch[3:] == [good, "0.95 (1.90 of one)", good, "no: 99%"]


def test_a_model_is_asked_for_less():
    """A real vocabulary: its texts and long streams, by those who read its file."""
    data = samples_of_all([*peers.ENCODINGS, "llama"])
    table = rows(data)
    assert table["unseen, ÷ the best peer, mean"][3:] == ["1.33 (english 1.33)"] * 4 + ["no: 89%"]
    assert table["unseen, ÷ tiktoken, mean"][6:] == ["–", "yes"]
    assert table["1 MB in one piece, first call, ÷ rs-bpe, worst"][6:] == ["–", "yes"]
    text = "\n".join(tables.details(data)).partition("### llama")[2]
    assert "| fastokens `encode_batch_flat` |" in text
    assert "tiktoken `" not in text
    assert "Two threads" not in text


def test_training_counts_where_the_tokens_are_equal(data):
    name = "training, ÷ gigatoken's and ffbpe's trainers, worst"
    part = data["encodings"]["cl100k_base"]
    part["records"] = [r for r in part["records"] if r["kind"] != "train"]
    made = {"streamtok": (1, "raw"), "streamtok, hf": (2, "hf")}
    made |= {"gigatoken": (3, "hf"), "ffbpe": (4, "raw"), "quick": (0.1, "other")}
    for size, scale in (("2048", 1), ("100000", 4)):
        for peer, (seconds, digest) in made.items():
            seconds *= 1 if peer.startswith("streamtok") else scale
            record = {"kind": "train", "text": size, "peer": peer, "mode": "train", "turn": 0}
            part["records"].append(record | {"got": {"seconds": seconds, "digest": digest}})
    row = rows(data)[name]
    assert row[3:] == ["1.50 (2,048 tokens, gigatoken)", "–", "–", "no: 75%"]
    text = "\n".join(tables.details(data))
    assert "| gigatoken | 3.00 (**1.50**) | 12.00 (**6.00**) |" in text
    assert "| ffbpe | 4.00 (**4.00**) | 16.00 (**16.00**) |" in text
    assert "| quick | 0.10 | 0.40 |" in text


def test_a_goal_for_one_encoding_ignores_the_others(data):
    for record in data["encodings"]["o200k_base"]["records"]:
        if record["kind"] == "load":
            record["got"]["load_bytes"] = 50_000_000
    assert rows(data)["memory that loading takes"][3:] == ["**10.0**", "50.0", "**10.0**", "yes"]


def test_what_has_no_sample_is_not_met(data):
    for part in data["encodings"].values():
        part["records"] = [r for r in part["records"] if r["kind"] not in ("once", "threads")]
        for record in part["records"]:
            if record["kind"] == "calls":
                record["got"] = "MemoryError"
    table = rows(data)
    for name in (
        "a big file read once, ÷ the best peer",
        "`encode_batch`, two threads ÷ the ceiling",
    ):
        assert table[name][3:] == ["–", "–", "–", "not measured"]
    assert table["time for a log line in a stream ÷ the fastest peer's call"][-1] == "not measured"
    assert list(tables.details(data))


def test_details_show_everyone(data):
    text = "\n".join(tables.details(data))
    for peer, speed in SPEEDS.items():  # the median of it and of twice as much
        for mode in peers.by_name(peer).modes:
            assert f"| {peer} `{mode}` | {f'{1.5 * speed:.0f}'} / **" in text
    assert text.count("### ") == 3
    assert "- x `y`: not timed" in text
    assert "| streamtok `encode` | 200.0 / 400.0 |" in text
    assert f"| `{two_cores.COMMAND}` | 200 | 1.90 | 1.80 | 0.90 |" in text
    assert "| `encode_batch, cold` | 200 | 1.90 | 1.95 | 0.97 |" in text
    for line in text.splitlines():
        if line.startswith("|---"):
            columns = line.count("|")
        elif line.startswith("| ") and not line.startswith("| |"):
            assert line.count("|") == columns, line


def test_other_ids_on_a_hard_pretoken_are_said(data):
    for record in data["encodings"]["cl100k_base"]["records"]:
        if record["kind"] == "hard" and record["peer"] == "rs-bpe" and record["text"] == "CJK":
            record["got"]["later"]["digest"] = "another"
    lines = list(tables._hard(tables.results_of(data)["cl100k_base"]))
    assert any(x.startswith("| rs-bpe") and x.count("other ids") == 1 for x in lines)


def test_written_into():
    begin, end = tables.BEGIN.format(""), tables.END.format("")
    text = f"head\n{begin}\nold\n{end}\ntail\n"
    new = tables.written_into(text, {"": "new", " details": "unused"})
    assert new == f"head\n{begin}\nnew\n{end}\ntail\n"
    assert tables.written_into(new, {"": "new"}) == new


@pytest.mark.parametrize("text", ["", "{0}", "{1}", "{1} {0}", "{0} {0} {1}", "{0} {1} {1}"])
def test_markers_that_do_not_match(text):
    text = text.format(tables.BEGIN.format(""), tables.END.format(""))
    with pytest.raises(ValueError, match=re.escape("<!-- benchmarks.compare begin -->")):
        tables.written_into(text, {"": "new"})


def test_command_shows_samples_again(data, tmp_path, monkeypatch, capsys):
    samples, readme = tmp_path / "samples.json", tmp_path / "README.md"
    picture = tmp_path / "docs" / "plot.svg"
    picture.parent.mkdir()
    samples.write_text(json.dumps(data))
    markers = f"{tables.BEGIN.format('')}\n{tables.END.format('')}"
    readme.write_text(f"# A\n\n{markers}\n\n## B\n")
    command = ["compare", "--from", str(samples), "--svg", str(picture), "--markdown"]
    monkeypatch.setattr(sys, "argv", [*command, "--write", str(readme)])
    assert compare.main() == 0
    printed = capsys.readouterr().out
    picture_line = "](docs/plot.svg)"
    text = readme.read_text()
    assert picture_line in text
    assert printed.replace(picture.as_posix(), "docs/plot.svg").strip() in text
    assert text.startswith("# A\n")
    assert text.endswith("## B\n")
    ElementTree.parse(picture)
    other = tmp_path / "other.md"
    other.write_text("nothing")
    picture.unlink()
    monkeypatch.setattr(sys, "argv", [*command, "--write", str(readme), str(other)])
    with pytest.raises(SystemExit):
        compare.main()
    assert "other.md: there is no" in capsys.readouterr().err
    assert not picture.exists()


# The plot


def boxes(root):
    """(left, right, top, bottom) of each text, in a wide typeface."""
    for text in root.iter(f"{SVG}text"):
        width = len(text.text) * WIDE * (1.25 if "title" in text.get("class") else 1)
        if text.get("class") == "weak":
            width *= 0.9  # not bold
        left = float(text.get("x")) - (width if text.get("text-anchor") == "end" else 0)
        bottom = float(text.get("y")) + 3
        yield left, left + width, bottom - 14, bottom, text.text


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["--markdown"], "there is no folder docs"),
        (["--markdown", "--svg", "no/where.svg"], "there is no folder no"),
        (["--json", "no/samples.json"], "there is no folder no"),
        (["--json", "."], "Is a directory"),
        (["--write", "README.md"], "README.md: there is no <!-- "),
        (["--write", "missing.md"], "No such file"),
    ],
)
def test_outputs_are_checked_before_anything_is_measured(
    args, reason, tmp_path, monkeypatch, capsys
):
    def collect(*args, **settings):
        raise AssertionError("it was measured")

    monkeypatch.setattr(compare, "collect", collect)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("no markers")
    monkeypatch.setattr("sys.argv", ["compare", *args])
    with pytest.raises(SystemExit):
        compare.main()
    assert reason in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def test_samples_are_kept_without_being_asked_for(data, tmp_path, monkeypatch, capsys):
    def collect(*args, save, **settings):
        save(data)
        raise KeyboardInterrupt

    monkeypatch.setattr(compare, "collect", collect)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["compare"])
    with pytest.raises(KeyboardInterrupt):
        compare.main()
    (kept,) = tmp_path.iterdir()
    assert json.loads(kept.read_text()) == data
    assert str(kept) in capsys.readouterr().err


def test_plot(data):
    root = ElementTree.fromstring(chart.draw(data))
    width, height = map(float, root.get("viewBox").split()[2:])
    assert root.get("role") == "img"
    assert root.get("aria-labelledby").split() == [
        root.find(f"{SVG}title").get("id"),
        root.find(f"{SVG}desc").get("id"),
    ]
    assert "english: streamtok 300, streamtok stream 300" in root.find(f"{SVG}desc").text
    assert "prefers-color-scheme: dark" in root.find(f"{SVG}style").text
    bars = root.findall(f"{SVG}rect")
    assert len(bars) == 6 * 6  # five texts and the mean; streamtok twice and four peers
    longest = [float(bar.get("width")) for bar in bars[:6]]
    assert longest[2] / longest[0] == pytest.approx(150 / 200, abs=0.01)  # fastokens
    texts = list(boxes(root))
    for left, right, top, bottom, text in texts:
        assert left >= 0, text
        assert right <= width, text
        assert top >= 0, text
        assert bottom <= height, text
    for a, b in itertools.combinations(texts, 2):
        is_apart = a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] or b[3] <= a[2]
        assert is_apart, (a, b)
    for bar in bars:
        left, top = float(bar.get("x")), float(bar.get("y"))
        right, bottom = left + float(bar.get("width")), top + float(bar.get("height"))
        for a in texts:
            assert a[1] <= left or right <= a[0] or a[3] <= top or bottom <= a[2], a


def test_plot_of_nothing(data):
    for part in data["encodings"].values():
        part["records"] = []
    assert not list(ElementTree.fromstring(chart.draw(data)).iter(f"{SVG}rect"))


# What stands in docs/benchmarks.md


def skeleton(text):
    """Headings, heads of tables, the goals and their limits: all that does not hang on a run."""
    for line in text.splitlines():
        cells = line.split(" | ")
        if line.startswith(("#", "| |", "|--", "| point", "![", "What")):
            yield line
        elif re.match(r"\| [1-7] \|", line):
            yield " | ".join(cells[:3])
        elif line.endswith(":"):
            yield re.sub(r" \(samples spread by ±\d+%\)", "", line)


def part_of(file, name):
    text = (TOP / file).read_text("utf-8")
    return text.split(tables.BEGIN.format(name))[1].split(tables.END.format(name))[0]


def samples_of(file):
    """Samples of the encodings and models that the table of the goals has."""
    head = re.search(
        r"^\| point \| .* \| at least, at most \| (.*) \| met \|$", part_of(file, ""), re.M
    )
    names = head[1].split(" | ")
    assert names[: len(peers.ENCODINGS)] == list(peers.ENCODINGS)
    return samples_of_all(names)


def test_summary_is_the_output():
    part = part_of("docs/benchmarks.md", "")
    data = samples_of("docs/benchmarks.md")
    expected = "\n".join(tables.summary(data, "benchmarks.svg"))
    assert list(skeleton(part)) == list(skeleton(expected))
    assert part.strip().startswith("`python -m benchmarks.compare` on ")
    root = ElementTree.parse(TOP / "docs" / "benchmarks.svg").getroot()
    assert len(list(root.iter(f"{SVG}rect"))) >= 6
    for row in rows(data).values():  # no verdict but the command's
        verdict = r"(yes|no: \d+%|not measured)"
        assert re.search(rf"^\| {row[0]} \| {re.escape(row[1])} \|.*\| {verdict} \|$", part, re.M)


def test_details_are_the_output():
    part = part_of("docs/benchmarks.md", " details")
    expected = "\n".join(tables.details(samples_of("docs/benchmarks.md")))
    assert list(skeleton(part)) == list(skeleton(expected))
