"""The README's two pictures, from the runs of leaderboards/v2: ``python tools/make_pictures.py`` writes docs/pictures/.

The terminal is the output of ``bench compare`` itself; the page is that of ``bench publish --preview`` in Chromium (``dev`` extra).
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
RUNS = "leaderboards/v2/runs"
COMMAND = ("compare", "--runs", RUNS)
NOTE = "The runs of leaderboards/v2, on this project's own small backbone, 150 steps of 64 sentences each. This is not the papers' setting."
COLUMNS = 100


def terminal() -> str:
    """SVG of the command and what it prints."""
    environment = os.environ | {"COLUMNS": str(COLUMNS), "PYTHONPATH": str(ROOT), "FORCE_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "bench", *COMMAND], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    console = Console(width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ bench {' '.join(COMMAND)}", style="bold"))
    console.print(Text.from_ansi(done.stdout.partition("\nother tables")[0].rstrip()))
    return "\n".join(line.rstrip() for line in console.export_svg(title="bench compare", unique_id="bench").splitlines()) + "\n"


def board(to: Path) -> None:
    from playwright.sync_api import sync_playwright

    chromium = next((path for path in ("/usr/bin/chromium", "/usr/bin/chromium-browser") if Path(path).is_file()), None)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        publish = ("publish", "--preview", "--runs", RUNS, "--out", folder, "--title", "Sentence embeddings", "--note", NOTE)
        subprocess.run(
            [sys.executable, "-m", "bench", *publish], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True
        )
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
        page.goto((Path(folder) / "preview" / "index.html").as_uri())
        page.screenshot(path=to)
        browser.close()


if __name__ == "__main__":
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / "terminal.svg").write_text(terminal(), encoding="utf-8")
    board(PICTURES / "board.png")
