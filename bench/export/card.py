"""Write the README.md of an export: a description, an example, scores, recipe, origin, licence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jinja2

from bench.backbones.bidirectional import SINCE
from bench.base.foreign_text import escape_markdown
from bench.compare.forms.run_report import run_in_words
from bench.export.card_tables import licence_table, origin_table, recipe_table, scores_table
from bench.export.exported import Exported
from bench.export.mteb_folder import hub_backbone
from bench.records import Run, RunRecord
from bench.run.finished import TrainedRun

TEMPLATE = Path(__file__).with_name("card.md.jinja")
LOAD = """from sentence_transformers import SentenceTransformer

model = SentenceTransformer({folder}{trust})
vectors = model.encode(["A man is playing a guitar.", "Two dogs run."])
print(vectors.shape)
"""
LOAD_MTEB = """import sys

# for a model on the hub: huggingface_hub.snapshot_download("owner/name")
sys.path.insert(0, {folder})
import mteb_model

model = mteb_model.load()
print(mteb_model.meta.name, mteb_model.meta.embed_dim)
"""


def write_card(run: TrainedRun, exported: Exported, folder: Path, place: str) -> str:
    """Return the card in Markdown, with the hub's front matter.

    ``place``: the name that the example loads the model by.
    """
    template = jinja2.Template(
        TEMPLATE.read_text(encoding="utf-8"), trim_blocks=True, keep_trailing_newline=True
    )
    return template.render(
        front=front_matter(run.record),
        title=escape_markdown(run.record.run_id),
        what=escape_markdown(run_in_words(run.record)),
        summary=escape_markdown(run.plugin.cls.summary.strip()),
        form=exported.form,
        dimensions=f"{exported.dimensions:,}",
        example=loading_example(exported, folder, place),
        files=", ".join(f"`{name}`" for name in exported.module_files),
        bidirectional=SINCE if exported.bidirectional else "",
        unmerged=escape_markdown(exported.base),
        difference=f"{exported.difference:.1g}",
        scores=scores_table(Run(run.record, run.folder)),
        recipe=recipe_table(run),
        origin=origin_table(run),
        licence=licence_table(run.record),
    )


def loading_example(exported: Exported, folder: Path, place: str) -> str:
    """Return a script that loads the export from ``place``; the tests run it."""
    script = LOAD_MTEB if exported.form == "mteb" else LOAD
    trust = ", trust_remote_code=True" if exported.module_files else ""
    # in quotes, because a name may have any character
    return script.format(folder=json.dumps(place, ensure_ascii=False), trust=trust)


def front_matter(record: RunRecord) -> str:
    """Return the card's metadata for the hub, as JSON values, which are YAML."""
    facts: dict[str, Any] = {"library_name": "sentence-transformers"}
    facts["pipeline_tag"] = "sentence-similarity"
    facts["tags"] = ["sentence-similarity", "feature-extraction", "sentence-bench", record.method]
    backbone = hub_backbone(record)
    if backbone:
        facts["base_model"] = backbone
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in facts.items()]
    return "".join(lines)
