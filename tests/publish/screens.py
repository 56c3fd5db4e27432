"""Pictures of published pages, to be looked at: ``python tests/publish/screens.py leaderboards/v1 FOLDER [PAGE ...]``.

Each page (the main page, a run's and a method's where none is named) at 1280 and at 360 pixels, light and dark, as a whole.
"""

from __future__ import annotations

import sys
from pathlib import Path

from browser import PHONE, WIDE, address, launched, visit
from playwright.sync_api import sync_playwright


def pages(version: Path) -> list[str]:
    found = [
        "index.html",
        *(
            str(next(iter(sorted(version.glob(one)))).relative_to(version))
            for one in ("runs/*/index.html", "methods/*.html")
        ),
    ]
    return [*found, "../index.html"] if (version.parent / "index.html").is_file() else found


def pictures(version: Path, to: Path, names: list[str], whole: bool = True) -> list[Path]:
    made = []
    to.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, launched(playwright) as chromium:
        for name in names:
            for size in (WIDE, PHONE):
                for dark in (False, True):
                    with visit(chromium, address(version / name), size, dark=dark) as seen:
                        stem = (
                            name.removesuffix(".html").replace("../", "versions-").replace("/", "-")
                        )
                        path = to / f"{stem}-{size[0]}-{'dark' if dark else 'light'}.png"
                        seen.page.screenshot(path=path, full_page=whole)
                        made.append(path)
                        for trouble in seen.troubles:
                            print(f"{path.name}: {trouble}")
    return made


if __name__ == "__main__":
    where = Path(sys.argv[1])
    for picture in pictures(where, Path(sys.argv[2]), sys.argv[3:] or pages(where)):
        print(picture)
