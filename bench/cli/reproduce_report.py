"""Lays out a reproduction for a terminal: the plan before, the verdicts after; and both as JSON, one object a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from bench.cli.filters import json_text
from bench.cli.filters import say as warn
from bench.cli.printed_table import say

if TYPE_CHECKING:
    from bench.reproduce.execute import Asked, Job
    from bench.reproduce.verdicts import Reproduced
    from bench.runs import RunsFolder

__all__ = ["show_plan", "show_results", "warn"]

MAIN = ("batch_size", "learning_rate", "epochs", "max_steps", "max_seq_length", "temperature")
"""Recipe values that are shown first; then those of the method's own recipe."""


# --- before ---


def show_plan(name: str, listed: Sequence[Job], asked: Asked, as_json: bool) -> None:
    """Every run with its rows, recipe, needs, time and command; then what cannot be run, what is missing, and the sum."""
    from bench.reproduce.execute import in_order

    order = in_order(listed)
    if as_json:
        for job in (*order, *(job for job in listed if not job.run.method)):
            click.echo(json_text(_plan_json(job, asked)))
        return
    rows = {label for job in listed for label in _lines_of(job)}
    runnable = {label for job in listed if job.run.method for label in _lines_of(job)}
    total = sum(len(job.seeds) for job in order)
    say(f"{name}: {len(rows)} printed rows; {len(runnable)} of them mean {total} runs here (seeds {seeds_words(asked.seeds)})")
    for i, job in enumerate(order, 1):
        _show_job(job, i, asked)
    _show_left_out(listed)
    _show_missing(order)
    _show_sum(order)


def _show_job(job: Job, i: int, asked: Asked) -> None:
    click.echo()
    say(f"{i}. {job.run.name}", hanging=3)
    lines = [("rows", ", ".join(_printed_rows(job)) or "none: others stand on it"), ("recipe", _recipe_words(job))]
    lines += [("note", text) for text in (job.note, *job.run.doubts) if text]
    if job.run.instead_of:
        lines.append(("note", f"{job.run.backbone} stands in for {job.run.instead_of}: not comparable with the print"))
    lines += [("needs", "; ".join(_need_words(job)))]
    lines.append(("takes", _hours_words(job)))
    lines.append(("command", command(job, asked)))
    for label, text in lines:
        say(f"{label:<8} {text}", indent=3, hanging=9)


def _lines_of(job: Job) -> set[tuple[str, ...]]:
    """The lines of print that a job's rows are in: one may hold several metrics."""
    return {(row.first.label, row.first.setting, row.first.backbone, row.first.variant) for row in job.run.rows}


def _printed_rows(job: Job) -> list[str]:
    """The labels with the printed values that they will be held against: "PromCSE-BERT-base (Avg. 78.49)"."""
    from bench.references.audit import show

    told: dict[str, list[str]] = {}
    for row in job.run.rows:
        cell = row.average or row.cells[0]
        mark = "" if cell.own_result else ", copied"
        told.setdefault(row.first.label, []).append(f"{cell.task} {show(cell.value, cell.metric)}{mark}")
    return [f"{label} ({'; '.join(dict.fromkeys(values))})" for label, values in told.items()]


def _recipe_words(job: Job) -> str:
    if job.recipe is None:
        return "none"
    keys = [key for key in MAIN if key in job.recipe] + [key for key in job.set_here if key not in MAIN]
    told = [f"{key} {json.dumps(job.recipe[key])}" for key in keys if job.recipe[key] is not None]
    return ", ".join(told) or "nothing to set"


def _need_words(job: Job) -> list[str]:
    by_kind: dict[str, list[str]] = {}
    for need in job.needs:
        mark = "" if need.here else " (to be fetched)" if need.fetched else " (MISSING)"
        by_kind.setdefault(need.kind, []).append(need.name + mark)
    return [f"{kind} {', '.join(names)}" for kind, names in by_kind.items()]


def _hours_words(job: Job) -> str:
    if job.hours is None:
        return "no training" if not any(need.kind == "corpus" for need in job.needs) else "not known"
    return f"{_hours(job.hours)} a seed"


def _hours(hours: float) -> str:
    minutes = round(hours * 60)
    return (
        "under a GPU minute"
        if not minutes
        else f"about {minutes} GPU minute{'s' * (minutes > 1)}"
        if hours < 2
        else f"about {hours:.1f} GPU hours"
    )


def seeds_words(seeds: Sequence[int]) -> str:
    """(1, 2, 3, 7) as "1-3,7": what --seeds takes."""
    parts: list[list[int]] = []
    for seed in seeds:
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def command(job: Job, asked: Asked) -> str:
    """The ``bench run`` that does the same, for one who wants only this run."""
    import shlex

    from bench.reproduce.needs import asked_corpus

    run = job.run
    words = ["bench", "run", "--method", run.method, "--backbone", f"RUN-OF-{run.on.method}" if run.on else run.backbone]
    words += ["--setting", run.setting, *(["--variant", run.variant] if run.variant else []), "--suite", ",".join(run.suites)]
    corpus = asked_corpus(job.corpus, asked.corpora)
    words += ["--corpus", corpus] if corpus and any(need.kind == "corpus" for need in job.needs) else []
    for key, value in {**run.changes, **run.asked}.items():
        words += ["--set", f"{key}={value}"]
    return shlex.join([*words, *([] if job.seeds == (None,) else ["--seeds", seeds_words(asked.seeds)])])


def _show_left_out(listed: Sequence[Job]) -> None:
    reasons: dict[str, list[str]] = {}
    for job in listed:
        if job.run.why_not:
            reasons.setdefault(job.run.why_not, []).extend(job.run.labels)
    if reasons:
        click.echo("\nrows that cannot be run")
        for why, labels in reasons.items():
            say(f"{', '.join(dict.fromkeys(labels))}: {why}", indent=3, hanging=3)


def _show_missing(order: Sequence[Job]) -> None:
    missing = {(need.kind, need.name): need for job in order for need in job.missing}
    if missing:
        click.echo("\nnot on this machine")
        for (kind, name), need in missing.items():
            n = sum((need.kind, need.name) in {(one.kind, one.name) for one in job.missing} for job in order)
            say(f"{kind} {name}: {need.what} (needed by {n} of {len(order)} runs)", indent=3, hanging=3)


def _show_sum(order: Sequence[Job]) -> None:
    from bench.reproduce.budget import ASSUMED

    trained = [(job.hours * len(job.seeds), len(job.seeds)) for job in order if job.hours is not None]
    ready = sum(all(need.fetched for need in job.missing) for job in order)
    click.echo()
    say(f"in all {_hours(sum(hours for hours, _ in trained))} for {sum(n for _, n in trained)} trainings ({ASSUMED})")
    say(f"{ready} of {len(order)} could start here now; the same command without --dry-run runs them and leaves the others out")


def _plan_json(job: Job, asked: Asked) -> dict[str, Any]:
    from dataclasses import asdict

    run = job.run
    recipe = {key: asdict(value) for key, value in job.recipe.values_with_source().items()} if job.recipe else None
    return {
        "rows": [{"paper": r.first.paper, "table": r.first.table, "label": r.first.label, "printed": dict(r.values)} for r in run.rows],
        "why_not": run.why_not or None, "method": run.method, "variant": run.variant, "setting": run.setting, "backbone": run.backbone,
        "on": run.on.method if run.on else None, "instead_of": run.instead_of or None, "suites": list(run.suites),
        "seeds": list(job.seeds), "recipe": recipe, "notes": [text for text in (job.note, *run.doubts) if text],
        "needs": [asdict(need) for need in job.needs], "gpu_hours_per_seed": job.hours, "command": command(job, asked) if run.method else None,
    }  # fmt: skip


# --- after ---


def show_results(name: str, listed: Sequence[Job], store: RunsFolder, asked: Asked, as_json: bool, margin: float) -> None:
    """Every printed cell beside ours: printed value, mean and interval, difference, verdict; then the count of each verdict."""
    from bench.reproduce.execute import records
    from bench.reproduce.verdicts import reproduced

    jobs = [job for job in listed if job.run.method]
    found = list(zip(jobs, reproduced([(job.run, records(job, store)) for job in jobs], asked.text, margin), strict=True))
    if as_json:
        for job, cells in found:
            for cell in cells:
                click.echo(json_text(_cell_json(cell, job)))
        return
    for job, cells in found:
        for label in dict.fromkeys((cell.printed.label, cell.printed.own_result) for cell in cells):
            _show_row(job, [cell for cell in cells if (cell.printed.label, cell.printed.own_result) == label])
    _show_left_out(listed)
    _show_counts(name, [cell for _, cells in found for cell in cells], margin)
    click.echo(f"records: {store.path}")


def _show_row(job: Job, cells: Sequence[Reproduced]) -> None:
    from bench.cli.columns import print_columns

    first = cells[0]
    click.echo()
    printed = [f"{first.printed.paper} table {first.printed.table}", first.printed.runs]
    printed.append("" if first.printed.own_result else f"copied from {first.printed.source}")
    seeds = f"{len(first.seeds)} seed{'s' * (len(first.seeds) != 1)}" if first.runs else "no finished run"
    say(f"{first.printed.label} ({', '.join(filter(None, printed))}): {job.run.name}; {seeds}", hanging=2)
    if job.error is not None:
        say(f"left out: {job.error.message}", indent=2, hanging=2)
    rows = []
    for cell in cells:
        places = cell.decimals
        ours = f"{cell.mean:.{places}f}" if cell.mean is not None else "-"
        interval = f"{cell.low:.{places}f} to {cell.high:.{places}f}" if cell.low is not None and cell.high is not None else "-"
        difference = f"{cell.difference:+.{places}f}" if cell.difference is not None else "-"
        more = f", {cell.seeds_needed} seeds would tell" if cell.seeds_needed else ""
        rows.append((cell.printed.task, _printed(cell), ours, interval, difference, cell.verdict + more))
    print_columns(rows, headings=("task", "printed", "ours", "new seeds, 95 %", "difference", "verdict"), indent=2)
    if freedom := [cell.freedom for cell in cells if cell.freedom is not None]:
        least, most = min(freedom), max(freedom)
        words = f"{least:.0f}" if round(least) == round(most) else f"{least:.0f} to {most:.0f}"
        say(
            f"variance over seeds from the methods of this table, {words} degrees of freedom; verdicts hold for the whole row (Holm)",
            indent=2,
            hanging=2,
        )
    for note in dict.fromkeys([*_conditions(job), *(note for cell in cells for note in cell.notes)]):
        say(f"note: {note}", indent=2, hanging=6)


def _conditions(job: Job) -> list[str]:
    """Why a run is not comparable with the print."""
    told = [f"{job.run.backbone} stands in for {job.run.instead_of}"] if job.run.instead_of else []
    return told + ([f"not the recipe: {', '.join(f'{k}={v}' for k, v in job.run.asked.items())}"] if job.run.asked else [])


def _printed(cell: Reproduced) -> str:
    from bench.references.audit import show

    spread = f" ±{show(cell.printed.std, cell.printed.metric)}" if cell.printed.std is not None else ""
    return show(cell.printed.value, cell.printed.metric) + spread


def _show_counts(name: str, cells: Sequence[Reproduced], margin: float) -> None:
    from collections import Counter

    from bench.reproduce.verdicts import VERDICTS

    counts = Counter(cell.verdict for cell in cells)
    click.echo()
    click.echo(f"{name}: {len(cells)} printed cells, margin ±{margin:g} points")
    for verdict, words in VERDICTS.items():
        if counts[verdict]:
            say(f"{counts[verdict]:>4} {verdict}: {words}", hanging=5)


def _cell_json(cell: Reproduced, job: Job) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(cell), "run": job.run.name, "left_out": job.error.message if job.error else None}
