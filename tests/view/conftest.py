"""A real browser: Debian's chromium, without a window, driven by Playwright.

Every page that a test opens is watched: an error in its console, a request that leaves the loopback
or a violation of the policy fails the test. STREAMTOK_SCREENSHOTS=FOLDER writes the pictures of
docs/see.md and the README's first one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from ..doc_blocks import need
from .page_server import client_of, served

TIMEOUT = 60_000  # ms: a busy machine is not a defect
VIEWPORT = {"width": 960, "height": 600}
Open = Callable[..., Any]
Serve = Callable[..., str]


@pytest.fixture(scope="package")  # no longer: its event loop runs meanwhile
def browser() -> Iterator[Any]:
    need("chromium")
    from playwright.sync_api import sync_playwright

    options = [
        "--no-sandbox",  # root has none, and the page is our own
        "--disable-background-networking",
        "--disable-lcd-text",  # smaller pictures, and the same ones everywhere
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ]
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        yield made
        made.close()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """serve(**settings): the URL of a page that is served until the test's pages are closed.

    A page may still ask for something when its test ends, and would complain of a server that
    is gone.
    """
    with contextlib.ExitStack() as servers:
        yield lambda **settings: servers.enter_context(served(**settings))


def watched(browser: Any, **settings: Any) -> Any:
    """A page in a context of its own; `page.wrong` has what it should not do."""
    context = browser.new_context(viewport=VIEWPORT, **settings)
    wrong: list[str] = []

    def on_console(message: Any) -> None:
        if message.type in ("error", "warning"):
            wrong.append(f"console: {message.text}")

    def on_request(request: Any) -> None:
        url = urlsplit(request.url)
        if url.scheme != "data" and url.hostname != "127.0.0.1":
            wrong.append(f"a request to {request.url}")

    context.set_default_timeout(TIMEOUT)
    context.on("console", on_console)
    context.on("request", on_request)
    context.on("weberror", lambda error: wrong.append(f"error: {error.error}"))
    page = context.new_page()
    page.wrong = wrong
    return page


@pytest.fixture(scope="package")
def shared(browser: Any) -> Iterator[Any]:
    """The page of tests that need no settings: a process of its own for each costs a second."""
    page = watched(browser)
    yield page
    page.context.close()


@pytest.fixture
def open_page(browser: Any, shared: Any, serve: Serve) -> Iterator[Open]:
    """open_page(url, **context): a page that knows nothing of earlier ones."""
    pages = [shared]

    def opened(url: str, **settings: Any) -> Any:
        page = shared
        if settings:
            page = watched(browser, **settings)
            pages.append(page)
        page.goto(url)
        page.wait_for_selector("html[data-ready]")
        return page

    yield opened
    for page in pages[1:]:
        page.context.close()
    shared.unroute_all()
    shared.goto("about:blank")
    shared.context.clear_cookies()
    shared.mouse.move(0, 0)
    shared.set_viewport_size(VIEWPORT)
    shared.emulate_media(color_scheme="light")
    wrong = [each for page in pages for each in page.wrong]
    shared.wrong.clear()
    assert wrong == []


@pytest.fixture(scope="module")
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A page that shows the module's TEXT at first, if it has one."""
    with served(text=getattr(request.module, "TEXT", "")) as found:
        yield found


@pytest.fixture
def client(url: str) -> Iterator[httpx.Client]:
    with client_of(url) as made:
        yield made


def opened(open_page: Open, url: str, tab: str, **settings: Any) -> Any:
    """A page that shows a tab."""
    page = open_page(url, **settings)
    page.click(f"#tab-{tab}")
    ready(page, tab)
    return page


def ready(page: Any, tab: str) -> None:
    """Wait until the tab has its answers."""
    page.wait_for_selector(f"#panel-{tab}[data-state=ready]")


def token_ids(page: Any, boxes: str) -> list[int]:
    """The ids that are drawn, in order."""
    found: list[int] = page.eval_on_selector_all(boxes, "all => all.map((box) => box.token.id)")
    return found


def counts(page: Any, tab: str) -> dict[str, str]:
    names = page.locator(f"#{tab}-counts dt").all_inner_texts()
    return dict(zip(names, page.locator(f"#{tab}-counts dd").all_inner_texts(), strict=True))


def set_size(page: Any, size: int) -> None:
    """Move the slider of the tab Stream."""
    page.eval_on_selector(
        "#stream-size",
        """(slider, size) => {
          slider.value = size;
          slider.dispatchEvent(new Event("input"));
          slider.dispatchEvent(new Event("change"));
        }""",
        size,
    )


def until(page: Any, expression: str) -> None:
    """Wait until an expression is true in the page.

    Playwright's own way evaluates a string in the page, which the policy forbids.
    """
    end = time.monotonic() + TIMEOUT / 1000
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(20)


def excuse(page: Any, *notes: str) -> None:
    """The console's notes of answers that were refused, which a test meant to get."""
    assert page.wrong
    assert [one for one in page.wrong if not any(note in one for note in notes)] == []
    page.wrong.clear()


def picture(page: Any, name: str, first: str | None = None, last: str = "") -> None:
    """Write a picture for docs/see.md, if they are wanted.

    first, last: only from the one element to the other, over the whole width.
    """
    folder = os.environ.get("STREAMTOK_SCREENSHOTS")
    if not folder:
        return
    page.evaluate("document.activeElement.blur()")
    clip = {"x": 0, "y": 0, **VIEWPORT}
    if first is not None:
        top = page.locator(first).bounding_box()["y"]
        box = page.locator(last).bounding_box()
        clip |= {"y": top - 8, "height": box["y"] + box["height"] - top + 16}
    page.screenshot(clip=clip, path=Path(folder, f"{name}.png"))


def violations(page: Any, rules: list[str] | None = None) -> list[str]:
    """What axe finds serious or critical on the page as it is, by all rules or by these."""
    from importlib import resources

    if not page.evaluate("'axe' in window"):
        script = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
        page.evaluate(script)  # by the debugger: the policy lets no script in otherwise
    options = {"resultTypes": ["violations"]} | ({"runOnly": rules} if rules else {})
    found = page.evaluate("options => axe.run(document, options)", options)
    assert found["testEngine"]["name"] == "axe-core"
    return [
        f"{one['id']}: {one['help']} {[node['html'] for node in one['nodes']][:3]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
