"""Keep a conversation within an exact number of prompt tokens.

    python chat_budget.py --budget 4000 < messages.jsonl

Each line is a message: {"role": "user", "content": "…"}. The first system message and the newest
messages are kept, as many as fit. They are printed as JSON lines, and their number of tokens on
standard error.

In the Harmony format a message is

    <|start|>role<|message|>content<|end|>

The special tokens separate the parts, and no token crosses them. So the count of a prompt is
exactly the sum of the counts of its messages, and each message is counted only once, when it
arrives. A value put into a `Control` is text: `<|end|>` typed by a user ends nothing.
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


MESSAGE = streamtok.Control("<|start|>{role}<|message|>{content}<|end|>")
ANSWER = streamtok.Control("<|start|>assistant")  # makes the model answer


class Conversation:
    """Messages, of which the oldest are dropped when the prompt would exceed its budget."""

    def __init__(self, budget: int) -> None:
        self._encoding = streamtok.get_encoding("o200k_harmony")
        self._overhead = self._encoding.count(ANSWER)
        self._budget = budget
        self._kept: list[tuple[Message, int]] = []

    def add(self, message: Message) -> None:
        """Add a message. Raises ValueError if even it and the system message do not fit."""
        cost = self._encoding.count(MESSAGE.format(**message))
        system = [entry for entry in self._kept[:1] if entry[0]["role"] == "system"]
        rest = [*self._kept[len(system) :], (message, cost)]
        room = self._budget - self._overhead - sum(cost for _, cost in system)
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
        return self._overhead + sum(cost for _, cost in self._kept)

    def prompt(self) -> list[int]:
        """The ids to send to the model."""
        messages = [MESSAGE.format(**message) for message in self.messages]
        return self._encoding.encode(streamtok.Prompt(*messages, ANSWER))


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
