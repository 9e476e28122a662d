"""Debian's Chromium by Playwright. It notes the messages of its console and the requests that fail."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

NARROW: ViewportSize = {"width": 380, "height": 800}
WIDE: ViewportSize = {"width": 1280, "height": 900}
_OF_LAYOUT = ("color-contrast", "scrollable-region-focusable", "target-size", "link-in-text-block")
"""The rules of axe-core that look at colours and sizes."""
_LOOKS: Sequence[tuple[Literal["light", "dark"], ViewportSize, Sequence[str]]] = (
    ("light", WIDE, ()),
    ("dark", NARROW, _OF_LAYOUT),
)
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def require_chromium() -> str:
    """The path of Chromium; without it the test is skipped, or fails with REQUIRE_SERVICES=1."""
    found = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if found is None and os.environ.get("REQUIRE_SERVICES") == "1":
        pytest.fail("REQUIRE_SERVICES=1, and Chromium is not installed: apt-get install chromium")
    if found is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=require_chromium(), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Reader:
    """A person at a window of the browser. `troubles`: what the browser reported since the window was opened."""

    def __init__(self, browser: Browser, url: str, *, scripts: bool = True) -> None:
        self.url = url
        self.context = browser.new_context(java_script_enabled=scripts, viewport=WIDE)
        self.context.set_default_timeout(20_000)
        self.page: Page = self.context.new_page()
        self.troubles: list[str] = []
        self.page.on("console", lambda message: self.troubles.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("requestfailed", lambda request: self._failed(request))

    def _failed(self, request: Any) -> None:
        # A fragment that is polled may be under way when the page is left.
        if request.failure != "net::ERR_ABORTED":
            self.troubles.append(f"{request.url}: {request.failure}")

    def open(self, path: str) -> int:
        """Open a page of the console; the status of the answer."""
        answer = self.page.goto(self.url + path, wait_until="load")
        assert answer is not None
        return answer.status

    def sign_in(self, token: str) -> None:
        """Open the link with this token, and press its button."""
        self.open(f"/console/link/{token}")
        self.press("Sign in")

    def press(self, words: str) -> None:
        """Press the first button with these words."""
        with self.page.expect_navigation():
            self.page.get_by_role("button", name=words, exact=True).first.click()

    def follow(self, words: str) -> None:
        """Follow the first link with these words."""
        with self.page.expect_navigation():
            self.page.get_by_role("link", name=words, exact=True).first.click()

    def fill(self, label: str, value: str) -> None:
        self.page.get_by_label(label).first.fill(value)

    @property
    def text(self) -> str:
        """The words of the page without its menu."""
        return " ".join(self.page.locator("main").inner_text().split())

    def barriers(self, *rules: str) -> list[str]:
        """What axe-core reports about the page: all rules, or some."""
        from axe_playwright_python.base import AXE_SCRIPT

        options: dict[str, Any] = {"resultTypes": ["violations"]}
        if rules:
            options["runOnly"] = list(rules)
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE_SCRIPT)
        # Python spends 2 ms on the violations alone, 17 ms on all results of axe-core.
        found = self.page.evaluate("options => axe.run(options).then(results => results.violations)", options)
        return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]

    def faults(self, name: str) -> list[str]:
        """The barriers of the open page, light and wide, then dark and narrow; and if it scrolls sideways there."""
        found = []
        for scheme, size, rules in _LOOKS:
            self.page.emulate_media(color_scheme=scheme)
            self.page.set_viewport_size(size)
            found += [f"{name}, {scheme}: {each}" for each in self.barriers(*rules)]
        found += [f"{name} scrolls sideways"] if self.is_wider_than_its_window() else []
        return found

    def is_wider_than_its_window(self) -> bool:
        """True if the page, or a table in it, scrolls sideways."""
        boxes = "[document.documentElement, ...document.querySelectorAll('.scroll')]"
        return bool(self.page.evaluate(f"{boxes}.some(box => box.scrollWidth > box.clientWidth)"))

    def close(self) -> None:
        self.context.close()
