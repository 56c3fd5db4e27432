"""The versions that are published in a folder, oldest first, each read from its own ``version.json``; and where one is written aside."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import __version__
from bench.base.errors import BenchError, DataDamaged, one_line
from bench.base.files import file_sha256
from bench.board.board import OWN, Board, PublishedRun, dating_runs
from bench.board.changes import Judgement, judgements
from bench.publish.signature import Signature, read_signature
from bench.runs.record import MANIFEST, RunRecord, loads
from bench.runs.store import RunsFolder

# --- where a version is written before it is one: a folder, and the hash of everything that was put into it ---


ELSEWHERE = "another folder: --out DIR"
ASIDE = (
    ".publishing-"  # how the name of a folder begins in which a version is written before it is one
)


@dataclass(frozen=True)
class StagedFolder:
    """A folder. ``hashes``: path below the first folder -> sha256, of all that was written here and in places inside.

    ``held``: (path, sha256) -> the older version that has this very file; ``older``: path -> (that version, sha256), of what is
    left there and not written.
    """

    folder: Path
    hashes: dict[str, str] = field(default_factory=dict)
    prefix: str = ""
    held: Mapping[tuple[str, str], str] = field(default_factory=dict)
    older: dict[str, tuple[str, str]] = field(default_factory=dict)

    def inside(self, name: str) -> StagedFolder:
        """A folder in this one."""
        return replace(self, prefix=f"{self.prefix}{name}/")

    def write(self, name: str, data: bytes) -> str:
        """Write a file; returns its sha256. Not synced: the whole folder is renamed when it is done, and removed where that fails.

        Raises BenchError.
        """
        path = self.folder / f"{self.prefix}{name}"
        try:
            try:
                path.write_bytes(data)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        except OSError as error:
            why = f"cannot write {self.prefix}{name} of the new version: {error.strerror or error}"
            raise BenchError(
                f"{why}; nothing was published, what was there is as it was", ELSEWHERE
            ) from None
        self.hashes[f"{self.prefix}{name}"] = found = hashlib.sha256(data).hexdigest()
        return found

    def leave(self, name: str, data: bytes) -> str | None:
        """The older version that has this very file, which is then left there; None where none has it, and nothing was done."""
        path, sha256 = f"{self.prefix}{name}", hashlib.sha256(data).hexdigest()
        version = self.held.get((path, sha256))
        if version is not None:
            self.older[path] = version, sha256
        return version

    def remove(self) -> None:
        """Everything in this folder."""
        import shutil

        shutil.rmtree(self.folder / self.prefix, ignore_errors=True)
        for names in (self.hashes, self.older):
            for name in [name for name in names if name.startswith(self.prefix)]:
                del names[name]

    def remove_but(self, kept: Container[str]) -> None:
        """Every file whose path does not begin with the name of a folder in ``kept``."""
        for name in [name for name in self.hashes if name.split("/")[0] not in kept]:
            (self.folder / name).unlink(missing_ok=True)
            del self.hashes[name]

    def seal(self) -> None:
        """List everything with its sha256 in ``MANIFEST.json``, which lists all but itself."""
        content: dict[str, Any] = {
            "files": {
                name: sha256 for name, sha256 in sorted(self.hashes.items()) if name != MANIFEST
            }
        }
        for name, (version, sha256) in sorted(self.older.items()):
            content.setdefault("older", {}).setdefault(version, {})[name] = sha256
        self.write(MANIFEST, (json.dumps(content, indent=1) + "\n").encode())


def held_files(folder: Path) -> dict[str, str]:
    """Path -> sha256, of what a published version holds itself."""
    files: dict[str, str] = json.loads((folder / MANIFEST).read_bytes())["files"]
    return files


def manifest_sha256(folder: Path) -> str | None:
    """Of a version's manifest, and thereby of all that it lists; None where there is none."""
    path = folder / MANIFEST
    return file_sha256(path) if path.is_file() else None


# --- the versions of a folder ---


VERSION_FILE, SCHEMA = "version.json", "bench.version/1"
STATISTICS = 4
"""Version of the statistics: another one where the same predictions get other intervals or verdicts. A version without one has 1."""
RUNS = "runs"  # folder of a version that holds its runs
NAMED = 3  # runs of another grade that are named
PLAN, PLANS = "plan.md", "plans"
"""What was to be found out and how, written before the runs: PLANS/vN.md beside the versions, and as PLAN in the version that followed it."""
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_NAME = re.compile(r"v([1-9][0-9]{0,8})")


@dataclass(frozen=True, kw_only=True)
class VersionRun:
    """What a version says of one of its runs."""

    run_id: str
    record: str  # sha256 of the run's record, as it is published
    grade: str
    submitted_by: str | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class Version:
    """A published version, without its tables."""

    folder: Path
    name: str  # "v1"
    date: str  # of its newest own run: "2026-11-21"
    updated: str  # the same to the second, in UTC: "2026-11-21T13:06:09Z"
    title: str
    note: str | None
    baseline: str | None  # as it was asked for; None: the board's own choice
    answer: str
    content: str  # sha256 of what it is made of: another one makes another version
    references: str  # sha256 of what papers printed
    runs: tuple[VersionRun, ...]
    methods: tuple[str, ...]
    left_out: tuple[str, ...]
    before: str | None  # manifest of the version before it
    changes: tuple[str, ...] | None  # sentences; None: it is the first
    manifest: str  # sha256 of its manifest now
    statistics: int = 1  # the version of the statistics behind its verdicts
    errata: tuple[Erratum, ...] = ()  # what was found out later
    signature: Signature | None = None

    @property
    def has_page(self) -> bool:
        return (self.folder / "index.html").is_file()

    @property
    def has_readme(self) -> bool:
        return (self.folder / "README.md").is_file()

    def records(self) -> list[RunRecord]:
        """The records of its runs, from its own folder or the older one that holds them. Raises BenchError where one is damaged or missing."""
        store = RunsFolder(self.folder / RUNS)
        return [store.read(run.run_id) for run in self.runs]

    def judgements(self) -> dict[tuple[str | None, ...], Judgement]:
        """What its tables say of each cell. Raises DataDamaged."""
        path = self.folder / "tables.json"
        try:
            return judgements(loads(path.read_bytes())["tables"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DataDamaged(
                f"{path} cannot be read: {' '.join(str(error).split())[:200]}",
                "restore it: git checkout",
            ) from None

    def published(self) -> list[PublishedRun]:
        """Its runs, graded as they were; v1 and v2 call own runs "submitted" that have no better grade. Raises BenchError as ``records``."""
        store = RunsFolder(self.folder / RUNS)
        return [
            PublishedRun(
                record=record,
                folder=store.folder(run.run_id),
                submitted_by=run.submitted_by,
                reason=run.reason,
                grade=OWN if run.submitted_by is None and run.grade == "submitted" else run.grade,
            )
            for record, run in zip(self.records(), self.runs, strict=True)
        ]


def versions(out: Path) -> tuple[Version, ...]:
    """All versions in ``out``, oldest first; none where there is no such folder. Raises DataDamaged where one cannot be read."""
    errata = read_errata(out)
    return tuple(
        replace(
            read_version(folder),
            errata=tuple(erratum for erratum in errata if erratum.version == folder.name),
            signature=read_signature(out, folder.name),
        )
        for folder in version_folders(out)
    )


def version_folders(out: Path) -> list[Path]:
    """ "v1", "v2", ..., "v10" """
    if not out.is_dir():
        return []
    found = [
        path
        for path in out.iterdir()
        if _NAME.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
    ]
    return sorted(found, key=lambda path: int(path.name[1:]))


def read_version(folder: Path) -> Version:
    """What a version says of itself. Raises DataDamaged."""
    path = folder / VERSION_FILE
    try:
        content = loads(path.read_bytes())
        if content["schema"] != SCHEMA:
            raise ValueError(
                f"it is of schema {str(content['schema'])[:40]}, this bench reads {SCHEMA}"
            )
        runs = tuple(
            VersionRun(**{field.name: run[field.name] for field in fields(VersionRun)})
            for run in content["runs"]
        )
        texts = {
            key: _text(content[key])
            for key in ("date", "updated", "title", "answer", "content", "references")
        }
        optional = {
            key: None if content[key] is None else _text(content[key])
            for key in ("note", "baseline", "before")
        }
        lists = {key: tuple(map(_text, content[key])) for key in ("methods", "left_out")}
        changes = (
            None if content["changes"] is None else tuple(map(_text, content["changes"]["lines"]))
        )
        datetime.fromisoformat(texts["updated"])
        return Version(
            folder=folder,
            name=folder.name,
            runs=runs,
            changes=changes,
            manifest=manifest_sha256(folder) or "",
            statistics=int(content.get("statistics", 1)),
            **texts,  # type: ignore[arg-type]
            **optional,  # type: ignore[arg-type]
            **lists,  # type: ignore[arg-type]
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        what = (
            f"no {error}"
            if isinstance(error, KeyError)
            else " ".join(str(error).split()) or type(error).__name__
        )
        hint = "a published version never changes: restore it from where it was published (git checkout)"
        raise DataDamaged(f"{path} cannot be read: {what[:200]}", hint) from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, found {str(value)[:40]}")
    return value


# --- writing ---


def version_bytes(
    board: Board, records: Mapping[str, str], *, baseline: str | None, before: str | None
) -> bytes:
    """``version.json``. ``records``: run id -> sha256 of its record. ``before``: of the manifest of the version before, for which each
    version vouches."""
    content = {
        "schema": SCHEMA,
        "version": board.version,
        "date": board.date,
        "updated": update_time(board.runs),
        "title": board.title,
        "note": board.note,
        "baseline": baseline,
        "answer": board.answer,
        "bench_version": __version__,
        "statistics": STATISTICS,
        "content": content_sha256(board, records, baseline),
        "references": references_sha256(board),
        "before": before,
        "methods": list(board.methods),
        "tables": [table.anchor for table in board.tables],
        "runs": [asdict(run) for run in _runs(board, records)],
        "left_out": list(board.left_out),
        "changes": None if board.changes is None else asdict(board.changes),
    }
    return (json.dumps(content, indent=1) + "\n").encode()


def _runs(board: Board, records: Mapping[str, str]) -> list[VersionRun]:
    return [
        VersionRun(
            run_id=run.record.run_id,
            record=records[run.record.run_id],
            grade=run.grade,
            submitted_by=run.submitted_by,
            reason=run.reason,
        )
        for run in board.runs
    ]


def content_sha256(board: Board, records: Mapping[str, str], baseline: str | None) -> str:
    """Of what a version is made of, and not of how it is shown: runs, grades, title, note, baseline, printed numbers, statistics."""
    runs = sorted(
        (run.run_id, run.record, run.grade, run.submitted_by or "") for run in _runs(board, records)
    )
    return _sha256([runs, board.title, board.note, baseline, references_sha256(board), STATISTICS])


def references_sha256(board: Board) -> str:
    return _sha256([asdict(reference) for reference in board.references])


def _sha256(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def update_time(runs: Sequence[PublishedRun]) -> str:
    """When the newest own run was made, in UTC; a moment without a zone counts as UTC."""
    return max(
        (_moment(run.record.provenance.created) for run in dating_runs(runs)), default=_EARLIEST
    ).strftime("%Y-%m-%dT%H:%M:%SZ")


def _moment(created: str) -> datetime:
    """A record's schema lets through days that no calendar has."""
    try:
        moment = datetime.fromisoformat(created)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return _EARLIEST


def other_news(last: Version, board: Board) -> list[str]:
    """What is new in a version besides its runs: grades, title, note, printed numbers; a sentence each."""
    before = {run.run_id: run.grade for run in last.runs}
    grades: dict[tuple[str, str], list[str]] = {}
    for run in board.runs:
        then = before.get(run.record.run_id)
        if then is not None and then != run.grade:
            grades.setdefault((run.grade, then), []).append(run.record.run_id)
    news = []
    for (now, then), runs in grades.items():
        if len(runs) == 1:
            news.append(f"{runs[0]} is {now} now; it was {then}.")
        else:
            named = ", ".join(runs[:NAMED]) + (" and more" if len(runs) > NAMED else "")
            news.append(f"{len(runs)} runs are {now} now; they were {then}: {named}.")
    if last.statistics != STATISTICS:
        news.append(
            f"The statistics are of version {STATISTICS}; {last.name} has version {last.statistics}: docs/statistics.md."
        )
    if last.references != references_sha256(board):
        news.append("The numbers printed in papers, or the remarks on them, were changed.")
    for what, old_text, new_text in (
        ("title", last.title, board.title),
        ("note", last.note, board.note),
    ):
        if old_text != new_text:
            news.append(f"The {what} was changed.")
    return news


def read_plan(out: Path, version: str) -> bytes | None:
    """The plan of a version that is published next; None where none was written. Raises BenchError where it is no UTF-8 text."""
    path = out / PLANS / f"{version}.md"
    if not path.exists():
        return None
    try:
        data = path.read_bytes()
        data.decode()
    except (OSError, ValueError) as error:
        raise BenchError(
            f"{path} cannot be read: {error}", "a plan is a text file in Markdown"
        ) from None
    return data


def next_name(found: Sequence[Version]) -> str:
    return f"v{int(found[-1].name[1:]) + 1 if found else 1}"


def refuse_strange(out: Path) -> None:
    """Raises BenchError where ``out`` is something else than a folder of versions."""
    if out.exists() and not out.is_dir():
        raise BenchError(f"{out} is no folder", "--out DIR")


# --- what a publisher found out about a version later: a text that stands beside it, for the version itself never changes ---


ERRATA, ERRATA_SCHEMA = "errata.json", "bench.errata/1"
LONGEST = 2_000  # characters of a text


@dataclass(frozen=True)
class Erratum:
    """``date``: the day on which it was published, in UTC: "2026-11-23"."""

    version: str  # "v1"
    date: str
    text: str

    def words(self) -> str:
        return f"Erratum to {self.version}, {self.date}: {self.text}"


def made_erratum(version: str, text: str, known: Sequence[Erratum]) -> Erratum:
    """Raises BenchError where the text says nothing, is too long, or stands there already."""
    from bench.compare.formatting import visible

    said = visible(text, limit=None)
    if not said:
        raise BenchError(
            f"--erratum {version}: the text is empty",
            'bench publish --erratum v1 "what was wrong, and since when"',
        )
    if len(said) > LONGEST:
        raise BenchError(
            f"--erratum {version}: {len(said):,} characters; {LONGEST:,} at most",
            "say it in short, and link to the rest",
        )
    if any((erratum.version, erratum.text) == (version, said) for erratum in known):
        raise BenchError(f"{version} has this erratum already", "bench publish --check")
    return Erratum(version, datetime.now(UTC).date().isoformat(), said)


def read_errata(out: Path) -> tuple[Erratum, ...]:
    """In the order in which they were published; none where there is no file. Raises DataDamaged."""
    path = out / ERRATA
    if not path.is_file():
        return ()
    try:
        content = loads(path.read_bytes())
        if content["schema"] != ERRATA_SCHEMA:
            raise ValueError(f"it is of another schema than {ERRATA_SCHEMA}")
        errata = tuple(
            Erratum(entry["version"], entry["date"], entry["text"]) for entry in content["errata"]
        )
        if not all(
            isinstance(part, str) for erratum in errata for part in asdict(erratum).values()
        ):
            raise ValueError("version, date and text are texts")
        if odd := [
            erratum.date
            for erratum in errata
            if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", erratum.date)
        ]:
            raise ValueError(f"'{odd[0][:20]}' is no day")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataDamaged(
            f"{path} cannot be read: {one_line(error)}",
            "restore it from where it was published (git checkout)",
        ) from None
    return errata


def errata_bytes(errata: Sequence[Erratum]) -> bytes:
    content = {"schema": ERRATA_SCHEMA, "errata": [asdict(erratum) for erratum in errata]}
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()
