"""Contrastive losses over two real processes: the gradient is that of one process, or faithfully a half of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gather_worker import linear, total

from methods.gather import across_ranks, gathered, spread

LOSSES = {"hard negatives": {"info_nce": 1.0}, "with EH": {"plain": 1.0, "eh": 10.0}, "focal": {"focal": 1.0}}
HALVES = [[0, 2], [2, 4]]


def cases(reference: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The authors' input through an identity layer, and random input through a random one."""
    inputs = reference["contrastive"]["inputs"]
    rng = np.random.default_rng(11)
    batches = {
        "authors": {"views": [inputs[name] for name in ("z1", "z2", "z3")], "weight": np.eye(5).tolist()},
        "random": {"views": rng.normal(size=(3, 4, 6)).tolist(), "weight": rng.normal(size=(5, 6)).tolist()},
    }
    made = {
        f"{batch}, {loss}, {faithful}": {**batches[batch], "losses": weights, "faithful": faithful, "rows": HALVES}
        for batch in batches
        for loss, weights in LOSSES.items()
        for faithful in (False, True)
    }
    odd = {**batches["random"], "losses": LOSSES["focal"], "rows": [[0, 3], [3, 4]]}
    return made | {"odd": {**odd, "faithful": False}, "odd, faithful": {**odd, "faithful": True}}


@pytest.fixture(scope="module")
def two_ranks(reference: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """case name -> (the case, [what rank 0 found, what rank 1 found])."""
    everything, folder = cases(reference), tmp_path_factory.mktemp("ranks")
    (folder / "cases.json").write_text(json.dumps(list(everything.values())), encoding="utf-8")
    root = Path(__file__).parents[2]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    worker = [sys.executable, str(Path(__file__).parent / "gather_worker.py")]
    ranks = [subprocess.Popen([*worker, str(rank), "2", str(folder)], env=environment) for rank in range(2)]
    try:
        assert [process.wait(timeout=120) for process in ranks] == [0, 0]
    finally:
        for process in ranks:
            process.kill()
    answers = [json.loads((folder / f"answers-{rank}.json").read_text(encoding="utf-8")) for rank in range(2)]
    found = zip(*answers, strict=True)
    return {name: (case, both) for (name, case), both in zip(everything.items(), found, strict=True)}


def alone(case: dict[str, Any]) -> tuple[float, np.ndarray]:
    """Loss and gradient of one process with the whole batch."""
    layer = linear(case)
    loss = total([layer(torch.tensor(view, dtype=torch.float64)) for view in case["views"]], 0, case["losses"])
    loss.backward()
    assert layer.weight.grad is not None and layer.weight.grad.abs().max() > 1e-3
    return loss.item(), layer.weight.grad.numpy()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("batch", ["authors", "random"])
def test_exact_the_averaged_gradient_is_that_of_one_process(two_ranks: dict[str, Any], batch: str, loss: str) -> None:
    case, answers = two_ranks[f"{batch}, {loss}, False"]
    wanted, gradient = alone(case)
    assert np.mean([one["loss"] for one in answers]) == pytest.approx(wanted, abs=1e-12)
    for one in answers:
        np.testing.assert_allclose(one["gradient"], gradient, rtol=0, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("batch", ["authors", "random"])
def test_faithful_every_rank_has_the_whole_loss_and_half_of_the_gradient(
    two_ranks: dict[str, Any], batch: str, loss: str
) -> None:
    case, answers = two_ranks[f"{batch}, {loss}, True"]
    wanted, gradient = alone(case)
    for one in answers:
        assert one["loss"] == pytest.approx(wanted, abs=1e-12)
        np.testing.assert_allclose(one["gradient"], gradient / 2, rtol=0, atol=1e-12)


def test_the_authors_own_run_over_two_ranks(two_ranks: dict[str, Any], reference: dict[str, Any]) -> None:
    contrastive = reference["contrastive"]
    known = contrastive["two_rank_faithful_gather"]
    case, answers = two_ranks["authors, with EH, True"]
    ratio = np.asarray(answers[0]["gradient"]) / alone(case)[1]
    np.testing.assert_allclose(ratio, known["gradient_ratio_to_single_process"], rtol=1e-9)
    for one in answers:
        assert one["loss"] == pytest.approx(contrastive["total_promcse_eh"]["loss"], abs=1e-10)
        assert one["loss"] - 10 * contrastive["eh_alone_margin_0.2"]["loss"] == pytest.approx(
            known["loss_on_every_rank"], abs=1e-10
        )


@pytest.mark.parametrize("faithful", [False, True])
def test_the_rows_of_all_ranks_stand_in_their_order(two_ranks: dict[str, Any], faithful: bool) -> None:
    case, answers = two_ranks[f"random, focal, {faithful}"]
    wanted = linear(case)(torch.tensor(case["views"][0], dtype=torch.float64)).detach()
    for one in answers:
        np.testing.assert_allclose(one["rows"], wanted, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["odd", "odd, faithful"])
def test_ranks_with_different_numbers_of_rows_are_refused_on_every_rank(two_ranks: dict[str, Any], name: str) -> None:
    _, answers = two_ranks[name]
    for one in answers:
        assert "different numbers of rows" in one["error"] and "3, 1" in one["error"]
        assert one["hint"] == "--set drop_last=true"


def test_in_one_process_nothing_is_gathered() -> None:
    z = [torch.randn(3, 2) for _ in range(3)]
    assert not spread()
    views, offset = across_ranks(z, faithful=True)
    assert offset == 0 and all(a is b for a, b in zip(views, z, strict=True))
    assert gathered(z[0]) is z[0]
