"""The README: short, its links lead somewhere, and its first commands run unchanged."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path

import pytest
from commands import bench

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", README, flags=re.M | re.S)
USE = [
    line.partition("  #")[0].strip()
    for line in re.sub(r"\\\n *", "", "".join(BLOCKS[1:3])).splitlines()
    # the second compares the reader's own runs: tests/docs/test_commands.py
    if line != "bench compare"
]
ACTIVATE = USE[0]
PUBLISHED = next(line for line in USE if "leaderboards/" in line)


def links(page: Path) -> list[Path]:
    """Files of the repository that a page leads to."""
    found = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    return [(page.parent / one).resolve() for one in found if not one.startswith("http")]


def test_every_link_leads_somewhere_and_every_page_of_docs_is_reached_from_it() -> None:
    seen, left = set[Path](), [ROOT / "README.md"]
    while left:
        page = left.pop()
        if (
            page in seen
            or page.suffix != ".md"
            or not page.is_relative_to(ROOT)
            or "leaderboards" in page.parts
        ):
            continue
        seen.add(page)
        for to in links(page):
            assert to.exists(), f"{page.relative_to(ROOT)} leads to {to}"
            left.append(to)
    assert {page for page in (ROOT / "docs").rglob("*.md")} <= seen


def only_planned(line: str) -> str:
    """Let the line that trains go as far as its plan: a test of the demo trains the same."""
    if " run " in line and "--dry-run" not in line:
        return line + " --dry-run"
    return line


@pytest.mark.slow
def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(USE) == 6
    for line in USE:
        if line in (ACTIVATE, PUBLISHED):
            continue
        program, *words = shlex.split(only_planned(line))
        done = bench(*words)
        assert program == "bench" and done.exit_code == 0 and done.stdout.strip(), (line, done)
        if "roberta-large" in line:
            assert "promcse" in done.stdout and "FacebookAI/roberta-large" in done.stdout


@pytest.mark.slow
def test_the_example_of_comparing_is_what_the_command_prints(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"`(bench compare --runs [^`]*)` begins", page)
    assert command == PUBLISHED
    done = bench(*shlex.split(PUBLISHED)[1:], COLUMNS="80")
    assert done.exit_code == 0, done.stderr
    said = " ".join(done.stdout.split())
    (printed,) = re.findall(r"```\n(No method beats.*?)\n```", page, flags=re.DOTALL)
    assert said.startswith(printed)
    intervals = said.replace("[ ", "[")  # which are aligned with blanks
    paragraph = page.split(printed)[1].split("\n\n")[1]
    found = re.findall(r"from ([+-]\d+\.\d\d) to ([+-]\d+\.\d\d)", paragraph)
    assert len(found) == 2
    for low, high in found:
        assert f"[{low}, {high}]" in intervals


def test_the_picture_shows_what_its_alternative_text_says() -> None:
    (alt,) = re.findall(r'<img src="([^"]+)"[^>]*\n?\s*alt="([^"]*)"', README)
    drawing = (ROOT / alt[0]).read_text(encoding="utf-8")
    verdicts = re.findall(r">(better|worse|inconclusive)<", drawing)
    assert "Four methods by four suites" in alt[1] and len(verdicts) == 4 * 4
    assert "on STS none is better, two are worse" in alt[1]
    assert Counter(verdicts[::4]) == {"inconclusive": 2, "worse": 2}  # its first column


def test_it_is_short_and_nothing_is_cut_off() -> None:
    lines = README.splitlines()
    assert len(lines) <= 110
    assert [line for line in lines if len(line) > 125] == []
    # what a phone shows without scrolling
    assert [line for line in "".join(BLOCKS).splitlines() if len(line) > 42] == []
