"""Tokenizer: what changes it, who keeps what, threads, pickles, and what is not ours to answer."""

from __future__ import annotations

import asyncio
import copy
import ctypes
import gc
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import AddedToken, models, normalizers, pre_tokenizers, processors

import streamtok
import streamtok.hf
from streamtok import Control, errors
from streamtok.hf import Tokenizer

from ..formats.families import bytes_trainer
from .shapes import TEXTS, gpt2, said, told
from .test_matrix import written


def pair_of(kind: str) -> tuple[Tokenizer, tokenizers.Tokenizer]:
    return Tokenizer.from_str(written(kind)), tokenizers.Tokenizer.from_str(written(kind))


def test_offsets_that_need_no_real_encoding() -> None:
    """Where a text's characters are those of its ids."""
    for kind in ("gpt2", "nfc", "llama2", "metaspace", "roberta", "bert"):
        ours, real = pair_of(kind)
        made = ours.encode_batch(TEXTS)
        expected = [one.offsets for one in real.encode_batch(TEXTS)]
        assert [one.offsets for one in made] == expected
        for text, one in zip(TEXTS, made, strict=True):
            if kind == "nfc":
                is_known = "e\u0301" not in text
            elif kind == "bert":
                is_known = all(character.isascii() or character in "\xa0ï" for character in text)
            else:
                is_known = kind != "roberta"
            assert (one._made is None) == is_known


def few_letters(has_bytes: bool, falls_back: bool = True, **parts: Any) -> tokenizers.Tokenizer:
    """BPE of a few letters, without an unknown token. has_bytes: and of <0x00> … <0xFF>."""
    names = ["a", "b", "Ġ", "Ã", "▁"]
    if has_bytes:
        names += [f"<0x{byte:02X}>" for byte in range(256)]
    vocabulary = {name: id for id, name in enumerate(names)}
    made = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=[], byte_fallback=falls_back))
    for name, part in parts.items():
        setattr(made, name, part)
    return made


BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
MARKS = pre_tokenizers.Metaspace()
WRONG: dict[str, Callable[[], tokenizers.Tokenizer]] = {  # why our own offsets would be wrong
    "bytes left out": lambda: few_letters(False, pre_tokenizer=BYTES),
    "bytes not used": lambda: few_letters(True, falls_back=False),
    "text removed": lambda: few_letters(True, normalizer=normalizers.Strip()),
    "marks left out": lambda: gpt2(pre_tokenizer=pre_tokenizers.Sequence([BYTES, MARKS])),
}


@pytest.mark.parametrize("why", WRONG)
def test_offsets_that_need_the_real_encoding(why: str) -> None:
    real, ours = WRONG[why](), Tokenizer(WRONG[why]())
    assert ours.engine == "streamtok"
    for text in ("a x é b", "  a ", "ﬁÅ🎉Å\xa0日本"):
        assert ours.encode(text).offsets == real.encode(text).offsets


def test_prompts() -> None:
    """Control becomes tokens, text does not; all else is as of the plain text."""
    for kind, special in {"gpt2": "<|endoftext|>", "nfc": "<|endoftext|>", "bert": "[SEP]"}.items():
        ours, real = pair_of(kind)
        if real.token_to_id(special) is None:
            real.add_special_tokens([special])
            ours.add_special_tokens([special])
        id = real.token_to_id(special)
        control = Control(special)
        benign = control + "hello world" + control
        for tokenizer in (ours, real):
            tokenizer.enable_padding(length=12)
        for add_special_tokens in (True, False):
            found = ours.encode(benign, add_special_tokens=add_special_tokens)
            expected = real.encode(str(benign), add_special_tokens=add_special_tokens)
            assert type(found) is tokenizers.Encoding
            for name in ("ids", "tokens", "type_ids", "attention_mask", "special_tokens_mask"):
                assert getattr(found, name) == getattr(expected, name), name
        hostile = control + f"hello {special}"
        assert ours.encode(hostile, add_special_tokens=False).ids.count(id) == 1
        ours.enable_truncation(4)
        assert len(ours.encode(hostile).overflowing) > 0
        for wrong in ({"pair": "x"}, {"is_pretokenized": True}):
            with pytest.raises(TypeError):
                ours.encode(hostile, **wrong)
        ours.no_truncation()
        for padding in (None, {"pad_id": 9, "direction": "left"}, {"pad_to_multiple_of": 8}):
            for tokenizer in (ours, real):
                tokenizer.no_padding()
                if padding is not None:
                    tokenizer.enable_padding(**padding)
            batch = [benign, "hi", control, ""]
            for encode in ("encode_batch", "encode_batch_fast"):
                rows = getattr(ours, encode)(batch)
                wanted = getattr(real, encode)([*map(str, batch)])
                for name in ("ids", "attention_mask", "special_tokens_mask"):
                    assert [getattr(row, name) for row in rows] == [
                        getattr(row, name) for row in wanted
                    ]
        rows = ours.encode_batch([hostile, "x"], add_special_tokens=False)
        assert rows[0].ids.count(id) == 1
    refused = Tokenizer(models.BPE(dropout=0.5))
    assert refused.engine == "tokenizers"
    with pytest.raises(errors.UnsupportedPromptError, match="tokenizers encodes here"):
        refused.encode(Control("x"))


CHANGES: dict[str, Any] = {
    "normalizer": lambda t: setattr(t, "normalizer", normalizers.Lowercase()),
    "no normalizer": lambda t: setattr(t, "normalizer", None),
    "pre_tokenizer": lambda t: setattr(
        t, "pre_tokenizer", pre_tokenizers.ByteLevel(add_prefix_space=True)
    ),
    "post_processor": lambda t: setattr(
        t, "post_processor", processors.TemplateProcessing("</s> $A", None, [("</s>", 2)])
    ),
    "no post_processor": lambda t: setattr(t, "post_processor", None),
    "decoder": lambda t: setattr(t, "decoder", tokenizers.decoders.Fuse()),
    "model": lambda t: setattr(t, "model", models.BPE(t.get_vocab(False), [("h", "e")])),
    "add_tokens": lambda t: t.add_tokens(["Hello, w", AddedToken(" are", lstrip=True)]),
    "add_special_tokens": lambda t: t.add_special_tokens(["ow ar"]),
    "a part's setting": lambda t: setattr(t.pre_tokenizer, "add_prefix_space", True),
    "a model's setting": lambda t: setattr(t.model, "unk_token", "<unk>"),
    "dropout": lambda t: setattr(t.model, "dropout", 1.0),
    "no dropout": lambda t: [setattr(t.model, "dropout", x) or t.encode("a") for x in (1.0, None)],
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ["gpt2", "lower"])
def test_changes(kind: str, change: str) -> None:
    """Each has its effect at once, and what was encoded before stays what it was."""
    ours, real = pair_of(kind)
    before = [ours.encode(text) for text in TEXTS], ours.encode_batch(TEXTS)
    expected = [told(real.encode(text)) for text in TEXTS]
    assert said(lambda: CHANGES[change](ours)) == said(lambda: CHANGES[change](real))
    for text in TEXTS:
        assert said(lambda t=text: ours.encode(t)) == said(lambda t=text: real.encode(t))
    ids = real.encode(TEXTS[3]).ids
    assert ours.decode(ids) == real.decode(ids)
    for encodings in before:
        assert [told(encoding) for encoding in encodings] == expected
    assert ours.to_str() == real.to_str()


def test_training(tmp_path: Any) -> None:
    """The real one keeps words of before in mind, which makes it panic; ours must not."""
    path = tmp_path / "text.txt"
    path.write_text("Hello there, Hello\n" * 3)
    for train in (
        lambda t: t.train_from_iterator(["Hello there, Hello"] * 3, bytes_trainer(290)),
        lambda t: t.train([str(path)], bytes_trainer(280)),
    ):
        ours, real = pair_of("gpt2")
        before = [ours.encode(text) for text in TEXTS]
        expected = [told(real.encode(text)) for text in TEXTS]
        fresh = tokenizers.Tokenizer.from_str(written("gpt2"))
        train(ours)
        train(fresh)
        assert [told(ours.encode(text)) for text in TEXTS] == [
            told(fresh.encode(text)) for text in TEXTS
        ]
        assert [*map(told, before)] == expected


def test_a_fallback_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    streamtok.hf.backend.log_once.cache_clear()
    for _ in range(3):
        ours = Tokenizer(tokenizers.Tokenizer(models.BPE({"a": 0, "b": 1}, [], dropout=0.5)))
        assert (ours.engine, ours.engine) == ("tokenizers", "tokenizers")
    assert Tokenizer.from_str(written("gpt2")).engine == "streamtok"
    (record,) = caplog.records
    assert record.name == "streamtok.hf"
    assert record.message == f"tokenizers encodes, not streamtok: {ours.reason}"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_server_that_forks() -> None:
    """What was compiled and cached before serves every child, also while threads are at it."""
    ours = Tokenizer(Tokenizer.from_str(written("gpt2")))
    prompt = "Hello, you! " * 1000
    ids = ours.encode(prompt).ids
    is_done = threading.Event()

    def busy() -> None:
        while not is_done.is_set():
            ours.encode_batch([prompt, "x", prompt[:5000]])

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(4):
            child = os.fork()
            if not child:
                signal.alarm(120)  # a lock that another thread held would be held for ever
                same = ours.encode(prompt + "more").ids[: len(ids) - 1] == ids[:-1]
                same &= ours.encode_batch([prompt] * 3)[2].ids == ids
                os._exit(0 if same and ours.decode(ids) == prompt else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        is_done.set()
        for thread in threads:
            thread.join()


def test_parts_that_are_written_in_python() -> None:
    class Twice:
        def pre_tokenize(self, text: Any) -> None:
            text.split(lambda _, part: [part, part])

    ours, real = pair_of("word_level")
    expected = []
    for tokenizer in (ours, real):
        tokenizer.pre_tokenizer = pre_tokenizers.PreTokenizer.custom(Twice())
        expected.append([tokenizer.encode(text).ids for text in ("a", "Hello", "x y")])
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        expected.append([tokenizer.encode(text).ids for text in ("a", "Hello", "x y")])
    assert expected[:2] == expected[2:]
    assert ours.engine == "streamtok"


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells the memory in /proc")
def test_caches_stay_bounded() -> None:
    """Of many tokenizers nothing stays, and of many texts no more than caches may have."""
    rng = random.Random(1)
    limit = streamtok.cache_limit()
    libc = ctypes.CDLL(None)

    def used_after(n_tokenizers: int, n_texts: int) -> int:
        for _ in range(n_tokenizers):
            ours = Tokenizer(Tokenizer.from_str(written("gpt2")))
            for _ in range(n_texts):
                text = "".join(rng.choices("abcdefghijkl mnop é日\n", k=10_000))
                one, _ = ours.encode_batch([text, text[:99]])
                assert len(one.offsets) == len(ours.encode(text).ids)
                assert ours.decode(one.ids) == text
        gc.collect()
        if hasattr(libc, "malloc_trim"):  # glibc keeps what is free in its arenas
            libc.malloc_trim(0)
        pages = Path("/proc/self/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    streamtok.set_cache_limit(1 << 20)
    try:
        used_after(3, 10)
        settled = used_after(3, 10)
        assert used_after(20, 3) < settled + (32 << 20)  # all that stay would have 110 MB
        assert used_after(1, 200) < settled + (24 << 20)  # these texts and ids have 37 MB
    finally:
        streamtok.set_cache_limit(limit)


def test_special_tokens_that_are_text_hide_others() -> None:
    for special in ("<a", "<ab>", "b<", "<ab", "b"):
        ours, real = pair_of("llama3")
        for tokenizer in (ours, real):
            tokenizer.add_tokens(["ab"])
            tokenizer.add_special_tokens([special])
            tokenizer.encode_special_tokens = True
        for text in ("ab<ab>ab", "<<abab<", f"{special}ab{special}", "babab<aab"):
            assert told(ours.encode(text)) == told(real.encode(text)), text


def test_asynchronous_calls() -> None:
    ours, real = pair_of("roberta")

    async def ask(tokenizer: Any) -> list[Any]:
        return [
            told(await tokenizer.async_encode(TEXTS[3])),
            [told(one) for one in await tokenizer.async_encode_batch(TEXTS)],
            [told(one) for one in await tokenizer.async_encode_batch_fast(TEXTS)],
            await tokenizer.async_decode_batch([[5, 6], [7]]),
        ]

    assert asyncio.run(ask(ours)) == asyncio.run(ask(real))
    # tokenizers counts bytes here, and characters everywhere else.
    found = asyncio.run(_asked(ours, TEXTS[5]))
    assert told(found) == told(real.encode(TEXTS[5]))


async def _asked(tokenizer: Any, text: str) -> Any:
    return await tokenizer.async_encode(text)


def test_pickles_have_the_same_bytes() -> None:
    ours, _ = pair_of("llama3")
    again = Tokenizer.from_str(written("llama3"))
    first = pickle.dumps(ours)
    ours.encode("some text").offsets  # noqa: B018
    assert pickle.dumps(ours) == first == pickle.dumps(again)
    assert pickle.dumps(pickle.loads(first)) == first
    assert pickle.dumps(copy.deepcopy(ours)) == first


def test_copies_are_apart() -> None:
    ours, real = pair_of("gpt2")
    ours.max_chars_per_token = 16  # as vLLM does
    ours.encode_special_tokens = True
    twin = copy.deepcopy(ours)
    assert twin.max_chars_per_token == 16
    for again in (twin, pickle.loads(pickle.dumps(ours))):
        assert not again.encode_special_tokens  # as with tokenizers
        text = "Hello <s></s> x"
        assert again.encode(text).ids == copy.deepcopy(real).encode(text).ids
        assert again.encode(text).ids != ours.encode(text).ids
    twin.add_tokens(["Hello"])
    assert ours.encode("Hello").ids == real.encode("Hello").ids != twin.encode("Hello").ids
    assert ours.encode_special_tokens


def test_it_passes_for_a_real_one() -> None:
    ours, _ = pair_of("gpt2")
    assert isinstance(ours, tokenizers.Tokenizer)
    assert isinstance(ours.encode("a"), tokenizers.Encoding)
    assert type(ours.real) is tokenizers.Tokenizer
    assert type(ours.model).__name__ == "BPE"
    assert Tokenizer(ours).real is ours.real
    assert Tokenizer(models.BPE()).get_vocab_size() == 0
    with pytest.raises(TypeError, match=r"a tokenizers\.Tokenizer is needed, not str"):
        Tokenizer("gpt2")
    with pytest.raises(AttributeError, match="no_such_name"):
        ours.no_such_name  # noqa: B018


def test_files(tmp_path: Any) -> None:
    ours, real = pair_of("llama2")
    ours.save(str(tmp_path / "ours.json"))
    real.save(str(tmp_path / "real.json"))
    data = (tmp_path / "real.json").read_bytes()
    assert (tmp_path / "ours.json").read_bytes() == data
    for again in (
        Tokenizer.from_file(str(tmp_path / "ours.json")),
        Tokenizer.from_buffer(data),
    ):
        assert again.to_str() == real.to_str()
        assert again.encode(TEXTS[3]).ids == real.encode(TEXTS[3]).ids


def test_without_tokenizers(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "tokenizers", None)
    for name in [name for name in sys.modules if name.startswith("streamtok.hf")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(errors.MissingLibraryError, match=r"streamtok\[hf\]"):
        __import__("streamtok.hf")


@pytest.mark.parametrize("value", ["false", "0", "true", ""])
def test_threads_are_limited_as_those_of_tokenizers(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", value)
    monkeypatch.setenv("RAYON_NUM_THREADS", "3")
    assert streamtok.hf.backend.threads() == (1 if value in ("false", "0") else 3)


def test_tokenizers_that_has_another_interface(tmp_path: Path) -> None:
    """tokenizers 1.0 has no setters and no JSON, and transformers does not take it."""
    (tmp_path / "tokenizers").mkdir()
    (tmp_path / "tokenizers" / "__init__.py").write_text(
        "__version__ = '1.0.0'\n\n\nclass Tokenizer:\n    pass\n"
    )
    here = str(Path(streamtok.__file__).parents[1])
    found = subprocess.run(
        [sys.executable, "-c", "import streamtok.hf"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), here])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stderr.rstrip().endswith(
        "MissingLibraryError: streamtok.hf needs tokenizers below 1.0, as transformers does, "
        "not 1.0.0: pip install 'streamtok[hf]'"
    )
