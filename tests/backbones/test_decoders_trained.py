"""Decoders as backbones to train: what is refused before a training, what is exported, and what an
empty text is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from models import built, sentences
from tiny_decoders import decoder

from bench.backbones import resolve
from bench.backbones.direction import is_causal
from bench.base.errors import BenchError
from bench.export.st_folder import write_st
from bench.export.vectors import compare_vectors
from bench.method import Context, Recipe
from bench.method.building import build_method
from bench.method.checks import check_direction
from bench.method.recipes import merge_recipe
from bench.methods.focal_infonce import FocalInfoNCE
from bench.methods.simcse import SimCSE


@pytest.fixture(scope="module", params=["llama", pytest.param("qwen", marks=pytest.mark.nightly)])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return decoder(tmp_path_factory.mktemp("trained") / request.param, request.param)


def recipe_of(cls: Any, **values: str) -> Recipe:
    return merge_recipe(cls, None, "", values, trained=True)


def test_a_method_that_reads_the_first_token_alone_is_refused_on_a_decoder(folder: str) -> None:
    recipe, causal = recipe_of(FocalInfoNCE), is_causal(resolve(folder).config())
    with pytest.raises(BenchError, match="is causal: its first token sees none") as caught:
        check_direction(FocalInfoNCE, recipe, folder, causal=causal)
    assert str(caught.value.hint).startswith("take a backbone that reads both ways, such as BERT")


class Undeclared(SimCSE):
    """Takes the first token, and does not say so."""

    name = "undeclared"

    def embed(self, features: Any) -> torch.Tensor:
        return self.hidden(features)[:, 0]


def test_a_plugin_that_does_not_say_what_it_reads_is_found_out_by_its_vectors(
    folder: str, tmp_path: Path
) -> None:
    context = Context(folder=tmp_path)
    recipe = recipe_of(Undeclared, pooling="avg")
    with pytest.raises(BenchError, match="the vector of its first word"):
        build_method(Undeclared, resolve(folder), recipe, context, learns=True)
    build_method(SimCSE, resolve(folder), recipe, context, learns=True)


def test_an_empty_text_of_a_decoder_trains_and_is_scored(tmp_path: Path) -> None:
    """Qwen's tokenizer puts nothing around a text."""
    place = decoder(tmp_path / "qwen", "qwen")
    method = built(SimCSE, place, tmp_path, setting="unsupervised", pooling="avg", dropout=0.1)
    vectors = method.encode(["", "a man plays", "the guitar"])
    assert not vectors[0].any() and vectors[1].any()
    assert not method.encode([""]).any()
    method.train()
    features = method.assemble(
        method.token_ids(["", *sentences(3), "", "a man plays the guitar " * 9])
    )
    method.vectors(features, with_head=False).square().sum().backward()
    gradients = [p.grad for p in method.encoder.parameters() if p.grad is not None]
    assert gradients and all(bool(one.isfinite().all()) for one in gradients)


@pytest.mark.nightly
@pytest.mark.parametrize("pooler", ["avg", "avg_first_last"])
def test_an_export_of_a_decoder_pads_and_reads_empty_texts(
    folder: str, tmp_path: Path, pooler: str
) -> None:
    method = built(SimCSE, folder, tmp_path, setting="unsupervised", pooling=pooler, dropout=0.1)
    parts = method.portable()
    before = method.backbone.tokenizer.pad_token
    to = tmp_path / "export"
    to.mkdir()
    write_st(parts, to)
    difference, dimensions = compare_vectors(method, to)
    assert difference <= 1e-5 and dimensions == 32
    assert method.backbone.tokenizer.pad_token == before, "the method's own tokenizer is left alone"
    assert json.loads((to / "tokenizer_config.json").read_text())["pad_token"] is not None
    assert np.isfinite(method.encode(["", "a"])).all()
