"""The pictures of README and docs: ``python tools/make_pictures.py`` writes docs/pictures/.

The terminal is the output of ``bench compare`` on the runs of leaderboards/v4 itself, the page that
version's own, in Chromium (``dev`` extra).
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
VERSION = "leaderboards/v4"
COMMAND = ("compare", "--runs", f"{VERSION}/runs")
COLUMNS = 100


def terminal() -> str:
    """Return an SVG of the command and its output."""
    environment = os.environ | {
        "COLUMNS": str(COLUMNS),
        "PYTHONPATH": str(ROOT),
        "FORCE_COLOR": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "bench", *COMMAND],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    console = Console(width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ bench {' '.join(COMMAND)}", style="bold"))
    console.print(Text.from_ansi(done.stdout.partition("\nother tables")[0].rstrip()))
    return (
        "\n".join(
            line.rstrip()
            for line in console.export_svg(title="bench compare", unique_id="bench").splitlines()
        )
        + "\n"
    )


def board(to: Path) -> None:
    from PIL import Image
    from playwright.sync_api import sync_playwright

    chromium = next(
        (
            path
            for path in ("/usr/bin/chromium", "/usr/bin/chromium-browser")
            if Path(path).is_file()
        ),
        None,
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
        page.goto((ROOT / VERSION / "index.html").as_uri())
        page.screenshot(path=to)
        browser.close()
    # a third of the bytes; nobody sees the difference
    Image.open(to).convert("RGB").quantize(64).save(to, optimize=True)


def judged(runs: str) -> list[dict[str, Any]]:
    """Return the rows of the unsupervised STS table on the built-in backbone, as ``--format json``
    prints them.
    """
    words = (
        "compare",
        "--runs",
        runs,
        "--suite",
        "sts",
        "--baseline",
        "simcse",
        "--format",
        "json",
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "bench", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    (table,) = [
        one
        for one in json.loads(done.stdout)["tables"]
        if (one["setting"], one["backbone"], one["budget"]) == ("unsupervised", "builtin", "")
    ]
    return list(table["rows"])


if __name__ == "__main__":
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / "terminal.svg").write_text(terminal(), encoding="utf-8")
    board(PICTURES / "board.png")
