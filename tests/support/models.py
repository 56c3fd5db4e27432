"""Methods on a tiny random backbone, and toy methods that a test can compute by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn

from bench.backbones import resolve
from bench.method import Context, Method, Recipe, Value, building, seed_for
from bench.method.batch import Batch, Loss
from bench.method.recipe_defaults import TRAINING
from bench.method.recipes import merge_recipe
from bench.method.torch_method import TorchMethod
from bench.run.planned import learns

TEXT = (
    "a man plays the guitar woman reads book in park dog runs fast over green grass "
    "child sleeps house near sea\n"
    "bank said prices rose march because oil market fell yesterday two three players win game"
)
WORDS = TEXT.split()


def sentences(count: int, seed: int = 0, longest: int = 12) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(1, longest + 1))) for _ in range(count)]


def built(
    cls: type[Method],
    backbone: str,
    folder: Path,
    *,
    setting: str = "none",
    variant: str = "",
    seed: int = 1,
    context: Any = None,
    **values: Any,
) -> Any:
    """Build a method as the executor does, without its recipes; ``values`` are recipe values."""
    recipe = merge_recipe(cls, None, variant, {}, trained=learns(cls, setting))
    recipe = Recipe(
        recipe.values_with_source() | {key: Value(value, "test") for key, value in values.items()}
    )
    method = cls()
    method.context = context or Context(seed=seed, folder=folder)
    loaded = building.read_backbone(cls, resolve(backbone), recipe, method.context)
    torch.manual_seed(seed_for(seed, "init"))
    method.build(loaded, recipe)
    if isinstance(method, TorchMethod):
        if not learns(cls, setting):
            method.requires_grad_(False)
        method.eval()
    return method


class Columns:
    """Token ids in memory, with the face of a tokenised corpus."""

    def __init__(self, *columns: Sequence[Sequence[int]]) -> None:
        self._columns = columns
        self.columns = ("sentence", "sent1", "hard_neg")[: len(columns)]

    def __len__(self) -> int:
        return len(self._columns[0])

    def column(self, i: int) -> Any:
        return SimpleNamespace(rows=lambda rows: [self._columns[i][row] for row in rows])


class Toy(TorchMethod):
    """Predicts the sum of a row's token ids / 10 from their counts: loss = mean (W c + b - sum /
    10)^2, by hand in numpy below.
    """

    name, settings = "toy", ("unsupervised",)
    VOCABULARY = 5

    def build(self, backbone: Any = None, recipe: Recipe | None = None) -> None:
        self.backbone = SimpleNamespace(
            name="toy", revision="0" * 64, tokenizer=SimpleNamespace(pad_token_id=0), max_tokens=64
        )
        self.before, self.after = [], []
        self.recipe = recipe or toy_recipe()
        self.encoder = nn.Identity()
        self.dense = nn.Linear(self.VOCABULARY, 2).double()
        rng = np.random.default_rng(5)
        with torch.no_grad():
            self.dense.weight.copy_(torch.tensor(rng.normal(size=(2, self.VOCABULARY))))
            self.dense.bias.copy_(torch.tensor(rng.normal(size=2)))
        self.seen: list[list[int]] = []

    def forward(self, batch: Batch) -> Loss:
        features = batch.columns[0]
        self.seen.append(features["input_ids"][:, 0].tolist())
        counts = (
            nn.functional.one_hot(features["input_ids"], self.VOCABULARY).double()
            * features["attention_mask"][:, :, None]
        )
        wanted = features["input_ids"].sum(1, keepdim=True).double() / 10
        loss = (self.dense(counts.sum(1)) - wanted).square().mean()
        return Loss(loss, {"half": loss / 2})

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        return np.tile(
            self.dense.weight.detach().float().numpy().reshape(1, -1), (len(sentences), 1)
        )


def toy_recipe(**values: Any) -> Recipe:
    values = {"batch_size": 3, "learning_rate": 0.05, "select_on": "last"} | values
    return Recipe(dict(TRAINING) | {key: Value(value, "test") for key, value in values.items()})


def toy(folder: Path, context: Context | None = None, **values: Any) -> Toy:
    method = Toy()
    method.build(recipe=toy_recipe(**values))
    method.context = context or Context(folder=folder)
    return method


TOY_ROWS = [[1], [2, 3], [4, 4, 1], [3], [1, 2, 3, 4], [2], [4, 1], [3, 3, 3]]


def tiny_roberta(folder: Path) -> str:
    """Save a random RoBERTa: 2 layers, 32 wide, an MLM head, a byte-level BPE vocabulary of 600."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaForMaskedLM, RobertaTokenizerFast

    folder.mkdir(parents=True)
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(
        [TEXT, *sentences(200)],
        vocab_size=600,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
    )
    bpe.save_model(str(folder))
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    lines = (folder / "merges.txt").read_text(encoding="utf-8").splitlines()[1:]
    merges = [tuple(line.split()) for line in lines]
    # from_pretrained cannot read the two files in transformers 5.0
    tokenizer = RobertaTokenizerFast(vocab=vocabulary, merges=merges)
    tokenizer.save_pretrained(folder)
    state = torch.get_rng_state()
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 64, "max_position_embeddings": 258, "type_vocab_size": 1}
    ends = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    config = RobertaConfig(vocab_size=len(tokenizer), **sizes, **ends)
    model = RobertaForMaskedLM(config)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.1) if parameter.ndim > 1 else None
    model.save_pretrained(folder)
    torch.set_rng_state(state)
    return str(folder)
