"""What lies beside the versions: page, README, feed and list, functions of the versions alone."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from made_runs import HOSTILE, made_run, made_runs

from bench.board.board import PublishedRun
from bench.board.content import board
from bench.publish import index
from bench.publish.data import as_json
from bench.publish.index import ATOM, index_files, main_table
from bench.publish.readme import markdown_page
from bench.publish.versions import Version, VersionRun, versions
from bench.runs import RunsFolder
from bench.show.pages.board import render

EVIL = HOSTILE + " [x](javascript:alert(1)) | \x00\x1b[2J \ud800"


def version(
    out: Path,
    number: int,
    *,
    text: str = "",
    changes: tuple[str, ...] | None = ("1 new run: mine (1).",),
    page: bool = True,
) -> Version:
    folder = out / f"v{number}"
    folder.mkdir(parents=True)
    for name in (("index.html",) if page else ()) + ("README.md", "badge.svg"):
        (folder / name).write_text(f"{name} of {number}")
    run = VersionRun(
        run_id="a-s1-0", record="0" * 64, grade="submitted", submitted_by=None, reason=""
    )
    return Version(
        folder=folder,
        name=f"v{number}",
        date=f"2026-01-0{number}",
        updated=f"2026-01-0{number}T00:00:00Z",
        title=f"A board {text}".strip(),
        note=text or None,
        baseline=None,
        answer=f"One is best. {text}",
        content="1" * 64,
        references="2" * 64,
        runs=(run,) * number,
        methods=("simcse", *((text,) if text else ())),
        left_out=("x: failed",),
        before=None,
        changes=None if number == 1 else changes,
        manifest=f"{number}" * 64,
    )


class Reader(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data


def test_the_newest_version_comes_first_everywhere(tmp_path: Path) -> None:
    files = index_files([version(tmp_path, 1), version(tmp_path, 2), version(tmp_path, 3)])
    page, readme, feed = (files[name].decode() for name in ("index.html", "README.md", "feed.xml"))
    assert page.index('id="v3"') < page.index('id="v2"') < page.index('id="v1"')
    assert (
        readme.index("## v3") < readme.index("## v1")
        and "| [v2](v2/README.md) | 2026-01-02 | 2 | simcse |" in readme
    )
    assert feed.index("v3/index.html") < feed.index("v1/index.html")
    assert files["badge.svg"] == b"badge.svg of 3"
    words = " ".join(Reader(page).words.split())
    assert (
        "Since v2 1 new run: mine (1)." in words
        and "The first version." in words
        and "1" * 64 in words
    )
    assert "2 runs of 1 method" in words


def test_the_list_for_programs_has_every_hash(tmp_path: Path) -> None:
    files = index_files([version(tmp_path, 1), version(tmp_path, 2)])
    listed = json.loads(files["versions.json"])
    assert [(one["version"], one["manifest"]) for one in listed["versions"]] == [
        ("v1", "1" * 64),
        ("v2", "2" * 64),
    ]
    assert set(listed["files"]) == set(files) - {"versions.json"}
    (tmp_path / "versions.json").write_bytes(files["versions.json"])
    assert index.read_list(tmp_path) == {
        "versions": {"v1": "1" * 64, "v2": "2" * 64},
        "files": listed["files"],
    }


def test_the_feed_is_an_atom_feed(tmp_path: Path) -> None:
    """RFC 4287: a feed has an id, a title and a time; so has each entry, and a link; an author stands once for all."""
    made = [version(tmp_path, number) for number in (1, 2)]
    root = ElementTree.fromstring(index_files(made)["feed.xml"])
    space = {"a": ATOM}
    assert (
        root.tag == f"{{{ATOM}}}feed"
        and root.findtext("a:updated", "", space) == "2026-01-02T00:00:00Z"
    )
    entries = root.findall("a:entry", space)
    ids = [element.findtext("a:id", "", space) for element in (root, *entries)]
    assert len(set(ids)) == 3 and all(one.startswith("urn:uuid:") for one in ids)
    assert root.find("a:author/a:name", space) is not None
    for entry in entries:
        assert entry.findtext("a:title", "", space) and entry.findtext("a:updated", "", space)
        link = entry.find("a:link", space)
        assert link is not None and link.get("href") in ("v1/index.html", "v2/index.html")
    later = ElementTree.fromstring(index_files([*made, version(tmp_path, 3)])["feed.xml"])
    assert [one.findtext("a:id", "", space) for one in later.findall("a:entry", space)][1:] == ids[
        1:
    ], "an id is for ever"
    assert later.findtext("a:id", "", space) == ids[0]


def test_a_version_without_pages_is_linked_by_its_readme(tmp_path: Path) -> None:
    files = index_files([version(tmp_path, 1, page=False)])
    assert (
        b'href="v1/README.md"' in files["index.html"]
        and b"v1/index.html" not in files["index.html"] + files["feed.xml"]
    )


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    files = index_files(
        [version(tmp_path, 1, text=EVIL), version(tmp_path, 2, text=EVIL, changes=(EVIL, "=1+1"))]
    )
    plain = index_files(
        [
            version(tmp_path / "plain", 1),
            version(tmp_path / "plain", 2, text="x", changes=("y", "z")),
        ]
    )
    page, calm = Reader(files["index.html"].decode()), Reader(plain["index.html"].decode())
    extra = ["p"]  # the older version has a note in the one and none in the other
    assert sorted(tag for tag, _ in page.tags) == sorted([tag for tag, _ in calm.tags] + extra)
    assert not any(
        name.startswith("on") or (value or "").startswith("javascript:")
        for _, attributes in page.tags
        for name, value in attributes.items()
    )
    ElementTree.fromstring(files["feed.xml"])
    readme = files["README.md"].decode()
    assert "<script" not in readme and "](javascript:" not in readme.replace("\\]", "")
    for data in files.values():
        assert not set("\x00\x1b\u202e") & set(data.decode("utf-8"))


@pytest.mark.parametrize("name", ["v0", "v01", "v1.0", "x1", "V1", "preview"])
def test_other_folders_are_no_versions(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / "v9").write_text("a file")
    assert versions(tmp_path) == ()


def test_the_newest_versions_main_table_stands_first(tmp_path: Path) -> None:
    """As its own tables.json says it; grey below it what was not trained, on other backbones."""
    made_runs(tmp_path / "runs", {"simcse": 0.8, "promcse": 0.3}, seeds=(1, 2))
    made_run(tmp_path / "runs", "cls", None, noise=0.2, backbone="mini")
    made_run(tmp_path / "runs", "simcse", 1, noise=0.1, backbone="trained")
    store = RunsFolder(tmp_path / "runs")
    runs = [PublishedRun(record=one, folder=store.folder(one.run_id)) for one in store.records()[0]]
    found = board(runs, version="v1", title="t", statistics="yes")
    one = version(tmp_path, 1)
    (one.folder / "tables.json").write_text(as_json(found), encoding="utf-8")
    shown = main_table(one)
    assert (
        shown is not None
        and shown.columns[0] == "Avg."
        and shown.caption == "sts, unsupervised, builtin"
    )
    table = found.tables[0].table
    assert [row.method for row in shown.rows] == [*(row.method for row in table.rows), "cls mini"]
    assert [row.cells[0][0] for row in shown.rows[:-1]] == [
        f"{row.cells[-1].mean:.2f}" for row in table.rows if row.cells[-1]
    ]
    assert (
        [row.top for row in shown.rows]
        == [row.may_be_best for row in table.rows] + [False]
        == [True, False, False]
    )
    assert [row.finished for row in shown.rows] == [False, False, True] and shown.rows[
        -1
    ].rank == ""
    page = index_files([one])["index.html"].decode()
    assert (
        page.index("promcse")
        < page.index("simcse")
        < page.index('<tbody class="finished">')
        < page.index('id="v1"')
    )
    assert 'href="v1/methods/promcse.html"' in page


def test_finished_encoders_of_several_backbones_stand_below_for_scale(tmp_path: Path) -> None:
    """The best of each backbone, on the main page, in its Markdown and on the page of versions; their own table says what it is of."""
    made_runs(
        tmp_path / "runs", {"simcse": 0.8, "promcse": 0.3}, seeds=(1, 2), suites=("sts", "geometry")
    )
    for noise, backbone in ((0.1, "large"), (0.2, "mini"), (0.15, "mini-2")):
        made_run(
            tmp_path / "runs",
            "pretrained",
            None,
            noise=noise,
            backbone=backbone,
            suites=("sts", "geometry"),
        )
    made_run(tmp_path / "runs", "cls", None, noise=0.9, backbone="mini", suites=("sts", "geometry"))
    store = RunsFolder(tmp_path / "runs")
    runs = [PublishedRun(record=one, folder=store.folder(one.run_id)) for one in store.records()[0]]
    found = board(runs, version="v1", title="t", statistics="yes")
    wanted = ["pretrained large", "pretrained mini-2", "pretrained mini"]
    html = render(found).replace("&#8203;", "")
    assert (
        "nothing trained, several backbones" in html
        and "nothing trained, <" not in html
        and "nothing trained, None" not in html
    )
    grey = html[html.index('<tbody class="finished">') :].partition("</tbody>")[0]
    assert [re.sub(r"<[^>]+>", " ", row).split()[1:3] for row in grey.split("<tr")[1:]] == [
        one.split() for one in wanted
    ]
    lines = [
        line
        for line in markdown_page(found).splitlines()
        if "*for scale*" in line and line.startswith("|")
    ]
    assert [
        name in line for name, line in zip(("large", "mini-2", "mini)"), lines, strict=False)
    ] == [True] * 3
    one = version(tmp_path, 1)
    (one.folder / "tables.json").write_text(as_json(found), encoding="utf-8")
    shown = main_table(one)
    assert shown is not None and [row.method for row in shown.rows if row.finished] == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"tables": []}',
        '{"tables": [{"table": {"columns": [], "rows": []}}]}',
        '{"tables": 3}',
    ],
)
def test_a_version_whose_tables_cannot_be_read_has_no_main_table(tmp_path: Path, text: str) -> None:
    one = version(tmp_path, 1)
    (one.folder / "tables.json").write_text(text)
    assert main_table(one) is None and b'id="main"' not in index_files([one])["index.html"]


def test_nothing_is_cut_in_the_markdown_of_versions(tmp_path: Path) -> None:
    long = " ".join(f"word{i}" for i in range(200))
    readme = index_files([version(tmp_path, 1), version(tmp_path, 2, text=long, changes=(long,))])[
        "README.md"
    ].decode()
    assert readme.count(long) >= 3 and "\u2026" not in readme.partition("## v2")[2]
