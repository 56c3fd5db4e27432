"""The README.md of an export: what the model is, how it is loaded, its scores with intervals, recipe, provenance, licence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError
from bench.compare.formatting import markdown, metric_words, score
from bench.compare.statistics.summary import summarise
from bench.compare.statistics.table import AVERAGE, DECIMALS
from bench.export import mteb_folder, transformers_folder
from bench.runs import Run, RunsFolder
from bench.runs.predictions import read_predicted
from bench.show.grid import Cell, Column, as_markdown, grid
from bench.show.tables.report import plain_value, what

if TYPE_CHECKING:
    from bench.export import Exported
    from bench.run.trained_run import TrainedRun
    from bench.runs import RunRecord, Score


LIBRARIES = {"transformers": "transformers"}
LOAD = """from sentence_transformers import SentenceTransformer

model = SentenceTransformer({folder}{trust})
vectors = model.encode(["A man is playing a guitar.", "Two dogs run."])
print(vectors.shape)
"""
LOAD_MTEB = """import sys

sys.path.insert(0, {folder})  # of a model on the hub: huggingface_hub.snapshot_download("owner/name")
import mteb_model

model = mteb_model.load()
print(mteb_model.meta.name, mteb_model.meta.embed_dim)
"""


def text(run: TrainedRun, exported: Exported, folder: Path, place: str | None = None) -> str:
    """Markdown with the hub's front matter. ``place``: what stands in the example in the place of the folder's name."""
    record = run.record
    parts = [
        front_matter(run, exported),
        f"# {markdown(record.run_id)}",
        f"{markdown(what(record))}. {_sentence(run.plugin.cls.summary)} "
        f"Written by `bench export` as {exported.form}; its vectors have {exported.dimensions:,} dimensions and are compared by "
        "their cosine.",
        "## How to load it",
        f"```python\n{example(exported, folder, place or exported.folder.name)}```",
        _loading_notes(exported),
        "## Scores",
        *tables(run),
        "## Recipe",
        recipe_table(run) or "Nothing was trained, and nothing chosen.",
        "## Where it comes from",
        "\n".join(f"- {line}" for line in origin(run)),
        "## Licence",
        "\n".join(f"- {line}" for line in licence(record)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def example(exported: Exported, folder: Path, place: str) -> str:
    """A script that loads the export from ``place``; the tests run it."""
    if exported.form == "transformers":
        return transformers_folder.example(folder, place)
    place = json.dumps(place, ensure_ascii=False)  # in quotes, whatever is in the name
    if exported.form == "mteb":
        return LOAD_MTEB.format(folder=place)
    return LOAD.format(
        folder=place, trust=", trust_remote_code=True" if exported.module_files else ""
    )


def front_matter(run: TrainedRun, exported: Exported) -> str:
    """What the hub reads: as JSON values, which are YAML."""
    record = run.record
    about: dict[str, Any] = {
        "library_name": LIBRARIES.get(exported.form, "sentence-transformers"),
        "pipeline_tag": "sentence-similarity",
        "tags": [
            "sentence-transformers",
            "sentence-similarity",
            "feature-extraction",
            "sentence-bench",
            record.method,
        ],
    }
    if base := mteb_folder.hub_backbone(record):
        about["base_model"] = base
    if index := model_index(record):
        about["model-index"] = index
    return (
        "---\n"
        + "".join(
            f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in about.items()
        )
        + "---"
    )


def _loading_notes(exported: Exported) -> str:
    lines = []
    if exported.module_files:
        files = ", ".join(f"`{name}`" for name in exported.module_files)
        lines.append(
            f"This method needs a part that the library does not have. It is in {files}, in this folder: read it, then allow it "
            "with `trust_remote_code=True`. It needs sentence-transformers 6 and nothing else."
        )
    if exported.form == "mteb":
        lines.append(f"`python {mteb_folder.FILE} STS12` evaluates it on mteb's task of that name.")
    lines.append(
        f"When it was written, the vectors of ten sentences loaded this way were compared with the method's own: the largest "
        f"difference is {exported.difference:.1g}, relative to the largest number of a vector where that is above 1."
    )
    if exported.difference > 1e-5:
        lines.append(
            "That is as much as the method's own vectors move when sentences are put in other batches."
        )
    return "\n\n".join(lines)


def recipe_table(run: TrainedRun) -> str:
    recipe, places = run.record.recipe, run.plugin.cls.places
    if not recipe:
        return ""
    values = {
        key: _name(plain_value(value.value)) if key in places else plain_value(value.value)
        for key, value in recipe.items()
    }
    rows = [(key, values[key], value.source) for key, value in sorted(recipe.items())]
    return as_markdown(grid(("value of", "is", "from"), rows)).rstrip("\n")


def origin(run: TrainedRun) -> list[str]:
    """Facts as Markdown lines: each is as the run recorded it, or is left out."""
    record, known = run.record, run.record.provenance
    lines = [f"run `{record.run_id}`, fingerprint `{record.fingerprint}`, {known.created}"]
    if run.plugin.cls.paper:
        lines.append(f"method: {markdown(run.plugin.cls.paper)}")
    lines.append(
        f"backbone: {markdown(record.backbone_name)}, revision `{known.backbone.revision or 'not recorded'}`"
    )
    if (corpus := known.corpus).name:
        lines.append(f"trained on {markdown(_name(corpus.name))}, sha256 `{corpus.sha256}`")
    if (done := record.training) is not None:
        kept = (
            f", step {done.best_step} kept ({markdown(done.dev_task or '')} {done.dev_score:.2f})"
            if done.dev_score is not None
            else ""
        )
        lines.append(f"{done.steps:,} steps{kept}")
    lines.append(
        f"bench {known.bench_version}, {known.plugin.package} {known.plugin.version}, source sha256 `{known.plugin.sha256}`"
    )
    lines += [markdown(note) for note in run.notes]
    if known.packages:
        lines.append(
            ", ".join(
                f"{markdown(str(name))} {markdown(str(version))}"
                for name, version in known.packages.items()
            )
        )
    return lines


def _name(text: str) -> str:
    """The last part of a path: where it lay on somebody's machine has no place in a card. A hub's owner/name stays."""
    return (
        Path(text).name
        if "/" in text and (text.startswith(("/", ".", "~")) or text.count("/") > 1)
        else text
    )


def licence(record: RunRecord) -> list[str]:
    """Whose terms hold. What bench does not know it says."""
    from bench.data.sets.manifest import data_sets

    weights = f"the weights are those of {markdown(record.backbone_name)}, changed or with others beside them: that model's licence holds"
    if record.backbone == "builtin":
        weights = "builtin is Apache-2.0, pretrained on English Wikipedia text (CC BY-SA)"
    lines = [weights, "the code in this folder, if there is any: Apache-2.0"]
    if (corpus := record.provenance.corpus).name:
        sha256, name = corpus.sha256, markdown(_name(corpus.name))
        files = [
            (data_set, file)
            for data_set in data_sets().values()
            if data_set.kind == "corpus"
            for file in data_set.files
        ]
        known = next(
            (
                data_set
                for data_set, file in files
                if any(form.sha256 == sha256 for form in file.forms.values())
            ),
            None,
        )
        if known is not None:
            lines.append(
                f"the training text {name}: {markdown(known.licence)}. {markdown(known.terms)}"
            )
        else:
            lines.append(
                f"the training text {name} is not one that bench knows: ask where it comes from"
            )
    return lines


def _sentence(words: str) -> str:
    words = markdown(words.strip())
    return f"{words[:1].upper()}{words[1:]}." if words else ""


# --- the scores of a model card: each suite's table with an interval a task, and how far other seeds of the same recipe lie apart ---


def tables(run: TrainedRun) -> list[str]:
    """One Markdown table for each suite, protocol and text form."""
    record, store = run.record, RunsFolder(run.folder.parent)
    seeds = of_all_seeds(record, store)
    made = []
    for key in dict.fromkeys((s.suite, s.protocol, s.text) for s in record.scores):
        scores = [s for s in record.scores if (s.suite, s.protocol, s.text) == key]
        intervals = [_interval(Run(record, run.folder), s) for s in scores]
        made.append(_table(scores, intervals, [seeds.get((*key, s.task), "") for s in scores]))
    return made or ["This run has no scores."]


def _table(
    scores: Sequence[Score], intervals: Sequence[tuple[float, float] | None], seeds: Sequence[str]
) -> str:
    names = [Column(name, right=True) for name in ("score", "items", "95 % interval", "all seeds")]
    rows = []
    for s, interval, seed in zip(scores, intervals, seeds, strict=True):
        number = Cell(number=s.value, decimals=DECIMALS.get(s.metric, 2))
        between = f"{interval[0]:.2f} to {interval[1]:.2f}" if interval else ""
        rows.append((s.task, number, f"{s.n:,}", between, seed))
    notes = []
    if any(intervals):
        notes.append(
            "Interval: 95 %, of this one run, over other items; it does not cover other seeds."
        )
    if any(seeds):
        notes.append(
            "All seeds: mean ± standard deviation over the runs that differ only in the seed."
        )
    first = scores[0]
    form = f", {first.text} text" if first.text else ""
    metrics = ", ".join(dict.fromkeys(metric_words(s.metric) for s in scores))
    title = f"{first.suite} ({metrics}; {first.protocol}{form})"
    return as_markdown(grid(["task", *names], rows, title=title, notes=notes)).rstrip("\n")


def _interval(run: Run, own_score: Score) -> tuple[float, float] | None:
    """Only where the stored predictions are of a kind that has statistics."""
    from bench.compare.statistics.column import interval_of_method

    if own_score.task == AVERAGE:
        return None
    try:
        found = interval_of_method(read_predicted([run], own_score.key))
    except (BenchError, ValueError):
        return None
    return found.low, found.high


def of_all_seeds(record: RunRecord, store: RunsFolder) -> dict[tuple[Any, ...], str]:
    """(suite, protocol, text, task) -> "61.18 ± 0.35 (3)", where more runs of the same row are in the folder."""
    own = (record.method, record.variant, record.setting, record.backbone)
    alike = [
        run
        for run in store.records()[0]
        if (run.method, run.variant, run.setting, run.backbone) == own
    ]
    if record.run_id not in {run.run_id for run in alike}:
        return {}
    found = {}
    for table in summarise(alike):
        for row in table.rows:
            if record.run_id in row.runs and len(row.runs) > 1:
                for task, cell in zip(table.columns, row.cells, strict=True):
                    if cell is not None and cell.sd is not None:
                        words = f"{score(cell.mean, cell.decimals)} ± {score(cell.sd, cell.decimals)} ({len(cell.values)})"
                        found[table.suite, table.protocol, table.text, task] = words
    return found


def model_index(record: RunRecord) -> list[dict[str, Any]]:
    """The scores as the hub reads them."""
    results = [
        {
            "task": {
                "type": "sentence-similarity" if s.metric == "spearman" else "feature-extraction"
            },
            "dataset": {
                "name": f"{s.task}, {s.protocol}" + (f", {s.text}" if s.text else ""),
                "type": s.suite,
            },
            "metrics": [{"type": s.metric, "value": round(s.value, 4), "name": s.metric}],
        }
        for s in record.scores
        if s.task != AVERAGE
    ]
    return [{"name": record.run_id, "results": results}] if results else []
