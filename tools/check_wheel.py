"""Check an installed streamtok on any platform, with only its own dependencies.

    python tools/check_wheel.py

Compares streams with whole texts, and both with the slow reference in plain Python; checks
decoding, saved states, threads, a trained vocabulary and the command line. The test suite does far
more, but needs other tokenizers, which are not available everywhere. Takes a minute on a slow
machine.
"""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import streamtok
from streamtok.reference import bpe

TEXTS = [
    "",
    "hello world",
    "naïve café, Größe, 日本語の文章。 한국어 🙂👩‍👩‍👧 \u200d\ufeff",
    "don't I'LL we've 'twas  \n\n  \t x\r\n\r\n   ",
    "1234567890 3.14159 0xFF __init__(self): return {'a': [1, 2]}",
    "a" * 700 + " " * 500 + "\n" * 40 + "=" * 300,
    "".join(map(chr, range(32, 700))),
]
NAMES = ["r50k_base", "cl100k_base", "o200k_base"]


def check_encoding(enc: streamtok.Encoding, rng: random.Random) -> None:
    """The law, over random cuts, in bytes and in str."""
    for text in [*TEXTS, "".join(rng.choices("".join(TEXTS), k=3000))]:
        ids, data = enc.encode(text), text.encode()
        assert enc.decode(ids) == text
        assert enc.encode_to_numpy(data).tolist() == ids
        assert enc.count(text) == len(ids)
        assert bpe.encode_ordinary(enc._mergeable_ranks, enc._pat_str, text) == ids
        for _ in range(20):
            size = rng.choice([1, 2, 7, 100, 5000])
            stream, decoder, found, back = enc.stream_encoder(), enc.stream_decoder(), [], ""
            for at in range(0, len(data), size):
                found += stream.encode(data[at : at + size])
                if rng.random() < 0.05:
                    stream = pickle.loads(pickle.dumps(stream))
            found += stream.flush()
            assert found == ids, (enc.name, text, size)
            for id in found:
                back += decoder.decode([id])
            assert back + decoder.flush() == text


def check_command_line(folder: Path) -> None:
    """Encode a file, decode it, and count."""
    book, ids, back = folder / "book.txt", folder / "book.npy", folder / "back.txt"
    text = "".join(TEXTS * 50)
    book.write_text(text, "utf-8", newline="")
    for args in (["encode", str(book), "-o", str(ids)], ["decode", str(ids), "-o", str(back)]):
        subprocess.run([sys.executable, "-m", "streamtok", *args], check=True)
    assert back.read_bytes() == book.read_bytes()
    done = subprocess.run(
        [sys.executable, "-m", "streamtok", "count", str(book)], check=True, capture_output=True
    )
    assert int(done.stdout.split()[0]) == streamtok.get_encoding("cl100k_base").count(text)


def main() -> None:
    rng = random.Random(1)
    for name in NAMES:
        enc = streamtok.get_encoding(name)
        check_encoding(enc, rng)
        large = "".join(rng.choices(TEXTS, k=5000))
        whole = enc.encode_to_numpy(large)
        assert (enc.encode_to_numpy(large, num_threads=2) == whole).all()
        assert enc.encode_batch(TEXTS, num_threads=4) == [enc.encode(text) for text in TEXTS]
    check_encoding(streamtok.Encoding.train_from_iterator(TEXTS, 400), rng)
    with tempfile.TemporaryDirectory() as folder:
        check_command_line(Path(folder))
    print(f"streamtok {streamtok.__version__}, {streamtok.__file__}: all equal")


if __name__ == "__main__":
    main()
