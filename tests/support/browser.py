"""A real browser for tests of pages: the system's Chromium, driven by Playwright, with a watch on
all that it asks for and complains of.

The fixture ``chromium`` is one browser for a test module. Playwright is imported by the tests that
are run: to compile and load it takes seconds, which every worker would spend.
"""

from __future__ import annotations

import functools
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
WIDE, PHONE = (1280, 900), (360, 740)
NOTHING_OUTSIDE = (
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--disable-background-networking",
)
# milliseconds that an action may take; all of ours take a few, but not on a machine with much else
# to do
PATIENCE = 120_000


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Start Chromium once for a module; it finds no host but this one."""
    if CHROMIUM is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, launched(playwright) as browser:
        yield browser


@contextmanager
def launched(playwright: Any) -> Iterator[Browser]:
    # --no-sandbox: containers in which tests run as root have no user namespaces for it; the pages
    # are our own
    browser = playwright.chromium.launch(
        executable_path=CHROMIUM, args=["--no-sandbox", *NOTHING_OUTSIDE]
    )
    yield browser
    browser.close()


def expect(place: Any) -> Any:
    """Return Playwright's assertions about a place of a page."""
    from playwright import sync_api

    return sync_api.expect(place)


def violations(page: Page, **options: Any) -> Any:
    """Return what axe finds wrong with an open page."""
    from axe_playwright_python.sync_playwright import Axe

    return Axe().run(page, **options).response["violations"]


@dataclass
class Visit:
    """An open page, and everything that it asked for or that went wrong meanwhile."""

    page: Page
    requests: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    def outside(self, base: str) -> list[str]:
        """Return the requests for addresses that are not below ``base``."""
        return [one for one in self.requests if not one.startswith(base)]


@contextmanager
def visit(
    chromium: Browser,
    address: str,
    size: tuple[int, int] = WIDE,
    *,
    dark: bool = False,
    script: bool = True,
    **more: Any,
) -> Iterator[Visit]:
    """Open ``address`` in a new context that remembers nothing of others."""
    context = chromium.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        java_script_enabled=script,
        reduced_motion="reduce",
        **more,
    )
    context.set_default_timeout(PATIENCE)
    context.set_default_navigation_timeout(PATIENCE)
    page = context.new_page()
    seen = Visit(page)
    page.on("request", lambda request: seen.requests.append(request.url))
    page.on("requestfailed", lambda request: seen.troubles.append(f"not loaded: {request.url}"))

    def answered(answer: Any) -> None:
        if answer.status >= 400:
            seen.troubles.append(f"{answer.status}: {answer.url}")

    def said(message: Any) -> None:
        if message.type in ("error", "warning"):
            seen.troubles.append(f"{message.type}: {message.text}")

    def asked(dialog: Any) -> None:
        seen.troubles.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    page.on("response", answered)
    page.on("console", said)
    page.on("pageerror", lambda error: seen.troubles.append(str(error)))
    page.on("dialog", asked)
    try:
        page.goto(address, wait_until="load")
        yield seen
    finally:
        context.close()


def address(path: Path) -> str:
    """Return the address of a file on the disk."""
    return path.resolve().as_uri()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/favicon.ico":  # the browser's own question, not the page's
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()


@contextmanager
def host(folder: Path) -> Iterator[str]:
    """Serve ``folder``; give the address, without a slash at the end."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def under(base: str, path: str) -> str:
    return f"{base}/{quote(path)}"
