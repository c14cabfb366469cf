"""Train a vocabulary on your text, save it, load it, and measure what it gains.

    python train_vocabulary.py *.txt --size 8000 -o tokenizer.json

Every tenth block of text is held out. On these blocks, the vocabulary is compared with GPT-2's: how
many bytes does a token stand for? The file has Hugging Face's format; `tokenizers` reads it and
returns the same ids.
"""

from __future__ import annotations

import argparse
import sys

import streamtok
from streamtok import formats

BLOCK = 1 << 16
END = "<|endoftext|>"


def train(paths: list[str], size: int) -> tuple[streamtok.Encoding, bytes]:
    """The encoding, and the text that was not trained on. Each file is a document."""
    trainer = streamtok.Trainer("gpt2", errors="replace")
    kept = []
    number = 0
    for path in paths:
        with open(path, "rb") as file:
            while block := file.read(BLOCK):
                number += 1
                if number % 10 == 0:
                    kept.append(block)
                    trainer.end_document()  # what follows does not continue what was before
                else:
                    trainer.update(block)  # cut anywhere, also inside a character
        trainer.end_document()
    return trainer.train(size, special_tokens=[END], tie="hf", name="mine"), b"".join(kept)


def bytes_per_token(encoding: streamtok.Encoding, text: bytes) -> float:
    """The mean number of bytes that a token stands for: more is better."""
    return len(text) / max(1, encoding.count(text, errors="replace", disallowed_special=()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--size", type=int, default=8000, help="number of ids (default: 8000)")
    parser.add_argument("-o", "--output", default="tokenizer.json")
    args = parser.parse_args()
    trained, kept = train(args.files, args.size)
    formats.save_huggingface(trained, args.output)

    mine = streamtok.load(args.output)  # as any other program would
    if mine.encode("tea for two") != trained.encode("tea for two"):
        sys.exit("the file gives other ids")
    print(f"{args.output}: {mine.n_vocab} ids, {END} is {mine.eot_token}")
    if not kept:
        print(f"no text was kept to compare: that takes {10 * BLOCK} bytes")
        return
    stream = mine.stream_encoder(errors="replace", disallowed_special=())
    count = sum(len(stream.encode(kept[at : at + 4096])) for at in range(0, len(kept), 4096))
    count += len(stream.flush())
    if count != mine.count(kept, errors="replace", disallowed_special=()):
        sys.exit("the stream gives other ids than the whole text")
    gpt2 = streamtok.get_encoding("gpt2")
    print(f"bytes per token on {len(kept)} other bytes: {bytes_per_token(mine, kept):.2f}")
    print(f"GPT-2, with {gpt2.n_vocab} ids: {bytes_per_token(gpt2, kept):.2f}")


if __name__ == "__main__":
    main()
