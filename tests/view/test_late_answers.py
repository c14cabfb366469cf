"""Answers that come late: what is shown is always the answer to the last question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .conftest import TIMEOUT, Open, excuse, opened, ready, set_size, until

TEXT = "Hello world, naïve café, tokenization"
Do = Callable[[Any], Any]


def select(place: str, value: str) -> Do:
    return lambda page: page.select_option(place, value)


# tab: path, what asks first, what asks next, an expression that is true of the second answer.
LATE: dict[str, tuple[str, Do, Do, str]] = {
    "text": ("text", select("#encoding", "gpt2"), select("#encoding", "o200k_base"),
        "document.querySelector('#text-tokens .t')?.token.id === 13225"),
    "stream": ("stream", lambda page: set_size(page, 1), lambda page: set_size(page, 5),
        "document.querySelector('#stream-feed').textContent === '0 of 8 chunks'"),
    "compare": ("compare", select("#compare-2", "gpt2"), select("#compare-2", "p50k_base"),
        "document.querySelectorAll('#compare-columns h2')[2].textContent === 'p50k_base'"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "is_lost"), [*((name, False) for name in LATE), ("text", True)])
def test_the_last_question_is_answered(open_page: Open, url: str, name: str, is_lost: bool) -> None:
    """The answer to the first question comes after that to the second, or never."""
    tab = name.partition(" ")[0]
    path, first, second, is_second = LATE[name]
    page = opened(open_page, url, tab)
    held: list[Any] = []

    def on_question(route: Any) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route(f"**/api/{path}", on_question)
    first(page)
    for _ in range(TIMEOUT // 10):
        if held:
            break
        page.wait_for_timeout(10)
    second(page)
    until(page, is_second)
    if is_lost:
        held[0].abort()
    else:
        with page.expect_response(held[0].request.url) as found:
            held[0].continue_()
        found.value.finished()
    page.wait_for_timeout(200)  # what the page would do with it is done by now
    ready(page, tab)
    assert page.evaluate(is_second)
    assert page.is_hidden("#error")
    if is_lost:
        excuse(page, "net::ERR_FAILED")
