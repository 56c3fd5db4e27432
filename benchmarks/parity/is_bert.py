"""Compare IS-BERT's convolutions, pooling and loss with the authors' (yanzhangnlp/IS-BERT).

    python benchmarks/parity/is_bert.py --checkout IS-BERT [--all]

Both sides get the same states of an encoder. The authors' three files need no library of theirs:
they are run unchanged, in this process, on a CPU (`.cuda()` does nothing). States at padding are 0
on both sides: the authors' come from the encoder, and its convolutions see them (`bench methods
is-bert` says so).
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import types
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from table import Arrays, print_cases
from torch import Tensor, nn

from bench.methods.is_bert import WIDTHS, ISBert, information_loss
from bench.methods.pooling import masked_mean

HIDDEN, CHANNELS = 24, 10
CASES = (("sentences of one length", [7, 7, 7, 7]), ("of several lengths", [9, 4, 1, 6, 2]))
PACKAGE = "their_sentence_transformers"


def their(checkout: Path, file: str) -> Any:
    """Import one module of their package, without importing the modules next to it."""
    for name, holds in {
        PACKAGE: {},
        f"{PACKAGE}.models": {},
        f"{PACKAGE}.losses": {},
        f"{PACKAGE}.util": dict.fromkeys(("import_from_string", "fullname", "http_get")),
        f"{PACKAGE}.models.tokenizer": dict.fromkeys(("WordTokenizer", "WhitespaceTokenizer")),
        f"{PACKAGE}.SentenceTransformer": {"SentenceTransformer": nn.Module},
    }.items():
        module = sys.modules.setdefault(name, types.ModuleType(name))
        module.__dict__.update(holds, __path__=[])
    path = checkout / "sentence_transformers" / file
    if not path.is_file():
        raise SystemExit(f"{path} is not there: --checkout takes a clone of yanzhangnlp/IS-BERT")
    spec = importlib.util.spec_from_file_location(
        f"{PACKAGE}.{file.removesuffix('.py').replace('/', '.')}", path
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def convolutions() -> nn.ModuleList:
    torch.manual_seed(0)
    return nn.ModuleList(nn.Conv1d(HIDDEN, CHANNELS, k, padding=k // 2) for k in WIDTHS).double()


def numbers(
    local: Tensor,
    mask: Tensor,
    sentences: Tensor,
    loss: Tensor,
    states: Tensor,
    kernels: nn.ModuleList,
) -> Arrays:
    loss.backward()
    arrays = {
        "embeddings/tokens": local[mask.bool()],
        "embeddings/sentences": sentences,
        "loss": loss.reshape(1),
        "gradient/states": None if states.grad is None else states.grad[mask.bool()],
        **{f"gradient/{name}": parameter.grad for name, parameter in kernels.named_parameters()},
    }
    return {name: np.asarray(value.detach()) for name, value in arrays.items() if value is not None}


def theirs(checkout: Path, states_nTH: Tensor, mask_nT: Tensor) -> Arrays:
    states, kernels = states_nTH.clone().requires_grad_(), convolutions()
    layer = their(checkout, "models/CNN.py").CNN(HIDDEN, CHANNELS, list(WIDTHS)).double()
    layer.convs = kernels
    pooling = their(checkout, "models/Pooling.py").Pooling(CHANNELS * len(WIDTHS))
    features = {
        "token_embeddings": states,
        "cls_token_embeddings": states[:, 0],
        "attention_mask": mask_nT,
    }
    features = pooling(layer(features))
    loss = their(checkout, "losses/MutualInformationLoss.py").MutualInformationLoss(
        nn.Identity(), CHANNELS * len(WIDTHS)
    )
    value = loss([features], torch.tensor(0))
    return numbers(
        features["token_embeddings"],
        mask_nT,
        features["sentence_embedding"],
        value,
        states,
        kernels,
    )


def ours(states_nTH: Tensor, mask_nT: Tensor) -> Arrays:
    states, kernels = states_nTH.clone().requires_grad_(), convolutions()
    method: Any = SimpleNamespace(hidden=lambda features: states, convolutions=kernels)
    local = ISBert.local_features(method, {"attention_mask": mask_nT})
    sentences = masked_mean(local, mask_nT)
    return numbers(
        local, mask_nT, sentences, information_loss(local, mask_nT, sentences), states, kernels
    )


def both_sides(checkout: Path, lengths: list[int]) -> tuple[Arrays, Arrays]:
    mask_nT = (torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)).long()
    generator = torch.Generator().manual_seed(1)
    states_nTH = torch.randn(
        *mask_nT.shape, HIDDEN, generator=generator, dtype=torch.float64
    ) * mask_nT.unsqueeze(-1)
    return theirs(checkout, states_nTH, mask_nT), ours(states_nTH, mask_nT)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--checkout", type=Path, required=True, help="your clone of yanzhangnlp/IS-BERT"
    )
    parser.add_argument(
        "--all", action="store_true", help="every tensor, not the worst of each kind"
    )
    options = parser.parse_args()
    torch.Tensor.cuda = lambda self, *_, **__: self  # type: ignore[method-assign, assignment]
    cases = ((title, *both_sides(options.checkout, lengths)) for title, lengths in CASES)
    sys.exit(0 if print_cases(cases, options.all) else 1)


if __name__ == "__main__":
    main()
