"""What the tests of training share."""

from __future__ import annotations

import functools
from pathlib import Path

from hypothesis import strategies as st

import streamtok
from streamtok import Trainer
from streamtok.patterns.named import PATTERNS

SPLITS = [*PATTERNS.values(), r"[\s\S]+", r"\w+", r"(?:ab)+|a|[^a]"]

documents = st.lists(
    st.text(st.sampled_from("aaabbc 1'\né"), max_size=60)
    | st.tuples(st.sampled_from(["a", "ab", "aab", " ", "\n"]), st.integers(0, 40)).map(
        lambda t: t[0] * t[1]
    ),
    max_size=5,
)


def counted(texts, pattern="cl100k", **settings) -> Trainer:
    trainer = Trainer(pattern, **settings)
    trainer.update_documents(texts)
    return trainer


def tokens_of(merges: list[tuple[bytes, bytes]]) -> list[bytes]:
    return [bytes([i]) for i in range(256)] + [a + b for a, b in merges]


@functools.lru_cache
def some_text() -> list[str]:
    """About 300 KB of text that every machine has: streamtok's own sources."""
    folder = Path(streamtok.__file__).parent
    texts = []
    for path in sorted(folder.rglob("*.py")):
        texts.append(path.read_text("utf-8"))
        if sum(map(len, texts)) > 300_000:
            break
    return texts


def rustbpe_tokens(texts, vocab_size: int, pattern: str) -> list[bytes]:
    import rustbpe

    tokenizer = rustbpe.Tokenizer()
    tokenizer.train_from_iterator(iter(texts), vocab_size, pattern=pattern)
    return [bytes(token) for token, _ in tokenizer.get_mergeable_ranks()]


def numbers(n: int) -> bytes:
    return b"".join(b"piece%dx\n" % i for i in range(n))
