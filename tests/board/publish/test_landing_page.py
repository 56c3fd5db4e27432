"""The page of all versions: the newest finding, its matrix, errata, and versions that are there."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from html5lib import HTMLParser
from made_runs import made_run, made_runs
from published import Publish

from bench.board.publish import build
from bench.board.publish.dead_links import check_links
from bench.board.publish.index import index_files
from bench.board.publish.versions import versions
from bench.board.verify.tables import check_tables

NOISES = {"simcse": 0.8, "promcse": 0.45, "promptbert": 0.79}
ERRATA = """# Errata

## v1 (2026-11-20)

Nothing that matters.

## v1, v2 (2026-11-21)

**The headline <b>is</b> not true.** Somebody found out.
"""


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("landing")
    made_runs(folder / "runs", NOISES, suites=("sts", "transfer"))
    made_run(folder / "runs", "pcl", 1, noise=0.7, suites=("sts", "transfer"))
    out = folder / "leaderboards"
    out.mkdir()
    (out / "ERRATA.md").write_text(ERRATA, "utf-8")
    note = "The first. The second. The third."
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(build, "board_figures", lambda *_: ())
        build.publish_version(
            runs=folder / "runs", out=out, options=build.PublishOptions(note=note)
        )
    return out


def matrix_of(page: Path) -> str:
    """Return the rows of a page's matrix, with links as they are from the page of all versions."""
    html = page.read_text("utf-8").split('<section class="matrix"')[1]
    rows = html.split("<table>")[1].split("</table>")[0]
    if page.parent.name == "v1":
        rows = rows.replace('href="#', 'href="v1/index.html#')
        rows = rows.replace('href="methods', 'href="v1/methods')
    return rows


def test_the_finding_is_the_headline_and_the_matrix_is_that_of_the_version(
    published: Path,
) -> None:
    html = (published / "index.html").read_text("utf-8")
    HTMLParser(strict=True).parse(html)
    made = json.loads((published / "v1" / "tables.json").read_bytes())
    claim, rest = made["answer"].split(". ", 1)
    assert f"<h1>{claim}.</h1>" in html and f'<p class="answer">{rest}</p>' in html
    assert claim == "PromCSE beats SimCSE on the STS average"
    assert matrix_of(published / "index.html") == matrix_of(published / "v1" / "index.html")
    assert '<p class="note">The first. The second.</p>' in html
    rows = [row for group in made["matrix"]["groups"] for row in group["rows"]]
    assert {row["name"] for row in rows} == {"PromCSE", "PromptBERT", "PCL"}
    readme = (published / "README.md").read_text("utf-8")
    for row in rows:
        for cell in row["cells"]:
            said = f"{cell['text']} {cell['word']}".strip().replace("+", "\\+")
            assert f"| {said} |" in readme
            assert f'href="v1/index.html#{cell["anchor"]}"' in html


def test_a_changed_matrix_is_seen(published: Path, tmp_path: Path) -> None:
    version = shutil.copytree(published / "v1", tmp_path / "v1")
    assert not check_tables(version).differences
    file = version / "tables.json"
    made = json.loads(file.read_bytes())
    made["matrix"]["groups"][0]["rows"][0]["cells"][0]["text"] = "+99.0"
    file.write_text(json.dumps(made), "utf-8")
    (found,) = check_tables(version).differences
    assert found.what == "matrix" and "+99.0 is recorded" in found.why


def test_errata_are_a_line_with_a_link(published: Path) -> None:
    html = (published / "index.html").read_text("utf-8")
    (line,) = re.findall(r'<p class="quiet">Errata: .*', html)
    assert 'href="ERRATA.md#v1-v2-2026-11-21"' in line
    assert 'href="ERRATA.md#v1-2026-11-20"' in line
    assert "The headline &lt;b&gt;is&lt;/b&gt; not true" in line and "Somebody" not in html
    readme = (published / "README.md").read_text("utf-8")
    assert "](ERRATA.md#v1-v2-2026-11-21) (The headline" in readme
    assert not check_links(published).differences


def test_versions_that_left_the_tree_are_named_with_their_commits(
    published: Path, tmp_path: Path
) -> None:
    shutil.copytree(published / "v1", tmp_path / "v2")
    errata = tmp_path / "ERRATA.md"

    def pages() -> tuple[str, ...]:
        files = index_files(versions(tmp_path))
        return files["index.html"].decode(), files["README.md"].decode()

    errata.write_text("| v2 | `git worktree add ../boards 0123456` |\n")
    assert all("Earlier versions" not in page for page in pages())
    errata.write_text("| v1 | `git worktree add ../boards 0123456` |\n")
    html, readme = pages()
    assert "Earlier versions" in html and 'href="ERRATA.md"' in html
    assert "Earlier versions" in readme and "](ERRATA.md)" in readme


def test_a_version_without_a_matrix_has_its_finding_and_a_link(
    published: Path, tmp_path: Path
) -> None:
    """Versions from before the matrix stay as they are."""
    shutil.copytree(published / "v1", tmp_path / "v1")
    file = tmp_path / "v1" / "tables.json"
    made = json.loads(file.read_bytes())
    del made["matrix"]
    file.write_text(json.dumps(made), "utf-8")
    for name, content in index_files(versions(tmp_path)).items():
        (tmp_path / name).write_bytes(content)
    html = (tmp_path / "index.html").read_text("utf-8")
    HTMLParser(strict=True).parse(html)
    assert "<h1>PromCSE beats" in html and "<table" not in html
    assert "| method |" not in (tmp_path / "README.md").read_text("utf-8")
    assert not check_links(tmp_path).differences


def test_a_clone_links_to_the_documentation_beside_it(published: Path, tmp_path: Path) -> None:
    shutil.copytree(published, tmp_path / "leaderboards")
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("README", "claims", "read-a-leaderboard", "statistics"):
        (docs / f"{name}.md").write_text("# Page\n", "utf-8")
    (tmp_path / "README.md").write_text("# Project\n", "utf-8")
    out = tmp_path / "leaderboards"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(build, "board_figures", lambda *_: ())
        options = build.PublishOptions(note="Another.")
        build.publish_version(runs=published / "v1" / "runs", out=out, options=options)
    for page, up in ((out / "index.html", "../"), (out / "v2" / "index.html", "../../")):
        html = page.read_text("utf-8")
        assert re.findall(r'<nav class="jumps" aria-label="Elsewhere">.*', html)
        for target in ("docs/README.md", "docs/claims.md", "README.md"):
            assert f'href="{up}{target}"' in html, page
    assert not check_links(out).differences
    (docs / "claims.md").unlink()
    assert len(check_links(out).differences) == 2


def test_a_version_without_comparisons_says_which_is_highest(
    quick: Publish, tmp_path: Path
) -> None:
    made_run(tmp_path / "two", "promcse", 1)
    made_run(tmp_path / "two", "ct", 1)
    quick(runs=tmp_path / "two")
    html = (tmp_path / "leaderboards" / "index.html").read_text("utf-8")
    HTMLParser(strict=True).parse(html)
    assert "<h1>Highest on the STS average is " in html and "<table" not in html
