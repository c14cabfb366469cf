"""llama.cpp's own vocabularies: `python -m tests.long.gguf_vocabularies FOLDER`.

FOLDER has `ggml-vocab-*.gguf` with texts (`.inp`) and the ids that they become (`.out`), as in the
folder `models` of llama.cpp, which the source distribution of llama-cpp-python has.
"""

from __future__ import annotations

import sys
from pathlib import Path

import streamtok

_BETWEEN = "\n__ggml_vocab_test__\n"


def main(folder: str) -> int:
    failed = 0
    for path in sorted(Path(folder).glob("*.gguf")):
        try:
            encoding = streamtok.load(path)
        except streamtok.VocabularyError as error:
            failed += 1
            print(f"{path.name}: refused: {error}")
            continue
        given = path.with_name(path.name + ".inp")
        if not given.exists():
            print(f"{path.name}: {encoding.n_vocab} ids; no texts beside it")
            continue
        with given.open(encoding="utf-8", newline="") as file:
            texts = file.read().split(_BETWEEN)
        lines = path.with_name(path.name + ".out").read_text("utf-8").splitlines()
        expected = [[int(id) for id in line.split()] for line in lines]
        different = 0
        for text, ids in zip(texts, expected, strict=False):
            found = encoding.encode(text, disallowed_special=())
            stream = encoding.stream_encoder(disallowed_special=())
            streamed = [id for character in text for id in stream.encode(character)]
            streamed += stream.flush()
            if not found == streamed == ids:
                different += 1
                print(f"  {text!r}: {ids} is {found}, streamed {streamed}")
        failed += different
        print(f"{path.name}: {len(expected)} texts, {different} differ")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
