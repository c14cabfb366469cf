"""The names of `tiktoken.load`, for programs that use streamtok in its place.

`streamtok.load` stays a function: it replaces this module in `sys.modules` and has these names as
attributes. Files are paths or URLs. Downloads need `fsspec`, and are cached only if
`TIKTOKEN_CACHE_DIR` names a folder.
"""

import hashlib
import os
import sys
from collections.abc import Mapping
from typing import Any

# Absolute imports: this file is also imported as `tiktoken.load`.
from streamtok.errors import VocabularyError
from streamtok.files import write_whole
from streamtok.formats import load
from streamtok.formats.gpt2 import read_merges
from streamtok.formats.json_value import JsonValue, parse_json
from streamtok.formats.loading import read_bytes
from streamtok.jobs.stores.objects import read_whole, write
from streamtok.jobs.stores.urls import is_url
from streamtok.vocabulary.byte_alphabet import BYTES_IN_ORDER, to_bytes
from streamtok.vocabulary.ranks_file import lines_of, ranks_in

_CACHES = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")


def read_file(blobpath: str) -> bytes:
    """bytes: the contents of a path or URL. Raises OSError and MissingLibraryError."""
    return read_whole(blobpath) if is_url(blobpath) else read_bytes(blobpath)


def check_hash(data: bytes, expected_hash: str) -> bool:
    """bool: whether the data has this SHA-256."""
    return hashlib.sha256(data).hexdigest() == expected_hash


def read_file_cached(blobpath: str, expected_hash: str | None = None) -> bytes:
    """bytes: as `read_file`, cached in the folder `TIKTOKEN_CACHE_DIR` if that is set.

    A cached file with a different SHA-256 is replaced. Raises ValueError if the SHA-256 of the
    original is different.
    """
    folder = next((os.environ[name] for name in _CACHES if name in os.environ), "")
    kept = os.path.join(folder, hashlib.sha1(blobpath.encode()).hexdigest()) if folder else ""
    if kept and os.path.exists(kept):
        data = read_bytes(kept)
        if expected_hash is None or check_hash(data, expected_hash):
            return data
    data = read_file(blobpath)
    if expected_hash and not check_hash(data, expected_hash):
        raise ValueError(f"{blobpath}: its SHA-256 is not {expected_hash}; fetch it again")
    if kept:
        os.makedirs(folder, exist_ok=True)
        write_whole(kept, data)
    return data


def load_tiktoken_bpe(tiktoken_bpe_file: str, expected_hash: str | None = None) -> dict[bytes, int]:
    """dict[bytes, int]: the tokens of a `.tiktoken` file and their ranks, in file order.

    Raises OSError, and ValueError for a different SHA-256 or for a bad line, which the message
    names.
    """
    return ranks_in(read_file_cached(tiktoken_bpe_file, expected_hash), tiktoken_bpe_file)


def dump_tiktoken_bpe(bpe_ranks: Mapping[bytes, int], tiktoken_bpe_file: str) -> None:
    """Write a `.tiktoken` file, in order of rank. It appears only once it is complete."""
    (write if is_url(tiktoken_bpe_file) else write_whole)(tiktoken_bpe_file, lines_of(bpe_ranks))


def data_gym_to_mergeable_bpe_ranks(
    vocab_bpe_file: str,
    encoder_json_file: str,
    vocab_bpe_hash: str | None = None,
    encoder_json_hash: str | None = None,
    clobber_one_byte_tokens: bool = False,
) -> dict[bytes, int]:
    """dict[bytes, int]: tokens and ranks of GPT-2's pair of files, `vocab.bpe` and `encoder.json`.

    clobber_one_byte_tokens: take the ids of single bytes from `encoder.json`. Raises OSError, and
    ValueError if the two files disagree.
    """
    merges = read_merges(read_file_cached(vocab_bpe_file, vocab_bpe_hash), vocab_bpe_file)
    entries = parse_json(read_file_cached(encoder_json_file, encoder_json_hash), encoder_json_file)
    ids = JsonValue(entries, encoder_json_file).as_ids()
    known = {to_bytes(text): id for text, id in ids.items()}
    for special in (b"<|endoftext|>", b"<|startoftext|>"):  # no merge produces them
        known.pop(special, None)
    ranks: dict[bytes, int] = {bytes([byte]): rank for rank, byte in enumerate(BYTES_IN_ORDER)}
    for rank, pair in enumerate(merges, len(ranks)):
        token = to_bytes(pair.replace(" ", ""))
        if token is None:
            raise VocabularyError(f"{vocab_bpe_file}: {pair!r} is not in GPT-2's byte alphabet")
        ranks[token] = rank
    if clobber_one_byte_tokens:
        ranks |= {token: known[token] for token in ranks if len(token) == 1 and token in known}
    if ranks != known:
        raise VocabularyError(f"{encoder_json_file}: its ids are not the ranks of {vocab_bpe_file}")
    return ranks


_NAMES = (read_file, check_hash, read_file_cached, load_tiktoken_bpe, dump_tiktoken_bpe)
vars(load).update({each.__name__: each for each in (*_NAMES, data_gym_to_mergeable_bpe_ranks)})
_modules: dict[str, Any] = sys.modules
_modules[__name__] = load
