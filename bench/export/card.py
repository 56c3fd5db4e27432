"""Write the README.md of an export: a description, an example, scores, recipe, origin, licence."""

from __future__ import annotations

import json
from pathlib import Path

import jinja2

from bench.base.foreign_text import markdown
from bench.export.card_tables import licence_table, origin_table, recipe_table, scores_table
from bench.export.exported import Exported
from bench.export.mteb_folder import hub_backbone
from bench.export.transformers_folder import transformers_example
from bench.records import Run, RunRecord
from bench.records.record import AVERAGE
from bench.run.plan import TrainedRun
from bench.show.tables.report import what

TEMPLATE = Path(__file__).with_name("card.md.jinja")
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
    """Return the card in Markdown, with the hub's front matter.

    ``place``: the name that the example loads the model by.
    """
    return jinja2.Template(
        TEMPLATE.read_text(encoding="utf-8"), trim_blocks=True, keep_trailing_newline=True
    ).render(
        front=front_matter(run.record, exported),
        title=markdown(run.record.run_id),
        what=markdown(what(run.record)),
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
    """Return a script that loads the export from ``place``; the tests run it."""
    if exported.form == "transformers":
        return transformers_example(folder, place)
    quoted = json.dumps(place, ensure_ascii=False)  # in quotes, whatever is in the name
    return (LOAD_MTEB if exported.form == "mteb" else LOAD).format(
        folder=quoted, trust=", trust_remote_code=True" if exported.module_files else ""
    )


def front_matter(record: RunRecord, exported: Exported) -> str:
    """Return the card's metadata for the hub, as JSON values, which are YAML."""
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
