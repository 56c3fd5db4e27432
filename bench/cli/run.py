"""``bench run``: its options, what a command line means, and its runs: here, in several processes, or handed to an engine."""

from __future__ import annotations

import logging
import os
import shlex
import signal
import sys
import tempfile
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.backbones import load
from bench.base import PLACE
from bench.base.devices import choose_device, device_line
from bench.base.errors import BenchError, OutOfMemory, RunFailed, RunLocked
from bench.base.files import write_or_fail
from bench.base.signals import signal_name, stop_signals
from bench.base.text import plural
from bench.cli import show_error
from bench.cli.options import (
    comma_list,
    parse_overrides,
    parse_seeds,
    print_grid,
    print_json,
    warn,
)
from bench.cli.planning import RunReporter, checked, plan_runs, reporting, show_plan
from bench.compare.formatting import heads, suite_scores
from bench.data.corpora.records import LINES, PARQUET, format_of
from bench.method import Value
from bench.records import RunRecord, RunsFolder
from bench.records.record import AVERAGE
from bench.run.batch import JOBS_FOLDER, JobBatch
from bench.run.config import Plan, RunConfig, with_recipes
from bench.run.execute import execute
from bench.run.jobs import check_target, new_batch, script_of, to_submit
from bench.run.other_ranks import follow_first_rank
from bench.run.planned import PlannedRun, with_value
from bench.run.plugins import from_file
from bench.run.ray_cluster import follow_batch
from bench.run.settle import is_launched
from bench.run.slurm import submit_batch
from bench.run.target import ENGINES, RESOURCES
from bench.run.weights import tokenise_for
from bench.run.workers import copy_plugins, find_planned, stop_with_parent
from bench.score.suites import split_names, use_files
from bench.show.grid import Column, grid

if TYPE_CHECKING:
    from bench.method.ranks import Ranks

WHAT, HOW, FOLDERS, OUTPUT = "What is run", "How it is run", "Folders", "Output"
WORKERS = "For workers, which --on starts"


class GroupedOption(click.Option):
    def __init__(self, *names: Any, group: str, **more: Any) -> None:
        super().__init__(*names, **more)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose help shows its options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (row := param.get_help_record(ctx)):
                groups.setdefault(getattr(param, "group", OUTPUT), []).append(row)
        for group, rows in groups.items():
            with formatter.section(group):
                formatter.write_dl(rows)


def option(group: str, *names: str, **more: Any) -> Callable[..., Any]:
    return click.option(*names, cls=GroupedOption, group=group, **more)


hidden = partial(click.option, hidden=True)


def chunk_of(text: str) -> int | str:
    if text != "auto" and not (text.isdigit() and int(text)):
        raise BenchError(f"--chunk {text}: expected a number of rows, or auto", "--chunk 16")
    return text if text == "auto" else int(text)


def _one_or_several(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> str | tuple[str, ...] | None:
    """The value of an option that may be repeated: alone if it was given once, None if it was not given."""
    if not values:
        return None
    return values[0] if len(values) == 1 else values


FILE = click.Path(path_type=Path, dir_okay=False)
OPTIONS = (
    option(
        WHAT,
        "--backbone",
        "backbones",
        type=comma_list,
        metavar="TEXT",
        help="Hub names, folders, or builtin, separated by commas; NAME=FOLDER sets its name in tables.  [default: builtin]",
    ),
    option(
        WHAT,
        "--setting",
        type=click.Choice(["unsupervised", "supervised", "none"]),
        help="[default: the one with a recipe for the backbone]",
    ),
    option(
        WHAT,
        "--seeds",
        type=parse_seeds,
        metavar="TEXT",
        help="42, 1-5, or 1,3,7-9.  [default: 42]",
    ),
    option(
        WHAT,
        "--suite",
        "suites",
        multiple=True,
        metavar="SUITE",
        help="Suites, separated by commas, or all; SUITE:TASK for one task; a file of yours (pairs.tsv, classification:texts.csv). "
        "May be repeated.  [default: sts]",
    ),
    option(
        WHAT,
        "--text",
        type=lambda text: ",".join(comma_list(text)),
        metavar="TEXT",
        help="Text form of the sets that have several: tokenised, raw, tokenised,raw for both, any, other-<hash>.  "
        "[default: tokenised]",
    ),
    option(
        WHAT,
        "--corpus",
        multiple=True,
        callback=_one_or_several,
        metavar="FILE[:COLUMN,COLUMN]",
        help="Training text: a file, with the columns to read, or a folder of save_to_disk; a name that recipes use "
        "(builtin, wiki1m, nli, nli-labelled, stsb-train, syncse-partial, syncse-scratch, target); "
        "hub:OWNER/NAME:COLUMN; or sha256:HASH of a text that is here. "
        "May be repeated, or A,B: trained on together.  [default: the recipe's]",
    ),
    option(
        WHAT,
        "--set",
        "pairs",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change a recipe value; KEY=A,B,C makes a run for each. compile=true compiles the encoder. May be repeated.",
    ),
    option(
        WHAT,
        "--budget",
        help="How long to train: 60steps, 2epochs, 10m, 2h, 1e6sentences, 3e7tokens, 2gpu-h.  [default: as the recipe says]",
    ),
    option(
        WHAT,
        "--plan",
        "plan_file",
        type=FILE,
        help="Run a plan; other options replace its values.",
    ),
    option(
        HOW,
        "--device",
        help="auto, cpu, cuda, cuda:1, mps; with --dry-run also A100, H100, RTX3090.  [default: auto]",
    ),
    option(
        HOW,
        "--precision",
        type=click.Choice(["auto", "fp32", "tf32", "bf16", "fp16"]),
        help="Precision of training; scores are always float32.  [default: auto]",
    ),
    option(
        HOW,
        "--chunk",
        type=chunk_of,
        metavar="N|auto",
        help="Rows of a batch in memory at a time, with the same gradient; auto: as many as fit.",
    ),
    option(
        HOW,
        "--on",
        metavar="TARGET",
        help="Where: torchrun:N (N processes share every batch), slurm:gpus=1,partition=gpu,time=4:00:00, ray:cpus=4,memory=16G, "
        "or commands (print a command for each run).  [default: here]",
    ),
    option(HOW, "--fresh", is_flag=True, help="Run again, even what is finished."),
    option(
        HOW,
        "--offline",
        is_flag=True,
        help="Open no network connection; anything missing is an error.",
    ),
    option(
        HOW,
        "--allow-pickle",
        is_flag=True,
        help="Accept backbones whose weights are a pickle; only its tensors are read.",
    ),
    option(
        FOLDERS,
        "--data",
        envvar="BENCH_DATA",
        show_envvar=True,
        help="Evaluation data: senteval/, senteval-moses/, train/, ...",
    ),
    option(
        FOLDERS,
        "--runs",
        envvar="BENCH_RUNS",
        show_envvar=True,
        help="Where runs are stored.  [default: ./runs]",
    ),
    option(
        OUTPUT,
        "--dry-run",
        is_flag=True,
        help="Show what would be done: runs, time, memory, recipes, what is fetched.",
    ),
    option(
        OUTPUT,
        "--all",
        "everything",
        is_flag=True,
        help="With --dry-run: every recipe value with its source, run ids, terms of use.",
    ),
    option(
        OUTPUT, "--to", type=FILE, help="With --dry-run: write the plan into a file, for --plan."
    ),
    option(
        OUTPUT,
        "--json",
        "as_json",
        is_flag=True,
        help="Print JSON and nothing else.",
    ),
)
SAME = (
    option(
        WHAT, "--method", "methods", type=comma_list, metavar="TEXT", help="The same as METHOD."
    ),
    option(
        WHAT, "--plugin", "plugins", multiple=True, metavar="FILE.py", help="The same as FILE.py."
    ),
    option(
        WHAT, "--recipe", "recipes", multiple=True, metavar="FILE", help="The same as RECIPE.toml."
    ),
    option(OUTPUT, "--plain", is_flag=True, help="Plain progress lines instead of a live display."),
    option(WORKERS, "--only", metavar="RUN_ID", help="Do only this run of the plan."),
    option(WORKERS, "--wait", is_flag=True, help="Wait for a run that another process does."),
)
"""Options that mean the same as an argument, and those for workers."""
COUNT = click.IntRange(min=1)
ON = "--on {on}"
OLD: Mapping[str, tuple[dict[str, Any], str]] = {
    "--variant": ({}, "METHOD+VARIANT"),
    "--name": ({"type": comma_list}, "--backbone NAME=FOLDER"),
    "--max-steps": ({"type": COUNT}, "--set max_steps={value}, or --budget {value}steps"),
    "--auto-batch": ({"is_flag": True}, "--chunk auto"),
    "--compile": ({"is_flag": True}, "--set compile=true"),
    "--executor": ({"type": click.Choice(["local", "torchrun", "slurm", "ray"])}, ON),
    "--gpus": ({"type": COUNT}, ON),
    "--cpus": ({"type": COUNT}, ON),
    "--memory": ({}, ON),
    "--parallel": ({"type": COUNT}, ON),
    "--retries": ({"type": click.IntRange(min=0)}, ON),
    "--slurm": ({"multiple": True}, ON),
    "--commands": ({"is_flag": False, "flag_value": "-"}, ON),
}
"""Options of the previous version -> how click reads them, and what to type now. They work in this version only."""


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds all options of ``bench run``; those of a RunConfig reach the command as keywords, for :func:`plan_of`."""
    old = [hidden(name, **more) for name, (more, _) in OLD.items()]
    for decorate in reversed([*OPTIONS, *SAME, *old]):
        command = decorate(command)
    return command


def shared_options(*names: str) -> list[click.Parameter]:
    """These options of ``bench run``, for a verb in which they mean the same."""
    return [
        param
        for param in click.command()(run_options(lambda **_: None)).params
        if param.name in names
    ]


def plan_of(targets: Sequence[str], plan_file: Path | None, options: Mapping[str, Any]) -> Plan:
    """The plan that the arguments and the options of ``bench run`` mean. Raises BenchError."""
    source = click.get_current_context().get_parameter_source
    typed = {
        key: value
        for key, value in options.items()
        if source(key) not in (None, click.core.ParameterSource.DEFAULT)
    }
    values = {key: typed[key] for key in typed.keys() & RunConfig.__dataclass_fields__.keys()}
    values |= _renamed(typed) | _backbones(typed.get("backbones", ()))
    steps = [f"max_steps={typed['max_steps']}"] if "max_steps" in typed else []
    if overrides := parse_overrides([*typed.get("pairs", ()), *steps]):
        if "compile" in overrides:
            values["compile"] = overrides.pop("compile").lower() in ("true", "1", "yes")
        values["overrides"] = overrides
    for key, suffix in (("plugins", ".py"), ("recipes", ".toml")):
        if files := (*values.get(key, ()), *(t for t in targets if t.endswith(suffix))):
            values[key] = files
    use_files([Path(file) for file in values.get("plugins", ())])
    if "suites" in typed:  # when the suites of plugin files are known
        values["suites"] = split_names(",".join(typed["suites"]))
    methods = [*values.get("methods", ())]
    for target in targets:
        if format_of(target) in (*LINES, PARQUET):
            raise BenchError(
                f"{target} is a text, and no method, plugin file or recipe",
                f"--corpus {target} trains on it, --suite {target} scores on it",
            )
        if not target.endswith((".py", ".toml")):
            methods += comma_list(target)
        elif target.endswith(".py") and "methods" not in values:  # every method of the file
            methods += [plugin.name for plugin in from_file(Path(target))]
    if methods:
        values["methods"] = tuple(methods)
    if plan_file is None:
        return Plan(tuple(with_recipes(RunConfig(**values), values)))
    plan = Plan.read(plan_file).with_values(**values)
    use_files([Path(file) for file in plan.runs[0].plugins])
    return plan


def _backbones(names: Sequence[str]) -> dict[str, Any]:
    """``NAME=FOLDER`` gives a backbone the name that tables print."""
    pairs = [
        (title, place) if equals and not os.path.exists(name) else (name, name)
        for name in names
        for title, equals, place in [name.partition("=")]
    ]
    values = {"backbones": tuple(place for _, place in pairs)} if pairs else {}
    if any(title != place for title, place in pairs):
        values["names"] = tuple(title for title, _ in pairs)
    return values


def _renamed(typed: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a RunConfig from options under their old names; prints a line with the new name of each."""
    values: dict[str, Any] = {"names": typed["name"]} if "name" in typed else {}
    if "auto_batch" in typed:
        values["chunk"] = "auto"
    used = {name: typed[key] for name in OLD if (key := name[2:].replace("-", "_")) in typed}
    if any(OLD[name][1] == ON for name in used):
        engine = typed.get("executor", "here").replace("local", "here")
        parts = [f"{key}={typed[key]}" for key in RESOURCES if key in typed]
        if "commands" in typed:
            engine = "commands"
            parts += [f"file={typed['commands']}"] if typed["commands"] != "-" else []
        values["on"] = f"{engine}:{','.join([*parts, *typed.get('slurm', ())])}".removesuffix(":")
    for name, value in used.items() if "LOCAL_RANK" not in os.environ else ():
        now = OLD[name][1].format(value=value, on=values.get("on"))
        warn(f"{name}: now {now}; the old name works in this version only")
    return values


# --- the verb ---


@click.command(cls=GroupedCommand)
@click.argument("targets", metavar="[METHOD | FILE.py | RECIPE.toml]...", nargs=-1)
@run_options
def run(
    targets: tuple[str, ...],
    plan_file: Path | None,
    only: str | None,
    wait: bool,
    dry_run: bool,
    everything: bool,
    to: Path | None,
    as_json: bool,
    plain: bool,
    **options: Any,
) -> None:
    """Train methods and score them; one record per run in the runs folder.

    METHOD is a name of bench methods, with a variant as METHOD+VARIANT. FILE.py defines methods or suites. RECIPE.toml is a recipe, as
    bench search writes it. Give the command
    again to continue: finished runs are not repeated.

    \b
    Example:  bench run simcse --suite sts --data DIR --corpus wiki.txt.xz
              bench run my_loss.py simcse --suite check --corpus builtin
              bench run simcse --set temperature=0.03,0.05 --dry-run --to plan.toml
              bench run --plan plan.toml --on slurm:gpus=1,time=4:00:00
    """
    plan = plan_of(targets, plan_file, options)
    if only is not None and plan.runs[0].target.elsewhere:
        raise BenchError(
            "--only cannot be combined with --on slurm, ray or commands", "leave --only out"
        )
    if wait:
        plan = plan.with_values(wait_seconds=FOR_EVER)
    with rank_process(plan.runs[0].device) as (device, ranks):
        code = (
            look(plan, dry_run, everything, to, as_json)
            if dry_run or plan.runs[0].target.elsewhere
            else do(plan.with_values(device=device), only, ranks, plain or as_json, as_json)
        )
        raise click.exceptions.Exit(code)


def do(plan: Plan, only: str | None, ranks: Ranks | None, plain: bool, as_json: bool) -> int:
    """Do the runs of a plan in this process; returns the exit code."""
    plan = checked(plan, ranks=ranks)
    config = plan.runs[0]
    if only is not None:
        stop_with_parent()
    make = partial(plan_runs, plan)
    planned = (ranks.in_turn(make) if ranks else make()).runs
    if only is not None:
        planned = (find_planned(planned, only),)
    if config.ranks > 1 and not ranks:
        return launch(sys.argv[1:], config.ranks)
    missing, store = show_missing(planned), RunsFolder(config.runs)
    if ranks and not ranks.lead:
        follow_first_rank(planned, config, ranks)
        return 0
    with reporting(plain) as reporter:
        records, code = run_all(planned, store, config, reporter, as_json, ranks=ranks)
    if not as_json and records:
        show_result(records, store)
    return max(code, missing)


def look(plan: Plan, dry_run: bool, everything: bool, to: Path | None, as_json: bool) -> int:
    """Show a plan, write it, or hand its runs to workers; returns the exit code."""
    target = plan.runs[0].target
    if target.name in ENGINES:
        check_target(target, connect=not dry_run)
    typed, plan = plan, checked(plan, only_look=dry_run)
    config = plan.runs[0]
    whole = plan_runs(plan, only_look=dry_run)
    missing, store = show_missing(whole.runs), RunsFolder(config.runs)
    if to is not None:
        typed.write(to)
        click.echo(f"next: bench run --plan {to}")
    elif config.target.elsewhere:
        return max(run_elsewhere(plan, whole.runs, store, dry_run), missing)
    else:
        show_plan(whole, store, config, as_json, everything=everything)
    return missing


# --- runs, one after the other ---


FOR_EVER = 1e9  # seconds


def show_missing(planned: Sequence[PlannedRun]) -> int:
    """Print a line for every missing set, with how to get it; returns the exit code, 1 if a set is missing."""
    missing = {error.message: error for run in planned for error in run.missing}
    for error in missing.values():
        show_error(error, label="missing")
    if missing:
        click.echo(
            "the other sets are scored; a suite with a missing set gets no average", err=True
        )
    return int(bool(missing))


def run_all(
    planned: Sequence[PlannedRun],
    store: RunsFolder,
    config: RunConfig,
    reporter: RunReporter,
    as_json: bool,
    *,
    ranks: Ranks | None = None,
) -> tuple[list[RunRecord], int]:
    """Do every planned run in turn; a failure is reported, and the next run starts. Returns the records and the exit code.

    A run that another process works on is put last, so that several processes with the same runs do each of them once. What then is still
    worked on is waited for, ``config.wait_seconds``, and left to that process, with a line. Raises DeviceLost, and RunFailed if the ranks of
    a training no longer agree: this process can then do no other run.
    """
    records: list[RunRecord] = []
    worst, noted = 0, set[str]()
    turns = list(enumerate(planned, 1))
    reporter.plan(planned)
    for is_last_round in (False, True):
        wait = config.wait_seconds if is_last_round else 0.0
        locked = []
        for number, run in turns:
            reporter.start(run.run_id, number)
            reporter.note(device_line(config.device, run.precision))
            for note in dict.fromkeys(note for note in run.notes if note not in noted):
                reporter.note(note)
            noted.update(run.notes)
            try:
                record, worked = execute_with_less_memory(
                    run, store, replace(config, wait_seconds=wait), reporter, ranks
                )
            except (RunFailed, RunLocked) as error:
                if ranks and ranks.broken:
                    raise
                if isinstance(error, RunFailed):
                    worst = max(worst, error.exit_code)
                    show_error(error)
                elif is_last_round:
                    reporter.done(f"{error.message}, which does it")
                else:
                    locked.append((number, run))
            else:
                records.append(record)
                reporter.done(outcome(record, worked))
                if as_json:
                    print_json([record.to_json()])
        turns = locked
    return records, worst


def execute_with_less_memory(
    run: PlannedRun,
    store: RunsFolder,
    config: RunConfig,
    reporter: RunReporter,
    ranks: Ranks | None,
) -> tuple[RunRecord, bool]:
    """Execute a run. With ``--chunk auto``, a run whose batch does not fit and cannot be split becomes one with a smaller batch."""
    try:
        return execute(run, store, config, reporter, ranks)
    except OutOfMemory:
        size, can_be_cut = run.recipe["batch_size"], run.plugin.cls.is_split()
        if config.chunk != "auto" or can_be_cut or size == 1 or ranks is not None:
            raise
    smaller = with_value(
        run,
        "batch_size",
        Value(size // 2, "--chunk auto", f"{size} did not fit into memory"),
    )
    reporter.note(
        f"batch_size {size} does not fit; trying {size // 2}, a different recipe (fewer negatives)"
    )
    reporter.start(smaller.run_id)
    return execute_with_less_memory(smaller, store, config, reporter, ranks)


def outcome(record: RunRecord, worked: bool) -> str:
    """ "done: sts 76.25; STS-B dev 82.50 at step 875" """
    trained = record.training
    text = f"{'done' if worked else 'was done already, nothing repeated'}: {heads(record)}"
    return (
        text
        if trained is None or trained.dev_score is None
        else f"{text}; {trained.dev_task} {trained.dev_score:.2f} at step {trained.best_step}"
    )


def show_result(records: Sequence[RunRecord], store: RunsFolder) -> None:
    """Print the scores of each run, where the records are, and the next command."""
    print_grid(
        grid(
            ["run", "suite", Column(AVERAGE, right=True), Column("tasks", wrap=24)],
            [
                (record.run_id, suite, average, ", ".join(tasks))
                for record in records
                for suite, average, tasks in suite_scores(record)
            ],
        )
    )
    click.echo(
        f"\nrecords: {store.path}"
        if len(records) > 1
        else f"\nrecord: {store.folder(records[0].run_id)}"
    )
    click.echo(f"next: {next_command(records, store)}")


def next_command(records: Sequence[RunRecord], store: RunsFolder) -> str:
    """The command that a person gives next: a comparison if several rows are there, else the run's own page."""
    words = ["bench", "runs", records[-1].run_id]
    if len({(record.method, record.variant, record.backbone) for record in records}) > 1:
        words = ["bench", "compare"]
    if str(store.path) != "runs":
        words += ["--runs", str(store.path)]
    return shlex.join(words)


# --- runs on other machines: prepared here, and handed to an engine or printed as commands ---


def run_elsewhere(
    plan: Plan, planned: Sequence[PlannedRun], store: RunsFolder, dry_run: bool
) -> int:
    """Commands, or jobs of an engine, for the runs of a settled plan; returns the exit code. Raises BenchError.

    Slurm needs no process of ours; with Ray this process stays until its runs have ended.
    """
    config = plan.runs[0]
    target = config.target
    warn(
        f"device {config.device}, precision {config.precision}: from the options, not this machine"
    )
    if dry_run and target.name == "commands":
        raise BenchError("--on commands only prints commands", "leave --dry-run out")
    if dry_run:
        batch = new_batch(store, [run.run_id for run in planned], target)
        click.echo(script_of(batch))
        click.echo(f"# {batch.folder / 'worker.sh'}\n{batch.worker}", nl=False)
        return 0
    if target.name == "commands":
        batch = prepared(plan, planned, store)
        lines = "".join(f"{shlex.join(batch.command(run))}\n" for run in batch.runs)
        if target.file is None:
            click.echo(lines, nl=False)
        else:
            write_or_fail(Path(target.file), lines.encode(), "leave file= out to print them")
        return 0
    with ExitStack() as driving:
        with RunsFolder(store.path / JOBS_FOLDER).lock("submission", wait_seconds=300):
            remaining = to_submit(planned, store, config.fresh)
            others = f"{len(planned) - len(remaining)} finished, queued or running"
            if not remaining:
                warn(f"nothing to submit: {others}")
                return 0
            batch, where = prepared(plan, remaining, store), ""
            if target.name == "slurm":
                where = f" as job {', '.join(submit_batch(batch))}"
            else:
                driving.enter_context(RunsFolder(batch.folder.parent).lock(batch.name))
        warn(f"submitted {plural(len(remaining), 'run')} to {target.name}{where}; {others}")
        folder = "" if str(store.path) == "runs" else f" --runs {shlex.quote(str(store.path))}"
        warn(f"next: bench runs{folder}")
        return 0 if target.name == "slurm" else stay(batch)


def prepared(plan: Plan, planned: Sequence[PlannedRun], store: RunsFolder) -> JobBatch:
    """The batch of these runs, on disk. Corpora are tokenised here, so that no worker does it while it holds a GPU."""
    config = plan.runs[0]
    corpora = {
        (run.corpus.sha256, run.corpus.columns, run.corpus.column, run.backbone.revision): (
            run.corpus,
            run.backbone,
        )
        for run in planned
        if run.corpus is not None
        and getattr(run.plugin.cls, "trains_on", None) == "ids"
        and run.plugin.cls.own_backbone is None
    }
    for corpus, backbone in corpora.values():
        warn(f"tokenising {corpus.name} for {backbone.name}, unless that was done before")
        tokenise_for(corpus, load(backbone, offline=True))
    batch = new_batch(store, [run.run_id for run in planned], config.target)
    gpus = config.target.gpus or 1
    batch.write(
        plan.with_values(
            on=f"torchrun:{gpus}" if gpus > 1 else "here",
            offline=True,
            fresh=False,
            plugins=copy_plugins(config.plugins, batch.folder / "plugins"),
            command=shlex.join(["bench", *sys.argv[1:]]),
        )
    )
    return batch


def stay(batch: JobBatch) -> int:
    """Wait until the runs of Ray have ended; returns 1 if one failed, 130 if some were cancelled."""
    with stop_signals(insistent=False) as should_stop:
        ended = Counter(follow_batch(batch, partial(click.echo, err=True), should_stop).values())
    counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(ended.items()))
    warn(counted + "; the same command continues them" * bool(ended["cancelled"]))
    return 130 if ended["cancelled"] else int(bool(ended["failed"]))


# --- several processes, one for each GPU, that train a run together ---


TAIL = 4000  # characters that are shown of the output of a rank that failed
LOST = 4  # exit code of a rank that ended because another one had


def launch(arguments: Sequence[str], count: int) -> int:
    """Run ``bench ARGUMENTS`` in ``count`` processes; returns the exit code. If one ends early, the others are ended.

    Rank 0 has this process's terminal. The output of another rank is shown only if that rank failed.
    """
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException, Std
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    for name in list(logging.root.manager.loggerDict):
        if name.startswith("torch.distributed"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    os.environ["PYTHONPATH"] = os.pathsep.join(  # of the workers: this very package
        filter(None, (str(PLACE), os.environ.get("PYTHONPATH")))
    )
    os.environ["PYTHONSAFEPATH"] = "1"  # a folder named bench where the user stands is another one
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // count)))
    with tempfile.TemporaryDirectory(prefix="bench-ranks-") as logs:
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=count,
            run_id=uuid.uuid4().hex,
            max_restarts=0,
            monitor_interval=0.1,
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            local_addr="localhost",
            logs_specs=DefaultLogsSpecs(
                log_dir=logs, redirects={rank: Std.ALL for rank in range(1, count)}
            ),
        )
        try:
            elastic_launch(config, sys.executable)("-m", "bench", *arguments)
        except ChildFailedError as error:
            return _exit_code(
                {rank: int(failure.exitcode) for rank, failure in error.failures.items()},
                count,
                Path(logs),
            )
        except SignalException:
            return 130
    return 0


def _exit_code(codes: Mapping[int, int], count: int, logs: Path) -> int:
    """The launcher's exit code, from those of the ranks that ended early; prints why, unless rank 0 has done so."""
    for rank, code in sorted(codes.items(), reverse=True):
        if code in (LOST, -signal.SIGTERM):  # because another rank had ended
            continue
        if rank == 0 and code > 0:
            return code
        end = f"by {signal_name(-code)}" if code < 0 else f"with exit code {code}"
        print(f"error: rank {rank} of {count} ended {end}", file=sys.stderr)
        for file in sorted(logs.rglob(f"{rank}/std*.log")):
            sys.stderr.write(file.read_text(encoding="utf-8", errors="replace")[-TAIL:])
        print("try: the same command; it resumes from the last saved state", file=sys.stderr)
        return 128 - code if code < 0 else code  # as a shell: an engine starts a killed one again
    return 1


@contextmanager
def rank_process(device: str) -> Iterator[tuple[str, Ranks | None]]:
    """The device of this process and its ranks; None if it was not started as one of several.

    As one of several, the process ends with this context: gloo's threads can outlive the interpreter, which then aborts although
    nothing was wrong.
    """
    if not is_launched():
        yield device, None
        return
    rank, code, ranks = os.environ["RANK"], 1, None
    try:
        from bench.method.ranks import meet_ranks, rank_device

        device = rank_device(choose_device(device))
        ranks = meet_ranks(device)
        yield device, ranks
        code = 0
    except click.exceptions.Exit as end:
        code = end.exit_code
    except BenchError as error:
        code = error.exit_code
        if ranks is not None and ranks.lost and rank != "0":
            code = LOST
        elif ranks is not None and not ranks.broken and rank != "0":
            code = 0  # rank 0 has the same error and prints it
        else:
            show_error(error)
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        traceback.print_exc()
    finally:
        if rank == "0" and ranks is not None and not ranks.broken:
            with suppress(BenchError):
                ranks.share(None)  # there is nothing more to train
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
