"""Two real processes with one batch give the gradient of one process, for every method, setting and
variant.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.method.ranks import Alone

# the authors gather everything that their loss uses
PURE = ("dcpcse", "focal-infonce", "promcse", "promptbert", "simcse")


def answers_of(tiny: str, folder: Path) -> dict[str, Any]:
    """Return the answers of the two ranks, which must be equal."""
    root = Path(__file__).parents[2]
    support = root / "tests" / "support"
    path = os.pathsep.join([str(root), str(support), *sys.path])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    worker = [sys.executable, str(support / "ranks_worker.py")]
    ranks = [
        subprocess.Popen([*worker, str(rank), "2", str(folder), tiny], env=environment)
        for rank in range(2)
    ]
    try:
        assert [process.wait(timeout=1200) for process in ranks] == [0, 0]
    finally:
        for process in ranks:
            process.kill()
    first, second = (
        json.loads((folder / f"answers-{rank}.json").read_text(encoding="utf-8"))
        for rank in range(2)
    )
    assert first.keys() == second.keys()
    for name, cases in first.items():
        for rows, found in cases.items():
            theirs = second[name][rows]["gradient"]
            assert found["gradient"] == pytest.approx(theirs, abs=1e-12), (name, rows)
    return first  # type: ignore[no-any-return]


def check_exact(answers: dict[str, Any]) -> None:
    for name, cases in answers.items():
        if name.startswith("faithful"):
            continue
        # a thousand times what may differ
        assert cases["uneven"]["size"] > 1e-6, name
        for rows, found in cases.items():
            where = (name, rows, found)
            assert found["gradient"] <= 1e-9 * max(1.0, found["size"]), where
            assert found["losses"] <= 1e-9 and found["buffers"] <= 1e-9 and not found["missing"], (
                where
            )


def check_faithful(answers: dict[str, Any]) -> None:
    """The authors' gather: one half of the gradient, in the same direction; less of a half where
    not all is gathered.
    """
    for name, cases in answers.items():
        # to sg-opt it means its frozen copy's dropout
        if not name.startswith("faithful") or "sg-opt" in name:
            continue
        found = cases["uneven"]
        assert found["losses"] <= 1e-9, name
        if name.removeprefix("faithful ").split(",")[0] in PURE:
            assert found["halved"] <= 1e-9 * max(1.0, found["size"]), (name, found)
        else:
            assert 0.49 < found["ratio"] <= 1.0 + 1e-9, (name, found)


@pytest.mark.nightly
@pytest.mark.slow(seconds=30)
def test_two_ranks_have_the_gradient_of_one_process_for_every_method(tiny, tmp_path):
    answers = answers_of(tiny, tmp_path)
    known = {"diffcse+focal, unsupervised", "esimcse, unsupervised", "flow, none"}
    known |= {"simcse+eh, supervised", "simcse+mlm, unsupervised", "promcse+eh, supervised"}
    assert len(answers) > 50 and known | {"sbert, supervised"} < answers.keys()
    check_exact(answers)
    check_faithful(answers)


class Four(Alone):
    """Rank 2 of 4, for what needs no other rank."""

    rank, count = 2, 4


@pytest.mark.parametrize("rows", [1, 4, 13])
def test_the_parts_of_a_batch_are_the_batch(rows: int) -> None:
    order = np.random.default_rng(rows).permutation(rows)
    parts = []
    for rank in range(4):
        ranks = Four()
        ranks.rank = rank
        part, size = ranks.part(order), ranks.sizes(rows)[rank]
        assert len(part) == max(size, 1), "a rank without rows has one that does not count"
        parts.append(part[:size])
    assert np.concatenate(parts).tolist() == order.tolist()
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
