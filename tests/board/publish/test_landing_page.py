"""The page of all versions.

The newest finding is its headline, and the differences of its first table are drawn.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from html5lib import HTMLParser
from made_runs import made_run, made_runs
from published import Publish

from bench.board.publish import build


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("landing")
    made_runs(folder / "runs", {"simcse": 0.8, "promcse": 0.45, "promptbert": 0.79})
    made_run(folder / "runs", "pcl", 1, noise=0.7)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(build, "board_figures", lambda *_: ())
        build.publish_version(runs=folder / "runs", out=folder / "leaderboards")
    return folder / "leaderboards"


def test_the_finding_is_the_headline_and_every_row_has_its_line(published: Path) -> None:
    html = (published / "index.html").read_text("utf-8")
    HTMLParser(strict=True).parse(html)
    made = json.loads((published / "v1" / "tables.json").read_bytes())
    claim, counts = made["answer"].split(". ", 1)
    assert f"<h1>{claim}.</h1>" in html and f'<p class="answer">{counts}</p>' in html
    assert claim == "PromCSE beats SimCSE on the STS average"
    table = made["tables"][0]["table"]
    level = 100 * table["tested"]["ci_level"]
    assert f"vs SimCSE <small>[{level:.3g} % CI]</small>" in html
    body = html.split("<tbody>")[1].split("</tbody>")[0]
    lines = body.split("<tr>")[1:]
    assert len(lines) == len(table["rows"]) == 4
    for row, line in zip(table["rows"], lines, strict=True):
        assert row["name"] in line and line.count("<svg") == 1
        against = row["against"]
        if row["method"] == "simcse":
            assert ">baseline" in line and "ci baseline" in line
        elif row["method"] == "pcl":
            assert row["untested"] and "not tested" in line and 'class="bar"' not in line
        else:
            assert f"{against['difference']:+.2f}".replace("-", "−") in line
            assert f'class="ci {against["verdict"]}"' in line
            assert f'class="verdict {against["verdict"]}">{against["verdict"]}<' in line


def test_readmes_have_the_differences_as_the_pages_have_them(published: Path) -> None:
    text = (published / "README.md").read_text("utf-8")
    assert re.search(r"\| method \| Avg\. \| vs SimCSE \\?\[", text)
    assert "| baseline |" in text and "| better |" in text
    text = (published / "v1" / "README.md").read_text("utf-8")
    assert re.search(r"\| vs SimCSE \\?\[9\d\.?\d* % CI", text)
    made = json.loads((published / "v1" / "tables.json").read_bytes())
    assert f"**{made['answer']}** STS, unsupervised, built-in backbone, senteval-all/1." in text
    assert "How many seeds does a gain need?" in text


def test_a_version_without_comparisons_has_no_such_column(quick: Publish, tmp_path: Path) -> None:
    made_run(tmp_path / "two", "promcse", 1)
    made_run(tmp_path / "two", "ct", 1)
    quick(runs=tmp_path / "two")
    html = (tmp_path / "leaderboards" / "index.html").read_text("utf-8")
    HTMLParser(strict=True).parse(html)
    assert "vs " not in html.split("<table")[1].split("</thead>")[0] and "<svg" not in html
    assert "<h1>Highest on the STS average is " in html
