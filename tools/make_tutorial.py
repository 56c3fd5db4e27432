"""The tutorial's output and picture, made by its own commands: ``python tools/make_tutorial.py``
writes docs/tutorial.md and its picture.

Each command of the page is run in turn in one empty folder. A comment above a block of output says
which lines of it the page shows:

    <!-- output: last 6 -->
    <!-- output: first 4 -->
    <!-- output -->

A comment without a block gets one.

The training takes about three minutes on two cores. The picture needs Chromium (the extra ``dev``).
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tutorial.md"
PICTURE = ROOT / "docs" / "pictures" / "tutorial.png"
BLOCK = re.compile(
    r"(?P<mark><!-- not run[^\n]*-->\n)?```sh\n(?P<commands>.*?)^```\n"
    r"(?P<output>\n<!-- output(?:: (?P<end>first|last) (?P<count>\d+))? -->\n"
    r"(?P<block>```\n(?P<shown>.*?)^```\n)?)?",
    flags=re.M | re.S,
)


@dataclass(frozen=True)
class Shown:
    """A block of output on the page, and the output of its commands today."""

    commands: tuple[str, ...]
    on_page: str
    today: str
    source: str
    """The text of the page from the commands to the comment above the output."""


def run_command(line: str, folder: Path) -> str:
    """Run a ``bench`` command of the page as a reader would, at 100 columns; returns both outputs.
    Raises if it fails.
    """
    words = shlex.split(line, comments=True)
    assert words[0] == "bench", line
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "bench", *words[1:]],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{line}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def select_lines(printed: str, end: str | None, count: str | None) -> str:
    """Return the first or last lines, or all, with ``...`` in the place of what is left out."""
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    if end is None or count is None or len(lines) <= int(count):
        return "\n".join(lines) + "\n"
    if end == "first":
        return "\n".join([*lines[: int(count)], "..."]) + "\n"
    return "\n".join(["...", *lines[-int(count) :]]) + "\n"


def run_page(page: str, folder: Path) -> list[Shown]:
    """Run every command of the page in ``folder``; returns one entry per block of output."""
    shown = []
    for block in BLOCK.finditer(page):
        if block["mark"]:
            continue
        commands = tuple(block["commands"].splitlines())
        printed = ""
        for command in commands:
            printed += run_command(command, folder)
        if block["output"]:
            today = select_lines(printed, block["end"], block["count"])
            source = block[0].removesuffix(block["block"] or "")
            shown.append(Shown(commands, block["shown"] or "", today, source))
    return shown


def fill_block(page: str, shown: Shown) -> str:
    """Return the page with the output of today, in the place of the old one if there is any."""
    before = shown.source
    if shown.on_page:
        before += f"```\n{shown.on_page}```\n"
    return page.replace(before, f"{shown.source}```\n{shown.today}```\n", 1)


def take_picture(page: Path, to: Path) -> None:
    """Take a picture of the top of a published page, 1280 x 800, in light colours."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    chromium = None
    for path in ("/usr/bin/chromium", "/usr/bin/chromium-browser"):
        if Path(path).is_file():
            chromium = path
            break
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
        view.goto(page.as_uri())
        view.screenshot(path=to)
        browser.close()
    # 64 colours: a third of the bytes, and no difference to the eye
    Image.open(to).convert("RGB").quantize(64).save(to, optimize=True)


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for shown in run_page(page, folder):
            page = fill_block(page, shown)
        PAGE.write_text(page, encoding="utf-8")
        take_picture(folder / "leaderboards" / "v1" / "index.html", PICTURE)


if __name__ == "__main__":
    main()
