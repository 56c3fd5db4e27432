"""The README.md of an export: what the model is, how it is loaded, its scores with intervals, recipe, provenance, licence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jinja2

from bench.base.text import markdown, value_text
from bench.compare.formatting import metric_words
from bench.data.sets import data_sets
from bench.export.folders import transformers_example
from bench.export.results import Exported, hub_backbone, scored_cells
from bench.records import Run, RunRecord
from bench.records.record import AVERAGE
from bench.run.plan import TrainedRun
from bench.show.grid import Cell, Column, grid
from bench.show.markup import as_markdown
from bench.show.tables.run_report import run_in_words

TEMPLATE = Path(__file__).with_name("card.md.jinja")
BUILTIN = "CC BY-SA. Sentences of English Wikipedia, by Wikipedia contributors"
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


def text(run: TrainedRun, exported: Exported, folder: Path, place: str) -> str:
    """Markdown with the hub's front matter. ``place``: from where the example loads the model."""
    return jinja2.Template(
        TEMPLATE.read_text(encoding="utf-8"), trim_blocks=True, keep_trailing_newline=True
    ).render(
        front=front_matter(run.record, exported),
        title=markdown(run.record.run_id),
        what=markdown(run_in_words(run.record)),
        summary=markdown(run.plugin.cls.summary.strip()),
        form=exported.form,
        dimensions=f"{exported.dimensions:,}",
        example=example(exported, folder, place),
        files=", ".join(f"`{name}`" for name in exported.module_files),
        difference=f"{exported.difference:.1g}",
        scores=scores_table(Run(run.record, run.folder)),
        recipe=recipe_table(run),
        origin=origin_table(run),
        licence=licence_table(run.record),
    )


def example(exported: Exported, folder: Path, place: str) -> str:
    """A script that loads the export from ``place``; the tests run it."""
    if exported.form == "transformers":
        return transformers_example(folder, place)
    quoted = json.dumps(place, ensure_ascii=False)  # in quotes, whatever is in the name
    return (LOAD_MTEB if exported.form == "mteb" else LOAD).format(
        folder=quoted, trust=", trust_remote_code=True" if exported.module_files else ""
    )


def front_matter(record: RunRecord, exported: Exported) -> str:
    """What the hub reads: as JSON values, which are YAML."""
    results = [
        {
            "task": {
                "type": "sentence-similarity"
                if score.metric == "spearman"
                else "feature-extraction"
            },
            "dataset": {
                "name": ", ".join(filter(None, (score.task, score.protocol, score.text))),
                "type": score.suite,
            },
            "metrics": [
                {"type": score.metric, "value": round(score.value, 4), "name": score.metric}
            ],
        }
        for score in record.scores
        if score.task != AVERAGE
    ]
    about = {
        "library_name": (
            "transformers" if exported.form == "transformers" else "sentence-transformers"
        ),
        "pipeline_tag": "sentence-similarity",
        "tags": ["sentence-similarity", "feature-extraction", "sentence-bench", record.method],
        "base_model": hub_backbone(record),
        "model-index": [{"name": record.run_id, "results": results}] if results else None,
    }
    return "".join(f"{k}: {json.dumps(v, ensure_ascii=False)}\n" for k, v in about.items() if v)


# --- its tables ---


def scores_table(run: Run) -> str:
    """All scores of a run as ``bench compare`` has them, with an interval over items where there is one."""
    rows = [
        (
            task,
            Cell(number=cell.mean, decimals=cell.decimals),
            f"{cell.n:,}",
            f"{cell.spread.low:.2f} to {cell.spread.high:.2f}" if cell.spread else "",
            table.suite,
            metric_words(table.metric),
            table.protocol,
            table.text or "",
        )
        for table, task, cell in scored_cells(run)
    ]
    numbers = [Column(name, right=True) for name in ("score", "items", "95 % interval")]
    return as_markdown(
        grid(
            ["task", *numbers, "suite", "metric", "protocol", "text"],
            rows,
            notes=[
                "Interval: 95 %, for this one run and other test items; it does not cover other seeds."
            ],
        )
    )


def recipe_table(run: TrainedRun) -> str:
    places = run.plugin.cls.places
    rows = [
        (key, _name(shown) if key in places else shown, value.source)
        for key, value in sorted(run.record.recipe.items())
        for shown in [value_text(value.value)]
    ]
    return as_markdown(grid(("value of", "is", "from"), rows))


def origin_table(run: TrainedRun) -> str:
    """Facts as the run recorded them; what it did not record is left out."""
    record, known, done = run.record, run.record.provenance, run.record.training
    corpus, plugin = known.corpus, known.plugin
    facts = [
        ("run", record.run_id),
        ("fingerprint", record.fingerprint),
        ("created", known.created),
        ("method", run.plugin.cls.paper),
        ("backbone", record.backbone_name),
        ("revision of the backbone", known.backbone.revision),
        ("training text", corpus.name and _name(corpus.name)),
        ("sha256 of the training text", corpus.sha256),
        ("steps", done and f"{done.steps:,}"),
        ("bench", known.bench_version),
        ("plugin", f"{plugin.package} {plugin.version}, source sha256 {plugin.sha256}"),
        *(("note", note) for note in run.notes),
        ("packages", ", ".join(f"{name} {version}" for name, version in known.packages.items())),
    ]
    return as_markdown(grid(("fact", "value"), [(key, value) for key, value in facts if value]))


def _name(text: str) -> str:
    """The last part of a path, so that no local folder is in the card. A hub's owner/name stays."""
    is_path = text.startswith(("/", ".", "~")) or text.count("/") > 1
    return Path(text).name if "/" in text and is_path else text


def licence_table(record: RunRecord) -> str:
    """Which terms apply, and what bench does not know."""
    weights = (
        "Apache-2.0; pretrained on English Wikipedia text (CC BY-SA)"
        if record.backbone == "builtin"
        else f"that of {record.backbone_name}, from which these weights were made"
    )
    rows = [("weights", weights), ("code in this folder", "Apache-2.0")]
    corpus = record.provenance.corpus
    if corpus.name:
        terms: dict[Any, str] = {
            form.sha256: f"{data_set.licence}. {data_set.terms}"
            for data_set in data_sets().values()
            if data_set.kind == "corpus"
            for file in data_set.files
            for form in file.forms.values()
        }
        unknown = "not known to bench: see where this text comes from"
        licence = BUILTIN if corpus.name == "builtin" else terms.get(corpus.sha256, unknown)
        rows.append((f"training text {_name(corpus.name)}", licence))
    return as_markdown(grid(("of", "licence"), rows))
