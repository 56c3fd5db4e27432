"""A published version: its files, its pages, and runs that strangers hand in."""

from __future__ import annotations

import csv
import html
import json
import re
import shlex
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import browser
import pytest
from browser import chromium  # noqa: F401 - a fixture
from shown import compared, elsewhere, loaded, name_of, page, rows_of, verdict
from started import bench, hashes, record, run_folders

ADA = "Ada Lovelace"
DATA = ("tables.json", "predictions.parquet", "MANIFEST.json", "README.md", "index.html")


def tables(version: Path) -> list[dict[str, Any]]:
    """Return the tables of a version's tables.json."""
    content = json.loads((version / "tables.json").read_text(encoding="utf-8"))
    return [one["table"] for one in content["tables"]]


def pages(version: Path) -> dict[str, Any]:
    """Return the pages of a version by path, read; an invalid one fails the test."""
    return {
        str(path.relative_to(version)): page(path.read_text(encoding="utf-8"))
        for path in sorted(version.rglob("*.html"))
    }


@pytest.mark.promise(22)
def test_a_version_has_pages_tables_data_and_predictions(version: Path, ten_runs: Path) -> None:
    assert [name for name in DATA if not (version / name).is_file()] == []
    names = {str(path.relative_to(version)) for path in version.rglob("*") if path.is_file()}
    methods = ("simcse", "promcse", "cls", "last-avg")
    assert {f"methods/{name}.html" for name in methods} <= names
    assert {f"runs/{run.name}/run.json" for run in run_folders(ten_runs)} <= names
    assert {f"runs/{run.name}/index.html" for run in run_folders(ten_runs)} <= names
    (table,) = tables(version)
    assert rows_of(table).keys() == set(methods)
    means = {row["method"]: row["mean"] for row in table["rows"]}
    found = []
    for path in sorted((version / "tables").glob("*.csv")):
        lines = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
        if lines and "mean" in lines[0]:
            found.append({line["method"]: float(line["mean"]) for line in lines})
    assert found == [means]


@pytest.mark.promise(22)
def test_the_manifest_has_the_sha256_of_every_other_file(version: Path) -> None:
    listed = json.loads((version / "MANIFEST.json").read_text(encoding="utf-8"))["files"]
    files = [path for path in version.rglob("*") if path.is_file()]
    expected = {
        str(path.relative_to(version)): sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.name != "MANIFEST.json"
    }
    assert listed == expected


@pytest.mark.promise(22)
def test_a_version_has_the_scores_of_the_runs(version: Path, ten_runs: Path) -> None:
    for run in run_folders(ten_runs):
        published = record(version / "runs" / run.name)
        for key in ("method", "seed", "status"):
            assert published[key] == record(run)[key]
        for ours, theirs in zip(record(run)["scores"], published["scores"], strict=True):
            assert ours["value"] == theirs["value"]


@pytest.mark.promise(22)
def test_the_same_runs_give_the_same_bytes_and_are_published_once(
    version: Path, ten_runs: Path, tmp_path: Path
) -> None:
    words = ["publish", "--runs", ten_runs, "--note", ""]
    # a process of its own draws other hashes of texts, which order sets
    bench(*words, "--out", "boards", cwd=tmp_path, alone=True)
    assert hashes(tmp_path / "boards") == hashes(version.parent)
    bench(*words, "--out", "boards", cwd=tmp_path)
    assert hashes(tmp_path / "boards") == hashes(version.parent)


@pytest.mark.promise(22)
@pytest.mark.nightly
def test_a_new_run_makes_a_new_version_and_leaves_the_old_one(
    version: Path, ten_runs: Path, tmp_path: Path
) -> None:
    """One seed less is another version."""
    shutil.copytree(ten_runs, tmp_path / "runs")
    (left_out,) = (run for run in run_folders(tmp_path / "runs") if "promcse-tiny-s4" in run.name)
    shutil.rmtree(left_out)
    shutil.copytree(version.parent, tmp_path / "boards")
    before = hashes(version)
    bench("publish", "--runs", "runs", "--out", "boards", cwd=tmp_path)
    assert hashes(tmp_path / "boards" / "v1") == before
    (table,) = tables(tmp_path / "boards" / "v2")
    assert rows_of(table)["promcse"]["seeds"] == [1, 2, 3]


@pytest.mark.promise(22)
def test_an_altered_version_is_seen_and_nothing_is_built_on_it(
    version: Path, ten_runs: Path, tmp_path: Path
) -> None:
    shutil.copytree(version.parent, tmp_path / "boards")
    shutil.copytree(ten_runs, tmp_path / "runs")
    shutil.rmtree(run_folders(tmp_path / "runs")[0])
    bench("publish", "--out", "boards", "--check", cwd=tmp_path)
    with (tmp_path / "boards" / "v1" / "README.md").open("a", encoding="utf-8") as readme:
        readme.write("\nThe best one is ours.\n")
    done = bench("publish", "--out", "boards", "--check", cwd=tmp_path, code=1)
    assert "README.md" in done.out + done.err
    before = hashes(tmp_path / "boards")
    done = bench("publish", "--runs", "runs", "--out", "boards", cwd=tmp_path, code=None)
    assert done.code in (1, 2)
    assert hashes(tmp_path / "boards") == before


MINE = """
from bench.methods.simcse import SimCSE


class Mine(SimCSE):
    name = "mine"
    summary = "SimCSE by another name"
"""


@pytest.mark.promise(22)
def test_a_row_that_is_made_as_the_page_says_stands_in_its_main_table(
    ten_runs: Path, inputs: Path, tmp_path: Path
) -> None:
    """Newer runs are shorter, and of more methods: their table is not the main one."""
    shutil.copytree(ten_runs, tmp_path / "runs")
    for name in ("corpus.txt", "pairs.tsv"):
        shutil.copy(inputs / name, tmp_path)
    shutil.copytree(inputs / "tiny", tmp_path / "tiny")
    words = ["run", "simcse", "promcse", "ct", "unsee", "--seeds", "1", "--backbone", "tiny"]
    words += ["--corpus", "corpus.txt", "--suite", "pairs.tsv", "--budget", "8steps"]
    words += ["--set", "max_steps=8", "--set", "batch_size=16", "--set", "select_on=last"]
    bench(*words, "--plain", cwd=tmp_path)
    bench("publish", "--runs", "runs", cwd=tmp_path)
    version = tmp_path / "leaderboards" / "v1"
    page = (version / "index.html").read_text("utf-8")
    (shown,) = re.findall("<pre[^>]*>(bench run FILE.py .*?)</pre>", page)
    command = re.sub("<[^>]+>", "", shown)
    shutil.copytree(version, tmp_path / "mine")
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    _, _, *options = shlex.split(html.unescape(command))
    bench("run", "mine.py", *options[1:], "--seeds", "1-3", "--plain", cwd=tmp_path)
    done = bench("compare", "--runs", "mine/runs", "--format", "json", cwd=tmp_path)
    (first, *_) = tables(version)
    (beside, *others) = done.json["tables"]
    assert rows_of(beside).keys() == {*rows_of(first), "mine"}
    assert not any("mine" in rows_of(table) for table in others)


@pytest.mark.promise(22)
def test_pages_are_valid_and_fetch_nothing_from_elsewhere(version: Path) -> None:
    found = pages(version.parent)
    assert {"index.html", "v1/index.html", "v1/methods/simcse.html"} <= found.keys()
    addresses = {name: loaded(tree) for name, tree in found.items()}
    assert addresses["v1/index.html"]
    assert {name: elsewhere(of) for name, of in addresses.items() if elsewhere(of)} == {}
    styles = "".join(path.read_text(encoding="utf-8") for path in version.parent.rglob("*.css"))
    assert "@import" not in styles
    assert "//" not in styles.replace("/*", "")
    drawn = [path.read_text(encoding="utf-8") for path in version.rglob("*.svg")]
    assert drawn
    assert not any("<script" in one or 'xlink:href="http' in one for one in drawn)


@pytest.mark.promise(22)
def test_links_between_pages_lead_to_files(version: Path) -> None:
    missing = []
    for name, tree in pages(version.parent).items():
        folder = (version.parent / name).parent
        links = {link.get("href", "") for link in tree.iter("a")}
        local = {link.partition("#")[0] for link in links if "://" not in link}
        missing += [(name, one) for one in local if one and not (folder / one).is_file()]
    assert missing == []


@pytest.mark.promise(22)
@pytest.mark.nightly
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
@pytest.mark.parametrize("dark", [True, False], ids=["dark", "light"])
def test_pages_are_readable_on_a_phone(
    dark: bool,
    scripts: bool,
    version: Path,
    table_text: list[str],
    chromium: Any,  # noqa: F811
) -> None:
    """At 390 pixels nothing makes the page wider; what is on it stands out from the ground."""
    boards = version.parent
    names = ["v1/index.html", "v1/methods/promcse.html", "index.html"]
    names += [f"v1/runs/{run_folders(version / 'runs')[0].name}/index.html"]
    for name in names:
        place = browser.address(boards / name)
        with browser.visit(chromium, place, (390, 844), dark=dark, script=scripts) as seen:
            assert seen.troubles == []
            assert seen.outside("file://") == []
            width = seen.page.locator("html").evaluate("one => one.scrollWidth")
            assert width <= 390, name
            style = "one => [getComputedStyle(one).color, getComputedStyle(one).backgroundColor]"
            ink, ground = seen.page.locator("body").evaluate(style)
            assert contrast(ink, ground) >= 4.5, (name, ink, ground)
            assert (luminance(ground) < 0.2) == dark, (name, ground)
            if name == "v1/index.html":
                shown = seen.page.locator("body").inner_text()
                assert [one for one in table_text if one not in shown] == []


@pytest.fixture(scope="module")
def table_text(version: Path) -> list[str]:
    """Return the means of the version's table, as pages print them."""
    (table,) = tables(version)
    return [f"{row['mean']:.2f}" for row in table["rows"]]


def luminance(colour: str) -> float:
    """Return the relative luminance of "rgb(r, g, b)" (WCAG 2.2)."""
    parts = [float(one) / 255 for one in colour.strip("rgba()").split(",")[:3]]
    red, green, blue = (
        one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(ink: str, ground: str) -> float:
    """Return the contrast of two colours (WCAG 2.2): 1 to 21."""
    low, high = sorted([luminance(ink), luminance(ground)])
    return (high + 0.05) / (low + 0.05)


@pytest.fixture(scope="module")
def handed_in(made_once: Any, inputs: Path) -> Path:
    """Return a folder with ``runs`` that a stranger made and ``submissions`` of them."""

    def write(folder: Path) -> None:
        words = ["run", "simcse", "--seeds", "11-13", "--suite", inputs / "pairs.tsv"]
        words += ["--backbone", inputs / "tiny", "--corpus", inputs / "corpus.txt"]
        words += ["--budget", "12steps", "--set", "max_steps=12", "--set", "batch_size=16"]
        words += ["--set", "select_on=last", "--runs", "runs", "--plain"]
        bench(*words, cwd=folder)
        names = [run.name for run in run_folders(folder / "runs")]
        bench("submit", *names, "--by", ADA, "--to", "submissions", "--runs", "runs", cwd=folder)

    return made_once("handed-in", write)


@pytest.fixture(scope="module")
def with_theirs(made_once: Any, handed_in: Path, ten_runs: Path) -> Path:
    """Return a folder with the version of our ten runs and the stranger's, ``preview``."""

    def write(folder: Path) -> None:
        words = ["publish", "--runs", ten_runs, "--submissions", handed_in / "submissions"]
        bench(*words, "--note", "", "--out", folder, "--preview", cwd=folder)

    return made_once("with-theirs", write) / "preview"


@pytest.mark.promise(24)
def test_a_submission_is_a_folder_for_a_pull_request(handed_in: Path) -> None:
    runs, submissions = (run_folders(handed_in / name) for name in ("runs", "submissions"))
    assert [run.name for run in submissions] == [run.name for run in runs]
    for run in submissions:
        kinds = {path.suffix for path in run.rglob("*") if path.is_file()}
        assert kinds <= {".json", ".jsonl", ".npz", ".toml", ".txt"}
        assert ADA in "".join(path.read_text(encoding="utf-8") for path in run.glob("*.txt"))


@pytest.mark.promise(24)
def test_a_strangers_rows_stand_in_a_table_of_their_own_with_the_name(with_theirs: Path) -> None:
    (theirs,) = tables(with_theirs)[1:]
    (row,) = theirs["rows"]
    assert (row["method"], row["seeds"]) == ("simcse", [11, 12, 13])
    assert ADA in json.dumps(theirs)
    for name in ("index.html", "README.md"):
        assert ADA in (with_theirs / name).read_text(encoding="utf-8")


@pytest.mark.promise(24)
def test_a_strangers_runs_change_no_row_of_ours(with_theirs: Path, version: Path) -> None:
    (ours,) = tables(version)
    beside = tables(with_theirs)[0]
    assert [name_of(row) for row in beside["rows"]] == [name_of(row) for row in ours["rows"]]
    for row, same in zip(beside["rows"], ours["rows"], strict=True):
        assert row["runs"] == same["runs"]
        assert row["mean"] == same["mean"]
        assert (verdict(row), compared(row)) == (verdict(same), compared(same))
    assert ADA not in json.dumps(beside)
    for file in (*version.glob("figures/*"), *version.glob("tables/*")):
        assert (with_theirs / file.relative_to(version)).read_bytes() == file.read_bytes(), file
