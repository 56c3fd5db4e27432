"""The parity scripts without anybody's checkout: how numbers are compared, how a foreign script is read, and our own half."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

FOLDER = Path(__file__).parents[2] / "benchmarks" / "parity"
THEIRS = """
import nowhere_to_be_found

def main():
    names = load()
    if len(names) == 3:
        kind = "triplets"
    elif len(names) == 2:
        kind = "pairs"
    if verbose:
        raise RuntimeError("not asked for")

    def collate(rows):
        return [(row, kind) for row in rows]

class Trainer:
    def loss(self, x):
        return 2 * x + self.offset
"""


@pytest.fixture(scope="module", autouse=True)
def _importable() -> Iterator[None]:
    """Its modules have short names, which no other test should meet."""
    before = dict(sys.modules)
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))
    for name in sys.modules.keys() - before.keys():
        if (
            getattr(sys.modules[name], "__file__", None)
            and Path(str(sys.modules[name].__file__)).parent == FOLDER
        ):
            del sys.modules[name]


def test_the_largest_difference_of_each_tensor() -> None:
    from table import differences

    theirs = {"a": np.array([1.0, -4.0, 2.0]), "b": np.array(3.0), "c": np.zeros((0, 2))}
    ours = {"b": np.array(3.0), "a": np.array([1.5, -4.25, 2.0]), "c": np.zeros((0, 2))}
    found = [(d.name, d.largest, d.scale) for d in differences(theirs, ours)]
    assert found == [("a", 0.5, 4.0), ("b", 0.0, 3.0), ("c", 0.0, 0.0)]


def test_our_half_repeats_itself_and_shows_a_changed_setting(tmp_path: Path) -> None:
    from cases import Case
    from ours import build, tensors
    from table import TOLERANCE, differences
    from tiny import tiny_backbones

    from methods.simcse import SimCSE

    torch.manual_seed(3)
    backbone = tiny_backbones(tmp_path)["roberta"]

    def half(**values: Any) -> dict[str, np.ndarray]:
        case = Case("c", SimCSE, values=values)
        method = build(case, backbone, tmp_path)
        ids = np.zeros((6, 2, 1), dtype=np.int64)
        return tensors(
            case,
            method,
            {"batch/input_ids": ids, "batch/attention_mask": ids},
            lambda name: name,
            tmp_path,
        )

    def apart(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> set[str]:
        return {d.name.split("/")[0] for d in differences(a, b) if not d.within(TOLERANCE)}

    first = half()
    assert first["embeddings/dev"].dtype == np.float64
    assert apart(first, half()) == {"tokens"}  # an empty batch is not the one that our half made
    assert apart(first, half(temperature=0.05001)) == {"tokens", "loss", "gradient", "after"}
    assert apart(first, half(head_at_test=True)) == {"tokens", "embeddings"}
