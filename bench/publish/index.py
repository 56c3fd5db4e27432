"""The page of all versions, in HTML and in Markdown. It is made again with every version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.board.board import MOST_FINISHED
from bench.board.names import method_page
from bench.compare.formatting import markdown, score, span_words
from bench.publish.versions import Version
from bench.runs.record import loads

ERRATA = "ERRATA.md"
"""What turned out to be wrong with published versions, written by hand beside them."""


def _row_name(row: Mapping[str, Any], backbone: str = "") -> str:
    """ "promcse eh temperature=0.1" """
    differs = (f"{key}={value}" for key, value in row["differs"].items())
    return " ".join(
        str(part) for part in (row["method"], row["variant"], *differs, backbone) if part
    )


def _caption(table: Mapping[str, Any]) -> str:
    """ "sts, unsupervised, builtin" """
    return ", ".join(
        str(table[key])
        for key in ("suite", "setting", "backbone")
        if table[key] and table[key] != "none"
    )


@dataclass(frozen=True, kw_only=True)
class PageVersion:
    """One version on the page of versions."""

    name: str  # v1
    link: str  # its page, or its README where it has no page
    readme: str  # its Markdown; empty where it has none
    date: str  # of its newest own run
    counted: str  # runs and methods, counted
    methods: str  # names of its methods
    answer: str  # its main finding, computed
    note: str | None  # what its publisher has to say
    left_out: int  # runs that could not be published


@dataclass(frozen=True, kw_only=True)
class MainRow:
    """One row of the newest version's first table."""

    method: str  # with its variant and whatever else sets it apart
    link: str  # its page; empty where the version has no pages
    rank: str  # "1-2"; empty where it was not tested
    top: bool  # it may be the best
    finished: bool  # of another backbone, nothing trained: for scale
    cells: tuple[
        tuple[str, str], ...
    ]  # of each column: the mean, and half of its interval; empty where there is none


@dataclass(frozen=True, kw_only=True)
class MainTable:
    """The newest version's first table, as that version says it."""

    caption: str  # "sts, unsupervised, builtin"
    columns: tuple[str, ...]  # the one that ranks first
    rows: tuple[MainRow, ...]


@dataclass(frozen=True, kw_only=True)
class IndexPage:
    """The page of versions."""

    title: str  # of the newest version
    main: MainTable | None  # None where the newest version has no table that can be read
    versions: tuple[PageVersion, ...]  # newest first
    errata: bool  # there is an ERRATA.md


def index_files(versions: Sequence[Version]) -> dict[str, bytes]:
    """File name -> content, for what is written beside the versions. A function of the versions alone."""
    from bench.show.pages.engine import TEMPLATES, render

    newest = versions[-1]
    page = IndexPage(
        title=newest.title,
        main=main_table(newest),
        versions=tuple(map(_version, reversed(versions))),
        errata=(newest.folder.parent / ERRATA).is_file(),
    )
    style = [(TEMPLATES / name).read_bytes() for name in ("board.css", "versions.css")]
    return {
        "README.md": _markdown(page).encode(),
        "index.html": render("versions.html", page=page).encode(),
        "style.css": b"".join(style),
    }


def main_table(version: Version) -> MainTable | None:
    """Out of ``tables.json`` of the version, which never changes; None where that cannot be read as one of ours."""
    try:
        tables = [
            one["table"] for one in loads((version.folder / "tables.json").read_bytes())["tables"]
        ]
        first = tables[0]
        columns = [first["columns"][-1], *first["columns"][:-1]]
        form = {
            "setting": "none",
            **{key: first[key] for key in ("suite", "protocol", "text", "columns")},
        }
        finished: dict[str, Any] = {}
        for table in tables[1:]:
            if all(table[key] == value for key, value in form.items()):
                for row in table["rows"]:  # of each other backbone the best, which stands first
                    if row["backbone"] != first["backbone"]:
                        finished.setdefault(row["backbone"], row)
        verdicts = [
            ((row["cells"][columns[0]] or {}).get("against") or {}).get("verdict")
            for row in first["rows"]
        ]
        rows = [_main_row(row, columns, version, verdicts) for row in first["rows"]]
        rows += [
            _main_row(row, columns, version, None)
            for row in list(finished.values())[:MOST_FINISHED]
            if first["setting"] != "none"
        ]
        return MainTable(
            caption=_caption(first), columns=tuple(map(str, columns)), rows=tuple(rows)
        )
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return None  # the page of versions is no place to refuse; `bench publish --check` says what was altered


def _main_row(
    row: Mapping[str, Any],
    columns: Sequence[str],
    version: Version,
    verdicts: Sequence[str | None] | None,
) -> MainRow:
    """``verdicts``: of all rows of its table; None for a finished encoder, which is there for scale. The baseline is compared with nothing."""
    finished = verdicts is None
    rank, cells = None if finished else row.get("rank"), [row["cells"][name] for name in columns]
    against = (cells[0] or {}).get("against")
    return MainRow(
        method=_row_name(row, row["backbone"] if finished else ""),
        finished=finished,
        link=f"{version.name}/{method_page(row['method'])}" if version.has_page else "",
        rank=span_words(rank),
        top=not finished
        and bool(
            row["may_be_best"] if "may_be_best" in row else _top(rank, against, verdicts or ())
        ),
        cells=tuple(_main_cell(cell) for cell in cells),
    )


def _top(
    rank: Sequence[int] | None, against: Mapping[str, Any] | None, verdicts: Sequence[str | None]
) -> bool:
    """Whether a row of the statistics up to version 3 was tinted."""
    level = "better" not in verdicts if against is None else against["verdict"] != "worse"
    return rank is not None and rank[0] == 1 and level


def _main_cell(cell: Mapping[str, Any] | None) -> tuple[str, str]:
    if cell is None:
        return "", ""
    spread = cell["spread"]
    half = "" if spread is None else score((spread["high"] - spread["low"]) / 2, cell["decimals"])
    return score(cell["mean"], cell["decimals"]), half


def _version(version: Version) -> PageVersion:
    runs, methods = len(version.senders), len(version.methods)
    return PageVersion(
        name=version.name,
        link=f"{version.name}/{'index.html' if version.has_page else 'README.md'}",
        readme=f"{version.name}/README.md" if version.has_readme else "",
        date=version.date,
        counted=f"{runs:,} run{'s' * (runs != 1)} of {methods} method{'s' * (methods != 1)}",
        methods=", ".join(version.methods),
        answer=version.answer,
        note=version.note,
        left_out=version.left_out,
    )


def _markdown(page: IndexPage) -> str:
    lines = [f"# {markdown(page.title)}", ""]
    lines += ["| version | date | runs | methods |", "|:--|:--|--:|:--|"]
    for version in page.versions:
        runs, methods = version.counted.split()[0], markdown(version.methods)
        name = f"[{version.name}]({version.readme or version.link})"
        lines.append(f"| {name} | {version.date} | {runs} | {methods} |")
    for version in page.versions:
        lines += ["", f"## {version.name}, {version.date}", ""]
        lines += [markdown(version.answer, limit=None)]
        lines += ["", markdown(version.note, limit=None)] if version.note else []
    if page.errata:
        lines += ["", f"Errata, and versions that left the tree: [{ERRATA}]({ERRATA})."]
    lines += [
        "",
        "A published version never changes: each has a `MANIFEST.json` with the sha256 of every file, and",
        "`bench publish --check` compares them. `bench verify` with the folder of a version computes every",
        "score again.",
    ]
    return "\n".join(lines) + "\n"
