"""Everything about one run, as facts (a name and a text) and Grids: what ``bench runs RUN`` prints and the page of a run shows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.base.text import duration, plural, size
from bench.compare.formatting import score, setting_words, signed_number
from bench.compare.statistics.table import DECIMALS
from bench.data.overlap_counts import Overlap
from bench.runs.intact import read_curve, series
from bench.runs.record import AVERAGE, RunRecord, Score, dev_words
from bench.show.grid import Column, Grid, grid

NARROWEST = 24  # characters of a column of text that can still be read
BARS = "▁▂▃▄▅▆▇█"
Facts = list[tuple[str, str]]


def facts_grid(title: str, facts: Facts) -> Grid:
    return grid(("", Column("", wrap=NARROWEST)), facts, title=title)


def what(record: RunRecord) -> str:
    """ "promcse with eh, supervised, roberta-large, seed 42" """
    if record.model_name:
        return f"{record.model_name}, {setting_words(record.setting)}"
    method = f"{record.method} with {record.variant}" if record.variant else record.method
    seed = "any seed" if record.seed is None else f"seed {record.seed}"
    return f"{method}, {setting_words(record.setting)}, {record.backbone_name}, {seed}"


# --- scores ---


def by_form(record: RunRecord) -> dict[tuple[str, str, str | None], list[Score]]:
    """(suite, protocol, text form) -> the scores of its tasks, in the record's order."""
    forms: dict[tuple[str, str, str | None], list[Score]] = {}
    for result in record.scores:
        forms.setdefault((result.suite, result.protocol, result.text), []).append(result)
    return forms


def heads(record: RunRecord) -> str:
    """ "sts 76.25, sts (raw) 77.10": each suite's average, or its only task."""
    heads = []
    for name, average, tasks in suites(record):
        only = tasks[0].rpartition(" ")[2] if len(tasks) == 1 else f"{len(tasks)} tasks"
        heads.append(f"{name} {average or only}")
    return ", ".join(heads)


def suites(record: RunRecord) -> list[tuple[str, str, list[str]]]:
    """(suite, its average, "" where it has none, ["STS12 36.53", ...]); of a suite scored in several ways, with protocol or
    text form."""
    rows = []
    forms = by_form(record)
    for (suite, protocol, text), scores in forms.items():
        several = len({other_protocol for other, other_protocol, _ in forms if other == suite}) > 1
        shown = {s.task: score(s.value, DECIMALS.get(s.metric, 2)) for s in scores}
        average = shown.pop(AVERAGE, "")
        form = "" if text in (None, "tokenised") else f" ({text})"
        tasks = [f"{task} {value}" for task, value in shown.items()]
        rows.append((f"{protocol if several else suite}{form}", average, tasks))
    return rows


def score_grids(record: RunRecord) -> list[Grid]:
    """One for each suite, protocol and text form; the sub-datasets of a task stand indented below it."""
    numbers = ("score", "sd", "n", "mean", "wmean", "Pearson")
    columns: list[Column | str] = ["task", *(Column(name, right=True) for name in numbers)]
    made = []
    for (suite, protocol, text), scores in by_form(record).items():
        metrics = ", ".join(dict.fromkeys(result.metric for result in scores))
        title = f"{suite}: {metrics}, {protocol}{f' ({text})' if text else ''}"
        rows = [row for result in scores for row in _score_rows(result)]
        made.append(grid(columns, rows, title=title))
    return made


def _score_rows(result: Score) -> Iterable[tuple[str, ...]]:
    detail, places = result.detail, DECIMALS.get(result.metric, 2)
    pearson, subsets = detail.get("pearson"), detail.get("subsets")
    overall = pearson.get("all") if isinstance(pearson, Mapping) else pearson
    sd = "" if result.std is None else score(result.std, places)
    more = (_number(value) for value in (detail.get("mean"), detail.get("wmean"), overall))
    yield result.task, score(result.value, places), sd, str(result.n), *more
    parts = {
        "all pairs at once": detail.get("pooled"),
        **(subsets if isinstance(subsets, Mapping) else {}),
        "all splits (as mteb)": detail.get("all_splits"),
    }
    for name, part in parts.items():
        if isinstance(part, Mapping):
            value = _number(part.get(result.metric, part.get("spearman")))
            n = str(part["n"]) if isinstance(part.get("n"), int) else ""
            yield f"  {name}", value, "", n, "", "", _number(part.get("pearson"))


# --- recipe, training, cost, provenance, files ---


def recipe(record: RunRecord) -> Grid:
    rows = [
        (key, plain_value(value.value), value.source + (f"; {value.note}" if value.note else ""))
        for key, value in sorted(record.recipe.items())
    ]
    columns = ("value of", "is", Column("from", wrap=NARROWEST))
    return grid(columns, rows, title="recipe")


def model(record: RunRecord) -> str:
    """What is recorded of a finished encoder, in a line: "folder, 384 dimensions, normalised, pooling mean, fp32"; "" of all
    others."""
    about = record.provenance.backbone.model
    if not about:
        return ""
    parts = [
        str(about.get("kind", "")),
        f"{about['dimension']} dimensions" if "dimension" in about else "",
        "normalised" if about.get("normalised") else "",
        *(f"{key} {about[key]}" for key in ("pooling", "dtype") if about.get(key)),
        f"prompt {about['prompt']!r}" if about.get("prompt") else "",
        "prompts by task" if about.get("prompts") else "",
        "" if about.get("known", True) else f"known by its {about.get('identity')} alone",
    ]
    return ", ".join(filter(None, parts))


def training(record: RunRecord, folder: Path | None) -> Facts:
    """Steps, the checkpoint, and the curves in ``folder``; none for what is not trained."""
    facts: Facts = []
    if (done := record.training) is not None:
        rows = "" if done.sentences is None else f", {done.sentences:,} sentences"
        step = "?" if done.best_step is None else f"{done.best_step:,}"
        best = "the last step"
        if done.dev_score is not None:
            best = f"step {step}: {done.dev_task or 'dev'} {score(done.dev_score)}"
        facts = [("steps", f"{done.steps:,}{rows}"), ("kept", best)]
        if done.dev_score is not None and (chosen := dev_words(record)):
            facts.append(("chosen on", chosen))
    curve = [] if folder is None else read_curve(folder)
    for name, key, digits in (("loss", "loss", 4), ("dev score", "dev_score", 2)):
        if points := [value for _, value in series(curve, key)]:
            first, last = (score(value, digits) for value in (points[0], points[-1]))
            facts.append((name, f"{first} {sparkline(points)} {last}"))
    return facts


def sparkline(values: Sequence[float], width: int = 32) -> str:
    """The course of ``values`` in at most ``width`` characters; each stands for the mean of its stretch."""
    if len(values) > width:
        edges = [round(i * len(values) / width) for i in range(width + 1)]
        values = [sum(values[a:b]) / (b - a) for a, b in zip(edges, edges[1:], strict=False)]
    low, high = min(values), max(values)
    scale = len(BARS) / (high - low) if high > low else 0.0
    return "".join(BARS[min(len(BARS) - 1, int((value - low) * scale))] for value in values)


def cost(record: RunRecord) -> Facts:
    return _facts(msgspec.to_builtins(record.cost))


def provenance(record: RunRecord) -> Facts:
    """Where the run comes from; what is nested stands on one line."""
    made = msgspec.to_builtins(record.provenance) | {"command": None}
    corpus = {key: value for key, value in made.get("corpus", {}).items() if key != "overlap"}
    return [("fingerprint", record.fingerprint), *_facts(made | {"corpus": corpus})]


def _facts(values: Mapping[str, Any]) -> Facts:
    """A name and a text for each field that was recorded."""
    facts = [_fact(key, value) for key, value in values.items() if value is not None]
    return [(name, text) for name, text in facts if text]


def _fact(key: str, value: Any) -> tuple[str, str]:
    """("train time", "13m32s"), ("plugin", "package sentence-bench, sha256 0123456789ab"): the name of a field says its unit."""
    name = key.replace("_", " ")
    if isinstance(value, Mapping):
        return name, ", ".join(" ".join(fact) for fact in _facts(value))
    if isinstance(value, str) and re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", value):
        return name, value[:12]
    if isinstance(value, bool):
        return name, "yes" if value else "no"
    if not isinstance(value, int | float):
        return name, plain_value(value)
    if key.endswith("_bytes"):
        return name.removesuffix(" bytes"), size(value)
    if key.endswith("_seconds"):
        return name.replace(" seconds", " time"), duration(value)
    digits = ",.0f" if key.endswith("_per_second") else ",.6g"
    return name, f"{value:,}" if isinstance(value, int) else f"{value:{digits}}"


def files(folder: Path) -> Facts:
    """What lies in the run's folder, with sizes; nothing hidden."""
    facts: Facts = []
    for path in sorted(folder.glob("[!.]*")):
        inside = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
        total = size(sum(file.stat().st_size for file in inside))
        count = f"{plural(len(inside), 'file')}, " if path.is_dir() else ""
        facts.append((path.name + "/" * path.is_dir(), count + total))
    return facts


def plain_value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _number(value: Any) -> str:
    return score(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


# --- what changes with the form of the text (the papers' and the authors'), and from STS-B to the captions of CxC ---

FORMS = {"tokenised": "raw", "sccl": "original"}
"""What the papers scored -> what the data's authors published."""
FORM_HEADING = ("task", "papers' text", "raw text", "raw less papers'")
SHIFT_HEADING = ("CxC protocol", "STS-B text", "STS-B", "CxC-STS", "CxC-STS less STS-B")
Pair = tuple[tuple[str, ...], Score, Score]


def shift_grids(record: RunRecord) -> list[Grid]:
    """Tasks that were scored in both known forms of the text; STS-B next to CxC-STS, of captions that no campaign of STS-B saw."""
    scores = record.scores
    forms: list[Pair] = [
        ((f"{one.suite}: {one.task}",), one, other)
        for one in scores
        if (form := FORMS.get(one.text or ""))
        and (other := record.score(one.suite, one.task, one.protocol, form)) is not None
    ]
    domains: list[Pair] = [
        ((far.protocol, near.text or ""), near, far)
        for near in scores
        for far in scores
        if (near.suite, far.suite) == ("sts", "cxc")
        and near.task.startswith("STS-B")
        and far.task.startswith("CxC-STS")  # other protocols have a longer name
    ]
    made = [
        _pairs_grid("robustness to the form of the text", FORM_HEADING, forms),
        _pairs_grid("domain shift", SHIFT_HEADING, domains),
    ]
    return [table for table in made if table.rows]


def _pairs_grid(title: str, heading: tuple[str, ...], pairs: Sequence[Pair]) -> Grid:
    """Both numbers as printed, and the second less the first."""
    rows = []
    for names, first, second in pairs:
        places = DECIMALS.get(first.metric, 2)
        a, b = round(first.value, places), round(second.value, places)
        rows.append((*names, score(a, places), score(b, places), signed_number(b - a, places)))
    numbers = [Column(name, right=True) for name in heading[-3:]]
    return grid((*heading[:-3], *numbers), rows, title=title)


# --- sentences of the evaluation sets that stand in a run's corpus ---


def overlap_grid(overlap: Any) -> Grid:
    """Of what a record stores as ``provenance.corpus.overlap``, which may be anything. Tasks without any such sentence are named
    in one last row; no rows where nothing was recorded."""
    tasks = overlap.get("tasks") if isinstance(overlap, Mapping) else None
    rows: list[tuple[str, ...]] = []
    clean: list[str] = []
    for values in tasks if isinstance(tasks, list) else []:
        try:
            one = msgspec.convert(values, Overlap)
        except msgspec.ValidationError:  # not of this version
            continue
        both = one.exact + one.near
        if 0 < both <= one.sentences:
            name = f"{one.suite}: {one.task}" + (f" ({one.text})" if one.text else "")
            counts = [f"{count:,}" for count in (one.sentences, one.exact, one.near)]
            rows.append((name, *counts, share(both, one.sentences), f"{one.rows:,}"))
        elif both == 0 < one.sentences:
            clean.append(one.task)
    if clean:
        rows.append(("none of " + ", ".join(dict.fromkeys(clean)), "", "", "", "", ""))
    numbers = ("sentences", "the same", "nearly", "%", "rows of the corpus")
    columns: list[Column | str] = ["task", *(Column(name, right=True) for name in numbers)]
    return grid(columns, rows, title="sentences of the evaluation sets that stand in the corpus")


def share(part: int, whole: int) -> str:
    """ "4.0", "<0.1": per cent of the whole."""
    percent = 100 * part / whole
    return f"{percent:.1f}" if percent >= 0.1 else "<0.1"
