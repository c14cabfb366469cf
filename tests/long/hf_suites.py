"""Runs the tests of tokenizers and of transformers with streamtok in tokenizers' place.

    python -m tests.long.hf_suites tokenizers tokenizers-0.23.3/bindings/python/tests --files FOLDER
    python -m tests.long.hf_suites transformers transformers-5.24.0/tests

The folders are those of the source distributions on PyPI, or of the repositories. Each test is run
twice: as it is, and with streamtok. What passes as it is must pass with streamtok, but for
`EXCEPTIONS`, which has the reason of each. What fails both times, for want of a network or of a
file, says nothing and is only counted. tokenizers' tests download big.txt, small.txt,
bert-base-uncased-vocab.txt, roberta-base-vocab.json and -merges.txt, openai-gpt-vocab.json and
-merges.txt, albert-base-v1-tokenizer.json, tokenizer-wiki.json and bert-wiki.json from
hf-internal-testing/tokenizers-test-data; with `--files` they take those, or others with such
contents, from a folder. The exit code is 1 if a test that must pass does not.

transformers' tests need the package parameterized; its test classes are run over tokenizers that
are made here. vLLM itself is tested by `nox -s vllm`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import streamtok

__all__ = ["EXCEPTIONS", "run"]

EXCEPTIONS = {
    "TestParityBpeTrainer::test_train": "the trainer is compiled and takes real tokenizers only",
}
_CONFTEST = """\
import os

FILES = os.environ["STREAMTOK_FILES"]
if FILES:
    import huggingface_hub

    def hf_hub_download(repo_id, filename, **_):
        path = os.path.join(FILES, filename)
        if not os.path.exists(path):
            raise FileNotFoundError(path)
        return path

    huggingface_hub.hf_hub_download = hf_hub_download

OURS = bool(os.environ["STREAMTOK_IN_PLACE"])
if OURS:
    import tokenizers

    import streamtok.hf

    if os.environ["STREAMTOK_IN_PLACE"] == "tokenizers":
        tokenizers.Tokenizer = streamtok.hf.Tokenizer
        tokenizers.decoders.DecodeStream = streamtok.hf.DecodeStream
    else:
        streamtok.hf.patch_transformers()


def pytest_configure(config):
    config.addinivalue_line("markers", "network: asks for the network")
    config.addinivalue_line("markers", "asyncio: needs pytest-asyncio")


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        with open(os.environ["STREAMTOK_OUTCOMES"], "a") as file:
            file.write(f"{report.outcome} {report.nodeid}\\n")
"""
# Fast classes, and classes that bring the configuration of their maker.
_TRANSFORMERS = """\
import os
import unittest

import transformers

from .test_tokenization_common import TokenizerTesterMixin


class OfFolder(TokenizerTesterMixin):
    from_pretrained_id = []

    def setUp(self):
        super().setUp()
        if os.environ["STREAMTOK_IN_PLACE"]:
            assert self.get_tokenizer().backend_tokenizer.engine == "streamtok"


{classes}

del OfFolder, TokenizerTesterMixin
"""
_CLASS = """\
class {name}Test(OfFolder, unittest.TestCase):
    tokenizer_class = transformers.{class_name}
    from_pretrained_id = [{folder!r}]

"""
_CLASSES = [
    *(
        (kind, "PreTrainedTokenizerFast")
        for kind in ("gpt2", "llama3", "llama2", "bert", "unigram")
    ),
    *(("gpt2", name) for name in ("GPT2Tokenizer", "Qwen2Tokenizer", "RobertaTokenizer")),
    *(("llama2", name) for name in ("LlamaTokenizer", "GemmaTokenizer")),
    *(("bert", name) for name in ("BertTokenizer", "MPNetTokenizer")),
    *(("unigram", name) for name in ("T5Tokenizer", "XLMRobertaTokenizer", "AlbertTokenizer")),
]


def run(root: Path, tests: list[str], in_place: str, options: list[str], files: str = "") -> int:
    """The exit code for these tests of pytest, which lie below `root`.

    files: a folder from which the tests get what they download, by its name there.
    """
    (root / "conftest.py").write_text(_CONFTEST)
    here = str(Path(streamtok.__file__).resolve().parents[1])
    passed = []
    for ours in ("", in_place):
        outcomes = root / f"outcomes{bool(ours):d}"
        outcomes.touch()
        path = [str(root), here, os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
            "STREAMTOK_IN_PLACE": ours,
            "STREAMTOK_OUTCOMES": str(outcomes),
            "STREAMTOK_FILES": files,
            "TOKENIZERS_GOLDEN": "1",  # without it, tests of golden files are left out
        }
        print(f"\nwith {'streamtok' if ours else 'tokenizers'}:", flush=True)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", "."]
        style = ["-q", "--no-header", "--no-summary", *options]
        subprocess.run([*command, *style, *tests], cwd=root, env=environment, check=False)
        rows = [line.split(" ", 1) for line in outcomes.read_text().splitlines()]
        passed.append({test for outcome, test in rows if outcome == "passed"})
        # A test that passes and whose clearing up fails has two rows.
        passed[-1] -= {test for outcome, test in rows if outcome == "failed"}
        n = len({test for _, test in rows})
    lost = sorted(passed[0] - passed[1])
    excepted = [test for test in lost if any(name in test for name in EXCEPTIONS)]
    print(f"\n{n} tests: {len(passed[0])} pass with tokenizers, {len(passed[1])} with streamtok")
    for name, why in EXCEPTIONS.items():
        if any(name in test for test in excepted):
            print(f"need not pass: {name}: {why}")
    for test in lost:
        if test not in excepted:
            print(f"must pass: {test}")
    if not passed[0]:
        print("no test passes, with tokenizers either: see the messages above")
    return 1 if len(lost) > len(excepted) or not passed[0] else 0


def _tokenizers(root: Path, folder: Path) -> list[str]:
    shutil.copytree(folder, root / "tests")
    data = folder.resolve().parents[2] / "tokenizers" / "data"
    if data.is_dir():  # where the golden files' tokenizers are
        (root.parents[1] / "tokenizers").mkdir()
        (root.parents[1] / "tokenizers" / "data").symlink_to(data)
    return ["tests"]


def _transformers(root: Path, folder: Path) -> list[str]:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    from ..hf.shapes import KINDS

    tests = root / "tests"
    tests.mkdir()
    for file in folder.glob("test_*.py"):
        shutil.copy(file, tests)
    (tests / "__init__.py").touch()
    (tests / "fixtures").mkdir()
    (tests / "fixtures" / "sample_text.txt").write_text("A sample text.\n\nOf two parts, é 日本.\n")
    classes = []
    for kind, name in _CLASSES:
        made = PreTrainedTokenizerFast(
            tokenizer_object=Tokenizer.from_str(KINDS[kind]().to_str()),
            bos_token="<s>",
            eos_token="</s>",
            unk_token="<unk>",
            pad_token="<pad>",
        )
        place = root / kind
        made.save_pretrained(place)
        classes.append(_CLASS.format(name=kind.title() + name, class_name=name, folder=str(place)))
    (tests / "test_of_folders.py").write_text(_TRANSFORMERS.format(classes="\n".join(classes)))
    return ["tests/test_of_folders.py"]


def main() -> int:
    """Read the arguments and run the tests."""
    parser = argparse.ArgumentParser(prog="python -m tests.long.hf_suites", description=__doc__)
    parser.add_argument("whose", choices=["tokenizers", "transformers"])
    parser.add_argument("folder", type=Path, help="of the source: see above")
    parser.add_argument("--files", type=Path, help="a folder with what tests download, offline")
    arguments, options = parser.parse_known_args()
    folder, whose = arguments.folder, arguments.whose
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "bindings" / "python"  # tokenizers' tests ask for such a place
        root.mkdir(parents=True)
        tests = (_tokenizers if whose == "tokenizers" else _transformers)(root, folder)
        files = arguments.files.resolve() if arguments.files else ""
        return run(root, tests, whose, options, str(files))


if __name__ == "__main__":
    sys.exit(main())
