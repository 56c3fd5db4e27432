"""One of the processes of test_gather.py: python gather_worker.py RANK RANKS FOLDER, which holds cases.json and gets answers-RANK.json.

A model of one linear layer under DistributedDataParallel; its input and its first weights come with the case.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from bench.method import BenchError
from methods.gather import across_ranks, gathered
from methods.losses import energy_hinge, focal_info_nce, info_nce


def total(views: list[Tensor], offset: int, weights: dict[str, float]) -> Tensor:
    """The losses that methods use, each with its weight."""
    parts = {
        "info_nce": lambda: info_nce(*views, temperature=0.05, hard_negative_weight=1.0, offset=offset),
        "plain": lambda: info_nce(*views, temperature=0.05, offset=offset),
        "eh": lambda: energy_hinge(*views, margin=0.2, offset=offset),
        "focal": lambda: focal_info_nce(*views[:2], temperature=0.07, m=0.3, offset=offset),
    }
    return torch.stack([weight * parts[name]() for name, weight in weights.items()]).sum()


def linear(case: dict[str, Any]) -> nn.Linear:
    layer = nn.Linear(len(case["weight"][0]), len(case["weight"]), bias=False, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(case["weight"]))
    return layer


def answer(case: dict[str, Any], rank: int) -> dict[str, Any]:
    first, last = case["rows"][rank]
    views = [torch.tensor(view, dtype=torch.float64)[first:last] for view in case["views"]]
    layer = linear(case)
    model = nn.parallel.DistributedDataParallel(layer)
    try:
        flat = model(torch.cat(views))  # one pass of all views, as methods do it
        z = list(flat.chunk(len(views)))
        z[-1] = z[-1].T.contiguous().T  # what is gathered need not be contiguous
        loss = total(*across_ranks(z, case["faithful"]), case["losses"])
        loss.backward()
        rows = gathered(z[0].detach(), case["faithful"])
    except BenchError as error:
        return {"error": error.message, "hint": error.hint}
    return {"loss": loss.item(), "gradient": layer.weight.grad.tolist(), "rows": rows.tolist()}


if __name__ == "__main__":
    rank, ranks, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    dist.init_process_group("gloo", init_method=f"file://{folder / 'store'}", rank=rank, world_size=ranks)
    answers = [answer(case, rank) for case in json.loads((folder / "cases.json").read_text(encoding="utf-8"))]
    (folder / f"answers-{rank}.json").write_text(json.dumps(answers), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)  # gloo's threads sometimes outlive the interpreter, which then aborts although everything was right
