"""What lies beside the versions: a page, a README, a feed, a badge and a list for programs. Made again with every version."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from bench.pages.says import says
from bench.publish.errata import ERRATA, errata_bytes
from bench.publish.feed import feed
from bench.publish.versions import Version

LIST, LIST_SCHEMA = "versions.json", "bench.versions/1"
BADGE = "badge.svg"


@dataclass(frozen=True, kw_only=True)
class PageVersion:
    """One version on the page of versions."""

    name: str = field(metadata=says("v1"))
    link: str = field(metadata=says("its page, or its README where it has no page"))
    readme: str = field(metadata=says("its Markdown; empty where it has none"))
    date: str = field(metadata=says("of its newest own run"))
    counted: str = field(metadata=says("runs and methods, counted"))
    methods: str = field(metadata=says("names of its methods"))
    answer: str = field(metadata=says("its main finding, computed"))
    note: str | None = field(metadata=says("what its publisher has to say"))
    changes: tuple[str, ...] = field(metadata=says("what changed since the version before; empty for the first"))
    before: str = field(metadata=says("name of the version before it; empty for the first"))
    errata: tuple[str, ...] = field(metadata=says("what its publisher found out later, with the day"))
    left_out: int = field(metadata=says("runs that could not be published"))
    manifest: str = field(metadata=says("sha256 of its manifest"))


@dataclass(frozen=True, kw_only=True)
class IndexPage:
    """The page of versions."""

    title: str = field(metadata=says("of the newest version"))
    versions: tuple[PageVersion, ...] = field(metadata=says("newest first"))


def index_files(versions: Sequence[Version]) -> dict[str, bytes]:
    """File name -> content, for everything that lies beside the versions. A function of the versions alone."""
    page = index_page(versions)
    files = {
        "README.md": _markdown(page).encode(), "feed.xml": feed(versions), "index.html": _html(page).encode(), "style.css": _style(),
    }  # fmt: skip
    badge = versions[-1].folder / BADGE
    if badge.is_file():
        files[BADGE] = badge.read_bytes()
    if errata := sorted((one for version in versions for one in version.errata), key=lambda one: one.date):
        files[ERRATA] = errata_bytes(errata)
    listed = [{"version": one.name, "date": one.date, "runs": len(one.runs), "manifest": one.manifest} for one in versions]
    hashes = {name: sha256(files[name]).hexdigest() for name in sorted(files)}
    return files | {LIST: (json.dumps({"schema": LIST_SCHEMA, "versions": listed, "files": hashes}, indent=1) + "\n").encode()}


def index_page(versions: Sequence[Version]) -> IndexPage:
    before: Mapping[str, str] = {now.name: last.name for last, now in zip(versions, versions[1:], strict=False)}
    return IndexPage(
        title=versions[-1].title, versions=tuple(_version(one, before.get(one.name, "")) for one in reversed(versions))
    )


def _version(one: Version, before: str) -> PageVersion:
    runs, methods = len(one.runs), len(one.methods)
    return PageVersion(
        name=one.name, link=f"{one.name}/{'index.html' if one.has_page else 'README.md'}",
        readme=f"{one.name}/README.md" if one.has_readme else "", date=one.date,
        counted=f"{runs:,} run{'s' * (runs != 1)} of {methods} method{'s' * (methods != 1)}", methods=", ".join(one.methods),
        answer=one.answer, note=one.note, changes=one.changes or (), before=before,
        errata=tuple(f"{erratum.date}: {erratum.text}" for erratum in one.errata), left_out=len(one.left_out), manifest=one.manifest,
    )  # fmt: skip


def _html(page: IndexPage) -> str:
    from bench.pages.engine import render

    return render("versions.html", page=page)


def _style() -> bytes:
    from bench.pages.engine import TEMPLATES

    return b"".join((TEMPLATES / name).read_bytes() for name in ("board.css", "versions.css"))


def _markdown(page: IndexPage) -> str:
    from bench.tables.words import markdown

    lines = [f"# {markdown(page.title)}", ""]
    lines += ["| version | date | runs | methods |", "|:--|:--|--:|:--|"]
    for one in page.versions:
        runs, methods = one.counted.split()[0], markdown(one.methods)
        lines.append(f"| [{one.name}]({one.readme or one.link}) | {one.date} | {runs} | {methods} |")
    for one in page.versions:
        lines += ["", f"## {one.name}, {one.date}", ""]
        lines += [line for text in one.errata for line in (f"**Erratum** {markdown(text, limit=None)}", "")]
        lines += [markdown(one.answer)]
        lines += ["", markdown(one.note)] if one.note else []
        lines += ["", f"Since {one.before}:" if one.before else "The first version."]
        lines += ["", *(f"- {markdown(line)}" for line in one.changes)] if one.changes else []
    lines += ["", "A published version never changes: each has a `MANIFEST.json` with the sha256 of every file, and"]
    lines += ["`bench publish --check` compares them. `bench verify leaderboards/v1` computes every score again."]
    return "\n".join(lines) + "\n"


def read_list(out: Path) -> dict[str, dict[str, str]] | None:
    """What ``versions.json`` vouches for: {"versions": name -> sha256 of the manifest, "files": name -> sha256}; None without one.

    Raises ValueError where it is something else.
    """
    from bench.runs.reading import loads

    path = out / LIST
    if not path.is_file():
        return None
    content = loads(path.read_bytes())
    try:
        found = {
            "versions": {str(one["version"]): str(one["manifest"]) for one in content["versions"]},
            "files": {str(name): str(value) for name, value in content["files"].items()},
        }
    except (KeyError, TypeError, AttributeError):
        raise ValueError("it lists no versions and files") from None
    return found
