"""Write the README.md of an export: a description, an example, scores, recipe, origin, licence."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from bench.backbones.bidirectional import SINCE
from bench.base.foreign_text import escape_markdown
from bench.compare.forms.run_report import run_in_words
from bench.export.card_tables import licence_table, origin_table, recipe_table, scores_table
from bench.records import Run, RunRecord
from bench.run.finished import TrainedRun

COMMIT_LENGTH = 40
TEMPLATE = Path(__file__).with_name("card.md.jinja")
LOAD = """from sentence_transformers import SentenceTransformer

model = SentenceTransformer({folder}{trust})
vectors = model.encode(["A man is playing a guitar.", "Two dogs run."])
print(vectors.shape)
"""


@dataclass(frozen=True)
class Exported:
    """A written model, compared with its method."""

    run_id: str
    # the largest difference from the method's own vectors, relative to their size
    difference: float
    dimensions: int
    # source files in the folder, which the user has to allow when loading it
    module_files: tuple[str, ...] = ()
    # its decoder attends to both sides, which old versions of transformers ignore
    bidirectional: bool = False
    # the public name of the model that it is an adapter of; "": it is a whole model
    base: str = ""


def write_card(run: TrainedRun, exported: Exported, place: str) -> str:
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
        dimensions=f"{exported.dimensions:,}",
        example=loading_example(exported, place),
        files=", ".join(f"`{name}`" for name in exported.module_files),
        bidirectional=SINCE if exported.bidirectional else "",
        unmerged=escape_markdown(exported.base),
        difference=f"{exported.difference:.1g}",
        scores=scores_table(Run(run.record, run.folder)),
        recipe=recipe_table(run),
        origin=origin_table(run),
        licence=licence_table(run.record),
    )


def loading_example(exported: Exported, place: str) -> str:
    """Return a script that loads the export from ``place``; the tests run it."""
    trust = ", trust_remote_code=True" if exported.module_files else ""
    # in quotes, because a name may have any character
    return LOAD.format(folder=json.dumps(place, ensure_ascii=False), trust=trust)


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


def hub_backbone(record: RunRecord) -> str | None:
    """Return the backbone's name if it is a model of the hub, else None."""
    revision = record.provenance.backbone.revision or ""
    if len(revision) != COMMIT_LENGTH or Path(record.backbone).exists():
        return None
    return record.backbone
