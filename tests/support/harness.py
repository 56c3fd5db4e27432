"""Parts that tests of methods share: texts, batches, steps, counts, and losses as plain loops."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from models import sentences
from torch import nn
from transformers import BertConfig, BertForMaskedLM, RobertaConfig, RobertaForMaskedLM

from bench.method import Backbone, Batch, Context, Features, TorchMethod
from bench.method.recipes import merge_recipe
from bench.run.record_of import parameter_counts

TEXTS = [sentences(6, seed=seed, longest=longest) for seed, longest in ((1, 12), (2, 5), (3, 9))]
EIGHT = sentences(8, seed=3, longest=14)
AWKWARD = ["", '"', "'quoted' and \"doubly\"", "[MASK]", "<mask> <mask>", "a <pad> man"]
AWKWARD += ["a [PAD] man [SEP]", "{s} {m}"]
LAYERS = {"avg": (-1,), "avg_top2": (-1, -2), "avg_first_last": (1, -1), "avg_emb_last": (0, -1)}


def views(
    method: TorchMethod,
    *columns: Sequence[str],
    rows: Sequence[int] | None = None,
    epoch: int = 0,
    labels: Sequence[int] = (),
    scores: Sequence[float] = (),
) -> tuple[Features, ...]:
    """Return the features of texts, column by column, as the training loop makes them."""
    names = ("sentence",) if len(columns) == 1 else ("sent0", "sent1", "hard_neg")
    given: dict[str, Any] = {}
    for name, texts in zip(names, columns, strict=False):
        given[name] = list(texts) if method.trains_on == "text" else method.backbone.ids(texts)
    if labels:
        given["label"] = [[label] for label in labels]
    if scores:
        given["score"] = [[score] for score in scores]
    numbers = np.arange(len(columns[0])) if rows is None else np.array(rows)
    return method.collate(given, numbers, epoch)


def batch_of(method: TorchMethod, *columns: Sequence[str], step: int = 0, **more: Any) -> Batch:
    return Batch(views(method, *columns, **more), step=step)


def rows_of(features: Features) -> list[list[int]]:
    """Return each row's ids without its padding."""
    pairs = zip(features["input_ids"], features["attention_mask"], strict=True)
    return [ids[mask.bool()].tolist() for ids, mask in pairs]


@contextmanager
def training(method: nn.Module) -> Iterator[None]:
    """Put everything in train mode as the loop does, a frozen encoder too."""
    method.train()
    try:
        yield
    finally:
        method.eval()


def trained(method: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(p.shape) for name, p in method.named_parameters() if p.requires_grad}


def cosines(a: Any, b: Any) -> list[list[float]]:
    """Return the cosine of every row of ``a`` with every row of ``b``."""

    def cosine(x: Any, y: Any) -> float:
        size = math.sqrt(sum(v * v for v in x)) * math.sqrt(sum(v * v for v in y))
        return float(sum(v * w for v, w in zip(x, y, strict=True)) / size)

    return [[cosine(x, y) for y in np.asarray(b, float)] for x in np.asarray(a, float)]


def surprise(logits: Sequence[Sequence[float]]) -> float:
    """Return the mean over rows of -log of the softmax share of the row's own column."""
    rows = [math.log(sum(map(math.exp, row))) - row[i] for i, row in enumerate(logits)]
    return float(np.mean(rows))


def info_nce(anchors: Any, *candidates: Any, tau: float = 0.05) -> float:
    """Compute InfoNCE: candidate i of the first group is anchor i's, all others are negatives."""
    every = np.concatenate([np.asarray(group, float) for group in candidates])
    return surprise([[c / tau for c in row] for row in cosines(anchors, every)])


def focal(anchors: Any, candidates: Any, tau: float, m: float) -> float:
    rows = enumerate(cosines(anchors, candidates))
    return surprise([[c * (c + m * (i != j)) / tau for j, c in enumerate(row)] for i, row in rows])


def hinge(anchors: Any, positives: Any, hard: Any, margin: float) -> float:
    near, far = cosines(anchors, positives), cosines(anchors, hard)
    wrong = [max(*(c for j, c in enumerate(row) if j != i), *far[i]) for i, row in enumerate(near)]
    return float(np.mean([max(0.0, margin - near[i][i] + w) for i, w in enumerate(wrong)]))


def nt_xent(first: Any, second: Any, tau: float) -> float:
    """Compute NT-Xent: each of 2n views against its mirror; all others are negatives."""
    n, every = len(first), np.concatenate([np.asarray(first, float), np.asarray(second, float)])
    total = 0.0
    for i, row in enumerate(cosines(every, every)):
        terms = {j: math.exp(c / tau) for j, c in enumerate(row) if j != i}
        total -= math.log(terms[(i + n) % (2 * n)] / sum(terms.values())) / (2 * n)
    return total


class WithoutMemory(Backbone):
    """A backbone with a masked language model that is never computed."""

    masked: Any
    reads_ahead = True

    def _masked_lm(self) -> Any:
        return self.masked


def counts(cls: type[TorchMethod], model: str, variant: str = "", **values: str) -> dict[str, int]:
    """Count the trained numbers of each part at base size, after everything is built."""
    shape = {"max_position_embeddings": 514, "type_vocab_size": 1, "pad_token_id": 1}
    kinds: Any = {
        "bert": (BertConfig, BertForMaskedLM, 30522),
        "roberta": (RobertaConfig, RobertaForMaskedLM, 50265),
    }
    config_of, lm_of, vocabulary = kinds[model]
    config = config_of(vocab_size=vocabulary, **(shape if model == "roberta" else {}))

    def tokenizer(_: object, add_special_tokens: bool) -> dict[str, list[int]]:
        return {"input_ids": [2, 7, 3] if add_special_tokens else [7]}

    with torch.device("meta"):
        encoder = getattr(lm_of(config), model)
        backbone = WithoutMemory(
            name=f"{model}-base",
            revision="none",
            family=model,
            encoder=encoder,
            tokenizer=tokenizer,
            path=Path(),
        )
        backbone.masked = lm_of(config)
        method = cls()
        method.context = Context()
        method.build(backbone, merge_recipe(cls, None, variant, values, trained=True))
    found = parameter_counts(method, trained=True)
    total = sum(p.numel() for p in method.parameters() if p.requires_grad)
    assert found["trainable_parameters"] == total
    parts: dict[str, int] = found["trainable_parts"]
    return parts


def head_outputs(method: Any, columns: Any) -> list[np.ndarray]:
    """Return what a method's head makes of CLS, column by column."""
    with torch.no_grad():
        states = [method.encoder(**view).last_hidden_state[:, 0] for view in columns]
        return [method.head(one).double().numpy() for one in states]


def double(rows: Any) -> torch.Tensor:
    """Return a tensor in float64."""
    return torch.tensor(rows, dtype=torch.float64)


def leaves(inputs: dict, *names: str) -> list[torch.Tensor]:
    """Return the named inputs as tensors that collect gradients."""
    return [double(inputs[name]).requires_grad_() for name in names]


def same(ours: torch.Tensor, theirs) -> None:
    np.testing.assert_allclose(ours.detach(), theirs, rtol=0, atol=1e-10)
