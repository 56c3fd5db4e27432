"""SimCSE's variants and switches, and which of its parameters train, on a tiny BERT and a tiny RoBERTa."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from frozen import TEXTS, batch_in, batch_of, counts, step_of, trained, training
from models import built, sentences
from safetensors.torch import load_file
from transformers import AutoModel, AutoModelForMaskedLM

from bench.method import Batch, BenchError, Features, Recipe, join
from bench.run.recipes import merge
from methods.masking import mask_tokens
from methods.simcse import SimCSE

BACKBONES = pytest.mark.parametrize("backbone", ["tiny", "tiny_roberta"])
CASES = [
    ("unsupervised", ""),
    ("supervised", ""),
    ("supervised", "eh"),
    ("unsupervised", "mlm"),
    ("supervised", "mlm"),
    ("unsupervised", "no-head"),
    ("unsupervised", "fixed-dropout"),
    ("unsupervised", "dot-product"),
]
H = 32


def simcse(
    folder: str, run: Path, setting: str = "unsupervised", variant: str = "", **values: Any
) -> SimCSE:
    return built(SimCSE, folder, run, setting=setting, variant=variant, **values)


def recipe(variant: str = "", **values: str) -> Recipe:
    return merge(SimCSE, None, variant, values, trained=True)


def cosines(a: np.ndarray, b: np.ndarray) -> list[list[float]]:
    return [
        [float(x @ y / np.linalg.norm(x) / np.linalg.norm(y)) for y in b.astype(float)]
        for x in a.astype(float)
    ]


def surprise(logits: list[list[float]]) -> float:
    """Mean over rows of -log of the share of the row's own column."""
    return float(
        np.mean([math.log(sum(map(math.exp, row))) - row[i] for i, row in enumerate(logits)])
    )


# what trains


@BACKBONES
@pytest.mark.parametrize(("setting", "variant"), CASES)
def test_everything_trains(
    request: Any, backbone: str, tmp_path: Path, setting: str, variant: str
) -> None:
    folder = request.getfixturevalue(backbone)
    method = simcse(folder, tmp_path, setting, variant, learning_rate=1e-2)
    wanted = {
        f"encoder.{name}"
        for name, _ in AutoModel.from_pretrained(folder, add_pooling_layer=False).named_parameters()
    }
    if variant != "no-head":
        wanted |= {"head.dense.weight", "head.dense.bias"}
    found = {
        name: shape for name, shape in trained(method).items() if not name.startswith("lm_head.")
    }
    assert set(found) == wanted
    lm_head = set(trained(method)) - set(found)
    assert bool(lm_head) == (variant == "mlm")
    # one step reaches every parameter and moves it, and moves nothing else
    moved = step_of(method, batch_in(method, setting))
    assert (
        moved - {"lm_head.decoder.bias"} == wanted | lm_head
    )  # which is lm_head.bias by its second name


@pytest.mark.parametrize(
    ("model", "encoder", "lm_head"),
    [("bert", 108_891_648, 24_063_546), ("roberta", 124_055_040, 39_245_913)],
)
def test_how_many_numbers_train_at_the_papers_size(model: str, encoder: int, lm_head: int) -> None:
    assert counts(SimCSE, model, "base") == {"encoder": encoder, "head": 590_592}
    assert counts(SimCSE, model, "base", "mlm") == {
        "encoder": encoder,
        "head": 590_592,
        "lm_head": lm_head,
    }
    assert counts(SimCSE, model, "base", pooler="avg") == {"encoder": encoder}


@BACKBONES
@pytest.mark.parametrize(
    ("setting", "variant"), [("unsupervised", ""), ("supervised", "eh"), ("unsupervised", "mlm")]
)
def test_a_checkpoint_gives_the_same_vectors(
    request: Any, backbone: str, tmp_path: Path, setting: str, variant: str
) -> None:
    folder = request.getfixturevalue(backbone)
    head_at_test = setting == "supervised"
    first, second = (
        simcse(
            folder,
            tmp_path,
            setting,
            variant,
            seed=s,
            head_at_test=head_at_test,
            learning_rate=1e-2,
        )
        for s in (1, 2)
    )
    step_of(first, batch_in(first, setting))
    first.save(tmp_path / "c")
    texts = sentences(9, seed=5)
    wanted = first.encode(texts)
    assert not np.array_equal(second.encode(texts), wanted)
    second.load(tmp_path / "c")
    assert np.array_equal(second.encode(texts), wanted)
    stored = set(load_file(tmp_path / "c" / "trained.safetensors"))
    assert {"head.dense.weight", "head.dense.bias"} < stored
    assert not any(name.startswith("lm_head.") for name in stored), (
        "what only training needs is in the checkpoint"
    )
    resumed = {name for name in first.training_state() if name.startswith("lm_head.")}
    assert bool(resumed) == (variant == "mlm")


# the losses


@BACKBONES
@pytest.mark.parametrize("margin", [0.2, 0.4])
def test_eh_adds_ten_times_the_hinge_of_the_vectors_that_are_scored(
    request: Any, backbone: str, tmp_path: Path, margin: float
) -> None:
    folder = request.getfixturevalue(backbone)
    method = simcse(
        folder, tmp_path, "supervised", "eh", dropout=0.0, head_at_test=True, eh_margin=margin
    )
    with torch.no_grad():
        loss = method(batch_of(method, *TEXTS))
    anchors, positives, hard = (method.encode(texts) for texts in TEXTS)
    near, far = cosines(anchors, positives), cosines(anchors, hard)
    hinges = [
        max(0.0, margin - row[i] + max(*(c for j, c in enumerate(row) if j != i), *far[i]))
        for i, row in enumerate(near)
    ]
    assert (
        loss.parts["hinge"].item() == pytest.approx(np.mean(hinges), abs=1e-5)
        and np.mean(hinges) > 0.01
    )
    contrast = surprise([[c / 0.05 for c in (*row, *far[i])] for i, row in enumerate(near)])
    assert loss.total.item() == pytest.approx(contrast + 10 * np.mean(hinges), abs=1e-3)


@BACKBONES
@pytest.mark.parametrize("setting", ["unsupervised", "supervised"])
def test_mlm_adds_a_tenth_of_the_pretrained_models_own_loss(
    request: Any, backbone: str, tmp_path: Path, setting: str
) -> None:
    folder = request.getfixturevalue(backbone)
    method = simcse(folder, tmp_path, setting, "mlm", dropout=0.0)
    batch = batch_in(method, setting)
    torch.manual_seed(3)
    with torch.no_grad():
        loss = method(batch)
    views = join(batch.columns if setting == "supervised" else batch.columns * 2, method.pad_id)
    ids, mask = views["input_ids"], views["attention_mask"]
    tokenizer = method.backbone.tokenizer
    spared = torch.tensor([[i in tokenizer.all_special_ids for i in row] for row in ids.tolist()])
    torch.manual_seed(3)
    masked, labels = mask_tokens(ids, spared, tokenizer.mask_token_id, len(tokenizer))
    assert not torch.equal(labels[:6], labels[6:12]), "both views are masked alike"
    with torch.no_grad():
        whole = AutoModelForMaskedLM.from_pretrained(folder)(
            input_ids=masked, attention_mask=mask, labels=labels
        )
    assert loss.parts["mlm"].item() == pytest.approx(whole.loss.item(), abs=1e-4)
    assert loss.total.item() == pytest.approx(
        loss.parts["info_nce"].item() + 0.1 * whole.loss.item(), abs=1e-4
    )


def test_fixed_dropout_is_two_passes_under_the_same_masks(tiny: str, tmp_path: Path) -> None:
    method = simcse(tiny, tmp_path, variant="fixed-dropout")
    batch = batch_of(method, TEXTS[0])
    with training(method), torch.no_grad():
        torch.manual_seed(4)
        found = method(batch).total.item()
        views = []
        for _ in range(2):
            torch.manual_seed(4)
            views.append(method.head(method.hidden(batch.columns[0])[:, 0]).numpy())
        assert np.array_equal(*views)
        assert found == pytest.approx(
            surprise([[c / 0.05 for c in row] for row in cosines(*views)]), abs=1e-4
        )
        torch.manual_seed(5)
        assert method(batch).total.item() != pytest.approx(found, abs=1e-4), "dropout is off"


def test_dot_products_without_a_temperature(tiny: str, tmp_path: Path) -> None:
    method = simcse(tiny, tmp_path, variant="dot-product", dropout=0.0)
    with torch.no_grad():
        found = method(batch_of(method, TEXTS[0])).total.item()
        z = method.head(torch.tensor(method.encode(TEXTS[0]))).double().numpy()
    assert found == pytest.approx(surprise((z @ z.T).tolist()), abs=1e-3)


def test_without_a_head_the_loss_compares_what_is_scored(tiny: str, tmp_path: Path) -> None:
    method = simcse(tiny, tmp_path, variant="no-head", dropout=0.0, head_at_test=True)
    with torch.no_grad():
        found = method(batch_of(method, TEXTS[0])).total.item()
    z = method.encode(TEXTS[0])
    assert found == pytest.approx(
        surprise([[c / 0.05 for c in row] for row in cosines(z, z)]), abs=1e-4
    )


def mean(state: torch.Tensor, features: Features, row: int) -> np.ndarray:
    return state[row, features["attention_mask"][row].bool()].mean(0).numpy()


LAYERS = {"avg": (-1,), "avg_top2": (-1, -2), "avg_first_last": (1, -1), "avg_emb_last": (0, -1)}


@BACKBONES
@pytest.mark.parametrize("pooler", LAYERS)
def test_a_pooler_decides_what_is_trained_and_what_is_scored(
    request: Any, backbone: str, tmp_path: Path, pooler: str
) -> None:
    method = simcse(
        request.getfixturevalue(backbone), tmp_path, dropout=0.0, pooler=pooler, head_at_test=True
    )
    assert not [name for name in trained(method) if name.startswith("head.")]
    features = method.tokenize(TEXTS[0])
    with torch.no_grad():
        found = method(batch_of(method, TEXTS[0])).total.item()
        states = method.encoder(**features, output_hidden_states=True).hidden_states
    wanted = [
        np.mean([mean(states[layer], features, row) for layer in LAYERS[pooler]], axis=0)
        for row in range(6)
    ]
    z = method.encode(TEXTS[0])
    np.testing.assert_allclose(z, wanted, rtol=0, atol=1e-5)
    assert found == pytest.approx(
        surprise([[c / 0.05 for c in row] for row in cosines(z, z)]), abs=1e-3
    )


def test_faithful_changes_nothing_in_one_process(tiny: str, tmp_path: Path) -> None:
    losses = []
    for faithful in (False, True):
        method = simcse(tiny, tmp_path, "supervised", "eh", dropout=0.0, faithful=faithful)
        losses.append(method(batch_of(method, *TEXTS)).total.item())
    assert losses[0] == losses[1]


def test_triplets_without_hard_negatives_are_pairs(tiny: str, tmp_path: Path) -> None:
    method = simcse(tiny, tmp_path, "supervised", dropout=0.0, hard_negatives=False)
    batch = batch_of(method, *TEXTS)
    assert len(TEXTS) == 3 and len(batch.columns) == 2
    with torch.no_grad():
        a, b = (
            method.head(method.encoder(**view).last_hidden_state[:, 0]).double().numpy()
            for view in batch.columns
        )
        found = method(batch).total.item()
    assert found == pytest.approx(
        surprise([[c / 0.05 for c in row] for row in cosines(a, b)]), abs=1e-4
    )
    with pytest.raises(BenchError, match="hard_negatives=false leaves them out"):
        SimCSE.needs("supervised", recipe("eh", hard_negatives="false"))


# views without some words: table 1


@pytest.mark.parametrize(("edit", "left"), [("crop", 7), ("deletion", 7), ("one-word", 9)])
def test_the_second_view_lacks_words_and_the_first_none(
    tiny: str, tmp_path: Path, edit: str, left: int
) -> None:
    """Of ten words of one piece each: three tenths, or one. Drawn by row and epoch, whatever else is in the batch."""
    method = simcse(tiny, tmp_path, edit=edit, edit_share=0.3, dropout=0.0)
    ids = [
        token
        for token in range(len(method.backbone.tokenizer))
        if token not in method.inside and token not in method.backbone.tokenizer.all_special_ids
    ]
    rows = [ids[i : i + 10] for i in range(6)]
    first, second = method.collate({"text": rows}, np.arange(6), 0)
    specials = len(method.before) + len(method.after)
    assert first["attention_mask"].sum(1).tolist() == [10 + specials] * 6
    assert second["attention_mask"].sum(1).tolist() == [left + specials] * 6
    for i, row in enumerate(rows):
        words = [token for token in second["input_ids"][i].tolist() if token in row]
        assert words == [token for token in row if token in words], "what is left stays in order"
    alone = method.collate({"text": rows[4:5]}, np.array([4]), 0)[1]
    assert torch.equal(alone["input_ids"][0], second["input_ids"][4])
    assert any(
        not torch.equal(
            method.collate({"text": rows}, np.arange(6), epoch)[1]["input_ids"], second["input_ids"]
        )
        for epoch in (1, 2)
    )
    with torch.no_grad():
        z1, z2 = (
            method.head(method.encoder(**view).last_hidden_state[:, 0]).double().numpy()
            for view in (first, second)
        )
        found = method(Batch((first, second), step=0)).total.item()
    assert found == pytest.approx(
        surprise([[c / 0.05 for c in row] for row in cosines(z1, z2)]), abs=1e-4
    )


def test_a_sentence_of_one_word_stays(tiny: str, tmp_path: Path) -> None:
    method = simcse(tiny, tmp_path, edit="one-word")
    first, second = method.collate({"text": [[50], []]}, np.arange(2), 0)
    assert torch.equal(first["input_ids"], second["input_ids"])


# what is refused


def test_eh_needs_triplets() -> None:
    assert SimCSE.needs("supervised", recipe()) == ("pairs", "triplets")
    assert SimCSE.needs("supervised", recipe("eh")) == ("triplets",)
    assert SimCSE.needs("unsupervised", recipe("mlm")) == ("sentences",)
    with pytest.raises(
        BenchError, match="needs hard negatives, and the unsupervised setting has none"
    ) as caught:
        SimCSE.needs("unsupervised", recipe("eh"))
    assert "--setting supervised" in caught.value.hint


def test_fixed_dropout_is_refused_where_the_views_are_different_sentences() -> None:
    with pytest.raises(BenchError, match="two views of one sentence"):
        SimCSE.needs("supervised", recipe("fixed-dropout"))


def test_an_edit_is_refused_where_there_is_nothing_to_edit_or_the_views_must_be_equal() -> None:
    with pytest.raises(BenchError, match="edit is about two views of one sentence"):
        SimCSE.needs("supervised", recipe(edit="crop"))
    with pytest.raises(BenchError, match="edit makes other words"):
        SimCSE.needs("unsupervised", recipe("fixed-dropout", edit="crop"))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("pooler", "max", "pooler=max is unknown"),
        ("similarity", "euclid", "similarity=euclid is unknown"),
        ("edit", "swap", "edit=swap is unknown"),
        ("edit_share", "0", "expected a share"),
        ("edit_share", "1", "expected a share"),
        ("temperature", "0", "temperature must be greater than 0"),
        ("mlm_probability", "0", "a share"),
        ("mlm_probability", "1.5", "a share"),
    ],
)
def test_recipes_that_cannot_work_are_refused(key: str, value: str, said: str) -> None:
    SimCSE.check(recipe(), None)
    with pytest.raises(BenchError, match=said):
        SimCSE.check(recipe(**{key: value}), None)
