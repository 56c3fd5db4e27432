"""Options that several verbs share, as decorators; and which runs a verb is about."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec.structs import replace

from bench.base.errors import BenchError, RecordDamaged, UnknownName

if TYPE_CHECKING:
    from bench.run.plugins import Registry
    from bench.runs import RunsFolder
    from bench.runs.predictions import Run


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
offline_option = click.option("--offline", is_flag=True, help="Open no connection; what is missing is an error.")
backbone_offline_option = click.option("--offline", is_flag=True, help="Open no connection; a backbone that is missing is an error.")
max_steps_option = click.option("--max-steps", type=click.IntRange(min=1), help="Optimiser steps at most (recipe key max_steps).")
allow_pickle_option = click.option(
    "--allow-pickle", is_flag=True, help="Take backbones whose weights are a pickle: its tensors are read, nothing else."
)


def precision_option(words: str) -> Callable[[Command], Command]:
    return click.option(
        "--precision", type=click.Choice(["auto", "fp32", "tf32", "bf16", "fp16"]), default="auto", show_default=True, help=words
    )


def known_methods(files: Sequence[Path]) -> Registry:
    """The methods there are, with those of ``files``; what could not be loaded is told of on standard error."""
    from bench.run.plugins import discover

    registry = discover(files)
    for warning in registry.warnings:
        click.echo(f"warning: {warning}", err=True)
    return registry


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


def record_filters(verb: Command) -> Command:
    """Adds RUN ... and the filters; the verb gets ``kept``, the finished runs that were chosen, at least one."""

    @functools.wraps(verb)
    def wrapped(references: tuple[str, ...], runs: Path | None, suite: str | None, text: str | None, **others: Any) -> Any:
        filters = {key: others.pop(key) for key in ("method", "backbone", "setting", "variant")}
        with no_collection():
            kept = choose(references, runs, {key: comma_list(value) for key, value in filters.items() if value is not None})
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


def choose(references: Sequence[str], runs: Path | None, wanted: dict[str, Sequence[str]]) -> list[Run]:
    """The finished runs that are named (all, if none is) and fit. What is left out is said on standard error."""
    from bench.runs import RunsFolder

    store = RunsFolder(runs)
    unique: dict[str, Run] = {}
    for record, folder in _named(store, references) if references else _all(store):
        unique.setdefault(record.run_id, (record, folder))
    fitting = _fitting(list(unique.values()), wanted)
    finished = [(record, folder) for record, folder in fitting if record.status == "finished"]
    if unfinished := [record.run_id for record, _ in fitting if record.status != "finished"]:
        warn(f"left out, not finished: {first_five(unfinished)}")
    if not finished:
        where = f"in {store.path}" if not references else "among those named"
        raise BenchError(f"no finished run {where}", "bench run ..., or another folder: --runs DIR" if not fitting else "bench runs")
    return finished


def _all(store: RunsFolder) -> list[Run]:
    records, damaged = store.records()
    for error in damaged:
        warn(f"left out, damaged: {error.message}")
    return [(record, store.folder(record.run_id)) for record in records]


def _named(store: RunsFolder, references: Sequence[str]) -> list[Run]:
    from bench.runs.store import read_record

    kept = []
    for reference in references:
        for file in store.record_files(reference):
            try:
                kept.append((read_record(file), file.parent))
            except RecordDamaged as error:
                warn(f"left out, damaged: {error.message}")
    return kept


def _fitting(runs: list[Run], wanted: dict[str, Sequence[str]]) -> list[Run]:
    for key, names in wanted.items():
        having = [(run, {getattr(run[0], key) or "none"} | ({run[0].backbone_name} if key == "backbone" else set())) for run in runs]
        have = {value for _, values in having for value in values}
        for name in names:
            if name not in have and runs:
                raise UnknownName(key, name, have, "among these runs", "bench runs")
        runs = [run for run, values in having if not values.isdisjoint(names)]
    return runs


def with_scores(kept: list[Run], suites: Sequence[str], texts: Sequence[str]) -> list[Run]:
    """With the scores of these suites and text forms only; runs without any are left out."""
    for kind, names in (("suite", suites), ("text", texts)):
        have = {getattr(score, kind) or "none" for record, _ in kept for score in record.scores}
        for name in names:
            if name not in have:
                raise UnknownName("text form" if kind == "text" else kind, name, have, "among the scores of these runs", "bench runs")
        if names:
            kept = [
                (replace(record, scores=scores), folder)
                for record, folder in kept
                if (scores := tuple(score for score in record.scores if (getattr(score, kind) or "none") in names))
            ]
    return kept


def warn(line: str) -> None:
    """One line on standard error, with control characters made visible."""
    click.echo("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line), err=True)


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON that a person can read: characters as they are, but for those that move a cursor or cannot be encoded."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def first_five(names: Sequence[str]) -> str:
    """ "a, b, c, d, e and 3 more" """
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
