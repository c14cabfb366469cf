"""Runs the tests of other libraries with streamtok in their place, without a network.

    pip download --no-binary tiktoken --no-deps tiktoken==0.14.0
    tar xf tiktoken-0.14.0.tar.gz
    python -m tests.long.suites tiktoken tiktoken-0.14.0/tests
    python -m tests.long.suites tokenizers tokenizers-0.23.3/bindings/python/tests --files FOLDER
    python -m tests.long.suites transformers transformers-5.24.0/tests

The folders are those of the source distributions on PyPI, or of the repositories; what follows them
goes to pytest. All of tiktoken's tests must pass; they would not without streamtok, which needs no
files. The others' are run twice: as they are, and with streamtok. What passes as it is must pass
with streamtok, but for `EXCEPTIONS`, which has the reason of each; what fails both times, for want
of a network or of a file, says nothing and is only counted. tokenizers' tests download big.txt,
small.txt, bert-base-uncased-vocab.txt, roberta-base-vocab.json and -merges.txt,
openai-gpt-vocab.json and -merges.txt, albert-base-v1-tokenizer.json, tokenizer-wiki.json and
bert-wiki.json from hf-internal-testing/tokenizers-test-data; with `--files` they take those, or
others with such contents, from a folder. transformers' tests need the package parameterized; its
test classes are run over tokenizers that are made here. The exit code is 1 if a test that must pass
does not. vLLM itself is tested by `nox -s vllm`.
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

EXCEPTIONS = {
    "TestParityBpeTrainer::test_train": "the trainer is compiled and takes real tokenizers only",
}
_TIKTOKEN = """\
import sys

import streamtok

sys.modules[__name__] = streamtok
"""  # a module of this name, for processes that the tests start, too
_CONFTEST = """\
import os
import socket


def refuse(*arguments, **options):
    raise OSError("these tests must pass without a network")


socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse

FILES = os.environ["STREAMTOK_FILES"]
if FILES:
    import huggingface_hub

    def hf_hub_download(repo_id, filename, **_):
        path = os.path.join(FILES, filename)
        if not os.path.exists(path):
            raise FileNotFoundError(path)
        return path

    huggingface_hub.hf_hub_download = hf_hub_download

if os.environ["STREAMTOK_IN_PLACE"] == "tokenizers":
    import tokenizers

    import streamtok.hf

    tokenizers.Tokenizer = streamtok.hf.Tokenizer
    tokenizers.decoders.DecodeStream = streamtok.hf.DecodeStream
elif os.environ["STREAMTOK_IN_PLACE"] == "transformers":
    import streamtok.hf

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
_CLASSES = {
    "gpt2": ["PreTrainedTokenizerFast", "GPT2Tokenizer", "Qwen2Tokenizer", "RobertaTokenizer"],
    "llama3": ["PreTrainedTokenizerFast"],
    "llama2": ["PreTrainedTokenizerFast", "LlamaTokenizer", "GemmaTokenizer"],
    "bert": ["PreTrainedTokenizerFast", "BertTokenizer", "MPNetTokenizer"],
    "unigram": [
        "PreTrainedTokenizerFast", "T5Tokenizer", "XLMRobertaTokenizer", "AlbertTokenizer"
    ],
}  # fmt: skip


def run(whose: str, folder: Path, options: list[str], files: str = "") -> int:
    """The exit code for the tests in a folder, of which a copy is run.

    files: a folder from which the tests get what they download, by its name there.
    """
    if not any(folder.glob("**/test_*.py")):
        raise SystemExit(f"{folder}: expected the folder `tests` of {whose}, with its test_*.py")
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch, "bindings", "python")  # tokenizers' tests ask for such a place
        root.mkdir(parents=True)
        (root / "conftest.py").write_text(_CONFTEST)
        if whose == "transformers":
            _make_transformers_tests(root, folder)
        else:
            shutil.copytree(folder, root / "tests")
        if whose == "tiktoken":
            (root / "tests" / "__init__.py").touch()
            (root / "tiktoken.py").write_text(_TIKTOKEN)
        data = folder.resolve().parents[2] / "tokenizers" / "data"
        if data.is_dir():  # where the tokenizers of the golden files are
            (Path(scratch) / "tokenizers").mkdir()
            (Path(scratch) / "tokenizers" / "data").symlink_to(data)
        ours, every = _passed(root, whose, options, files)
        must = every if whose == "tiktoken" else _passed(root, "", options, files)[0]
    lost = sorted(must - ours)
    excepted = [test for test in lost if any(name in test for name in EXCEPTIONS)]
    print(f"\n{len(every)} tests: {len(must)} must pass, {len(ours)} pass with streamtok")
    for name, why in EXCEPTIONS.items():
        if any(name in test for test in excepted):
            print(f"need not pass: {name}: {why}")
    for test in lost:
        if test not in excepted:
            print(f"must pass: {test}")
    if not must:
        print("no test passes as it is, either: see the messages above")
    return 1 if len(lost) > len(excepted) or not must else 0


def _passed(root: Path, in_place: str, options: list[str], files: str) -> tuple[set[str], set[str]]:
    """(the tests that pass, all tests), with streamtok in a library's place, or as they are."""
    outcomes = root / f"outcomes{bool(in_place):d}"
    outcomes.touch()
    here = str(Path(streamtok.__file__).resolve().parents[1])
    path = [str(root), here, os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "STREAMTOK_IN_PLACE": in_place,
        "STREAMTOK_OUTCOMES": str(outcomes),
        "STREAMTOK_FILES": files,
        "TOKENIZERS_GOLDEN": "1",  # without it, tests of golden files are left out
    }
    how = f"with streamtok in the place of {in_place}" if in_place else "as it is"
    print(f"\n{how}:", flush=True)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", "."]
    style = ["-q", "--no-header", "--no-summary", *options]
    ours = root / "tests" / "test_of_folders.py"
    tests = str(ours if ours.exists() else root / "tests")
    subprocess.run([*command, *style, tests], cwd=root, env=environment, check=False)
    rows = [line.split(" ", 1) for line in outcomes.read_text().splitlines()]
    # A test that passes and whose clearing up fails has two rows.
    failed = {test for outcome, test in rows if outcome == "failed"}
    passed = {test for outcome, test in rows if outcome == "passed"} - failed
    return passed, passed | failed


def _make_transformers_tests(root: Path, folder: Path) -> None:
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
    for kind, names in _CLASSES.items():
        made = PreTrainedTokenizerFast(
            tokenizer_object=Tokenizer.from_str(KINDS[kind]().to_str()),
            bos_token="<s>",
            eos_token="</s>",
            unk_token="<unk>",
            pad_token="<pad>",
        )
        made.save_pretrained(root / kind)
        for name in names:
            more = {"class_name": name, "folder": str(root / kind)}
            classes.append(_CLASS.format(name=kind.title() + name, **more))
    (tests / "test_of_folders.py").write_text(_TRANSFORMERS.format(classes="\n".join(classes)))


def main() -> int:
    """Read the arguments and run the tests."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.long.suites", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("whose", choices=["tiktoken", "tokenizers", "transformers"])
    parser.add_argument("folder", type=Path, help="of the source: see above")
    parser.add_argument("--files", type=Path, help="a folder with what tests download, offline")
    arguments, options = parser.parse_known_args()
    files = str(arguments.files.resolve()) if arguments.files else ""
    return run(arguments.whose, arguments.folder, options, files)


if __name__ == "__main__":
    sys.exit(main())
