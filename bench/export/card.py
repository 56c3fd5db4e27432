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


BUILTIN = "CC BY-SA. Sentences of English Wikipedia, by Wikipedia contributors"
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
    record, summary = run.record, markdown(run.plugin.cls.summary.strip())
    parts = [
        front_matter(run, exported),
        f"# {markdown(record.run_id)}",
        f"{markdown(what(record))}. Method: {summary}. Written by `bench export` as {exported.form}; its vectors have "
        f"{exported.dimensions:,} dimensions and are compared by their cosine.",
        "## How to load it",
        f"```python\n{example(exported, folder, place or exported.folder.name)}```",
        *loading_notes(exported),
        "## Scores",
        scores_table(run),
        "## Recipe",
        recipe_table(run),
        "## Where it comes from",
        origin_table(run),
        "## Licence",
        licence_table(record),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def example(exported: Exported, folder: Path, place: str) -> str:
    """A script that loads the export from ``place``; the tests run it."""
    if exported.form == "transformers":
        return transformers_folder.example(folder, place)
    quoted = json.dumps(place, ensure_ascii=False)  # in quotes, whatever is in the name
    trust = ", trust_remote_code=True" if exported.module_files else ""
    return (LOAD_MTEB if exported.form == "mteb" else LOAD).format(folder=quoted, trust=trust)


def front_matter(run: TrainedRun, exported: Exported) -> str:
    """What the hub reads: as JSON values, which are YAML."""
    record = run.record
    about = {
        "library_name": LIBRARIES.get(exported.form, "sentence-transformers"),
        "pipeline_tag": "sentence-similarity",
        "tags": [
            "sentence-similarity",
            "feature-extraction",
            "sentence-bench",
            record.method,
        ],
        "base_model": mteb_folder.hub_backbone(record),
        "model-index": model_index(record),
    }
    lines = [f"{key}: {json.dumps(v, ensure_ascii=False)}\n" for key, v in about.items() if v]
    return f"---\n{''.join(lines)}---"


def loading_notes(exported: Exported) -> list[str]:
    files = ", ".join(f"`{name}`" for name in exported.module_files)
    return [
        f"The method needs a part that the library does not have. It is in {files}, in this folder: read it, then allow it "
        "with `trust_remote_code=True`. It needs sentence-transformers 6 and nothing else."
        if files
        else "",
        f"`python {mteb_folder.FILE} STS12` evaluates it on mteb's task of that name."
        if exported.form == "mteb"
        else "",
        "When it was written, the vectors of ten sentences loaded this way were compared with the method's own: the largest "
        f"difference is {exported.difference:.1g}, relative to the largest number of a vector where that is above 1.",
    ]


def table(columns: Sequence[Column | str], rows: Sequence[Sequence[Any]], **options: Any) -> str:
    return as_markdown(grid(columns, rows, **options)).rstrip("\n")


def recipe_table(run: TrainedRun) -> str:
    recipe, places = run.record.recipe, run.plugin.cls.places
    if not recipe:
        return "Nothing was trained, and nothing chosen."
    texts = {key: plain_value(value.value) for key, value in sorted(recipe.items())}
    rows = [
        (key, _name(text) if key in places else text, recipe[key].source)
        for key, text in texts.items()
    ]
    return table(("value of", "is", "from"), rows)


def origin_table(run: TrainedRun) -> str:
    """Facts as the run recorded them; what it did not record is left out."""
    record, known, done = run.record, run.record.provenance, run.record.training
    backbone, corpus, plugin = known.backbone, known.corpus, known.plugin
    best = done if done is not None and done.dev_score is not None else None
    facts = [
        ("run", record.run_id),
        ("fingerprint", record.fingerprint),
        ("created", known.created),
        ("method", run.plugin.cls.paper),
        ("backbone", f"{record.backbone_name}, revision {backbone.revision or 'not recorded'}"),
        ("training text", corpus.name and f"{_name(corpus.name)}, sha256 {corpus.sha256}"),
        ("steps", done and f"{done.steps:,}"),
        ("step kept", best and f"{best.best_step} ({best.dev_task} {best.dev_score:.2f})"),
        ("bench", known.bench_version),
        ("plugin", f"{plugin.package} {plugin.version}, source sha256 {plugin.sha256}"),
        *(("note", note) for note in run.notes),
        ("packages", ", ".join(f"{name} {version}" for name, version in known.packages.items())),
    ]
    return table(("fact", "value"), [(key, value) for key, value in facts if value])


def _name(text: str) -> str:
    """The last part of a path: where it lay on somebody's machine has no place in a card. A hub's owner/name stays."""
    is_path = text.startswith(("/", ".", "~")) or text.count("/") > 1
    return Path(text).name if "/" in text and is_path else text


def licence_table(record: RunRecord) -> str:
    """Whose terms hold, and what bench does not know."""
    from bench.data.sets.manifest import data_sets

    weights = f"that of {record.backbone_name}, whose weights these are, changed or with others beside them"
    if record.backbone == "builtin":
        weights = "Apache-2.0; pretrained on English Wikipedia text (CC BY-SA)"
    rows = [("weights", weights), ("code in this folder", "Apache-2.0")]
    if (corpus := record.provenance.corpus).name:
        terms = {
            form.sha256: f"{data_set.licence}. {data_set.terms}"
            for data_set in data_sets().values()
            if data_set.kind == "corpus"
            for file in data_set.files
            for form in file.forms.values()
        }
        terms |= {corpus.sha256 or "": BUILTIN} if corpus.name == "builtin" else {}
        unknown = "this text is not one that bench knows: ask where it comes from"
        rows.append(
            (f"training text {_name(corpus.name)}", terms.get(corpus.sha256 or "", unknown))
        )
    return table(("of", "licence"), rows)


# --- the scores of a model card: an interval a task, and how far other seeds of the same recipe lie apart ---


NOTES = (
    "Interval: 95 %, of this one run, over other items; it does not cover other seeds.",
    "All seeds: mean ± standard deviation over the runs that differ only in the seed, and their number.",
)


def scores_table(run: TrainedRun) -> str:
    """All scores of a run."""
    record, seeds = run.record, of_all_seeds(run.record, RunsFolder(run.folder.parent))
    rows = []
    for one in record.scores:
        number = Cell(number=one.value, decimals=DECIMALS.get(one.metric, 2))
        interval = _interval(Run(record, run.folder), one)
        between = f"{interval[0]:.2f} to {interval[1]:.2f}" if interval else ""
        seed = seeds.get((one.suite, one.protocol, one.text, one.task), "")
        about = (one.suite, metric_words(one.metric), one.protocol, one.text or "")
        rows.append((one.task, number, f"{one.n:,}", between, seed, *about))
    names = ("score", "items", "95 % interval", "all seeds")
    columns = [Column(name, right=True) for name in names]
    texts = ("suite", "metric", "protocol", "text")
    return (
        table(["task", *columns, *texts], rows, notes=NOTES[: 1 + bool(seeds)])
        if rows
        else "It has no scores."
    )


def _interval(run: Run, own_score: Score) -> tuple[float, float] | None:
    """Only where the stored predictions are of a kind that has statistics."""
    from bench.compare.statistics.column import interval_of_method

    if own_score.task == AVERAGE:
        return None
    try:
        interval = interval_of_method(read_predicted([run], own_score.key))
    except (BenchError, ValueError):
        return None
    return interval.low, interval.high


def of_all_seeds(record: RunRecord, store: RunsFolder) -> dict[tuple[Any, ...], str]:
    """(suite, protocol, text, task) -> "61.18 ± 0.35 (3)", where more runs of the same row are in the folder."""
    row_key = (record.method, record.variant, record.setting, record.backbone)
    alike = [
        run
        for run in store.records()[0]
        if (run.method, run.variant, run.setting, run.backbone) == row_key
    ]
    return {
        (
            scores.suite,
            scores.protocol,
            scores.text,
            task,
        ): f"{score(cell.mean, cell.decimals)} ± {score(cell.sd, cell.decimals)} ({len(cell.values)})"
        for scores in summarise(alike)
        for row in scores.rows
        if record.run_id in row.runs
        for task, cell in zip(scores.columns, row.cells, strict=True)
        if cell is not None and cell.sd is not None
    }


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
