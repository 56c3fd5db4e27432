"""Everything about one run, as sections of plain text rows: what ``bench runs RUN`` prints and a
run's part of a page lists."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bench.base.text import duration, plural, size
from bench.compare.formatting import score, setting_words, signed_number
from bench.compare.statistics.table import DECIMALS
from bench.runs.intact import read_curve, series
from bench.runs.record import AVERAGE, RunRecord, Score, dev_words
from bench.show.tables.lines import part_name

BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Section:
    """A titled table. ``numbers`` are the columns that stand right-aligned; a cell that begins with
    blanks is a part of what stands above it."""

    title: str
    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...] = ()


def what(record: RunRecord) -> str:
    """ "promcse with eh, supervised, roberta-large, seed 42" """
    if record.model_name:
        return f"{record.model_name}, {setting_words(record.setting)}"
    method = f"{record.method} with {record.variant}" if record.variant else record.method
    return f"{method}, {setting_words(record.setting)}, {record.backbone_name}, {'any seed' if record.seed is None else f'seed {record.seed}'}"


def by_form(record: RunRecord) -> dict[tuple[str, str, str | None], list[Score]]:
    """(suite, protocol, text form) -> the scores of its tasks, in the record's order."""
    forms: dict[tuple[str, str, str | None], list[Score]] = {}
    for result in record.scores:
        forms.setdefault((result.suite, result.protocol, result.text), []).append(result)
    return forms


def ranking_score(scores: Sequence[Score]) -> Score | None:
    """Of the scores of one form the one that ranks: the average, else the only task; None where
    there is neither."""
    return next(
        (result for result in scores if result.task == AVERAGE),
        scores[0] if len(scores) == 1 else None,
    )


def heads(record: RunRecord) -> str:
    """ "sts 76.25, sts (raw) 77.10": each suite's average, else its only task."""
    parts = []
    for (suite, _, text), scores in by_form(record).items():
        head = ranking_score(scores)
        form = "" if text in (None, "tokenised") else f" ({text})"
        parts.append(
            f"{suite}{form} {head.value:.2f}" if head else f"{suite}{form}: {len(scores)} tasks"
        )
    return ", ".join(parts)


def suites(record: RunRecord) -> list[tuple[str, str, list[str]]]:
    """(suite, its average, "" where it has none, ["STS12 36.53", ...]); of a suite scored in
    several ways, with protocol or text form."""
    rows = []
    forms = by_form(record)
    for (suite, protocol, text), scores in forms.items():
        several = len({other_protocol for other, other_protocol, _ in forms if other == suite}) > 1
        shown = {s.task: score(s.value, DECIMALS.get(s.metric, 2)) for s in scores}
        average = shown.pop(AVERAGE, "")
        form = "" if text in (None, "tokenised") else f" ({text})"
        rows.append(
            (
                f"{protocol if several else suite}{form}",
                average,
                [f"{task} {value}" for task, value in shown.items()],
            )
        )
    return rows


def fact_sections(record: RunRecord) -> list[Section]:
    """Recipe, training, cost and provenance; only those with rows."""
    facts = (
        recipe(record),
        training(record, None),
        overlap_section(record),
        cost(record),
        provenance(record),
    )
    return [about for about in facts if about.rows]


def score_sections(record: RunRecord) -> list[Section]:
    """One section per suite, protocol and text form; the sub-datasets of a task stand indented
    below it."""
    made = []
    for (suite, protocol, text), scores in by_form(record).items():
        rows = [row for result in scores for row in _score_rows(result)]
        heading = ["task", "score", "sd", "n", "mean", "wmean", "Pearson"]
        used = [i for i in range(len(heading)) if i in (0, 1, 3) or any(row[i] for row in rows)]
        form = f" ({text})" if text else ""
        metrics = ", ".join(dict.fromkeys(s.metric for s in scores))
        made.append(
            Section(
                f"{suite}: {metrics}, {protocol}{form}",
                tuple(heading[i] for i in used),
                tuple(tuple(row[i] for i in used) for row in rows),
                tuple(range(1, len(used))),
            )
        )
    return made


def _score_rows(result: Score) -> Iterable[list[str]]:
    detail = result.detail
    pearson = detail.get("pearson")
    overall = pearson.get("all") if isinstance(pearson, Mapping) else pearson
    decimals = DECIMALS.get(result.metric, 2)
    yield [
        result.task,
        score(result.value, decimals),
        "" if result.std is None else score(result.std, decimals),
        str(result.n),
        _number(detail.get("mean")),
        _number(detail.get("wmean")),
        _number(overall),
    ]
    subsets = detail.get("subsets")
    parts = dict(subsets) if isinstance(subsets, Mapping) else {}
    if isinstance(detail.get("pooled"), Mapping):
        parts = {"all pairs at once": detail["pooled"], **parts}
    if isinstance(detail.get("all_splits"), Mapping):
        parts["all splits (as mteb)"] = detail["all_splits"]
    for name, part in parts.items():
        if isinstance(part, Mapping):
            value = part.get(result.metric, part.get("spearman"))
            n = str(part["n"]) if isinstance(part.get("n"), int) else ""
            yield ["  " + str(name), _number(value), "", n, "", "", _number(part.get("pearson"))]


def recipe(record: RunRecord) -> Section:
    rows = tuple(
        (key, plain_value(value.value), value.source + (f"; {value.note}" if value.note else ""))
        for key, value in sorted(record.recipe.items())
    )
    return Section("recipe", ("value of", "is", "from"), rows)


def model(record: RunRecord) -> str:
    """What is recorded of a finished encoder, in a line: "folder, 384 dimensions, normalised,
    pooling mean, fp32"; "" of all others."""
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


def training(record: RunRecord, folder: Path | None) -> Section:
    rows: list[tuple[str, ...]] = []
    if (done := record.training) is not None:
        rows.append(
            (
                "steps",
                f"{done.steps:,}"
                + (f", {done.sentences:,} sentences" if done.sentences is not None else ""),
            )
        )
        if done.dev_score is not None:
            step = "?" if done.best_step is None else f"{done.best_step:,}"
            rows.append(("kept", f"step {step}: {done.dev_task or 'dev'} {score(done.dev_score)}"))
        else:
            rows.append(("kept", "the last step"))
        if words := dev_words(record):
            rows.append(("chosen on", words))
    curve = read_curve(folder) if folder is not None else []
    for name, key, digits in (("loss", "loss", 4), ("dev score", "dev_score", 2)):
        points = [value for _, value in series(curve, key)]
        if points:
            rows.append(
                (name, f"{points[0]:.{digits}f} {sparkline(points)} {points[-1]:.{digits}f}")
            )
    return Section("training", (), tuple(rows))


def sparkline(values: Sequence[float], width: int = 32) -> str:
    """The course of ``values`` in at most ``width`` characters; each stands for the mean of its
    stretch."""
    if len(values) > width:
        edges = [round(i * len(values) / width) for i in range(width + 1)]
        values = [sum(values[a:b]) / (b - a) for a, b in zip(edges, edges[1:], strict=False)]
    low, high = min(values), max(values)
    if high == low:
        return BARS[0] * len(values)
    return "".join(
        BARS[min(len(BARS) - 1, int((value - low) / (high - low) * len(BARS)))] for value in values
    )


PART = "trainable in "


def cost(record: RunRecord) -> Section:
    facts = msgspec.structs.asdict(record.cost).items()
    rows = [row for field, value in facts if value is not None for row in _cost_rows(field, value)]
    return Section("cost", (), tuple(rows))


def _cost_rows(field: str, value: Any) -> list[tuple[str, str]]:
    """A fact of the record's cost, by the unit in its name."""
    name = field.replace("_", " ")
    if field == "encoding":
        speed = f"{value.sentences_per_second:,.0f} sentences/s, {size(value.memory_bytes)}"
        return [("encoding, measured", f"{speed}; {value.condition}")]
    if field == "trainable_parts":
        return [(PART + part_name(part), f"{count:,}") for part, count in value.items()]
    if field.endswith("_bytes"):
        return [(name.removesuffix(" bytes"), size(value))]
    if field.endswith("_per_second"):
        return [(name, f"{value:,.0f}")]
    if field.endswith("_seconds"):
        return [(name.replace(" seconds", " time"), duration(value))]
    return [(name, f"{value:,}" if isinstance(value, int) else str(value))]


def provenance(record: RunRecord) -> Section:
    """Where the run comes from, one fact per row; nested objects are flattened."""
    rows: list[tuple[str, str]] = [("fingerprint", record.fingerprint)]
    for field, value in msgspec.to_builtins(record.provenance).items():
        if value is None or field == "command":
            continue
        if isinstance(value, Mapping):
            inside = ", ".join(
                _fact(key, item)
                for key, item in value.items()
                if item is not None and key != "overlap"
            )
            if inside:
                rows.append((field.replace("_", " "), inside))
        else:
            rows.append((field.replace("_", " "), str(value)))
    return Section("provenance", (), tuple(rows))


def files(folder: Path) -> Section:
    """What lies in the run's folder, with sizes; two levels deep, nothing hidden."""
    rows = []
    for path in sorted(folder.glob("*")):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            inside = [file for file in path.rglob("*") if file.is_file()]
            total = sum(file.stat().st_size for file in inside)
            rows.append((f"{path.name}/", f"{plural(len(inside), 'file')}, {size(total)}"))
        else:
            rows.append((path.name, size(path.stat().st_size)))
    return Section("files", (), tuple(rows))


def plain_value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _number(value: Any) -> str:
    return score(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _fact(key: str, value: Any) -> str:
    """ "torch 2.13.0", "not dirty", a hash by its first 12 digits"""
    if isinstance(value, bool):
        return key if value else f"not {key}"
    text = plain_value(value)
    return f"{key} {text[:12] if len(text) in (40, 64) and all(c in '0123456789abcdef' for c in text) else text}"


# --- what changes when a run's text or domain does: the two text forms side by side, and the gap between CxC-STS and STS-B ---

FORMS = {
    "tokenised": "raw",
    "sccl": "original",
}  # what the papers scored -> what the data's authors published


def shift_sections(record: RunRecord) -> list[Section]:
    """Those that the record has numbers for."""
    return [about for about in (text_forms(record), domain_shift(record)) if about.rows]


def text_forms(record: RunRecord) -> Section:
    """The tasks that were scored in both known forms, and what the model loses or gains on the one
    that is not the papers'."""
    rows = []
    for result in record.scores:
        other = record.score(
            result.suite, result.task, result.protocol, FORMS.get(result.text or "", "")
        )
        if other is not None:
            rows.append((f"{result.suite}: {result.task}", *_gap(result, other)))
    heading = ("task", "papers' text", "raw text", "raw less papers'")
    return Section("robustness to the form of the text", heading, tuple(rows), (1, 2, 3))


def domain_shift(record: RunRecord) -> Section:
    """CxC-STS, captions that no campaign of STS-B saw, less STS-B: one row per CxC protocol and
    form of STS-B."""
    rows = []
    for near in _of(record, "sts", "STS-B"):
        for far in _of(record, "cxc", "CxC-STS"):
            rows.append((far.protocol, near.text or "", *_gap(near, far)))
    heading = ("CxC protocol", "STS-B text", "STS-B", "CxC-STS", "CxC-STS less STS-B")
    return Section("domain shift", heading, tuple(rows), (2, 3, 4))


def _of(record: RunRecord, suite: str, task: str) -> Iterable[Score]:
    """The task's scores; a task of another protocol may carry something after its name
    ("CxC-STS-parekh")."""
    return (
        result for result in record.scores if result.suite == suite and result.task.startswith(task)
    )


def _gap(first: Score, second: Score) -> tuple[str, str, str]:
    decimals = DECIMALS.get(first.metric, 2)
    a, b = round(first.value, decimals), round(second.value, decimals)
    return score(a, decimals), score(b, decimals), signed_number(b - a, decimals)


# --- what of the evaluation sets stands in a run's corpus: a section of plain text rows ---


def overlap_section(record: RunRecord) -> Section:
    return section(record.provenance.corpus.overlap)


def section(overlap: Any) -> Section:
    """Of what a record keeps as ``provenance.corpus.overlap``. A task of which nothing was found is
    named in one last row; no rows where nothing was recorded."""
    tasks = overlap.get("tasks") if isinstance(overlap, Mapping) else None
    rows: list[tuple[str, ...]] = []
    clean: list[str] = []
    for task in tasks if isinstance(tasks, list) else []:
        try:
            found, sentences = int(task["exact"]) + int(task["near"]), int(task["sentences"])
            name = f"{task['suite']}: {task['task']}" + (
                f" ({task['text']})" if task["text"] else ""
            )
            counts = (f"{sentences:,}", f"{int(task['exact']):,}", f"{int(task['near']):,}")
            if sentences < max(found, 1):
                continue
            if found:
                rows.append((name, *counts, share(found, sentences), f"{int(task['rows']):,}"))
            else:
                clean.append(str(task["task"]))
        except (KeyError, TypeError, ValueError, OverflowError):  # not of this version
            continue
    if clean:
        rows.append(("none of " + ", ".join(dict.fromkeys(clean)), "", "", "", "", ""))
    heading = ("task", "sentences", "the same", "nearly", "%", "rows of the corpus")
    return Section(
        "sentences of the evaluation sets that stand in the corpus",
        heading,
        tuple(rows),
        (1, 2, 3, 4, 5),
    )


def share(part: int, whole: int) -> str:
    """ "4.0", "<0.1": per cent of the whole."""
    percent = 100 * part / whole
    return f"{percent:.1f}" if percent >= 0.1 else "<0.1"
