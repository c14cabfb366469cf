"""streamtok as an engine of Hugging Face's tokbench (github.com/huggingface/tokbench).

Copy this file to `engines/streamtok/run.py` there, and add a row to `scripted()` in
`driver/src/registry.rs`: `("streamtok", "engines/streamtok/run.py"),`. The driver runs it for each
model and text; `python/harness.py` of tokbench cuts the text, times the calls and hashes the ids,
so nothing here measures. Without the driver: `python engines/streamtok/run.py --model FOLDER
--corpus FILE`.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import harness

import streamtok


def main() -> None:
    args = harness.args_parser().parse_args()
    version = f"streamtok {streamtok.__version__}"
    file = args.model / "tokenizer.json"
    if not file.exists():
        harness.unsupported(version, "python", "the folder of the model has no tokenizer.json")

    def load() -> streamtok.Encoding:
        try:
            return streamtok.load(file)
        except streamtok.VocabularyError as error:
            harness.unsupported(version, "python", str(error))
            raise  # not reached: `unsupported` ends the program

    harness.run(
        name="streamtok",
        version=version,
        lang="python",
        load=load,
        # Like the reference: added tokens are matched, and no special tokens go around the text.
        encode=lambda enc, text: enc.encode(text, allowed_special="all"),
        args=args,
    )


if __name__ == "__main__":
    main()
