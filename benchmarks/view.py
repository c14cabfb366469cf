"""The page of `streamtok view`: how long a key press takes in a text of a megabyte.

    python -m benchmarks.view

A headless chromium types into the middle of the text. A sample is the time from the key press to
the frame that shows the new tokens: the edit goes to the server, is encoded there, and what has
changed is drawn. The goal is a median of less than 50 ms. It needs chromium and streamtok's extras
`web` and `test`. Printed, not asserted: a busy machine is slower.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys

import streamtok

_WATCH = """() => {
  window.samples = [];
  let pressed = 0;
  document.querySelector("#text-box").addEventListener(
    "keydown", (event) => { pressed = event.timeStamp; }, true);
  document.querySelector("#panel-text").addEventListener("drawn", () =>
    requestAnimationFrame(() => {  // a message that is posted in a frame comes behind its painting
      const channel = new MessageChannel();
      channel.port1.onmessage = () => window.samples.push(performance.now() - pressed);
      channel.port2.postMessage(0);
    }));
}"""
_PASTE = """(text) => {
  const data = new DataTransfer();
  data.setData("text/plain", text);
  const box = document.querySelector("#text-box");
  box.focus();
  box.dispatchEvent(new ClipboardEvent("paste",
    { clipboardData: data, bubbles: true, cancelable: true }));
}"""
_READY = "#panel-text[data-state=ready]"


def megabyte() -> str:
    """Lines of prose, code and other scripts: about a million characters."""
    lines = []
    size = 0
    while size < 1_000_000:
        i = len(lines)
        lines.append(
            (
                f"{i}: the quick brown fox jumps over the lazy dog, and over {i * i} more\n",
                f"    def method_{i}(self, value: int) -> None:  # naïve\n",
                f"日本語のテキスト {i} и русский текст 🎉\n",
                "\n",
            )[i % 4]
        )
        size += len(lines[-1])
    return "".join(lines)


def type_keys(url: str, text: str, keys: int) -> list[float]:
    """Milliseconds of each key press in the middle of the text."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        page.goto(url)
        page.wait_for_selector(_READY)
        page.evaluate(_PASTE, text)
        page.wait_for_selector(_READY)
        page.eval_on_selector(
            "#text-tokens", "(list) => { list.scrollTop = list.scrollHeight / 2; }"
        )
        while page.evaluate("document.querySelector('#text-tokens .row').start") < len(text) // 4:
            page.wait_for_timeout(20)
        page.wait_for_selector(_READY)
        page.click("#text-tokens .row:nth-child(8) .t")
        page.wait_for_selector(_READY)
        page.evaluate(_WATCH)
        for i in range(keys):
            page.keyboard.press("etaoin shrdlu"[i % 13])
            while page.evaluate("samples.length") <= i:
                page.wait_for_timeout(5)
        samples: list[float] = page.evaluate("samples")
        counted = page.locator("#text-counts dd").first.inner_text()
        browser.close()
    whole = streamtok.get_encoding("cl100k_base").count(text)
    assert abs(int(counted.replace(",", "")) - whole) <= 2 * keys, (counted, whole)
    return samples[:keys]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--keys", type=int, default=100, help="key presses (default: 100)")
    args = parser.parse_args()
    if shutil.which("chromium") is None:
        sys.exit("chromium is not installed")
    command = [sys.executable, "-m", "streamtok", "view", "-q"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            text = megabyte()
            samples = sorted(type_keys(server.stdout.readline().strip(), text, args.keys))
        finally:
            server.terminate()
    print(f"a text of {len(text):,} characters, {len(text.encode()):,} bytes; {args.keys} keys")
    print(f"median {statistics.median(samples):.1f} ms from key press to painted tokens")
    print(f"fastest {samples[0]:.1f} ms, 90 of 100 below {samples[len(samples) * 9 // 10]:.1f} ms")


if __name__ == "__main__":
    main()
