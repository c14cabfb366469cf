"""transformers with streamtok's engine: the same answers to all calls, and nothing left behind."""

from __future__ import annotations

import copy
import functools
import pickle
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import transformers
from tokenizers.decoders import DecodeStream as RealStream
from transformers import AutoTokenizer, PreTrainedTokenizerFast

import streamtok.hf
from streamtok.hf import (
    accelerate,
    patch_transformers,
    patched_transformers,
    unpatch_transformers,
)

from .shapes import TEXTS, raised
from .test_matrix import written

KINDS = ["gpt2", "roberta", "llama3", "lower", "llama2", "bert", "unigram"]
BATCH = ["Hello, world!", "", "naïve e\u0301 日本語 🎉 <s> x"]
PAIRS = [["How many people?", "About 8 million."], ["a", "b c d e f g h"]]
WORDS = [["Hello", "world"], ["日本", "x", "y z"]]
CHAT = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello, you!"}]
TEMPLATE = (
    "{% for m in messages %}<s>{{ m['role'] }}\n{{ m['content'] }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant\n{% endif %}"
)


@functools.cache
def folder(kind: str) -> str:
    """A folder that `from_pretrained` takes, for this process."""
    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer.from_str(written(kind)),
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        model_max_length=64,
    )
    made.chat_template = TEMPLATE
    place = tempfile.TemporaryDirectory(prefix="streamtok-tests-")
    made.save_pretrained(place.name)
    _FOLDERS.append(place)
    return place.name


_FOLDERS: list[Any] = []


@pytest.fixture(autouse=True)
def _is_not_patched() -> Iterator[None]:
    unpatch_transformers()
    yield
    unpatch_transformers()


def plain(found: Any) -> Any:
    """What can be compared."""
    if isinstance(found, transformers.BatchEncoding):
        told = {name: plain(value) for name, value in found.items()}
        told["n"] = raised(lambda: len(found.encodings or [])), found.n_sequences
        for place in range(len(found.encodings or [])):
            told[f"of {place}"] = [
                raised(lambda p=place: found.tokens(p)),
                raised(lambda p=place: found.word_ids(p)),
                raised(lambda p=place: found.sequence_ids(p)),
                [raised(lambda p=place, c=c: found.char_to_token(p, c)) for c in range(6)],
                [raised(lambda p=place, t=t: found.token_to_chars(p, t)) for t in range(3)],
                [raised(lambda p=place, w=w: found.word_to_tokens(p, w)) for w in range(3)],
            ]
        return told
    if hasattr(found, "tolist"):
        return type(found).__name__, str(found.dtype), found.tolist()
    if isinstance(found, dict):
        return {name: plain(value) for name, value in found.items()}
    if isinstance(found, list | tuple):
        return [plain(one) for one in found]
    return found


def _added(t: Any) -> Any:
    t.add_tokens(["Hello, w"])
    t.add_special_tokens({"additional_special_tokens": ["<extra>"]})
    return t(["Hello, world <extra>!"], return_offsets_mapping=True), len(t), t.get_added_vocab()


CALLS: dict[str, Callable[[Any], Any]] = {
    "one": lambda t: t(TEXTS[3]),
    "each": lambda t: [t(text) for text in TEXTS],
    "batch": lambda t: t(BATCH),
    "pair": lambda t: t("How many?", "Eight."),
    "batch of pairs": lambda t: t([a for a, _ in PAIRS], [b for _, b in PAIRS]),
    "words": lambda t: t(WORDS[0], is_split_into_words=True),
    "batch of words": lambda t: t(WORDS, is_split_into_words=True, return_offsets_mapping=True),
    "truncated": lambda t: t(BATCH, truncation=True, max_length=6),
    "truncated pairs": lambda t: t(*zip(*PAIRS, strict=True), truncation=True, max_length=8),
    "only_second": lambda t: t(
        [a for a, _ in PAIRS], [b for _, b in PAIRS], truncation="only_second", max_length=9
    ),
    "overflow": lambda t: t(
        TEXTS[3],
        truncation=True,
        max_length=6,
        stride=2,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    ),
    "encode": lambda t: [t.encode(text) for text in TEXTS],
    "encode, numpy": lambda t: t.encode(TEXTS[3], return_tensors="np"),
    "tokenize": lambda t: [t.tokenize(text) for text in TEXTS],
    "tokens of ids": lambda t: t.convert_ids_to_tokens(t.encode(TEXTS[3])),
    "ids of tokens": lambda t: t.convert_tokens_to_ids(t.tokenize(TEXTS[3])),
    "tokens to text": lambda t: t.convert_tokens_to_string(t.tokenize(TEXTS[3])),
    "decode": lambda t: [t.decode(t.encode(text)) for text in TEXTS],
    "decode, skipping": lambda t: [
        t.decode(t.encode(text), skip_special_tokens=True) for text in TEXTS
    ],
    "decode one id": lambda t: [t.decode(id) for id in range(40)],
    "decode numpy": lambda t: t.decode(t.encode(TEXTS[5], return_tensors="np")[0]),
    "batch_decode": lambda t: t.batch_decode([t.encode(text) for text in TEXTS]),
    "pad": lambda t: t.pad({"input_ids": [t.encode("a b c"), t.encode("a")]}),
    "chat": lambda t: t.apply_chat_template(CHAT, add_generation_prompt=True),
    "chat, text": lambda t: t.apply_chat_template(CHAT, tokenize=False),
    "chats, padded": lambda t: t.apply_chat_template(
        [CHAT, CHAT[:1]], padding=True, return_dict=True
    ),
    "vocab": lambda t: (t.get_vocab(), t.vocab_size, len(t), t.all_special_ids),
    "special tokens": lambda t: (t.num_special_tokens_to_add(), t.num_special_tokens_to_add(True)),
    "added tokens": _added,
    "max_length twice": lambda t: [t(BATCH, truncation=True, max_length=5), t(BATCH)],
    "json": lambda t: t.backend_tokenizer.to_str(),
    "bytes": lambda t: t(b"bytes"),
    "pickled": lambda t: pickle.loads(pickle.dumps(t))(BATCH),
    "copied": lambda t: copy.deepcopy(t)(BATCH),
    "pickled encodings": lambda t: pickle.loads(pickle.dumps(t(BATCH))),
    "trained anew": lambda t: t.train_new_from_iterator(
        ["Hello there"] * 9, 300, show_progress=False
    )("Hello there").tokens(),
    "saved": lambda t: [
        Path(name).read_text("utf-8")
        for name in t.save_pretrained(tempfile.mkdtemp(prefix="streamtok-tests-"))
        if name.endswith(".json")
    ],
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_call(kind: str) -> None:
    real = AutoTokenizer.from_pretrained(folder(kind))
    with patched_transformers():
        ours = AutoTokenizer.from_pretrained(folder(kind))
    assert type(ours._tokenizer) is streamtok.hf.Tokenizer
    assert type(ours) is type(real)
    differing = [
        name
        for name, call in CALLS.items()
        if raised(lambda c=call: plain(c(ours))) != raised(lambda c=call: plain(c(real)))
    ]
    assert differing == []


def test_makers_own_classes(tmp_path: Any) -> None:
    """Classes of models build their backends by themselves."""
    import json

    value = json.loads(written("gpt2"))
    vocab = value["model"]["vocab"]
    merges = [tuple(pair) for pair in value["model"]["merges"]]
    bert = json.loads(written("bert"))["model"]["vocab"]
    if transformers.__version__.startswith("4."):  # there they are made of a whole file
        (tmp_path / "gpt2.json").write_text(written("gpt2"))
        (tmp_path / "bert.json").write_text(written("bert"))
        made = [
            transformers.Qwen2TokenizerFast(tokenizer_file=str(tmp_path / "gpt2.json")),
            transformers.BertTokenizerFast(tokenizer_file=str(tmp_path / "bert.json")),
        ]
    else:
        made = [
            transformers.Qwen2Tokenizer(vocab=vocab | {"<|endoftext|>": len(vocab)}, merges=merges),
            transformers.LlamaTokenizer(vocab=vocab, merges=merges, unk_token="<unk>"),
            transformers.BertTokenizer(vocab=bert),
        ]
    for number, maker in enumerate(made):
        maker.save_pretrained(tmp_path / str(number))
        real = type(maker).from_pretrained(tmp_path / str(number))
        with patched_transformers():
            ours = type(maker).from_pretrained(tmp_path / str(number))
        assert type(ours) is type(maker)
        assert type(ours._tokenizer) is streamtok.hf.Tokenizer
        for call in ("each", "truncated", "overflow", "decode"):
            assert plain(CALLS[call](ours)) == plain(CALLS[call](real)), (type(maker), call)


def test_tokenizers_that_are_made_without_from_pretrained(tmp_path: Path) -> None:
    """By a class's constructor, a subclass's that goes on after it, training, and copies."""

    class Own(PreTrainedTokenizerFast):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self._tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
                "<s> $A", None, [("<s>", 1)]
            )

    file = tmp_path / "tokenizer.json"
    file.write_text(written("llama3"))
    ways: list[Callable[[], Any]] = [
        lambda: PreTrainedTokenizerFast(tokenizer_file=str(file), pad_token="<pad>"),
        lambda: PreTrainedTokenizerFast(
            tokenizer_object=tokenizers.Tokenizer.from_file(str(file)), pad_token="<pad>"
        ),
        lambda: Own(tokenizer_file=str(file), pad_token="<pad>"),
        lambda: PreTrainedTokenizerFast(tokenizer_file=str(file)).train_new_from_iterator(
            ["Hello there"] * 9, 300, show_progress=False
        ),
        lambda: copy.deepcopy(Own(tokenizer_file=str(file))),
    ]
    real = [way() for way in ways]
    with patched_transformers():
        ours = [way() for way in ways]
        again = PreTrainedTokenizerFast(tokenizer_object=ours[0].backend_tokenizer)
        for one, other in zip([*ours, again], [*real, real[0]], strict=True):
            assert one.backend_tokenizer.engine == "streamtok"
            assert type(other.backend_tokenizer) is tokenizers.Tokenizer
            assert one(BATCH).input_ids == [other.encode(text) for text in BATCH]
    assert type(PreTrainedTokenizerFast(tokenizer_file=str(file))._tokenizer) is (
        tokenizers.Tokenizer
    )


def test_loading_leaves_no_part_with_a_caller() -> None:
    """Parts that are set while a tokenizer is loaded need not be compared at each call."""

    class Own(PreTrainedTokenizerFast):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self._tokenizer.post_processor = self._tokenizer.post_processor

    with patched_transformers():
        assert not Own.from_pretrained(folder("bert"))._tokenizer._handed_out


def names_of(owner: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(owner).items() if name != "__warningregistry__"}


def test_nothing_is_left_of_a_patch() -> None:
    fast = transformers.PreTrainedTokenizerFast
    user = types.ModuleType("someone_who_imported_it_before")
    user.DecodeStream = RealStream  # type: ignore[attr-defined]
    sys.modules[user.__name__] = user
    try:
        owners = [fast, *fast.__mro__, tokenizers.decoders, user]
        before = [names_of(owner) for owner in owners]
        inherited = fast.from_pretrained.__func__
        for _ in range(2):
            patch_transformers()
            patch_transformers()
            assert fast.from_pretrained.__func__ is not inherited
            assert tokenizers.decoders.DecodeStream is streamtok.hf.DecodeStream
            assert user.DecodeStream is streamtok.hf.DecodeStream
            unpatch_transformers()
            unpatch_transformers()
            assert [names_of(owner) for owner in owners] == before
            assert "from_pretrained" not in vars(fast)
            assert fast.from_pretrained.__func__ is inherited
    finally:
        del sys.modules[user.__name__]


def test_the_context_leaves_what_was_there() -> None:
    patch_transformers()
    with patched_transformers():
        pass
    made = AutoTokenizer.from_pretrained(folder("gpt2"))
    assert type(made._tokenizer) is streamtok.hf.Tokenizer
    unpatch_transformers()
    with pytest.raises(ZeroDivisionError), patched_transformers():
        raise ZeroDivisionError
    made = AutoTokenizer.from_pretrained(folder("gpt2"))
    assert type(made._tokenizer) is tokenizers.Tokenizer


def test_one_tokenizer() -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder("llama3"))
    expected = plain(tokenizer(BATCH, return_offsets_mapping=True))
    assert accelerate(tokenizer) is tokenizer
    backend = tokenizer._tokenizer
    assert accelerate(tokenizer)._tokenizer is backend
    assert plain(tokenizer(BATCH, return_offsets_mapping=True)) == expected
    assert backend.engine == "streamtok"

    class Slow:
        """Written in Python: there is no backend."""

    slow = Slow()
    assert accelerate(slow) is slow


def test_datasets_know_the_same_tokenizer_again() -> None:
    from datasets.fingerprint import Hasher

    made = [accelerate(AutoTokenizer.from_pretrained(folder("gpt2"))) for _ in range(2)]
    made[0](BATCH)
    assert Hasher.hash(made[0]._tokenizer) == Hasher.hash(made[1]._tokenizer)


def test_the_plug_in_of_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """As vLLM does it: the entry point is called, then tokenizers are loaded and copied."""
    from importlib.metadata import EntryPoint

    register = EntryPoint(
        "streamtok", "streamtok.hf.vllm_plugin:register", "vllm.general_plugins"
    ).load()
    for value, kind in (("", tokenizers.Tokenizer), ("0", tokenizers.Tokenizer)):
        monkeypatch.setenv("STREAMTOK_VLLM", value)
        register()
        assert type(AutoTokenizer.from_pretrained(folder("gpt2"))._tokenizer) is kind
    monkeypatch.setenv("STREAMTOK_VLLM", "1")
    register()
    tokenizer = AutoTokenizer.from_pretrained(folder("llama3"))
    tokenizer.max_chars_per_token = max(map(len, tokenizer.get_vocab()))
    copies = [copy.deepcopy(tokenizer) for _ in range(2)]
    from tokenizers.decoders import DecodeStream

    for twin in copies:
        ids = twin("Hello <s> 日本語").input_ids
        stream = DecodeStream(ids=ids[:2], skip_special_tokens=True)
        text = "".join(stream.step(twin._tokenizer, id) or "" for id in ids[2:])
        assert text == tokenizer.decode(ids, skip_special_tokens=True)[1:]
