"""Prefixes and suffixes of words, unknown tokens and bytes without a token: as in tokenizers."""

import json

import numpy as np
import pytest
from tokenizers import (
    AddedToken,
    Tokenizer,
    models,
    pre_tokenizers,
)

from .reading import read, refused


@pytest.mark.parametrize("is_byte_level", [False, True])
def test_offsets_of_unknown_symbols(is_byte_level):
    """An unknown symbol comes out with the next one, but is where its own character is."""
    vocab = {"<unk>": 0, "a": 1, "b": 2, "ab": 3, "\u00c3": 4}
    theirs = Tokenizer(models.BPE(vocab, [("a", "b")], unk_token="<unk>"))
    if is_byte_level:
        theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    theirs.add_tokens([AddedToken("XX", normalized=False)])
    enc = read(theirs)
    for text in ("a日ếab", "日", "é日XXa日bééab", "日日XX日", "xa\u0301"):
        found = theirs.encode(text)
        ids, spans = enc.encode_with_offsets(text, allowed_special="all")
        assert ids.tolist() == found.ids
        assert [*map(tuple, spans.tolist())] == found.offsets
        stream = enc.stream_encoder(allowed_special="all")
        parts = [stream.encode_with_offsets(char) for char in text]
        parts.append(stream.encode_with_offsets("", final=True))
        assert np.array_equal(np.concatenate([part[1] for part in parts]), spans)


HIDDEN = [["h", "e"], ["t", "h"], ["th", "e"]]  # "the" becomes t and he


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"merges": [["t", "h"], ["t", "zz"]]}, "'zz' is not in the vocabulary"),
        ({"unk_token": "<unk>"}, "unk_token '<unk>' is not in the vocabulary"),
        ({"vocab": {"t": 0, "h": 0}}, "id 0 is given twice: to b'h' and to b't'"),
        (
            {"merges": [["t", "he"], ["th", "e"], *HIDDEN], "end_of_word_suffix": "e"},
            "of other symbols",
        ),
    ],
)
def test_refusals(changes, message):
    vocab = {text: id for id, text in enumerate(["t", "h", "e", "th", "the", " "])}
    file = json.loads(Tokenizer(models.BPE(vocab, [("t", "h"), ("th", "e")])).to_str())
    vocab = file["model"]["vocab"] | {"he": 6} | changes.get("vocab", {})
    file["model"] |= changes | {"vocab": vocab}
    refused(file, message)
