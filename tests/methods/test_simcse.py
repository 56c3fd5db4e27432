"""SimCSE: what is special about it beyond its loss."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from models import built, sentences
from torch import nn

import methods
from bench.method import Batch
from bench.run.recipe_file import entries
from bench.run.recipes import choose, merge
from methods.simcse import SimCSE


def batch_of(method: SimCSE, *columns: list[str]) -> Batch:
    return Batch(
        tuple(
            method.assemble(method.token_ids(column), method.recipe.max_seq_length)
            for column in columns
        )
    )


def simcse(tiny: str, folder: Path, **values) -> SimCSE:
    return built(
        SimCSE,
        tiny,
        folder,
        setting="supervised" if values.pop("supervised", False) else "unsupervised",
        **values,
    )


def cosine(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(a @ b / a.norm() / b.norm())


def test_two_views_get_different_dropout_masks_in_one_pass_of_the_encoder(
    tiny: str, tmp_path: Path
) -> None:
    method = simcse(tiny, tmp_path)
    method.train()
    method.encoder.train()
    passes, pooled = [], []
    method.encoder.register_forward_hook(
        lambda _m, _i, out: passes.append(out.last_hidden_state.detach())
    )
    method.head.register_forward_hook(lambda _m, given, _o: pooled.append(given[0].detach()))
    torch.manual_seed(0)
    loss = method(batch_of(method, sentences(5)))
    assert len(passes) == 1 and len(passes[0]) == 10
    first, second = pooled[0][:5], pooled[0][5:]
    assert all(not torch.equal(a, b) for a, b in zip(first, second, strict=True)), (
        "the two views are the same vectors"
    )
    method.eval()
    with torch.no_grad():
        quiet = method(batch_of(method, sentences(5))).total
    torch.testing.assert_close(pooled[1][:5], pooled[1][5:], rtol=0, atol=1e-6)
    assert loss.total.item() != quiet.item()


def test_the_unsupervised_loss_is_info_nce_of_head_outputs(tiny: str, tmp_path: Path) -> None:
    """Without dropout both views are one vector, so that the loss follows from the vectors alone."""
    method = simcse(tiny, tmp_path, dropout=0.0)
    texts = sentences(4, seed=1)
    with torch.no_grad():
        total = method(batch_of(method, texts)).total.item()
        cls = method.encoder(**method.tokenize(texts, 32)).last_hidden_state[:, 0]
        z = torch.tanh(cls @ method.head.dense.weight.T + method.head.dense.bias).double()
    rows = [
        math.log(sum(math.exp(cosine(a, b) / 0.05) for b in z)) - cosine(a, a) / 0.05 for a in z
    ]
    assert total == pytest.approx(np.mean(rows), abs=1e-4)


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_the_supervised_loss_uses_three_columns(tiny: str, tmp_path: Path, weight: float) -> None:
    method = simcse(
        tiny, tmp_path, supervised=True, dropout=0.0, hard_negative_weight=weight, head_at_test=True
    )
    columns = [
        sentences(4, seed=seed, longest=longest) for seed, longest in ((1, 5), (2, 12), (3, 9))
    ]
    with torch.no_grad():
        total = method(batch_of(method, *columns)).total.item()
    anchors, positives, hard = (torch.tensor(method.encode(column)).double() for column in columns)
    rows = []
    for i, a in enumerate(anchors):
        terms = [math.exp(cosine(a, b) / 0.05) for b in positives]
        terms += [
            math.exp(cosine(a, b) / 0.05 + (weight if j == i else 0)) for j, b in enumerate(hard)
        ]
        rows.append(math.log(sum(terms)) - cosine(a, positives[i]) / 0.05)
    assert total == pytest.approx(np.mean(rows), abs=1e-4)


def test_pairs_without_hard_negatives_are_enough(tiny: str, tmp_path: Path) -> None:
    method = simcse(tiny, tmp_path, supervised=True, dropout=0.0)
    with torch.no_grad():
        with_two = method(batch_of(method, sentences(3, 1), sentences(3, 2))).total
        with_three = method(
            batch_of(method, sentences(3, 1), sentences(3, 2), sentences(3, 3))
        ).total
    assert with_two < with_three


@pytest.mark.parametrize("head_at_test", [False, True])
def test_the_head_is_part_of_the_vectors_only_where_the_recipe_says_so(
    tiny: str, tmp_path: Path, head_at_test: bool
) -> None:
    method = simcse(tiny, tmp_path, head_at_test=head_at_test)
    texts = sentences(3)
    with torch.no_grad():
        wanted = method.encoder(**method.tokenize(texts)).last_hidden_state[:, 0]
        if head_at_test:
            wanted = torch.tanh(
                nn.functional.linear(wanted, method.head.dense.weight, method.head.dense.bias)
            )
    np.testing.assert_allclose(method.encode(texts), wanted, rtol=0, atol=1e-6)


def test_training_sentences_are_cut_special_tokens_included_and_scored_ones_are_not(
    tiny: str, tmp_path: Path
) -> None:
    method = simcse(tiny, tmp_path)
    long = " ".join(["guitar"] * 100)
    assert batch_of(method, [long]).columns[0]["input_ids"].shape == (1, 32)
    widths = []
    method.encoder.register_forward_pre_hook(
        lambda _m, _a, named: widths.append(named["input_ids"].shape[1]), with_kwargs=True
    )
    method.encode([long])
    assert widths == [102]


SAME_KEYS = (
    "batch_size",
    "learning_rate",
    "epochs",
    "eval_steps",
    "temperature",
    "max_seq_length",
    "warmup_steps",
    "weight_decay",
    "max_grad_norm",
)


@pytest.mark.parametrize(
    "backbone", ["bert-base-uncased", "bert-large-uncased", "roberta-base", "roberta-large"]
)
@pytest.mark.parametrize("setting", ["unsupervised", "supervised"])
def test_the_recipes_are_those_of_the_paper(shared: Path, setting: str, backbone: str) -> None:
    """Against the project's own list of what the paper and the repository state."""
    entry, line = choose(entries(Path(methods.__file__).parent, "simcse"), setting, backbone, "")
    assert entry is not None and line is None
    ours = merge(SimCSE, entry, "", {}, trained=True)
    listed = json.loads((shared / "reference" / "recipes.json").read_text(encoding="utf-8"))[
        "recipes"
    ]
    (known,) = [
        r["parameters"]
        for r in listed
        if (r["method"], r["variant"], r["setting"], r["backbone"])
        == ("simcse", "", setting, backbone)
    ]
    assert {key: ours[key] for key in SAME_KEYS} == {key: known[key]["value"] for key in SAME_KEYS}
    assert ours["head_at_test"] == ("without head" not in known["pooler_test"]["value"])
    if setting == "supervised":
        assert ours["hard_negative_weight"] == known["hard_negative_weight"]["value"]
    assert all(value.source for value in entry.values.values())
