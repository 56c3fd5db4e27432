"""Published mteb result files as reference results: somebody else's numbers, kept in a file of the user's, never among runs.

A row has the fields of a printed number (``bench.references.ReferenceResult``), with ``paper`` "mteb" and the model as what
``bench run --method pretrained --backbone MODEL --suite mteb:TASK`` would make. One JSON object a line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bench.base.errors import BenchError, DataDamaged, one_line

SCHEMA = "bench.reference/1"
PAPER = "mteb"
BESIDE = ("model_meta.json", "run_settings.jsonl")  # what lies beside result files


class ImportedResult(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="schema", tag=SCHEMA
):
    """One published number, x 100 as here all numbers are."""

    task: str  # mteb's name
    metric: str  # mteb's name of its main score: "cosine_spearman"
    value: float
    protocol: str  # "mteb/1", "mteb/2": the major version of mteb that scored it
    backbone: str  # the model's name on the hub
    source: str  # the model's revision and the data set's
    label: str  # the row's words: the model
    note: str = ""
    paper: str = PAPER
    table: str = "results"
    setting: str = "none"
    method: str = "pretrained"
    variant: str = ""
    std: float | None = None
    own_result: bool = False
    runs: str = "one run"
    text: str = ""
    corpus: str = ""

    @property
    def cell(self) -> tuple[str, ...]:
        """What makes two rows the same number: a newer one takes the place of the older."""
        return self.backbone, self.source, self.task, self.metric, self.protocol


@dataclass(frozen=True)
class LeftOut:
    """A result file that gives no number, and why."""

    file: Path
    why: str


def result_files(paths: Iterable[Path]) -> list[Path]:
    """The files that are named, and every .json of the folders that are, but what mteb puts beside results.

    Raises BenchError for a path that is not there, or a folder without any.
    """
    files: list[Path] = []
    for path in paths:
        results = [path] if path.is_file() else sorted(path.rglob("*.json"))
        results = [
            one for one in results if one.name not in BESIDE and "experiments" not in one.parts
        ]
        if not results:
            raise BenchError(
                f"{path}: no result files are there",
                "a result file that mteb wrote, or a folder of them: MODEL/REVISION/TASK.json",
            )
        files += results
    return list(dict.fromkeys(files))


def read_mteb_file(file: Path, model: str | None = None) -> ImportedResult | LeftOut:
    """The main score in a result file, as mteb's own loader reads it: the mean over the splits and languages that the task asks for.

    ``model`` names the model; otherwise ``model_meta.json`` beside the file does, or the folders (MODEL/REVISION/TASK.json).
    Raises DataDamaged for a file that mteb cannot read. A file without all splits and languages is left out.
    """
    from mteb.results import TaskResult

    try:
        result: Any = TaskResult.from_disk(file)
    except KeyError as error:
        return LeftOut(
            file, f"a task that this mteb does not know: {error.args[0] if error.args else ''}"
        )
    except Exception as error:  # pydantic, json and mteb each have their own
        raise DataDamaged(
            f"{file}: not a result file of mteb: {one_line(error, 160)}",
            "a file that mteb wrote, such as STS12.json",
        ) from None
    metric, result, why = _as_the_task_asks(result)
    if why:
        return LeftOut(file, why)
    try:
        value = 100 * float(result.get_score())
    except (TypeError, ValueError, KeyError) as error:
        return LeftOut(file, f"no main score: {error}")
    if not math.isfinite(value):
        return LeftOut(file, "incomplete: it lacks splits or languages that the task asks for")
    name, revision = _model(file, model)
    version = str(result.mteb_version or "unknown")
    major = version.partition(".")[0]
    return ImportedResult(
        task=result.task_name,
        metric=metric,
        value=round(value, 6),
        protocol=f"mteb/{major}" if major.isdigit() else "unknown",
        backbone=name,
        label=name,
        source=f"model revision {revision}, data {str(result.dataset_revision)[:12]}",
        note=f"published result file {file.name}; mteb {version}",
    )


def merge(before: Sequence[ImportedResult], new: Sequence[ImportedResult]) -> list[ImportedResult]:
    """All of them, a new number in the place of an older one of the same cell, in the order in which cells first came."""
    return list({result.cell: result for result in (*before, *new)}.values())


def as_lines(rows: Sequence[ImportedResult]) -> bytes:
    """The file's content: one JSON object a line."""
    return "".join(
        json.dumps(msgspec.to_builtins(row), ensure_ascii=False) + "\n" for row in rows
    ).encode()


def read_imported(file: Path) -> list[ImportedResult]:
    """The rows of a file that ``as_lines`` made; none where there is no file. Raises DataDamaged, naming the line."""
    rows: list[ImportedResult] = []
    try:
        for line in file.read_bytes().splitlines():
            rows.append(msgspec.json.decode(line, type=ImportedResult))
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise DataDamaged(
            f"{file}: line {len(rows) + 1} is no imported result: {error}",
            "bench references import writes it",
        ) from None
    return rows


def _as_the_task_asks(result: Any) -> tuple[str, Any, str]:
    """(name of the main score, the result with the task's own splits and languages, why it cannot be taken or "")."""
    from mteb import get_task

    try:
        task = get_task(result.task_name)
    except KeyError:  # a task of another version, or one's own
        splits = list(result.scores)
        if len(splits) != 1:
            return (
                "",
                result,
                f"a task that this mteb does not know, with the splits {', '.join(splits) or 'none'}",
            )
        return "main_score", result, ""
    return str(task.metadata.main_score), result.validate_and_filter_scores(task), ""


def _model(file: Path, model: str | None) -> tuple[str, str]:
    """(name, revision) of the model that a result file is of. Raises BenchError where nothing says so."""
    try:
        meta = json.loads((file.parent / BESIDE[0]).read_text(encoding="utf-8"))
        known, revision = str(meta["name"]), str(meta["revision"] or "unknown")
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        owner, double, name = file.absolute().parent.parent.name.partition("__")
        known, revision = (
            (f"{owner}/{name}", file.absolute().parent.name) if double else ("", "unknown")
        )
    if not (model or known):
        raise BenchError(
            f"{file}: nothing says which model it is of",
            "--model owner/name, or keep it as OWNER__MODEL/REVISION/TASK.json",
        )
    return model or known, revision
