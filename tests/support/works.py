"""The table of methods on families in docs/backbones.md, and the trial of each cell.

``python tests/support/works.py`` prints it; tests/backbones/test_families.py proves every
cell of it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import torch

from bench.backbones.families import FAMILIES, check_mlm_head
from bench.base.errors import BenchError
from bench.method.plugins import discover
from bench.run.conformance.methods import SENTENCES, TOLERANCE, Case

NO_DEBIAS = {"debias_train": "false", "debias_at_dev": "false", "debias_at_test": "false"}
MLM_TRANSFORM = NO_DEBIAS | {"head": "mlm-transform"}


@dataclass(frozen=True)
class Row:
    """A method in one setting, as it is or with a variant, written as the recipe values that make
    it.
    """

    method: str
    setting: str
    values: dict[str, str] = field(default_factory=dict)
    what: str = ""

    @property
    def label(self) -> str:
        return f"`{self.method}`" + (f" {self.what}" if self.what else "")


ROWS = (
    *(Row(name, "none") for name in ("cls", "last-avg", "first-last-avg", "embedding-last-avg")),
    Row("pretrained", "none", {"pooling": "cls"}),
    Row("simcse", "unsupervised"),
    Row("simcse", "supervised", what="supervised"),
    Row("simcse", "unsupervised", {"mlm": "true"}, "`mlm`"),
    Row("promcse", "unsupervised"),
    Row("promcse", "supervised", {"eh": "true"}, "supervised, `eh`"),
    Row("promcse", "unsupervised", {"prompt": "layer-shared"}, "`layer-shared`"),
    Row("promcse", "unsupervised", {"prompt": "input-layer", "mlm": "false"}, "`input-layer`"),
    Row("dcpcse", "unsupervised"),
    Row("dcpcse", "unsupervised", {"mlm": "true"}, "`mlm`"),
    Row("dcpcse", "unsupervised", {"shallow": "true", "mlm": "false"}, "`shallow`"),
    Row("conpvp", "unsupervised"),
    Row("conpvp", "unsupervised", {"debias": "none"}, "debias=none"),
    Row("focal-infonce", "unsupervised"),
    Row("promptbert", "unsupervised"),
    Row("promptbert", "unsupervised", NO_DEBIAS, "`no-debias`"),
    Row("promptbert", "supervised", MLM_TRANSFORM, "supervised, BERT's recipe, `no-debias`"),
    Row("cot-bert", "unsupervised"),
    Row("cot-bert", "unsupervised", {"denoise": "position"}, "`position-denoise`"),
    Row("esimcse", "unsupervised"),
    Row("diffcse", "unsupervised", {"generator": "none"}, "its own generator"),
    Row("consert", "unsupervised"),
    Row("consert", "unsupervised", {"view2": "token-cutoff"}, "view2=token-cutoff"),
    *(Row(name, "unsupervised") for name in ("ct", "mirror-bert", "sg-opt", "is-bert")),
    Row("dclr", "unsupervised", {"teacher": "{backbone}"}),
    Row("sncse", "unsupervised"),
    *(Row(name, "unsupervised") for name in ("infocse", "pcl", "tsdae", "crop-documents")),
    Row("unsee", "unsupervised", {"predictor_blocks": "1"}),
    Row("sbert", "supervised"),
    *(Row(name, "none") for name in ("whitening", "flow")),
)
COLUMNS = ["bert", "roberta", "xlm-roberta", "electra", "electra-generator", "distilbert", "mpnet"]
COLUMNS += ["deberta-v2", "modernbert"]

plugins = cache(discover)


def case(row: Row, backbone: str, folder: Path) -> Case:
    values = {key: value.format(backbone=backbone) for key, value in row.values.items()}
    return Case(plugins()[row.method], row.setting, backbone, values, folder)


def refusal(row: Row, backbone: str, folder: Path) -> BenchError | None:
    """Return the method's refusal of the backbone before anything is loaded: ``check``, as a plan
    calls it.
    """
    from bench.method.recipe_files import read_recipes
    from bench.method.recipes import choose_entry, merge_recipe
    from bench.run.planned import learns

    one = case(row, backbone, folder)
    entry = choose_entry(
        read_recipes(one.plugin.folder, row.method).recipes, row.setting, backbone, ""
    )
    trained = learns(one.plugin.cls, row.setting)
    recipe = merge_recipe(one.plugin.cls, entry, "", one.overrides, trained=trained)
    try:
        one.plugin.cls.check(recipe, Path(backbone))
    except BenchError as error:
        return error
    return None


def try_it(row: Row, backbone: str, folder: Path) -> None:
    """Fail unless the gradient reaches all that trains, and vectors do not depend on the batch."""
    one = case(row, backbone, folder)
    method = one.build()
    if row.setting != "none":
        method.train()
        total = method(one.batch(method)).total
        total.backward()
        assert torch.isfinite(total) and not total.ndim
        trains = [(name, p) for name, p in method.named_parameters() if p.requires_grad]
        untouched = [name for name, p in trains if p.grad is None]
        assert not untouched, untouched
    method.eval()
    texts = SENTENCES[1:4]
    alone = np.concatenate([method.encode([text]) for text in texts])
    np.testing.assert_allclose(method.encode(texts), alone, atol=TOLERANCE)


def title(column: str) -> str:
    return "ELECTRA generator" if column == "electra-generator" else FAMILIES[column].title


def table(models: Callable[[str], str]) -> str:
    """Return the table as Markdown; ``models`` gives the folder of a family's tiny model."""
    lines = [
        "| | " + " | ".join(title(column) for column in COLUMNS) + " |",
        "|---" * (len(COLUMNS) + 1) + "|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        heads = []
        for column in COLUMNS:
            try:
                check_mlm_head(Path(models(column)))
                heads.append("yes")
            except BenchError:
                heads.append("no")
        lines.append("| an MLM head | " + " | ".join(heads) + " |")
        for row in ROWS:
            refused = [refusal(row, models(column), Path(folder)) for column in COLUMNS]
            cells = ["**no**" if one else "yes" for one in refused]
            lines.append(f"| {row.label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    from family_models import FAMILIES as MODELS

    with tempfile.TemporaryDirectory() as place:
        made = {name: MODELS[name](Path(place) / name) for name in COLUMNS}
        print(table(made.__getitem__))
