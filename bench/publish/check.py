"""Whether published versions are as they were published: each against its manifest, its place, and the version that follows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from bench.base.errors import BenchError
from bench.base.files import file_sha256
from bench.board.board import PREVIEW
from bench.publish.index import LIST, read_list
from bench.publish.signature import check_signatures, signature_files
from bench.publish.versions import (
    ASIDE,
    ERRATA,
    PLAN,
    PLANS,
    Version,
    errata_bytes,
    read_errata,
    read_version,
    version_folders,
)
from bench.verify.findings import AGREES, DIFFERS, Finding, RunReport
from bench.verify.identity import MANIFEST, check_manifest

UNLISTED = f"it is not in {LIST}"
"""What a process leaves that was killed after it published and before it wrote the list."""
HOST = ("CNAME", "robots.txt")
"""What a host of static pages asks for beside them; hidden files are the repository's."""


def check(out: Path, signers: Path | None = None) -> list[RunReport]:
    """One report per version, and one of what lies beside them. ``signers``: a file of allowed signers, one of whom has to have signed
    the newest version. Raises BenchError where nothing is published in ``out``, or ``signers`` cannot be used.
    """
    folders = version_folders(out)
    if not folders and not (out / LIST).is_file():
        raise BenchError(f"no version in {out}", "bench publish, or another folder: --out DIR")
    reports: list[RunReport] = []
    manifests: dict[str, str] = {}
    last: Version | None = None
    for folder in folders:
        report = check_manifest(folder)
        findings = (
            [Finding("files", MANIFEST, DIFFERS, "missing")]
            if report is None
            else [*report.findings]
        )
        try:
            version = read_version(folder)
        except BenchError as error:
            findings.append(Finding("files", "version.json", DIFFERS, error.message))
            last = None
        else:
            manifests[version.name] = version.manifest
            # a version keeps the hash of the manifest before it: whoever changes a file and its manifest is found out all the same
            if last is not None and version.before != last.manifest:
                why = f"{version.name} was published after another {last.name}: its manifest has changed"
                findings.append(Finding("files", f"{last.name}/{MANIFEST}", DIFFERS, why))
            last = version
        reports.append(RunReport(folder.name, findings, "published"))
    beside = [*_beside(out, folders), *check_signatures(out, manifests, signers)]
    return [*reports, RunReport(str(out), beside, "published")]


def refuse_altered(out: Path) -> None:
    """Raises BenchError where a published version is not as it was: a new one would vouch for what is not true.

    What lies beside the versions is made again with each of them, and is not asked for; but for the errata, which are nowhere else.
    """
    if not version_folders(out):
        return
    for report in check(out):
        for difference in report.differences:
            beside = difference.kind == "version" or difference.what == ERRATA
            if report.name != str(out) or beside and difference.why != UNLISTED:
                what = (
                    f"{report.name} is not as it was published: {difference.what}: {difference.why}"
                )
                raise BenchError(
                    what, "bench publish --check tells everything; restore it: git checkout"
                )


def _beside(out: Path, folders: list[Path]) -> Iterator[Finding]:
    try:
        listed = read_list(out)
    except (OSError, ValueError, RecursionError) as error:
        yield Finding("files", LIST, DIFFERS, f"it cannot be read: {error}")
        return
    if listed is None:
        yield Finding("files", LIST, DIFFERS, "missing")
        return
    there = {folder.name: folder for folder in folders}
    signatures = {name for version in there for name in signature_files(version)}
    for name in sorted({*listed["versions"], *there}):
        if name not in there:
            yield Finding("version", name, DIFFERS, "it was published and is missing")
        elif name not in listed["versions"]:
            yield Finding("version", name, DIFFERS, UNLISTED)
        else:
            yield _same(
                there[name] / MANIFEST, f"{name}/{MANIFEST}", listed["versions"][name], "version"
            )
    if ERRATA not in listed["files"] and (out / ERRATA).exists():
        yield Finding("files", ERRATA, DIFFERS, UNLISTED)
    for name, expected in sorted(listed["files"].items()):
        if name in signatures:
            continue  # looked at by itself
        if name == ERRATA and _adds_one(out, expected):
            yield Finding("files", ERRATA, DIFFERS, UNLISTED)
        else:
            yield _same(out / Path(name).name, name, expected, "files")
    yield from _plans(out, there)
    known = {*listed["files"], *there, *signatures, *HOST, LIST, ERRATA, PREVIEW, PLANS}
    for path in sorted(out.iterdir()):
        if path.name.startswith(ASIDE):
            yield Finding(
                "files",
                path.name,
                DIFFERS,
                "a version that is being made, or was left by a process that was killed",
            )
        elif not path.name.startswith(".") and path.name not in known:
            yield Finding(
                "files",
                path.name,
                DIFFERS,
                "bench publish did not write it; nothing vouches for it",
            )


def _plans(out: Path, there: Mapping[str, Path]) -> Iterator[Finding]:
    """A plan that was published is the one beside the versions: later thoughts are an erratum, or another version."""
    for name in sorted(there):
        beside, published = out / PLANS / f"{name}.md", there[name] / PLAN
        if published.is_file() and beside.is_file():
            if beside.read_bytes() != published.read_bytes():
                yield Finding(
                    "files",
                    f"{PLANS}/{name}.md",
                    DIFFERS,
                    f"it was changed after {name} was published with it",
                )
        elif beside.is_file():
            yield Finding(
                "files", f"{PLANS}/{name}.md", DIFFERS, f"it was written after {name} was published"
            )


def _adds_one(out: Path, expected: str) -> bool:
    """Whether the errata are those that were listed and one more: its process was killed before it wrote the list."""
    try:
        errata = read_errata(out)
    except BenchError:
        return False
    return any(
        sha256(errata_bytes([*errata[:i], *errata[i + 1 :]])).hexdigest() == expected
        for i in range(len(errata))
    )


def _same(path: Path, what: str, expected: str, kind: str) -> Finding:
    if path.is_symlink() or not path.is_file():
        return Finding(kind, what, DIFFERS, "missing")
    if file_sha256(path) != expected:
        return Finding(kind, what, DIFFERS, "changed since it was published")
    return Finding(kind, what, AGREES)
