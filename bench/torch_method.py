"""The torch half of the contract: what a trained method inherits. Plugins import these names from ``bench.method``.

Shapes: n rows of a batch, T tokens (padded), H hidden size, L layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from bench.errors import BenchError, Interrupted
from bench.features import Features, Ids, attention, by_length, pad
from bench.method import Context, Method, Recipe, TrainReport, read_json, write_json

if TYPE_CHECKING:
    from bench.corpora import TokenisedCorpus


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


CPU_TOKENS, GPU_TOKENS = 1024, 16384  # of a batch of `encode`: states that stay in a core's cache; enough work for a kernel


class TorchMethod(Method, nn.Module):
    """A method that is a module. Define ``forward`` (the loss of a batch) and ``embed`` (what is scored)."""

    encode_tokens: int | None = None  # padded tokens in one batch of `encode`; None: what suits the device

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

    def assemble(self, ids: Sequence[Ids], max_length: int | None = None) -> Features:
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
        """(n, T, H) states of the last layer; what stands at padding means nothing.

        In float32 on a CPU, rows of similar length go through the encoder together, which saves 5 to 20 % of a training
        step. In bf16 and on a GPU a pass itself costs more than the padding that it saves.
        """
        ids, mask = features["input_ids"], features["attention_mask"]
        worth_it = ids.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
        groups = by_length(mask) if worth_it and len(ids) > 1 else []
        if len(groups) < 2:
            return self._states(ids, mask)
        parts = []
        for rows in groups:
            used = int(mask[rows].any(0).nonzero().max()) + 1
            states = self._states(ids[rows, :used], mask[rows, :used])
            parts.append(nn.functional.pad(states, (0, 0, 0, ids.shape[1] - used)))
        return torch.cat(parts)[torch.cat(groups).argsort()]

    def _states(self, ids: Tensor, mask: Tensor) -> Tensor:
        states: Tensor = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        return states

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
        bf16_on_cpu = context.device == "cpu" and context.precision == "bf16"
        # eager saves 10 to 20 % of a bf16 step; in float32 the two are equally fast
        with attention(self.encoder, "eager") if bf16_on_cpu else nullcontext():
            report: TrainReport = fit(self, corpus, context)
        return report

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        from bench.encoding import encode_unique

        device = torch.device(self.context.device)
        budget = self.encode_tokens or (CPU_TOKENS if device.type == "cpu" else GPU_TOKENS)
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
            return encode_unique(sentences, tokens=self.token_ids, embed=embed, budget=budget, progress=progress)
        finally:
            nn.Module.train(self, was_training)

    def trained_state(self) -> dict[str, Tensor]:
        """What training changes: parameters with a gradient, and the buffers outside a frozen encoder."""
        frozen = not any(p.requires_grad for p in self.encoder.parameters())
        state: dict[str, Tensor] = {name: p for name, p in self.named_parameters() if p.requires_grad}
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
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        super().load(folder)
        about = read_json(folder / "method.json")
        if about.get("revision") != self.backbone.revision:
            raise BenchError(
                f"{folder} was trained on {about.get('backbone')} revision {str(about.get('revision'))[:12]}, "
                f"this is {self.backbone.name} revision {self.backbone.revision[:12]}"
            )
        file = folder / "trained.safetensors"
        try:
            state = load_file(file) if about.get("tensors") else {}
        except (OSError, SafetensorError) as error:
            raise BenchError(f"{file} cannot be read: {' '.join(str(error).split())}", "--fresh trains it again") from None
        expected = self.trained_state()
        if state.keys() != expected.keys():
            different = sorted(state.keys() ^ expected.keys())
            raise BenchError(f"{folder}: {len(different)} tensors do not fit the method, the first is {different[0]}")
        self.load_state_dict(state, strict=False)
