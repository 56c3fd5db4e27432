"""Our half of a parity check, in float64: vectors, loss and gradients of a batch, one step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing
from cases import COLUMNS, Case
from table import Arrays, tokens
from tiny import SCORED, SENTENCES

from bench.backbones import load, resolve
from bench.method import Batch, Context, Recipe, TorchMethod, Value
from bench.method.ranks import Ranks
from bench.method.recipes import merge_recipe
from bench.methods import masking
from bench.training.gradient import backward
from bench.training.spread import ranks_of

RECIPE: dict[str, Any] = {
    "learning_rate": 1e-3,
    "max_seq_length": 16,
    "weight_decay": 0.0,
    "dropout": 0.0,
}
# transformers 4.2.1 adds AdamW's eps before the bias correction, torch after it: with this value
# the first step is the same
FIRST_STEP_EPS = 1e-8 / (1 - 0.999) ** 0.5


def build(case: Case, backbone: str, folder: Path) -> TorchMethod:
    """Build the method on a backbone, and make the weights that it adds less flat."""
    recipe = merge_recipe(case.method, None, "", {}, trained=True)
    values = {key: Value(value, "parity") for key, value in {**RECIPE, **case.values}.items()}
    unknown = sorted(values.keys() - set(recipe))
    if unknown:
        raise SystemExit(f"{case.name}: {case.method.name} has no recipe key {', '.join(unknown)}")
    method = case.method()
    method.context = Context(seed=1, folder=folder)
    torch.manual_seed(1)
    method.build(load(resolve(backbone), dropout=0.0), Recipe(recipe.values_with_source() | values))
    method.double()
    with torch.no_grad():
        for name, parameter in method.named_parameters():
            if not name.startswith("encoder."):
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return method


def tensors(
    case: Case, method: TorchMethod, theirs: Arrays, named: Callable[[str], str], folder: Path
) -> Arrays:
    """Compute the arrays to compare, under the names that the authors' half gives them.

    ``named`` translates the name of a parameter.
    """
    method.eval()
    with torch.no_grad():
        out = {
            "embeddings/" + e.name: e.ours(method, SCORED).numpy().copy() for e in case.embeddings
        }
    same = zip(
        theirs["batch/input_ids"].swapaxes(0, 1),
        theirs["batch/attention_mask"].swapaxes(0, 1),
        strict=True,
    )
    columns = batch_of(case, method).columns
    for view, (ids, mask) in enumerate(same):
        mine = columns[view % len(columns)]
        equal = tokens(mine["input_ids"].numpy(), mine["attention_mask"].numpy()) == tokens(
            ids, mask
        )
        out[f"tokens/{view}"] = np.array(0.0 if equal else np.inf)
    if case.processes == 1:
        return out | step(case, method, theirs, named)

    def rank(number: int) -> None:
        meeting = dist.FileStore(
            f"{folder}/ours-{case.name.replace(' ', '-')}-{id(method)}", case.processes
        )
        method.context = replace(
            method.context, ranks=Ranks(meeting, number, case.processes, "cpu")
        )
        found = step(case, method, theirs, named)
        if number == 0:
            np.savez(folder / "rank0.npz", **found)
        dist.destroy_process_group()

    torch.multiprocessing.start_processes(rank, nprocs=case.processes, start_method="fork")
    with np.load(folder / "rank0.npz") as file:
        return out | dict(file)


def batch_of(case: Case, method: TorchMethod) -> Batch:
    """The batch, or in a process group this rank's consecutive share of it."""
    rows = np.arange(len(SENTENCES))
    if dist.is_initialized():
        rows = np.split(rows, dist.get_world_size())[dist.get_rank()]
    columns = {
        name: method.backbone.ids([column[row] for row in rows])
        for name, column in COLUMNS[case.setting].items()
    }
    return Batch(method.collate(columns, rows, 0), step=case.step, whole=len(SENTENCES))


def step(case: Case, method: TorchMethod, theirs: Arrays, named: Callable[[str], str]) -> Arrays:
    method.train()
    with masked_as(method, theirs):
        loss = backward(method, batch_of(case, method))["loss"]
    ranks_of(method).mean_gradients([p for p in method.parameters() if p.requires_grad])
    trained = {
        named(name): p
        for name, p in method.named_parameters()
        if p.requires_grad and p.grad is not None
    }
    out = {"loss": loss.numpy()}
    out |= {
        f"gradient/{name}": p.grad.numpy().copy()
        for name, p in trained.items()
        if p.grad is not None
    }
    torch.nn.utils.clip_grad_norm_(list(trained.values()), method.recipe.max_grad_norm)
    optimizer = method.optimizer()
    for group in optimizer.param_groups:
        group["eps"] = FIRST_STEP_EPS
    optimizer.step()
    return out | {f"after/{name}": p.detach().numpy() for name, p in trained.items()}


@contextmanager
def masked_as(method: TorchMethod, theirs: Arrays) -> Iterator[None]:
    """While open, the method's own masking of tokens gives what their collator drew, if it drew."""
    if "batch/mlm_input_ids" not in theirs:
        yield
        return

    def rows(key: str, width: int) -> torch.Tensor:
        array = torch.from_numpy(
            theirs["batch/" + key]
        )  # (n, views, T); ours: every row's first view, then the second ones
        return array.transpose(0, 1).flatten(0, 1)[:, :width]

    def given(ids: torch.Tensor, *_: Any, **__: Any) -> tuple[torch.Tensor, torch.Tensor]:
        if not torch.equal(rows("input_ids", ids.shape[1]), ids):
            raise SystemExit(f"{method.name}: the batch to be masked is not theirs")
        return rows("mlm_input_ids", ids.shape[1]), rows("mlm_labels", ids.shape[1])

    before, masking.mask_tokens = masking.mask_tokens, given
    try:
        yield
    finally:
        masking.mask_tokens = before
