"""docs/own-data.md: the page's file and the page's commands work as the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from commands import bench

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "own-data.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^```(tsv|toml)\n(.*?)^```$", PAGE, flags=re.M | re.S))
TITLED = dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', PAGE, flags=re.M | re.S))
COMMANDS = "".join(re.findall(r"^```sh\n(.*?)^```$", PAGE, flags=re.M | re.S)).splitlines()
TABLES = ("queries", "corpus", "qrels")
MAILS = [
    ("please reset my password", "login"),
    ("the invoice is wrong", "money"),
    ("my parcel is late", "post"),
]


@pytest.mark.slow(seconds=15)
def test_the_page_works_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tickets.tsv").write_text(BLOCKS["tsv"], encoding="utf-8")
    rows = [f"{text} {number},{team}" for number in range(12) for text, team in MAILS]
    Path("mails.csv").write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    Path("helpdesk").mkdir()
    for name, content in TITLED.items():
        folder = Path("helpdesk") if name.partition(".")[0] in TABLES else Path()
        (folder / name).write_text(content, encoding="utf-8")
    Path("questions.tsv").write_text(BLOCKS["tsv"], encoding="utf-8")
    assert len(COMMANDS) == 9
    for command in COMMANDS:
        done = bench(*shlex.split(command)[1:])
        assert done.exit_code == 0, f"{command}: {done.stderr}"
    shown = bench("compare", "--runs", "RUNS", "--all").stdout
    assert all(name in shown for name in ("tickets", "mails", "mails-clusters", "helpdesk", "same"))
    Path("tickets.toml").write_text(BLOCKS["toml"], encoding="utf-8")
    named = bench("run", "cls", "--suite", "tickets.tsv", "--runs", "RUNS")
    assert named.exit_code == 0 and "Tickets" in named.stdout
    sided = bench("run", "cls", "--suite", "questions.tsv", "--runs", "RUNS")
    assert sided.exit_code == 0 and "Questions" in sided.stdout
