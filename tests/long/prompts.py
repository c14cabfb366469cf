"""Random prompts of control and text against the law of `streamtok.reference.renaming`.

    python -m tests.long.prompts FOLDER [ENCODING...] [--prompts N]

checks so many prompts of each bundled ENCODING, and of each `tokenizer.json` below FOLDER, these
also against the law on top of tokenizers, which knows nothing of prompts.
`python -m tests.long prompts` makes rounds.

A round takes an encoding: bundled, of random tokens, with normalizers and flags of tokens, or a
model of pieces. It makes prompts of tokens, parts of them, blanks and marks that compose, encodes
each through several calls, and as a stream that is cut at random and saved in between.
"""

from __future__ import annotations

import argparse
import collections
import copy
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

import streamtok
from streamtok import Control, Prompt, UnsupportedPromptError
from streamtok.encoding import changed
from streamtok.engines.rules import TokenFlags
from streamtok.reference.renaming import Encode, NamedToken, encode_prompt, find_control

from ..conftest import PACKED, encoding_of
from .states.encodings import made

C = Control
KINDS = ["bundled", "random", "spaces", "added", *["rewriting"] * 6, "pieces", "pieces", "merges"]
PROMPTS = 25  # of a round
PIECES = [
    " ", "  ", "\n", "x", "a b", "e", "\u0301", "\u0338", "role", "zebra", "\u2581", "É", "😀", "`",
    "hello world", "<", "ab",
]  # fmt: skip


class Law:
    """An encoding as the law sees it."""

    def __init__(self, encoding: streamtok.Encoding) -> None:
        self.encoding = encoding
        self._renamed: tuple[list[str], Encode] = [], lambda text: []
        definition = encoding.definition
        self.flags = dict(definition.rules.token_flags)
        specials = definition.specials
        self.tokens = [
            NamedToken(
                text, id, text in encoding.control_tokens, *self.flags.get(text, TokenFlags())
            )
            for text, id in specials.preferred
            if text in encoding.control_tokens or text in specials.added
        ]

    @property
    def is_refused(self) -> bool:
        """Whether the law refuses the encoding."""
        late = [token for token in self.tokens if token.normalized]
        normalizer = self.encoding.definition.rules.normalizer
        if normalizer and any(token.is_control for token in late):
            characters = {*"".join([token.text for token in late])}
            for kind, *settings in normalizer.spec:
                if kind != "Replace" or len(settings[0]) > 1 or len(settings[1]) != 1:
                    return True
                if not characters.isdisjoint(settings):
                    return True
        model = self.encoding.definition.vocabulary.model
        encode = self.renamed({})
        return any(
            token.id in encode(shape.replace("*", token.text))
            for token in self.tokens
            if token.is_control and (model is None or token.id != model.unknown)
            for shape in ("*", " *", "a*", "a * a")
        )

    def renamed(self, names: dict[str, NamedToken]) -> Encode:
        """What encodes text with these names in place of control tokens."""
        rules = self.encoding.definition.rules
        control = self.encoding.control_tokens
        top = self.encoding.max_token_value + 1
        ids = {name: top + at for at, name in enumerate(names)}
        flags = {text: one for text, one in self.flags.items() if text not in control}
        flags |= {
            name: TokenFlags(one.normalized, one.lstrip, one.rstrip) for name, one in names.items()
        }
        other = changed(
            self.encoding,
            special_tokens=ids,
            control_tokens=None,
            rules=rules._replace(
                added_tokens=tuple(one for one in rules.added_tokens if one[0] not in control),
                token_flags=tuple(
                    (text, one)
                    for text, one in flags.items()
                    if text in ids or text not in self.encoding.special_tokens_set
                ),
                decoded_texts=(),
            ),
        )
        back = {ids[name]: token.id for name, token in names.items()}
        return lambda text: [back.get(id, id) for id in other.encode(text, allowed_special="all")]

    def encode(self, prompt: Prompt) -> list[int]:
        return encode_prompt(prompt, self.tokens, self._renamed_once)

    def _renamed_once(self, names: dict[str, NamedToken]) -> Encode:
        """`renamed`, kept: the names are others only where a prompt has their characters."""
        if self._renamed[0] != [*names]:
            self._renamed = [*names], self.renamed(names)
        return self._renamed[1]


class FileLaw(Law):
    """A tokenizer.json, on top of `tokenizers`."""

    def __init__(self, path: Path) -> None:
        super().__init__(streamtok.load(path))
        self.file = json.loads(path.read_text("utf-8"))
        # What these do is not asked for.
        self.file |= {"truncation": None, "padding": None, "post_processor": None}

    def renamed(self, names: dict[str, NamedToken]) -> Encode:
        file = copy.copy(self.file)
        control = self.encoding.control_tokens
        file["added_tokens"] = [
            one for one in file["added_tokens"] if one["content"] not in control
        ]
        top = self.encoding.max_token_value + 1
        for at, (name, token) in enumerate(names.items()):
            file["added_tokens"].append({
                "id": top + at, "content": name, "special": True, "single_word": False,
                "lstrip": token.lstrip, "rstrip": token.rstrip, "normalized": token.normalized,
            })  # fmt: skip
        real = Tokenizer.from_str(json.dumps(file))
        # Added tokens may have got other ids than in the file.
        back = {real.token_to_id(one.text): one.id for one in self.tokens if not one.is_control}
        back |= {real.token_to_id(name): token.id for name, token in names.items()}
        return lambda text: [
            back.get(id, id) for id in real.encode(text, add_special_tokens=False).ids
        ]


def random_spans(rng: random.Random, tokens: Sequence[NamedToken]) -> Prompt:
    texts = [token.text for token in rng.sample(tokens, min(4, len(tokens)))]
    texts += [token.text for token in tokens if any(token[3:])][:5]
    parts = [text[: rng.randrange(len(text) + 1)] for text in texts]
    parts += [text[rng.randrange(len(text)) :] for text in texts]
    pieces = [*texts, *texts, *parts, *PIECES, ""]
    spans: list[Any] = []
    for _ in range(rng.randrange(1, 7)):
        if rng.random() < 0.1:  # a token in two pieces, with a border between them or none
            text = rng.choice(texts or PIECES)
            middle = rng.randrange(len(text) + 1)
            border = rng.choice(["", C(""), "x"])
            spans += [C(text[:middle]), border, rng.choice([C, str])(text[middle:])]
        text = "".join(rng.choice(pieces) for _ in range(rng.randrange(4)))
        spans.append(C(text) if rng.random() < 0.5 else text)
    return Prompt(*spans)


def cut_spans(rng: random.Random, prompt: Prompt) -> Iterator[Any]:
    """Chunks of a stream that make this prompt."""
    yield Prompt()
    at = 0
    while at < len(prompt) or (at == 0 and prompt.spans):
        stop = at + rng.choice([1, 1, 2, 3, 8])
        part = prompt[at:stop]
        at = stop
        if rng.random() < 0.4 or ("", False) in part.spans:
            yield part
            continue
        for text, is_control in part.spans:
            if is_control:
                yield Control(text)
            elif rng.random() < 0.5:
                yield text
            else:
                data = text.encode()
                middle = rng.randrange(len(data) + 1)
                yield data[:middle]
                yield data[middle:]
    if rng.random() < 0.3:
        yield ""


def streamed(rng: random.Random, encoding: streamtok.Encoding, prompt: Prompt) -> list[int]:
    stream = encoding.stream_encoder(disallowed_special=())
    ids = []
    for chunk in cut_spans(rng, prompt):
        if rng.random() < 0.1:
            state = stream.getstate()
            stream = encoding.stream_encoder(disallowed_special=())
            stream.setstate(state)
        ids += stream.encode(chunk)
        if rng.random() < 0.1:
            stream = stream.copy()
    return ids + stream.flush()


WHOLE: dict[str, Callable[[streamtok.Encoding, Prompt], list[int]]] = {
    "encode": lambda enc, prompt: enc.encode(prompt),
    "to_numpy": lambda enc, prompt: enc.encode_to_numpy(prompt).tolist(),
    "batch": lambda enc, prompt: enc.encode_batch(["x", prompt])[1],
    "max_tokens": lambda enc, prompt: enc.encode(prompt, max_tokens=1 << 30),
    "offsets": lambda enc, prompt: enc.encode_with_offsets(prompt)[0].tolist(),
    "document": lambda enc, prompt: enc.document(prompt).ids,
}


def subject(rng: random.Random) -> streamtok.Encoding:
    kind = rng.choice(KINDS)
    if kind == "bundled":
        return encoding_of(rng.choice([*PACKED, "llama3_style"]))
    return made(kind, rng.randrange(60)).encoding


def check_prompt(law: Law, prompt: Prompt, rng: random.Random) -> bool:
    """Check a prompt. Whether the ids were to be those of its text, too."""
    encoding = law.encoding
    expected = law.encode(prompt)
    where = f"{encoding.name}: {prompt!r}"
    calls = {*WHOLE}
    pattern = encoding.definition.pattern
    if encoding.definition.vocabulary.model is None and not (pattern and pattern.is_total):
        calls.remove("offsets")  # the ids do not tell where they came from
    for name in ("encode", rng.choice(sorted(calls))):
        assert WHOLE[name](encoding, prompt) == expected, f"{name} of {where}"
    assert encoding.count(prompt) == len(expected), f"count of {where}"
    seed = rng.random()
    got = streamed(random.Random(seed), encoding, prompt)
    assert got == expected, f"a stream, {seed}, of {where}"
    places, at = [], 0
    for text, is_control in prompt.spans:
        if is_control:
            found = find_control(text, law.tokens)
            places += [(at + start, at + stop, token) for start, stop, token in found]
        at += len(text)
    if find_control(str(prompt), law.tokens) != places:
        return False
    # In plain text, a token that is passed over because it touches a word hides others, and a
    # blank one may be taken by the token before it.
    hides = any(
        one.text in str(prompt) and (one.single_word or not one.text.strip())
        for one in law.tokens
        if one.is_control
    )
    if not hides and encoding.special_tokens_set <= encoding.control_tokens:
        plain = encoding.encode(str(prompt), allowed_special="all")
        assert plain == expected, f"the plain text of {where}"
    return True


def one_round(seed: int) -> collections.Counter[str]:
    """Check some prompts of an encoding; how many, and how many have the ids of their text."""
    rng = random.Random(seed)
    encoding = subject(rng)
    texts = sorted(encoding.definition.specials.every)
    if rng.random() < 0.3:
        some = rng.sample(texts, rng.randint(0, len(texts)))
        encoding = encoding.with_control_tokens({*some, *encoding.special_tokens_set})
    return check_prompts(encoding, rng, PROMPTS)


def check_prompts(
    encoding: streamtok.Encoding, rng: random.Random, n_prompts: int, path: Path | None = None
) -> collections.Counter[str]:
    """Check prompts of an encoding, and with the path of its file also against tokenizers."""
    law = Law(encoding)
    counts: collections.Counter[str] = collections.Counter()
    try:
        encoding.encode(Prompt())
    except UnsupportedPromptError:
        assert law.is_refused, encoding.name
        counts["encodings refused"] += 1
        return counts
    assert not law.is_refused, encoding.name
    real = None if path is None else FileLaw(path)
    for _ in range(n_prompts):
        prompt = random_spans(rng, law.tokens)
        counts["prompts"] += 1
        counts["as their text"] += check_prompt(law, prompt, rng)
        if real is not None:
            assert real.encode(prompt) == encoding.encode(prompt), f"tokenizers: {prompt!r}"
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.long.prompts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("encodings", nargs="*", default=[])
    parser.add_argument("--prompts", type=int, default=1000, help="of each file; default: 1000")
    options = parser.parse_args()
    for name in options.encodings:
        found = check_prompts(streamtok.get_encoding(name), random.Random(1), options.prompts)
        print(f"{name}: {dict(found)}", flush=True)
    for path in sorted(options.folder.rglob("tokenizer.json")):
        counts = check_prompts(streamtok.load(path), random.Random(1), options.prompts, path)
        print(f"{path}: {dict(counts)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
