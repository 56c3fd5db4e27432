"""The README: short, its links lead somewhere, its first commands run as they stand, and its picture is what the command prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import make_pictures
import pytest
from commands import bench

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FIVE = [shlex.split(line, comments=True)[1:] for line in re.findall(r"^```sh\n(.*?)^```$", README, flags=re.M | re.S)[1].splitlines()]


def links(page: Path) -> list[Path]:
    """Files of the repository that a page leads to."""
    found = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    return [(page.parent / one).resolve() for one in found if not one.startswith("http")]


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 150


def test_every_link_leads_somewhere_and_every_page_of_docs_is_reached_from_it() -> None:
    seen, left = set[Path](), [ROOT / "README.md"]
    while left:
        page = left.pop()
        if page in seen or page.suffix != ".md" or not page.is_relative_to(ROOT) or "leaderboards" in page.parts:
            continue
        seen.add(page)
        for to in links(page):
            assert to.exists(), f"{page.relative_to(ROOT)} leads to {to}"
            left.append(to)
    assert {page for page in (ROOT / "docs").rglob("*.md")} <= seen


@pytest.mark.slow
@pytest.mark.parametrize("words", FIVE, ids=lambda words: " ".join(words)[:30])
def test_the_five_commands_run_as_they_stand(words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From the repository; the one that trains only up to its plan, for a test of the demo trains the same."""
    assert len(FIVE) == 5
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("BENCH_RUNS", str(tmp_path)) if "--runs" not in words else None
    done = bench(*words, *(("--dry-run",) if words[0] == "run" and "--dry-run" not in words else ()))
    offline = "roberta-large" in words  # tests open no connection: the plan is shown, and what it would fetch is an error
    assert done.exit_code == (2 if offline else 0) and done.stdout.strip(), done.stderr
    assert not offline or "promcse" in done.stdout and "forbids fetching" in done.stderr


@pytest.mark.slow
def test_the_picture_is_what_the_command_prints() -> None:
    assert make_pictures.terminal() == (ROOT / "docs" / "pictures" / "terminal.svg").read_text(encoding="utf-8")
