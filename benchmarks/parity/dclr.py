"""Compare DCLR's loss, its noise and weights, with the authors' (RUCAIBox/DCLR).

    python benchmarks/parity/dclr.py --checkout DCLR [--all]

Their `cl_vat_forward` is taken out of `simcse/models.py` and run unchanged, in this process. Its
encoders are replaced by given vectors of a model and of a teacher, the same on both sides. Each
side draws the noise itself, from one seed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from script import Script
from table import Arrays, print_cases
from torch import Tensor, nn

from bench.methods.dclr import DCLR

N = 12
HIDDEN = 16
STEPS = 4
SEED = 7
CASES = (
    (0.9, 1.0, 0.05),
    (0.85, 2.5, 0.05),
    (0.5, 1.0, 0.07),
)  # phi, noise vectors a sentence, temperature


def their_loss(checkout: Path) -> Callable[..., Any]:
    """Return ``cl_vat_forward`` with an encoder that returns the vectors it is given."""
    path = checkout / "simcse" / "models.py"
    if not path.is_file():
        raise SystemExit(f"{path} is not there: --checkout takes a clone of RUCAIBox/DCLR")
    known: dict[str, Any] = {
        "torch": torch,
        "nn": nn,
        "dist": dist,
        "SequenceClassifierOutput": SimpleNamespace,
        "cl_forward_denoised": lambda cls, vectors, *_: (
            vectors,
            SimpleNamespace(hidden_states=None, attentions=None),
        ),
    }
    return Script(path).define("cl_vat_forward", known)  # type: ignore[no-any-return]


def numbers(loss: Tensor, *views: Tensor) -> Arrays:
    gradients = torch.autograd.grad(loss, views)
    return {"loss": np.asarray(loss.detach()).reshape(1)} | {
        f"gradient/view {i}": one.numpy() for i, one in enumerate(gradients, 1)
    }


def vectors() -> tuple[Tensor, ...]:
    """z and z+ of the model, and both of the teacher, in which some pairs are close."""
    torch.manual_seed(SEED - 1)
    z1 = torch.randn(N, HIDDEN)
    z2 = torch.randn(N, HIDDEN)
    shared = torch.randn(N // 3, HIDDEN).repeat(3, 1)
    return z1, z2, shared + 0.3 * torch.randn(N, HIDDEN), shared + 0.3 * torch.randn(N, HIDDEN)


def theirs(loss: Callable[..., Any], phi: float, times: float, temperature: float) -> Arrays:
    z1, z2, t1, t2 = vectors()
    z1.requires_grad_(), z2.requires_grad_()
    cosine = nn.CosineSimilarity(dim=-1)
    cls = SimpleNamespace(
        sim=lambda x, y: cosine(x, y) / temperature,
        training=True,
        device="cpu",
        # their threshold is phi times 20, that is phi at their one temperature of 0.05
        model_args=SimpleNamespace(noise_times=times, pgd=STEPS, phi=phi * 0.05 / temperature),
    )
    torch.manual_seed(SEED)
    ids = torch.zeros(N, 2, 1, dtype=torch.long)
    found = loss(
        cls, torch.stack([z1, z2], 1), torch.stack([t1, t2], 1), ids, ids, return_dict=True
    )
    return numbers(found.loss, z1, z2)


def ours(phi: float, times: float, temperature: float) -> Arrays:
    z1, z2, t1, t2 = vectors()
    z1.requires_grad_(), z2.requires_grad_()
    recipe = SimpleNamespace(
        loss="code",
        phi=phi,
        noise_times=times,
        noise_steps=STEPS,
        noise_step_size=1e-3,
        temperature=temperature,
        hardness_m=0.0,
        faithful=True,
    )
    method: Any = SimpleNamespace(recipe=recipe)
    no_batch: Any = None
    torch.manual_seed(SEED)
    return numbers(DCLR.loss(method, (z1, z2, t1, t2), no_batch).total, z1, z2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkout", type=Path, required=True, help="your clone of RUCAIBox/DCLR")
    parser.add_argument(
        "--all", action="store_true", help="every tensor, not the worst of each kind"
    )
    options = parser.parse_args()
    loss = their_loss(options.checkout)
    torch.set_default_dtype(torch.float64)
    cases = (
        (f"phi {case[0]}, noise x {case[1]}, tau {case[2]}", theirs(loss, *case), ours(*case))
        for case in CASES
    )
    sys.exit(0 if print_cases(cases, options.all) else 1)


if __name__ == "__main__":
    main()
