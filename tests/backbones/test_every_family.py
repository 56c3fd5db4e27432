"""Direction and dropout of each family.

Vectors, training and exports of each family against transformers alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from every_family import EVERY
from harness import batch_of
from models import built, sentences

from bench.backbones import load, resolve
from bench.backbones.direction import CAUSAL, is_causal, reads_ahead
from bench.backbones.dropout import check_dropout_arrived
from bench.base.errors import BenchError
from bench.export.st_folder import write_st
from bench.export.vectors import compare_vectors
from bench.methods.consert import ConSERT
from bench.methods.diffcse import DiffCSE
from bench.methods.mirror_bert import MirrorBert
from bench.methods.pooling import IN_PARTS
from bench.methods.pretrained import Pretrained
from bench.methods.sg_opt import SGOpt
from bench.methods.simcse import SimCSE

Models = Callable[[str], str]
FAMILY = pytest.mark.parametrize("name", EVERY)
TEXTS = [*sentences(5, seed=9), "a man plays " * 9, 'He said "no" , 42 % ; naïve', "a", ""]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    place = tmp_path_factory.mktemp("every")
    return cache(lambda name: EVERY[name](place / name))


def poolers(name: str) -> list[str]:
    """Return the poolers of a family; the first token of a decoder has seen no other."""
    causal = name in CAUSAL
    return [pooler for pooler in IN_PARTS if pooler != "cls" or not causal]


def by_transformers(folder: str, texts: list[str]) -> dict[str, np.ndarray]:
    """Return the vectors of every pooling, zeros for a text without a token.

    transformers reads each text alone.
    """
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder)
    kind = transformers.T5EncoderModel if config.model_type == "t5" else transformers.AutoModel
    model = kind.from_pretrained(folder, dtype=torch.float64).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    found: dict[str, list[Any]] = {pooler: [] for pooler in (*IN_PARTS, "last")}
    for text in texts:
        ids = tokenizer(text)["input_ids"]
        if not ids:
            for rows in found.values():
                rows.append(torch.zeros(config.hidden_size))
            continue
        with torch.no_grad():
            states = model(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states
        for pooler, (kind_of_pooling, layers) in IN_PARTS.items():
            mean = sum(states[layer][0] for layer in layers) / len(layers)
            found[pooler].append(mean[0] if kind_of_pooling == "cls" else mean.mean(0))
        found["last"].append(states[-1][0][-1])
    return {pooler: torch.stack(rows).double().numpy() for pooler, rows in found.items()}


WITHOUT_EMBEDDINGS = (*CAUSAL, "eurobert", "t5")
"""Families in which the module that feeds the first layer has no known name."""
REFUSED = {
    # a decoder's first token sees itself alone; ALBERT's layers have no known name
    MirrorBert: (*CAUSAL, "albert"),
    ConSERT: WITHOUT_EMBEDDINGS,
    SGOpt: WITHOUT_EMBEDDINGS,
    # words narrower than states, or no MLM head
    DiffCSE: (*WITHOUT_EMBEDDINGS, "albert", "electra", "electra-generator", "deberta-v2"),
}


@FAMILY
@pytest.mark.parametrize("cls", REFUSED)
def test_a_method_that_changes_what_is_inside_trains_or_refuses(
    name: str, cls: Any, models: Models, tmp_path: Path
) -> None:
    """Heads, and the output of the embeddings."""
    folder = models(name)
    values: dict[type, dict[str, Any]] = {
        MirrorBert: {"variant": "drophead", "drophead": 0.5},
        ConSERT: {"view2": "token-cutoff"},
        DiffCSE: {"generator": folder},
    }
    try:
        method = built(cls, folder, tmp_path, setting="unsupervised", **values.get(cls, {}))
        cls.check(method.recipe, Path(folder))
    except BenchError as refused:
        assert "\n" not in refused.message and refused.hint
        assert name in REFUSED[cls]
        return
    assert name not in REFUSED[cls]
    batch = batch_of(method.train(), sentences(4, seed=1))
    loss = method(batch).total
    loss.backward()
    assert torch.isfinite(loss)
    if cls is MirrorBert:
        assert method(batch).total != loss, "no head was dropped"


FLOAT32_ONLY = ("gemma2",)
"""Families that give no numbers in float64: their attention takes its softmax in float32, where the
mask of a row of padding is minus infinity."""


def as_precise_as_possible(name: str, method: Any) -> Any:
    """Return the method in float64, if its family computes in it."""
    return method if name in FLOAT32_ONLY else method.double()


def check_close(found: np.ndarray, wanted: np.ndarray, limit: float = 1e-6) -> None:
    """Raise AssertionError for a number that differs by more than ``limit`` of its vector's
    largest.
    """
    scale = np.maximum(1.0, np.abs(wanted).max(axis=1, keepdims=True))
    assert found.shape == wanted.shape
    assert (np.abs(found - wanted) / scale).max() <= limit


@pytest.mark.matrix(every=4)
@FAMILY
def test_direction_and_dropout_are_as_the_config_says(name: str, models: Models) -> None:
    backbone = load(resolve(models(name)))
    config = backbone.encoder.config.to_dict()
    assert is_causal(config) == (not reads_ahead(backbone.encoder))
    dropped = load(resolve(models(name)), dropout=0.25).encoder
    check_dropout_arrived(name, dropped, 0.25)


@pytest.mark.matrix(every=9)
@pytest.mark.slow
@FAMILY
def test_vectors_are_those_of_transformers(name: str, models: Models, tmp_path: Path) -> None:
    """... with every pooling, whatever the batch."""
    limit = 5e-6 if name in FLOAT32_ONLY else 1e-6
    wanted = by_transformers(models(name), TEXTS)
    for pooler in poolers(name):
        values: Any = {"setting": "unsupervised", "pooling": pooler, "head": False, "dropout": 0.1}
        method = as_precise_as_possible(name, built(SimCSE, models(name), tmp_path, **values))
        check_close(method.encode(TEXTS), wanted[pooler], limit)
        for start in (1, 5):
            mates = TEXTS[start:] + ["a man plays the guitar " * start]
            check_close(method.encode(mates)[:1], wanted[pooler][start : start + 1], limit)
    for pooling, pooler in (("mean", "avg"), ("last", "last")):
        method = built(Pretrained, models(name), tmp_path, pooling=pooling)
        check_close(as_precise_as_possible(name, method).encode(TEXTS), wanted[pooler], limit)


@pytest.mark.matrix(every=20)
@pytest.mark.slow
@FAMILY
def test_an_export_gives_the_methods_vectors(name: str, models: Models, tmp_path: Path) -> None:
    for pooler in (poolers(name)[0], "avg_first_last"):
        method = simcse(models(name), tmp_path, pooling=pooler)
        folder = tmp_path / pooler
        folder.mkdir()
        write_st(method.portable(), folder)
        difference, dimensions = compare_vectors(method, folder)
        assert difference <= 1e-5 and dimensions == 32


def simcse(folder: str, place: Path, **values: Any) -> Any:
    """Build SimCSE over all tokens, with a dropout that makes two views differ."""
    given: dict[str, Any] = {"setting": "unsupervised", "pooling": "avg", "dropout": 0.1}
    return built(SimCSE, folder, place, **(given | values))
