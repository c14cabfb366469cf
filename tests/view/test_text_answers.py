"""The question behind the tab Text: counts, ids, and the tokens around the cursor."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import streamtok
from streamtok.answers.views.tokens import describe_ids
from streamtok.view import tab_answers

WORDS = [
    "a", " ", "\n", "don't", "12345", "日本語", "é", "🎉", "<|endoftext|>", "<|endof", "text|>",
    " the", "\t", "<b>",
]  # fmt: skip
QUESTION = {"encoding": "gpt2", "special": "plain", "text": "abc", "at": 0}


def ask(client: httpx.Client, **question: Any) -> httpx.Response:
    return client.post("api/text", json={**QUESTION, **question})


@pytest.mark.parametrize("policy", ["plain", "allow", "refuse"])
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_answers(client: httpx.Client, policy: str, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["gpt2", "cl100k_base"]))
    text = data.draw(st.lists(st.sampled_from(WORDS), max_size=20).map("".join))
    at = data.draw(st.integers(0, len(text.encode("utf-16-le")) // 2))
    most = data.draw(st.integers(1, 9))
    enc = streamtok.get_encoding(name)
    how: dict[str, Any] = {
        "allowed_special": "all" if policy == "allow" else set(),
        "disallowed_special": "all" if policy == "refuse" else (),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tab_answers, "MOST_BOXES", most)
        response = ask(client, encoding=name, special=policy, text=text, at=at)
    if policy == "refuse" and "<|endoftext|>" in text:
        assert response.status_code == 422
        assert "disallowed special token '<|endoftext|>'" in response.json()["error"]
        return
    answer = response.json()
    ids, spans = enc.encode_with_offsets(text, "utf16", **how)
    assert answer["n_tokens"] == len(ids)
    question = {"encoding": name, "special": policy, "text": text}
    assert client.post("api/ids", json=question).json() == {"ids": ids.tolist()}
    assert answer["characters"] == len(text)
    assert answer["bytes"] == len(text.encode())
    first, tokens = answer["first"], answer["tokens"]
    assert len(tokens) == min(most, len(ids))
    drawn = slice(first, first + len(tokens))
    here = [i for i, (start, stop) in enumerate(spans.tolist()) if start <= at < stop]
    assert not here or any(first <= i < first + len(tokens) for i in here)
    known = describe_ids(enc, ids[drawn])
    assert tokens == [
        {**one.as_json(), "start": start}
        for one, start in zip(known, spans[drawn, 0].tolist(), strict=True)
    ]


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"encoding": "none"}, 400, "Unknown encoding none"),
        ({"encoding": "../gpt2"}, 400, "Unknown encoding"),
        ({"encoding": 3}, 400, "`$.encoding`"),
        ({"special": "maybe"}, 400, "'maybe' - at `$.special`"),
        ({"text": None}, 400, "Expected `str`, got `null` - at `$.text`"),
        ({"at": "x"}, 400, "Expected `int`"),
        ({"text": "x" * (tab_answers.LONGEST_TEXT + 1)}, 413, "more than the 1,048,576"),
    ],
)
def test_wrong_questions(
    client: httpx.Client, change: dict[str, Any], status: int, message: str
) -> None:
    response = ask(client, **change)
    assert response.status_code == status
    assert message in response.json()["error"]


def test_a_question_is_json_and_small(client: httpx.Client) -> None:
    response = client.post("api/text", json={**QUESTION, "text": "x" * (8 << 20)})
    assert response.status_code == 413
    assert "at most 8,388,608 bytes" in response.json()["error"]
    response = client.post("api/text", content=b"{}", headers={"Content-Type": "text/plain"})
    assert response.status_code == 415  # another site could send it without being asked before
    headers = {"Content-Type": "application/json"}
    for content in (b"", b"{", b"[1]", b"\xff", b"[" * 100_000):
        assert client.post("api/text", content=content, headers=headers).status_code == 400
