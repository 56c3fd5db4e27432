"""The parity scripts without anybody's checkout: how numbers are compared, how a foreign script is read, and our own half."""

from __future__ import annotations

import dataclasses
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


@pytest.mark.parametrize(
    "theirs, ours",
    [
        ({"a": np.ones(2)}, {}),
        ({}, {"a": np.ones(2)}),
        ({"a": np.ones(2)}, {"a": np.ones((2, 1))}),  # would broadcast
        ({"a": np.array([1.0, np.nan])}, {"a": np.array([1.0, np.nan])}),
        ({"a": np.array([np.inf])}, {"a": np.array([np.inf])}),
    ],
)
def test_what_cannot_be_compared_differs(theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    from table import differences, lines

    (difference,) = differences(theirs, ours)
    assert not difference.within(1e300)
    assert (
        "DIFFERS"
        in lines("case", [dataclasses.replace(difference, name="loss")], 1.0, every=False)[0]
    )


def test_nested_functions_of_a_script_run_without_it(tmp_path: Path) -> None:
    from script import Script

    (tmp_path / "train.py").write_text(THEIRS, encoding="utf-8")
    script = Script(tmp_path / "train.py")
    names: dict[str, Any] = {"names": ["a", "b"]}
    for node in script.conditions("len(names)"):
        script.run(node, names)
    assert script.define("collate", names)([1, 2]) == [(1, "pairs"), (2, "pairs")]
    assert script.define("loss", {})(type("Self", (), {"offset": 1}), 5) == 11
    assert script.define("nothing", {}) is None


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
