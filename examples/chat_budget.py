"""Keep a conversation within an exact number of prompt tokens.

    python chat_budget.py --budget 4000 < messages.jsonl

Each line is a message: {"role": "user", "content": "…"}. The first system message and the newest
messages are kept, as many as fit; they are printed as JSON lines, and the tokens on standard
error.

In the Harmony format a message is

    <|start|>role<|message|>content<|end|>

The special tokens separate the parts, and no token crosses them. So the count of a prompt is
exactly the sum of the counts of its messages, and each message needs to be counted only once, when
it comes. The users' text is encoded with `disallowed_special=()`: if somebody types `<|end|>`, it
is text and ends nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TypedDict

import streamtok


class Message(TypedDict):
    role: str
    content: str


class Harmony:
    """Messages to ids, in the format of the encoding "o200k_harmony"."""

    def __init__(self) -> None:
        self._encoding = streamtok.get_encoding("o200k_harmony")
        single = self._encoding.encode_single_token
        self._start, self._message, self._end = map(single, ("<|start|>", "<|message|>", "<|end|>"))
        self._answer = [self._start, *self._encoding.encode("assistant")]

    def encode(self, message: Message) -> list[int]:
        """The ids of a message."""
        role = self._encoding.encode(message["role"], disallowed_special=())
        content = self._encoding.encode(message["content"], disallowed_special=())
        return [self._start, *role, self._message, *content, self._end]

    def count(self, message: Message) -> int:
        """The number of ids of a message, without making them."""
        texts = message["role"], message["content"]
        return 3 + sum(self._encoding.count(text, disallowed_special=()) for text in texts)

    def prompt(self, messages: list[Message]) -> list[int]:
        """The ids that make the model answer."""
        return [id for message in messages for id in self.encode(message)] + self._answer

    @property
    def overhead(self) -> int:
        """The ids of a prompt beyond those of its messages."""
        return len(self._answer)


class Conversation:
    """Messages, the oldest of which are forgotten when the prompt would exceed its budget."""

    def __init__(self, budget: int) -> None:
        self._format = Harmony()
        self._budget = budget
        self._kept: list[tuple[Message, int]] = []

    def add(self, message: Message) -> None:
        """Add a message. ValueError if it does not fit even alone with the system message."""
        cost = self._format.count(message)
        system = [entry for entry in self._kept[:1] if entry[0]["role"] == "system"]
        rest = [*self._kept[len(system) :], (message, cost)]
        room = self._budget - self._format.overhead - sum(cost for _, cost in system)
        if cost > room:
            raise ValueError(f"the message has {cost} tokens, and there is room for {max(room, 0)}")
        while sum(cost for _, cost in rest) > room:
            rest.pop(0)
        self._kept = system + rest

    @property
    def messages(self) -> list[Message]:
        return [message for message, _ in self._kept]

    @property
    def tokens(self) -> int:
        """The exact number of tokens of `prompt`."""
        return self._format.overhead + sum(cost for _, cost in self._kept)

    def prompt(self) -> list[int]:
        """The ids to send to the model."""
        return self._format.prompt(self.messages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--budget", type=int, default=4000, metavar="TOKENS")
    args = parser.parse_args()
    conversation = Conversation(args.budget)
    for number, line in enumerate(sys.stdin, 1):
        try:
            conversation.add(json.loads(line))
        except ValueError as error:
            sys.exit(f"line {number}: {error}")
    for message in conversation.messages:
        print(json.dumps(message, ensure_ascii=False))
    print(f"{conversation.tokens} of {args.budget} tokens", file=sys.stderr)


if __name__ == "__main__":
    main()
