"""The tables of a model card: scores, recipe, origin, licences."""

from __future__ import annotations

from pathlib import Path

from bench.base.grid import GridCell, GridColumn, grid
from bench.base.markup import as_markdown
from bench.base.text import value_text
from bench.compare.formatting import metric_words
from bench.compare.tables import make_tables
from bench.data.sets import data_sets
from bench.records import Run, RunRecord
from bench.run.finished import TrainedRun

BUILTIN = "CC BY-SA. Sentences of English Wikipedia, by Wikipedia contributors"


def scores_table(run: Run) -> str:
    """Return all scores of a run as ``bench compare`` has them, with intervals over items."""
    rows = []
    for table in make_tables([run]) if run.scores else ():
        for task, cell in zip(table.columns, table.rows[0].cells, strict=True):
            if cell is None:
                continue
            interval = ""
            if cell.spread:
                interval = f"{cell.spread.low:.2f} to {cell.spread.high:.2f}"
            rows.append(
                (
                    task,
                    GridCell(number=cell.mean, decimals=cell.decimals),
                    f"{cell.n:,}",
                    interval,
                    table.suite,
                    metric_words(table),
                    table.protocol,
                )
            )
    numbers = [GridColumn(name, right=True) for name in ("score", "items", "95 % interval")]
    note = "Interval: 95 %, for this one run and other test items; it does not cover other seeds."
    columns: list[GridColumn | str] = ["task", *numbers, "suite", "metric", "protocol"]
    return as_markdown(grid(columns, rows, notes=[note]))


def recipe_table(run: TrainedRun) -> str:
    """Return the values of the recipe, with their sources."""
    rows = []
    for key, value in sorted(run.record.recipe.items()):
        shown = value_text(value.value)
        if key in run.plugin.cls.places:
            shown = _without_folder(shown)
        rows.append((key, shown, value.source))
    return as_markdown(grid(("value of", "is", "from"), rows))


def origin_table(run: TrainedRun) -> str:
    """Return the facts that the run recorded; others are left out."""
    record = run.record
    known = record.provenance
    training = record.training
    corpus, plugin = known.corpus, known.plugin
    facts = [
        ("run", record.run_id),
        ("fingerprint", record.fingerprint),
        ("created", known.created),
        ("method", run.plugin.cls.paper),
        ("backbone", record.backbone_name),
        ("revision of the backbone", known.backbone.revision),
        ("training text", corpus.name and _without_folder(corpus.name)),
        ("sha256 of the training text", corpus.sha256),
        ("steps", training and f"{training.steps:,}"),
        ("bench", known.bench_version),
        ("plugin", f"{plugin.package} {plugin.version}, source sha256 {plugin.sha256}"),
        *(("note", note) for note in run.notes),
        ("packages", ", ".join(f"{name} {version}" for name, version in known.packages.items())),
    ]
    return as_markdown(grid(("fact", "value"), [(key, value) for key, value in facts if value]))


def _without_folder(text: str) -> str:
    """Return the last part of a path, so that no local folder is in the card.

    A hub's owner/name stays.
    """
    if "/" not in text:
        return text
    is_path = text.startswith(("/", ".", "~")) or text.count("/") > 1
    return Path(text).name if is_path else text


def licence_table(record: RunRecord) -> str:
    """Return the terms that apply, and those that bench does not know."""
    if record.backbone == "builtin":
        weights = "Apache-2.0; pretrained on English Wikipedia text (CC BY-SA)"
    else:
        weights = f"that of {record.backbone_name}, from which these weights were made"
    rows = [("weights", weights), ("code in this folder", "Apache-2.0")]
    corpus = record.provenance.corpus
    if corpus.name == "builtin":
        rows.append(("training text builtin", BUILTIN))
    elif corpus.name:
        licence = _corpus_terms().get(str(corpus.sha256))
        licence = licence or "not known to bench: see where this text comes from"
        rows.append((f"training text {_without_folder(corpus.name)}", licence))
    return as_markdown(grid(("of", "licence"), rows))


def _corpus_terms() -> dict[str, str]:
    """Return sha256 -> licence and terms of every form of the corpora that bench can fetch."""
    terms: dict[str, str] = {}
    for data_set in data_sets().values():
        if data_set.kind != "corpus":
            continue
        for file in data_set.files:
            for form in file.forms.values():
                terms[form.sha256] = f"{data_set.licence}. {data_set.terms}"
    return terms
