"""What lies beside the versions: a page, a README, a feed, a badge and a list for programs. Made again with every version.

First the rows of the newest main table over the versions, which the page shows; then the page and everything else.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

from bench.board.board import MOST_FINISHED, Board
from bench.board.names import method_page
from bench.compare.formatting import list_names, markdown, score, span_words, visible
from bench.publish.signature import signature_files
from bench.publish.versions import ERRATA, VERSION_FILE, Erratum, Version, errata_bytes
from bench.runs.record import loads

# --- over versions: a line per method of the newest main table, its average and rank in each version, and what moved it ---


MOST_LINES = 6
"""Versions that are shown, the newest ones."""


@dataclass(frozen=True, kw_only=True)
class HistoryRow:
    """One method."""

    method: str  # with its variant and whatever else sets it apart
    cells: tuple[
        tuple[str, str], ...
    ]  # of each version: average and rank; empty where it was not there
    moved: str  # what moved it, version by version; "unchanged" where nothing did


@dataclass(frozen=True, kw_only=True)
class History:
    """One table over the versions that have it, the oldest first."""

    caption: str  # "sts, unsupervised, builtin: Avg."
    versions: tuple[str, ...]
    rows: tuple[HistoryRow, ...]


def history(versions: Sequence[Version]) -> History | None:
    """Of the newest version's first table; None where fewer than two versions have it, or one of them cannot be read."""
    try:
        return _history(versions)
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return None  # the page of versions is no place to refuse; `bench publish --check` says what was altered


def _history(versions: Sequence[Version]) -> History | None:
    found: list[tuple[Version, Mapping[str, Any]]] = []
    anchor = ""
    for version in reversed(versions[-MOST_LINES:]):
        tables = loads((version.folder / "tables.json").read_bytes())["tables"]
        anchor = anchor or str(tables[0]["anchor"])
        table = next((other["table"] for other in tables if other["anchor"] == anchor), None)
        if table is not None:
            found.insert(0, (version, table))
    if len(found) < 2:
        return None
    newest = found[-1][1]
    head = str(newest["columns"][-1])
    rows_of = [{_same(row): row for row in reversed(table["rows"])} for _, table in found]
    changes = [
        loads((version.folder / VERSION_FILE).read_bytes())["changes"] or {}
        for version, _ in found[1:]
    ]
    rows = []
    for row in newest["rows"]:
        there = [by_name.get(_same(row)) for by_name in rows_of]
        told = []
        for (before, _), (after, _), old, new, said in zip(
            found, found[1:], there, there[1:], changes, strict=False
        ):
            if words := _moved((before, after), (old, new), said, newest, head):
                told.append(f"{after.name}: {words}")
        cells = tuple(_cell(row_then, head) for row_then in there)
        moved = visible("; ".join(told), limit=None) or "unchanged"
        rows.append(HistoryRow(method=visible(_row_name(row)), cells=cells, moved=moved))
    versions_shown = tuple(version.name for version, _ in found)
    return History(
        caption=visible(f"{_caption(newest)}: {head}"), versions=versions_shown, rows=tuple(rows)
    )


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


def _same(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        str(row["method"]),
        str(row["variant"]),
        *(f"{key}={value}" for key, value in sorted(row["differs"].items())),
    )


def _cell(row: Mapping[str, Any] | None, head: str) -> tuple[str, str]:
    if row is None:
        return "", ""
    cell = row["cells"].get(head)
    mean = "" if cell is None else score(float(cell["mean"]), int(cell.get("decimals", 2)))
    return mean, _rank(row.get("rank"))


def _rank(rank: object) -> str:
    """Versions of the first statistics have one number, that of a group; of the second and third the first and the last that a row may have; later
    ones have none."""
    if isinstance(rank, int):
        return str(rank)
    return span_words(rank) if isinstance(rank, list) else ""


def _moved(
    versions: tuple[Version, Version],
    rows: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None],
    changes: Mapping[str, Any],
    table: Mapping[str, Any],
    head: str,
) -> str:
    """Why a row is another one than in the version before; "" where it is the same. ``changes``: what the later version says of them."""
    (before, after), (old, new) = versions, rows
    if new is old is None:
        return ""
    if old is None:
        return "new"
    if new is None:
        return "not there"
    (was, was_rank), (now, rank) = _cell(old, head), _cell(new, head)
    if (was, was_rank) == (now, rank):
        return ""
    name = f"{new['method']}+{new['variant']}" if new["variant"] else str(new["method"])
    place = {
        "method": name,
        **{key: table[key] for key in ("setting", "backbone", "suite", "protocol", "text")},
    }
    kind, tasks = ("scores", table["columns"]) if was != now else ("verdicts", [head])
    reasons: dict[str, None] = {}  # each once
    for entry in changes.get(kind, ()):
        if all(entry[key] == value for key, value in place.items()) and entry["task"] in tasks:
            reasons |= dict.fromkeys(map(str, entry["why"]))
    if not reasons and was == now:  # a rank is of all pairs of rows
        same = before.statistics == after.statistics
        reasons = {
            "other rows of the table"
            if same
            else f"statistics: version {before.statistics} before, {after.statistics} now": None
        }
    told = ([f"average {was} before"] if was != now else []) + (
        [f"rank {was_rank or 'none'} before"] if was_rank != rank else []
    )
    return f"{list_names(told)}{f' ({list_names(reasons)})' if reasons else ''}"


# --- the page of versions, in HTML and in Markdown, and the list of everything that lies beside them ---


LIST, LIST_SCHEMA = "versions.json", "bench.versions/1"
BADGE = "badge.svg"


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
    changes: tuple[str, ...]  # what changed since the version before; empty for the first
    before: str  # name of the version before it; empty for the first
    errata: tuple[str, ...]  # what its publisher found out later, with the day
    signed: str  # when and with which key; empty where it is not
    left_out: int  # runs that could not be published
    manifest: str  # sha256 of its manifest


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
    history: History | None  # its rows over the versions; None where there is one version alone
    versions: tuple[PageVersion, ...]  # newest first


def index_files(versions: Sequence[Version]) -> dict[str, bytes]:
    """File name -> content, for everything that lies beside the versions. A function of the versions alone."""
    from bench.show.pages.engine import TEMPLATES, render

    page = index_page(versions)
    files = {
        "README.md": _markdown(page).encode(),
        "feed.xml": feed(versions),
        "index.html": render("versions.html", page=page).encode(),
        "style.css": b"".join(
            (TEMPLATES / name).read_bytes() for name in ("board.css", "versions.css")
        ),
    }
    badge = versions[-1].folder / BADGE
    if badge.is_file():
        files[BADGE] = badge.read_bytes()
    if errata := sorted(
        (erratum for version in versions for erratum in version.errata), key=lambda one: one.date
    ):
        files[ERRATA] = errata_bytes(errata)
    for version in versions:
        if version.signature is not None:
            for name in signature_files(version.name):
                files[name] = (version.folder.parent / name).read_bytes()
    content = {
        "schema": LIST_SCHEMA,
        "versions": [
            {"version": one.name, "date": one.date, "runs": len(one.runs), "manifest": one.manifest}
            for one in versions
        ],
        "files": {name: sha256(files[name]).hexdigest() for name in sorted(files)},
    }
    return files | {LIST: (json.dumps(content, indent=1) + "\n").encode()}


def index_page(versions: Sequence[Version]) -> IndexPage:
    before = ["", *(version.name for version in versions[:-1])]
    return IndexPage(
        title=versions[-1].title,
        main=main_table(versions[-1]),
        history=history(versions),
        versions=tuple(map(_version, reversed(versions), reversed(before))),
    )


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


def _version(version: Version, before: str) -> PageVersion:
    runs, methods = len(version.runs), len(version.methods)
    return PageVersion(
        name=version.name,
        link=_page_link(version),
        readme=f"{version.name}/README.md" if version.has_readme else "",
        date=version.date,
        counted=f"{runs:,} run{'s' * (runs != 1)} of {methods} method{'s' * (methods != 1)}",
        methods=", ".join(version.methods),
        answer=version.answer,
        note=version.note,
        changes=version.changes or (),
        before=before,
        errata=tuple(f"{erratum.date}: {erratum.text}" for erratum in version.errata),
        left_out=len(version.left_out),
        manifest=version.manifest,
        signed=version.signature.words() if version.signature is not None else "",
    )


def _page_link(version: Version) -> str:
    """Its page, or its README where it has none."""
    return f"{version.name}/{'index.html' if version.has_page else 'README.md'}"


def _markdown(page: IndexPage) -> str:
    lines = [f"# {markdown(page.title)}", ""]
    lines += ["| version | date | runs | methods |", "|:--|:--|--:|:--|"]
    for version in page.versions:
        runs, methods = version.counted.split()[0], markdown(version.methods)
        lines.append(
            f"| [{version.name}]({version.readme or version.link}) | {version.date} | {runs} | {methods} |"
        )
    for version in page.versions:
        lines += ["", f"## {version.name}, {version.date}", ""]
        for text in version.errata:
            lines += [f"**Erratum** {markdown(text, limit=None)}", ""]
        lines += [markdown(version.answer, limit=None)]
        lines += ["", markdown(version.note, limit=None)] if version.note else []
        lines += ["", version.signed] if version.signed else []
        lines += ["", f"Since {version.before}:" if version.before else "The first version."]
        lines += (
            ["", *(f"- {markdown(line, limit=None)}" for line in version.changes)]
            if version.changes
            else []
        )
    if (shown := page.history) is not None:
        lines += [
            "",
            "## Over versions",
            "",
            f"{markdown(shown.caption)}, and in brackets the ranks that a row may have.",
            "",
        ]
        lines += [
            f"| method | {' | '.join(shown.versions)} | what moved it |",
            f"|:--|{'--:|' * len(shown.versions)}:--|",
        ]
        for row in shown.rows:
            cells = [f"{mean} ({rank})" if rank else mean for mean, rank in row.cells]
            lines.append(
                f"| {markdown(row.method)} | {' | '.join(cells)} | {markdown(row.moved, limit=None)} |"
            )
    lines += [
        "",
        "A published version never changes: each has a `MANIFEST.json` with the sha256 of every file, and",
    ]
    lines += [
        "`bench publish --check` compares them. `bench verify leaderboards/v1` computes every score again."
    ]
    return "\n".join(lines) + "\n"


def read_list(out: Path) -> dict[str, dict[str, str]] | None:
    """What ``versions.json`` vouches for: {"versions": name -> sha256 of the manifest, "files": name -> sha256}; None without one.

    Raises ValueError where it is something else.
    """
    path = out / LIST
    if not path.is_file():
        return None
    content = loads(path.read_bytes())
    try:
        return {
            "versions": {
                str(entry["version"]): str(entry["manifest"]) for entry in content["versions"]
            },
            "files": {str(name): str(value) for name, value in content["files"].items()},
        }
    except (KeyError, TypeError, AttributeError):
        raise ValueError("it lists no versions and files") from None


# --- the badge, a small picture for a README: which version, of how many runs ---

SIZE, PAD, HEIGHT = 11, 7, 20  # of the letters, beside a text, of the badge; in pixels
WIDE, NARROW = "mwMW%@—", "iljtfrI.,:;'|!()[] ·1-"
LABEL = "leaderboard"


def badge(board: Board) -> str:
    """SVG, without fonts, links or scripts of its own. ``textLength`` holds the text in its place whatever font there is."""
    runs, methods = len(board.runs), len(board.methods)
    words = f"{visible(board.version, limit=20)} · {runs:,} run{'s' * (runs != 1)} · {methods} method{'s' * (methods != 1)}"
    title = f"{visible(board.title)}: {words}, {board.date}"
    left, right = _width(LABEL), _width(words)
    width = left + right + 4 * PAD
    middle = left + 2 * PAD
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT}" role="img" aria-label={quoteattr(title)}>\n'
        f"<title>{escape(title)}</title>\n"
        f'<rect width="{width}" height="{HEIGHT}" rx="3" fill="#1f4e79"/>\n'
        f'<path d="M3 0h{middle - 3}v{HEIGHT}H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="#3b3b3b"/>\n'
        f'<g fill="#ffffff" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="{SIZE}">\n'
        f'<text x="{PAD}" y="14" textLength="{left}">{escape(LABEL)}</text>\n'
        f'<text x="{middle + PAD}" y="14" textLength="{right}">{escape(words)}</text>\n'
        "</g>\n</svg>\n"
    )


def _width(text: str) -> int:
    """About what the text takes: wide and narrow letters told apart."""
    widths = {**dict.fromkeys(WIDE, 0.95), **dict.fromkeys(NARROW, 0.4)}
    return round(sum(widths.get(c, 0.64) for c in text) * SIZE)


# --- the Atom feed of versions (RFC 4287): one entry per version and per erratum, newest first ---

ATOM = "http://www.w3.org/2005/Atom"
MOST = 20  # entries: readers keep the older ones


def feed(versions: Sequence[Version]) -> bytes:
    """The feed as XML. Its links are relative to where it lies, as the format allows; its ids are made from the manifests."""
    ElementTree.register_namespace("", ATOM)
    newest = versions[-1]
    root = ElementTree.Element(f"{{{ATOM}}}feed")
    _text(root, "id", _id("feed", versions[0]))
    _text(root, "title", newest.title)
    errata = [erratum for version in versions for erratum in version.errata]
    _text(
        root,
        "updated",
        max([version.updated for version in versions] + [_midnight(erratum) for erratum in errata]),
    )
    ElementTree.SubElement(root, f"{{{ATOM}}}link", rel="self", href="feed.xml")
    ElementTree.SubElement(root, f"{{{ATOM}}}link", href="index.html")
    author = ElementTree.SubElement(root, f"{{{ATOM}}}author")
    _text(author, "name", newest.title)
    for erratum in sorted(errata, key=lambda one: one.date, reverse=True)[:MOST]:
        urn = uuid.uuid5(
            uuid.NAMESPACE_OID, f"erratum {erratum.version} {erratum.date} {erratum.text}"
        ).urn
        title = f"{newest.title}: erratum to {erratum.version}"
        _entry(root, urn, title, _midnight(erratum), f"index.html#{erratum.version}", erratum.text)
    for version in reversed(versions[-MOST:]):
        signed = (version.signature.words(),) if version.signature is not None else ()
        changes = version.changes if version.changes is not None else ("The first version.",)
        summary = " ".join((version.answer, *changes, *signed))
        _entry(
            root,
            _id("version", version),
            f"{version.title}: {version.name}",
            version.updated,
            _page_link(version),
            summary,
        )
    ElementTree.indent(root, " ")
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _entry(
    root: ElementTree.Element, urn: str, title: str, updated: str, href: str, summary: str
) -> None:
    entry = ElementTree.SubElement(root, f"{{{ATOM}}}entry")
    _text(entry, "id", urn)
    _text(entry, "title", title)
    _text(entry, "updated", updated)
    ElementTree.SubElement(entry, f"{{{ATOM}}}link", href=href)
    _text(entry, "summary", summary)


def _midnight(erratum: Erratum) -> str:
    return f"{erratum.date}T00:00:00Z"


def _id(kind: str, version: Version) -> str:
    """The same for ever, for a version never changes."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"{kind} {version.name} {version.manifest}").urn


def _text(parent: ElementTree.Element, tag: str, text: str) -> None:
    """Foreign text: characters that XML cannot hold are made visible."""
    ElementTree.SubElement(parent, f"{{{ATOM}}}{tag}").text = visible(text, limit=None)
