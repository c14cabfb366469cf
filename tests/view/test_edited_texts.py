"""The document behind the tab Text: after any edits, the answer is that of the whole text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import streamtok
from streamtok.view import edited_texts as module

from .page_server import client_of, served

WORDS = [
    "a", " ", "\n", "don't", "12345", "日本語", "é", "🎉", "<|endoftext|>", "<|endof", "text|>",
    " the", "\t", "<b>",
]  # fmt: skip


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with served() as url, client_of(url) as made:
        yield made


def ask(client: httpx.Client, path: str, **question: Any) -> dict[str, Any]:
    response = client.post(f"api/{path}", json=question)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def check(answer: dict[str, Any], name: str, text: str, policy: str, view: list[int]) -> None:
    enc = streamtok.get_encoding(name)
    how: dict[str, Any] = {
        "allowed_special": "all" if policy == "allow" else set(),
        "disallowed_special": "all" if policy == "refuse" else (),
    }
    if policy == "refuse" and "<|endoftext|>" in text:
        with pytest.raises(ValueError) as refused:
            enc.encode_with_offsets(text, "utf16", **how)
        assert answer["refused"] == str(refused.value).split("\n")[0]
        return
    ids, spans = enc.encode_with_offsets(text, "utf16", **how)
    assert answer["count"] == len(ids)
    assert answer["characters"] == len(text)
    assert answer["bytes"] == len(text.encode("utf-8", "surrogatepass"))
    begin, end = utf16(text[: view[0]]), utf16(text[: view[1]])
    wanted = [
        (i, start - begin, stop - begin, id)
        for i, (id, (start, stop)) in enumerate(zip(ids.tolist(), spans.tolist(), strict=True))
        if stop > begin and start < end
    ]
    assert [tuple(token[:3]) for token in answer["tokens"]] == [one[1:] for one in wanted]
    if wanted:
        assert answer["first"] == wanted[0][0]
    for _, _, id, _shown, data, rank, is_special in answer["tokens"]:
        assert bytes.fromhex(data) == enc.decode_single_token_bytes(id)
        assert is_special == enc.is_special_token(id)
        assert rank == (None if is_special else enc._mergeable_ranks[bytes.fromhex(data)])


@pytest.mark.parametrize("policy", ["plain", "allow", "refuse"])
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_edits(client: httpx.Client, policy: str, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["gpt2", "cl100k_base"]))
    words = st.lists(st.sampled_from(WORDS), max_size=8).map("".join)

    def view(text: str) -> list[int]:
        start = data.draw(st.integers(0, len(text)))
        return [start, data.draw(st.integers(start, len(text)))]

    text = data.draw(words)
    shown = view(text)
    answer = ask(client, "text/open", encoding=name, special=policy, text=text, view=shown)
    check(answer, name, text, policy, shown)
    for _ in range(data.draw(st.integers(1, 4))):
        edits = []
        for _ in range(data.draw(st.integers(0, 3))):
            start = data.draw(st.integers(0, len(text)))
            stop = data.draw(st.integers(start, len(text)))
            edits.append([start, stop, data.draw(words)])
            text = text[:start] + edits[-1][2] + text[stop:]
        shown = view(text)
        document = answer["document"]
        found = ask(client, "text/edit", document=document, edits=edits, size=len(text), view=shown)
        check(found, name, text, policy, shown)


def test_both_sides_must_be_of_one_mind(client: httpx.Client) -> None:
    question = {"encoding": "gpt2", "special": "plain", "text": "abc", "view": [0, 3]}
    name = ask(client, "text/open", **question)["document"]
    edit: dict[str, Any] = {"document": name, "edits": [[0, 1, "xy"]], "size": 9, "view": [0, 1]}
    response = client.post("api/text/edit", json=edit)
    assert response.status_code == 409
    assert "4 characters here, not 9" in response.json()["error"]
    edit["edits"] = [[3, 99, ""]]
    assert client.post("api/text/edit", json=edit).status_code == 409


def test_texts_that_were_not_used_for_long_are_forgotten(client: httpx.Client) -> None:
    question = {"encoding": "gpt2", "special": "plain", "text": "abc", "view": [0, 3]}
    names = [ask(client, "text/open", **question)["document"] for _ in range(module.MAX_TEXTS + 1)]
    edit = {"edits": [], "size": 3, "view": [0, 3]}
    response = client.post("api/text/edit", json={"document": names[0], **edit})
    assert response.status_code == 409
    assert "not kept any more" in response.json()["error"]
    assert ask(client, "text/edit", document=names[1], **edit)["count"] == 1


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"encoding": "none"}, 422, "Unknown encoding none"),
        ({"encoding": "../gpt2"}, 422, "Unknown encoding"),
        ({"encoding": "/etc/passwd"}, 422, "Unknown encoding"),
        ({"encoding": 3}, 400, "encoding must be the name of an encoding"),
        ({"special": "maybe"}, 400, "special must be one of plain, allow, refuse"),
        ({"text": None}, 400, "text must be text"),
        ({"view": [0]}, 400, "view must be"),
        ({"view": [0, "x"]}, 400, "view must be"),
        ({"view": {}}, 400, "view must be a list"),
        ({"text": "x" * (module.MAX_TEXT + 1)}, 413, "more than the 8,388,608"),
    ],
)
def test_wrong_questions(
    client: httpx.Client, change: dict[str, Any], status: int, message: str
) -> None:
    question = {"encoding": "gpt2", "special": "plain", "text": "abc", "view": [0, 3], **change}
    response = client.post("api/text/open", json=question)
    assert response.status_code == status
    assert message in response.json()["error"]


def test_a_question_is_json(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamtok.view import questions

    response = client.post("api/text/open", content=b"{}", headers={"Content-Type": "text/plain"})
    assert response.status_code == 415  # another site could send it without being asked before
    headers = {"Content-Type": "application/json"}
    for content in (b"", b"{", b"[1]", b"\xff", b"[" * 100_000):
        assert client.post("api/text/open", content=content, headers=headers).status_code == 400
    monkeypatch.setattr(questions, "MAX_STRUCTURE", 1000)
    monkeypatch.setattr(questions, "MAX_STRINGS", 10)
    for content in (b"[" * 2000, b'"\\""' + b"[" * 2000, b'"\\\\"' + b"[" * 2000, b'"",' * 11):
        response = client.post("api/text/open", content=content, headers=headers)
        assert response.status_code == 413, content
    assert "a question must have at most 10 strings" in response.json()["error"]
    quoted = {"encoding": "gpt2", "special": "plain", "view": [0, 0], "text": '[\\"' * 1000}
    assert ask(client, "text/open", **quoted)["characters"] == 3000


def test_other_questions_are_small(client: httpx.Client) -> None:
    large = {"encoding": "gpt2", "text": "x" * (8 << 20), "special": "plain", "view": [0, 1]}
    for path, status in (("text/open", 200), ("stream", 413), ("compare", 413)):
        response = client.post(f"api/{path}", json=large)
        assert response.status_code == status
    assert "at most 8 MiB are taken at once" in response.json()["error"]


def test_edits_do_not_make_a_text_too_long(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_TEXT", 10)
    question = {"encoding": "gpt2", "special": "plain", "text": "abc", "view": [0, 3]}
    name = ask(client, "text/open", **question)["document"]
    edit = {"document": name, "edits": [[0, 0, "x" * 8]], "size": 10, "view": [0, 3]}
    response = client.post("api/text/edit", json=edit)
    assert response.status_code == 413
    assert "at most 10 characters" in response.json()["error"]
