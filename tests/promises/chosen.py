"""A method of chosen quality, as a stranger's file: rows whose scores a test knows beforehand.

A vector is the sum of a vector for each word, once the method has learned, and noise of the
sentence that comes with the seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from made import write_pairs
from started import bench

NULL_TABLES, NULL_ROWS = 6, 5

METHOD = '''"""Vectors of words, and noise."""

import torch

from bench.method import Loss, TorchMethod, Value


class Chosen(TorchMethod):
    name = "chosen"
    settings = ("unsupervised",)
    summary = "vectors of words, with noise"
    defaults = {
        "noise": Value(1.0, "ours", "its size"),
        "stream": Value(0, "ours", "rows of one stream share the noise of a seed"),
        "sway": Value(0.0, "ours", "how much larger it is for the next seed"),
        "fault": Value(0.0, "ours", "the size of a noise that all seeds share"),
    }
    variants = VARIANTS

    def build(self, backbone, recipe):
        super().build(backbone, recipe)
        self.learned = torch.nn.Parameter(torch.zeros(()))
        self.register_buffer("words", drawn(1))
        self.register_buffer("fault", drawn(2))
        self.register_buffer("own", drawn(1000 * (1 + recipe.stream) + self.context.seed))

    def views(self, batch):
        return (self.embed(batch.columns[0]),)

    def loss(self, views, batch):
        return Loss(1 - self.learned)

    def embed(self, features):
        mask = features["attention_mask"]
        ids = features["input_ids"] * mask
        words = (self.words[ids] * mask[..., None]).sum(1)
        powers = torch.tensor([31**place % 4093 for place in range(ids.shape[1])])
        place = (ids * powers).sum(1) % 4093
        size = 2 * (self.recipe.noise + self.recipe.sway * (self.context.seed - 1))
        noise = size * self.own[place] + 2 * self.recipe.fault * self.fault[place]
        return words * (self.learned > 0) + noise


def drawn(seed):
    return torch.randn(4093, 16, generator=torch.Generator().manual_seed(seed))
'''

# "like" is drawn as "plain"; "sways" has seeds far apart, and "sways-more" is the same at
# each seed but for a little noise
ROWS = {
    "plain": {"noise": 1.0},
    "good": {"stream": 1, "noise": 0.5},
    "bad": {"stream": 2, "noise": 1.7},
    "like": {"stream": 3},
    "sways": {"noise": 0.4, "sway": 0.5},
    "sways-more": {"noise": 0.4, "sway": 0.5, "fault": 0.25},
}
# tables in which all rows are drawn alike
NULL = {
    f"t{table}r{row}": {"stream": 100 + NULL_ROWS * table + row}
    for table in range(NULL_TABLES)
    for row in range(NULL_ROWS)
}


def words_of(folder: Path, variants: Mapping[str, object], inputs: Path) -> list[str | Path]:
    """Write the method and 400 pairs, and return the words that train the variants: five seeds, two
    steps each, to stand in ``folder / "runs"``.
    """
    plugin = folder / "chosen_rows.py"
    plugin.write_text(METHOD.replace("VARIANTS", repr(dict(variants))), encoding="utf-8")
    pairs = write_pairs(folder / "pairs.tsv", 400)
    names = ",".join(f"chosen+{name}" for name in variants)
    words = ["run", "--plugin", plugin, "--method", names, "--seeds", "1-5", "--suite", pairs]
    words += ["--backbone", inputs / "tiny", "--corpus", inputs / "corpus.txt"]
    words += ["--budget", "2steps", "--set", "max_steps=2", "--set", "batch_size=16"]
    words += ["--set", "select_on=last", "--runs", folder / "runs", "--plain"]
    return words


def train_chosen(folder: Path, variants: Mapping[str, object], inputs: Path) -> None:
    """Train the variants."""
    bench(*words_of(folder, variants, inputs), cwd=folder, seconds=3600)
