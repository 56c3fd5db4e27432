"""Options that several verbs share, as decorators; and which runs a verb is about."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import structs

from bench.base.errors import BenchError, RecordDamaged, UnknownName

if TYPE_CHECKING:
    from bench.runs import RunRecord, RunsFolder


Command = TypeVar("Command", bound=Callable[..., Any])

runs_option = click.option(
    "--runs",
    "runs",
    type=click.Path(path_type=Path),
    envvar="BENCH_RUNS",
    show_envvar=True,
    help="Folder that holds runs.  [default: ./runs]",
)
data_option = click.option(
    "--data",
    "data",
    type=click.Path(path_type=Path),
    envvar="BENCH_DATA",
    show_envvar=True,
    help="Folder with evaluation data: senteval/, senteval-moses/, train/, ...",
)


def _know_suites(context: click.Context, option: click.Parameter, files: tuple[Path, ...]) -> tuple[Path, ...]:
    """The suites that the files of --plugin define are known before anything is looked up."""
    if files or "bench.score.suites" in sys.modules:  # else nobody knows of any
        from bench.score.suites import use_files

        use_files(files)
    return files


plugin_option = click.option(
    "--plugin",
    "plugins",
    type=click.Path(path_type=Path),
    multiple=True,
    callback=_know_suites,
    help="Python file that defines a method or a suite; may be repeated.",
)
suite_file_option = click.option(
    "--plugin",
    type=click.Path(path_type=Path),
    multiple=True,
    expose_value=False,
    callback=_know_suites,
    help="Python file that defines a suite of these runs; may be repeated.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="JSON on standard output, and nothing else there.")
device_option = click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1, mps.")
plain_option = click.option("--plain", is_flag=True, help="No live display: a plain line every so often.")


def save_seconds() -> float:
    """$BENCH_SAVE_SECONDS: how much training a crash may lose. 60 where it is not set."""
    text = os.environ.get("BENCH_SAVE_SECONDS") or "60"
    try:
        return float(text)
    except ValueError:
        raise BenchError(f"BENCH_SAVE_SECONDS={text}: expected a number of seconds") from None


def comma_list(text: str | None) -> tuple[str, ...]:
    """ "a,b" -> ("a", "b"); blanks and empty parts are dropped."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


# --- which runs a verb is about: the same arguments for every verb that reads records ---


@dataclass(frozen=True)
class ChosenRun:
    """A record and the folder of its run."""

    record: RunRecord
    folder: Path


def record_filters(verb: Command) -> Command:
    """Adds RUN ... and the filters; the verb gets ``kept``, the finished runs that were chosen, at least one."""

    @functools.wraps(verb)
    def wrapped(
        references: tuple[str, ...],
        runs: Path | None,
        method: str | None,
        backbone: str | None,
        setting: str | None,
        variant: str | None,
        suite: str | None,
        text: str | None,
        **others: Any,
    ) -> Any:
        wanted = {"method": method, "backbone": backbone, "setting": setting, "variant": variant}
        with no_collection():
            kept = choose(references, runs, {key: comma_list(value) for key, value in wanted.items() if value is not None})
        return verb(kept=with_scores(kept, comma_list(suite), comma_list(text)), **others)

    options = [
        click.argument("references", metavar="[RUN]...", nargs=-1),
        runs_option,
        click.option("--method", help="Only these methods (a,b)."),
        click.option("--backbone", help="Only these backbones."),
        click.option("--setting", help="Only these settings: unsupervised, supervised, none."),
        click.option("--variant", help="Only these variants; none = the method as its paper has it."),
        click.option("--suite", help="Only these suites."),
        click.option("--text", help="Only this text form: tokenised, raw."),
    ]
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value]


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Without looking for cycles meanwhile: among the objects of thousands of records there are none, and looking takes a third of
    the time."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def choose(references: Sequence[str], runs: Path | None, wanted: dict[str, Sequence[str]]) -> list[ChosenRun]:
    """The finished runs that are named (all, if none is) and fit. What is left out is said on standard error."""
    from bench.runs import RunsFolder

    store = RunsFolder(runs)
    found = _named(store, references) if references else _all(store)
    unique = {kept.record.run_id: kept for kept in reversed(found)}
    found = [unique[kept.record.run_id] for kept in found if unique[kept.record.run_id] is kept]
    fitting = _fitting(found, wanted)
    finished = [kept for kept in fitting if kept.record.status == "finished"]
    if unfinished := [kept.record.run_id for kept in fitting if kept.record.status != "finished"]:
        warn(f"left out, not finished: {_list(unfinished)}")
    if not finished:
        where = f"in {store.path}" if not references else "among those named"
        raise BenchError(f"no finished run {where}", "bench run ..., or another folder: --runs DIR" if not fitting else "bench runs")
    return finished


def _all(store: RunsFolder) -> list[ChosenRun]:
    records, damaged = store.records()
    for error in damaged:
        warn(f"left out, damaged: {error.message}")
    return [ChosenRun(record, store.folder(record.run_id)) for record in records]


def _named(store: RunsFolder, references: Sequence[str]) -> list[ChosenRun]:
    from bench.runs.store import read_record

    kept = []
    for reference in references:
        for file in store.record_files(reference):
            try:
                kept.append(ChosenRun(read_record(file), file.parent))
            except RecordDamaged as error:
                warn(f"left out, damaged: {error.message}")
    return kept


def _fitting(found: Iterable[ChosenRun], wanted: dict[str, Sequence[str]]) -> list[ChosenRun]:
    found = list(found)
    for key, names in wanted.items():
        having = [(kept, {getattr(kept.record, key) or "none"}) for kept in found]
        if key == "backbone":
            having = [(kept, {*values, kept.record.backbone_name}) for kept, values in having]
        have = {value for _, values in having for value in values}
        for name in names:
            if name not in have and found:
                raise UnknownName(key, name, have, "among these runs", "bench runs")
        found = [kept for kept, values in having if not values.isdisjoint(names)]
    return found


def with_scores(kept: Sequence[ChosenRun], suites: Sequence[str], texts: Sequence[str]) -> list[ChosenRun]:
    """With the scores of these suites and text forms only; runs without any are left out."""
    for kind, names in (("suite", suites), ("text", texts)):
        have = {getattr(score, kind) or "none" for run in kept for score in run.record.scores}
        for name in names:
            if name not in have:
                raise UnknownName("text form" if kind == "text" else kind, name, have, "among the scores of these runs", "bench runs")
        if names:
            kept = [
                replace(run, record=structs.replace(run.record, scores=scores))
                for run in kept
                if (scores := tuple(s for s in run.record.scores if (getattr(s, kind) or "none") in names))
            ]
    return list(kept)


def warn(line: str) -> None:
    """One line on standard error, with control characters made visible."""
    click.echo("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line), err=True)


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON that a person can read: characters as they are, but for those that move a cursor or cannot be encoded."""
    import json

    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
