"""The torch half of the contract: what a trained method inherits. Plugins import these names from ``bench.method``.

Shapes: n rows of a batch, T tokens (padded), H hidden size, L layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from bench.errors import BenchError, Interrupted
from bench.method import Context, Method, Recipe, TrainReport, read_json, write_json

if TYPE_CHECKING:
    from bench.corpora import TokenisedCorpus

Features = dict[str, Tensor]  # input_ids (n, T) int64, attention_mask (n, T) int64, and what a method adds


@dataclass
class Backbone:
    """A pretrained encoder, ready to use, with what is needed to name it again."""

    name: str
    revision: str
    family: str  # transformers' model_type: "bert", "roberta", ...
    encoder: Any  # transformers.PreTrainedModel without a pooling layer, float32
    tokenizer: Any  # transformers.PreTrainedTokenizerBase, fast
    path: Path

    @property
    def hidden_size(self) -> int:
        return int(self.encoder.config.hidden_size)

    @property
    def max_tokens(self) -> int:
        """How many positions a sentence may fill, special tokens included."""
        positions = int(getattr(self.encoder.config, "max_position_embeddings", 512))
        return positions - 2 if self.family in {"roberta", "xlm-roberta", "camembert", "mpnet"} else positions

    def special_tokens(self) -> tuple[list[int], list[int]]:
        """The ids that stand before and after one sentence: ([CLS], [SEP]) for BERT."""
        inner = self.tokenizer("a", add_special_tokens=False)["input_ids"]
        whole = self.tokenizer("a", add_special_tokens=True)["input_ids"]
        for start in range(len(whole) - len(inner) + 1):
            if whole[start : start + len(inner)] == inner:
                return whole[:start], whole[start + len(inner) :]
        raise BenchError(f"the tokenizer of '{self.name}' does not wrap a sentence in special tokens")


@dataclass
class Batch:
    """Rows of the corpus as features, one entry a column: (sentence,) or (anchor, positive[, hard negative])."""

    columns: tuple[Features, ...]
    step: int = 0  # optimiser steps already done

    @property
    def size(self) -> int:
        return len(self.columns[0]["input_ids"])


@dataclass
class Loss:
    """``total`` is the scalar to minimise; ``parts`` are logged under their names."""

    total: Tensor
    parts: Mapping[str, Tensor] = field(default_factory=dict)


def pad(rows: Sequence[Sequence[int]], pad_id: int) -> Features:
    """Ids of different lengths as (n, longest) input_ids and attention_mask, padded on the right."""
    lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
    mask = np.arange(lengths.max(initial=0)) < lengths[:, None]
    ids = np.full(mask.shape, pad_id, dtype=np.int64)
    ids[mask] = np.concatenate([np.asarray(row, dtype=np.int64) for row in rows]) if len(rows) else 0
    return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask.astype(np.int64))}


def join(parts: Sequence[Features], pad_id: int) -> Features:
    """Several (n_i, T_i) features as one (sum n_i, max T_i): one encoder pass, a dropout mask of its own for each row."""
    longest = max(part["input_ids"].shape[1] for part in parts)

    def widened(key: str, fill: int) -> Tensor:
        return torch.cat([nn.functional.pad(p[key], (0, longest - p[key].shape[1]), value=fill) for p in parts])

    return {key: widened(key, pad_id if key == "input_ids" else 0) for key in parts[0]}


class TorchMethod(Method, nn.Module):
    """A method that is a module. Define ``forward`` (the loss of a batch) and ``embed`` (what is scored)."""

    encode_tokens: int = 4096  # padded tokens in one batch of `encode`: small enough to stay in a CPU's cache

    def __init__(self) -> None:
        nn.Module.__init__(self)

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        """Takes the encoder as ``self.encoder``; a subclass adds its own modules after ``super().build(...)``."""
        self.backbone, self.recipe = backbone, recipe
        self.encoder = backbone.encoder
        self.before, self.after = backbone.special_tokens()

    # from sentences to features

    def token_ids(self, sentences: Sequence[str]) -> list[list[int]]:
        """Each sentence's ids, without special tokens and not cut."""
        return self.backbone.tokenizer(list(sentences), add_special_tokens=False, verbose=False)["input_ids"] if sentences else []

    def assemble(self, ids: Sequence[Sequence[int]], max_length: int | None = None) -> Features:
        """Ids of sentences -> features of the model's input, at most ``max_length`` tokens with the special ones."""
        room = (max_length or self.backbone.max_tokens) - len(self.before) - len(self.after)
        return pad([[*self.before, *row[:room], *self.after] for row in ids], self.pad_id)

    def tokenize(self, sentences: Sequence[str], max_length: int | None = None) -> Features:
        return self.assemble(self.token_ids(sentences), max_length)

    @property
    def pad_id(self) -> int:
        return int(self.backbone.tokenizer.pad_token_id or 0)

    # from features to numbers

    def hidden(self, features: Features) -> Tensor:
        """(n, T, H) states of the last layer."""
        return self.encoder(input_ids=features["input_ids"], attention_mask=features["attention_mask"]).last_hidden_state

    def embed(self, features: Features) -> Tensor:
        """(n, dim): what is scored."""
        raise NotImplementedError(f"{self.name} defines no embed(features)")

    def forward(self, batch: Batch) -> Loss:
        raise NotImplementedError(f"{self.name} defines no forward(batch)")

    # what comes for free

    def train(self, corpus: TokenisedCorpus | bool = True, context: Context | None = None) -> Any:
        """With a corpus and a context: train (see bench.training). With a bool: torch's own train mode."""
        if isinstance(corpus, bool):
            return nn.Module.train(self, corpus)
        from bench.training import fit

        assert context is not None
        report: TrainReport = fit(self, corpus, context)
        return report

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        from bench.encoding import encode_unique

        device = torch.device(self.context.device)
        was_training = self.training
        self.eval()

        def embed(ids: list[Sequence[int]]) -> np.ndarray:
            features = {key: value.to(device) for key, value in self.assemble(ids).items()}
            with torch.inference_mode(), torch.autocast(device.type, enabled=False):
                return self.embed(features).float().cpu().numpy()

        def progress(done: int, total: int) -> None:
            if self.context.should_stop():
                raise Interrupted(f"stopped after encoding {done} of {total} sentences; the same command encodes them again")
            self.context.reporter.advance(done, total=total)

        try:
            return encode_unique(sentences, tokens=self.token_ids, embed=embed, budget=self.encode_tokens, progress=progress)
        finally:
            nn.Module.train(self, was_training)

    def trained_state(self) -> dict[str, Tensor]:
        """What training changes: parameters with a gradient, and the buffers outside a frozen encoder."""
        frozen = not any(p.requires_grad for p in self.encoder.parameters())
        state = {name: p for name, p in self.named_parameters() if p.requires_grad}
        persistent = self.state_dict()
        state |= {n: b for n, b in self.named_buffers() if n in persistent and not (frozen and n.startswith("encoder."))}
        return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}

    def save(self, folder: Path) -> None:
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        state = self.trained_state()
        if state:
            save_file(state, folder / "trained.safetensors", metadata={"format": "pt"})
        about = {"method": self.name, "backbone": self.backbone.name, "revision": self.backbone.revision}
        write_json(folder / "method.json", {**about, "recipe": dict(self.recipe), "tensors": len(state)})

    def load(self, folder: Path) -> None:
        from safetensors.torch import load_file

        super().load(folder)
        about = read_json(folder / "method.json")
        if about["revision"] != self.backbone.revision:
            raise BenchError(
                f"{folder} was trained on {about['backbone']} revision {about['revision'][:12]}, "
                f"this is {self.backbone.name} revision {self.backbone.revision[:12]}"
            )
        state = load_file(folder / "trained.safetensors") if about["tensors"] else {}
        expected = self.trained_state()
        if state.keys() != expected.keys():
            different = sorted(state.keys() ^ expected.keys())
            raise BenchError(f"{folder}: {len(different)} tensors do not fit the method, the first is {different[0]}")
        self.load_state_dict(state, strict=False)
