"""The words of a plan: a sentence on its runs, and a line for each fact about one row of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.base.devices import device_name
from bench.base.text import format_bytes, list_names, plural, seed_ranges, with_variant
from bench.cli.plan_rows import PlanRow
from bench.data.sets import Pending, data_sets
from bench.method.budget import budget_of
from bench.method.contract import how_fitted
from bench.records.names import RAW, protocol_text
from bench.run.memory import texts_of_row
from bench.run.needs import pending_size
from bench.run.planned import PlannedRun

CHOSEN_SETTING = "(no --setting was given)"
"""Ends the note of a plan that chose the setting; the first sentence says it."""

Facts = list[tuple[str, str]]
"""Labels with their texts."""


def plan_sentence(runs: Sequence[PlannedRun], rows: Sequence[PlanRow] = ()) -> str:
    """Write "Plan: 10 runs of simcse and promcse, unsupervised, on bert-base-uncased".

    ``rows``: the same runs in rows, if it is known which of them are finished.
    """
    names = dict.fromkeys(with_variant(run.method, run.variant) for run in runs)
    chosen = {run.setting: _setting_words(run) for run in runs if _is_chosen(run)}
    settings = {run.setting: chosen.get(run.setting, _setting_words(run)) for run in runs}
    backbones = list(dict.fromkeys(backbone_name(run) for run in runs))
    text = f"Plan: {plural(len(runs), 'run')} of {list_names(names, 6)}"
    text += f", {list_names(settings.values())}"
    if len(backbones) == 1:
        text += f", on {'the built-in backbone' if backbones[0] == 'builtin' else backbones[0]}"
    pending = sum(len(row.pending) for row in rows)
    unscored = sum(len(row.unscored) for row in rows)
    finished = len(runs) - pending - unscored if rows else 0
    states = []
    if finished:
        states.append(f"{finished} of {len(runs)} finished")
    if unscored:
        states.append(f"{unscored} trained, to be scored")
    return f"{text}; {', '.join(states)}" if states else text


def backbone_name(run: PlannedRun) -> str:
    """Return the name of a backbone in a plan."""
    backbone = run.backbone
    return backbone.title or (backbone.name if backbone.hub else backbone.short)


def _is_chosen(run: PlannedRun) -> bool:
    """Say if bench chose the setting of a run among several."""
    return any(note.endswith(CHOSEN_SETTING) for note in run.notes)


def _setting_words(run: PlannedRun) -> str:
    """Write the setting, and why it was chosen if the user did not."""
    if run.setting == "none":
        return "nothing trained"
    if not _is_chosen(run):
        return run.setting
    if run.expect:
        return f"{run.setting} (the paper's setting for this backbone)"
    return f"{run.setting} {CHOSEN_SETTING}"


def notes_of(row: PlanRow) -> list[str]:
    """Return the notes on a row's runs, but for that on the setting."""
    notes = dict.fromkeys(note for run in row.runs for note in run.notes)
    return [note for note in notes if not note.endswith(CHOSEN_SETTING)]


def row_facts(row: PlanRow, device: str, to_fetch: Sequence[Pending]) -> Facts:
    """Return the facts of a plan with one row: backbone, training, scores, device and memory.

    ``to_fetch``: the downloads of the plan.
    """
    run = row.first
    facts = [("backbone", _backbone_text(row, to_fetch))]
    if run.corpus is not None:
        facts.append(("train", _training_text(row)))
    if row.in_steps:
        facts.append(("trains", _trained_text(row)))
    facts.append(
        ("seeds", seed_ranges(known.seed for known in row.runs) or "any: nothing is random")
    )
    facts.append(("score", scores_text([row])))
    if run.expect:
        facts.append(("published", f"{run.expect['value']:.2f} ({run.expect['source']})"))
    facts.append(("device", device_text(device, run.precision)))
    if row.memory_bytes is not None:
        facts.append(("memory", _memory_text(row)))
    return facts


def _backbone_text(row: PlanRow, to_fetch: Sequence[Pending]) -> str:
    """Write the backbone's name, and the site that it would be fetched from."""
    name = backbone_name(row.first)
    for item in to_fetch:
        if item.kind == "backbone" and item.name in (name, row.first.backbone.name):
            return f"{name}: {item.where}"
    return name


def _training_text(row: PlanRow) -> str:
    """Write "nli, 275,601 rows x 10 epochs = 5,390 steps of 512", as far as it is known."""
    run, steps = row.first, row.steps
    assert run.corpus is not None
    size = len(run.corpus)
    text = run.corpus.name
    text += f", {size:,} rows" if size else ", rows not counted yet"
    recipe = run.recipe
    if how_fitted(run.plugin.cls) == "pass":
        return f"{text}, fitted in one pass"
    budget = budget_of(recipe)
    most = recipe.get("max_steps")
    batch = recipe.get("batch_size")
    if steps is not None and size and budget is None and not (most and most <= steps):
        return f"{text} x {plural_number(recipe.epochs, 'epoch')} = {steps:,} steps of {batch}"
    if steps is not None:
        return f"{text}: {plural(steps, 'step')} of {batch}"
    if budget is not None:
        return f"{text}: {budget}, in batches of {batch}"
    return f"{text}, in batches of {batch}"


def plural_number(count: float, noun: str) -> str:
    """Write "1 epoch", "10 epochs" or "0.5 epochs"."""
    return f"{count:g} {noun}" if count == 1 else f"{count:g} {noun}s"


def scores_text(rows: Sequence[PlanRow]) -> str:
    """Write the tasks that all rows share, and the form of their texts if it is not the usual."""
    names: dict[str, dict[str, None]] = {}
    for task in rows[0].first.tasks:
        names.setdefault(protocol_text(task.protocol), {})[task.name] = None
    first, *others = names.items()
    parts = [_in_form(list_names(first[1], 20), first[0])]
    for form, tasks in others:
        same = tasks.keys() == first[1].keys()
        parts.append(_in_form("the same" if same else list_names(tasks, 20), form))
    return "; ".join(parts)


def _in_form(names: str, form: str) -> str:
    """Write names of tasks with the form of their texts: "STS12 (raw texts)"."""
    if form == RAW:
        return f"{names} (raw texts)"
    return f"{names} {form.replace('-', ' ')}" if form.startswith("without-") else names


def device_text(device: str, precision: str) -> str:
    """Write the name of a device, and the precision of the training."""
    return f"{device_name(device)}, precision {precision}"


def _trained_text(row: PlanRow) -> str:
    """Write "1,541,120 parameters: prompt 491,520, head 1,049,600"."""
    if row.held is None:
        return "parameters not counted: a model or a file that it is built on is not here"
    text = f"{row.held.parameters:,} parameters"
    if len(row.held.trained) < 2:
        return text
    parts = [f"{part} {count:,}" for part, count in row.held.trained.items()]
    return f"{text}: {', '.join(parts)}"


def _memory_text(row: PlanRow) -> str:
    """Write the memory of a run, its parts, and the --chunk that fits if it is too much."""
    run = row.first
    memory = (
        f"{(row.memory_bytes or 0) / 2**30:.1f} GiB with {texts_of_row(run)} texts per row, each "
        f"of {run.recipe.max_seq_length} tokens"
    )
    if row.chunk is None:
        return memory
    if row.chunk == 0:
        return f"{memory}; too much for this device, and no --chunk fits"
    return f"{memory}; too much for this device, --chunk {row.chunk} fits"


def fetch_facts(to_fetch: Sequence[Pending], *, offline: bool) -> Facts:
    """Return what is downloaded, in one line."""
    if not to_fetch:
        return []
    parts = ", ".join(_fetched_parts(to_fetch))
    label = "missing" if offline else "download"
    more = "; --offline forbids fetching" if offline else ""
    return [(label, f"{pending_size(to_fetch)}: {parts}{more}")]


def _fetched_parts(to_fetch: Sequence[Pending]) -> Iterator[str]:
    """Yield "roberta-large 1,426 MB", the largest first; the sets of one suite are one part."""
    known = data_sets()
    sizes: dict[str, int | None] = {}
    for item in to_fetch:
        suites = known[item.name].suites if item.name in known else ()
        name = f"{suites[0]} data" if suites else item.name
        before = sizes.get(name, 0)
        if before is None or item.bytes is None:
            sizes[name] = None
        else:
            sizes[name] = before + item.bytes
    for name, size in sorted(sizes.items(), key=lambda part: -(part[1] or 0)):
        yield f"{name} {'(size not known)' if size is None else format_bytes(size)}"
