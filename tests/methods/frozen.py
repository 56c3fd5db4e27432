"""What the tests of methods with a frozen encoder ask of any of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from models import sentences
from torch import nn
from transformers import BertConfig, BertForMaskedLM, RobertaConfig, RobertaForMaskedLM

from bench.method import Backbone, Batch, Context, TorchMethod
from bench.run.provenance import parameter_counts
from bench.run.recipes import merge

TEXTS = [sentences(6, seed=seed, longest=longest) for seed, longest in ((1, 12), (2, 5), (3, 9))]
COLUMNS = {"unsupervised": ("sentence",), "supervised": ("sent0", "sent1", "hard_neg")}


def batch_of(method: TorchMethod, *columns: Sequence[str], step: int = 0) -> Batch:
    names = COLUMNS["unsupervised" if len(columns) == 1 else "supervised"]
    ids = {name: method.backbone.ids(column) for name, column in zip(names, columns, strict=False)}
    return Batch(method.collate(ids, np.arange(len(columns[0])), 0), step=step)


def batch_in(method: TorchMethod, setting: str) -> Batch:
    return batch_of(method, *TEXTS[: len(COLUMNS[setting])])


@contextmanager
def training(method: TorchMethod) -> Iterator[None]:
    """As the loop does it: everything in train mode, the frozen encoder too."""
    method.train()
    assert method.encoder.training
    try:
        yield
    finally:
        method.eval()


def trained(method: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(p.shape) for name, p in method.named_parameters() if p.requires_grad}


def step_of(method: TorchMethod, batch: Batch) -> set[str]:
    """One step of the method's own optimiser; the names of the parameters and buffers that it changed.

    Every trained parameter must get a gradient that is not zero everywhere, no frozen one any.
    """
    before = {name: value.clone() for name, value in method.state_dict().items()}
    optimizer = method.optimizer()
    with training(method):
        torch.manual_seed(0)
        method(batch).total.backward()
        for name, parameter in method.named_parameters():
            assert (
                parameter.grad is not None and bool(parameter.grad.any())
            ) == parameter.requires_grad, name
        optimizer.step()
    return {
        name for name, value in method.state_dict().items() if not torch.equal(value, before[name])
    }


def same_after_loading(build: Any, folder: Path) -> set[str]:
    """Train a step, save, load into a fresh one: vectors bit for bit the same, the encoder not in the file. Its tensors."""
    from safetensors import safe_open

    first = build(seed=1)
    step_of(first, batch_in(first, "supervised"))
    first.save(folder)
    second = build(seed=2)
    texts = sentences(9, seed=5)
    wanted = first.encode(texts)
    assert not np.array_equal(second.encode(texts), wanted)
    second.load(folder)
    assert np.array_equal(second.encode(texts), wanted)
    with safe_open(folder / "trained.safetensors", "pt") as file:
        names = set(file.keys())
    assert not any(name.startswith("encoder.") for name in names)
    return names


class WithoutMemory(Backbone):
    """A backbone whose masked language model is there already."""

    masked: Any

    def _masked_lm(self) -> Any:
        return self.masked


def counts(
    cls: type[TorchMethod], model: str, size: str, variant: str = "", **values: Any
) -> dict[str, int]:
    """Trained numbers of each part, after everything is built, on an encoder of a published size that takes no memory."""
    large = {
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
    }
    kinds: Any = {
        "bert": (BertConfig, BertForMaskedLM, 30522),
        "roberta": (RobertaConfig, RobertaForMaskedLM, 50265),
    }
    config_of, lm_of, vocabulary = kinds[model]
    extra = (
        {"max_position_embeddings": 514, "type_vocab_size": 1, "pad_token_id": 1}
        if model == "roberta"
        else {}
    )
    config = config_of(vocab_size=vocabulary, **extra, **(large if size == "large" else {}))
    with torch.device("meta"):
        whole = lm_of(config)

        def tokenizer(_: object, add_special_tokens: bool) -> dict[str, list[int]]:
            return {"input_ids": [2, 7, 3] if add_special_tokens else [7]}

        backbone = WithoutMemory(
            f"{model}-{size}", "none", model, getattr(lm_of(config), model), tokenizer, Path()
        )
        backbone.masked = whole
        method = cls()
        method.context = Context()
        method.build(
            backbone,
            merge(
                cls, None, variant, {key: str(value) for key, value in values.items()}, trained=True
            ),
        )
    found = parameter_counts(method, trained=True)
    assert found["trainable_parameters"] == sum(
        p.numel() for p in method.parameters() if p.requires_grad
    )
    parts: dict[str, int] = found["trainable_parts"]
    return parts
