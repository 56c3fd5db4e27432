"""PromCSE: its loss against the authors' arithmetic, what it trains, and what its ablations are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from frozen import TEXTS, batch_in, batch_of, counts, same_after_loading, step_of, trained, training
from models import built, sentences

from bench.method import Batch, BenchError
from bench.run.recipes import choose, entries, merge
from methods import promcse as module
from methods.dcpcse import DCPCSE
from methods.promcse import PromCSE

BACKBONES = pytest.mark.parametrize("backbone", ["tiny", "tiny_roberta"])
VARIANTS = pytest.mark.parametrize("variant", ["", "layer-shared", "input-layer"])
P, L, H = 4, 2, 32
TABLE = {
    "": (P, 2 * L * H),
    "eh": (P, 2 * L * H),
    "layer-shared": (P, 2 * H),
    "input-layer": (P, H),
}


def promcse(
    backbone: str, folder: Path, setting: str = "unsupervised", variant: str = "", **values: Any
) -> PromCSE:
    return built(
        PromCSE,
        backbone,
        folder,
        setting=setting,
        variant=variant,
        **({"prompt_length": P} | values),
    )


def fed(method: PromCSE, *views: list[list[float]]) -> tuple[Any, torch.Tensor]:
    """The loss of given head outputs z1, z2[, z3], and its gradient with respect to z1, in float64."""
    z = [torch.tensor(view, dtype=torch.float64, requires_grad=True) for view in views]
    method.head = torch.nn.Identity()  # type: ignore[assignment]
    method.hidden = lambda _: torch.cat(z)[:, None]  # type: ignore[method-assign]
    loss = method(batch_of(method, *[["word"] * len(z[0])] * len(z)))
    loss.total.backward()
    assert z[0].grad is not None
    return loss, z[0].grad


@pytest.mark.parametrize(
    "variant, key", [("", "infonce_hard_negative_weight_0"), ("eh", "total_promcse_eh")]
)
def test_the_supervised_loss_is_the_authors(
    reference: dict[str, Any], tiny: str, tmp_path: Path, variant: str, key: str
) -> None:
    known = reference["contrastive"]
    method = promcse(tiny, tmp_path, "supervised", variant)
    loss, gradient = fed(method, *(known["inputs"][z] for z in ("z1", "z2", "z3")))
    assert loss.total.item() == pytest.approx(known[key]["loss"], abs=1e-10)
    np.testing.assert_allclose(gradient, known[key]["grad_z1"], rtol=0, atol=1e-10)
    if variant == "eh":
        assert loss.parts["hinge"].item() == pytest.approx(
            known["eh_alone_margin_0.2"]["loss"], abs=1e-10
        )
        assert loss.parts["info_nce"].item() == pytest.approx(
            known["infonce_hard_negative_weight_0"]["loss"], abs=1e-10
        )


def test_pairs_have_the_loss_without_hard_negatives(
    reference: dict[str, Any], tiny: str, tmp_path: Path
) -> None:
    known = reference["contrastive"]
    loss, gradient = fed(
        promcse(tiny, tmp_path, "supervised"), known["inputs"]["z1"], known["inputs"]["z2"]
    )
    assert loss.total.item() == pytest.approx(known["infonce_unsup"]["loss"], abs=1e-10)
    np.testing.assert_allclose(gradient, known["infonce_unsup"]["grad_z1"], rtol=0, atol=1e-10)


@pytest.mark.parametrize("margin", ["0.0", "0.1", "0.4"])
def test_margin_and_weight_are_recipe_values(
    reference: dict[str, Any], tiny: str, tmp_path: Path, margin: str
) -> None:
    known = reference["contrastive"]
    values = {"eh_margin": float(margin), "eh_weight": 3.0, "hard_negative_weight": 1.0}
    loss, _ = fed(
        promcse(tiny, tmp_path, "supervised", "eh", **values),
        *(known["inputs"][z] for z in ("z1", "z2", "z3")),
    )
    wanted = (
        known["infonce_hard_negative_weight_1"]["loss"]
        + 3 * known["eh_alone_other_margins"][margin]
    )
    assert loss.total.item() == pytest.approx(wanted, abs=1e-10)


def cosine(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(a @ b / a.norm() / b.norm())


@BACKBONES
@VARIANTS
def test_the_unsupervised_loss_from_the_vectors_alone(
    request: Any, backbone: str, tmp_path: Path, variant: str
) -> None:
    """Without dropout both views are one vector; the plain encoder's vectors give another loss, so that the prompt is seen."""
    method = promcse(
        request.getfixturevalue(backbone), tmp_path, variant=variant, dropout=0.0, head_at_test=True
    )
    torch.nn.init.normal_(method.prompt.table, std=1.0)
    with torch.no_grad():
        total = method(batch_in(method, "unsupervised")).total.item()
        states = method.encoder(**method.tokenize(TEXTS[0])).last_hidden_state[:, 0]
        plain = method.head(states).double()

    def loss(z: torch.Tensor) -> float:
        rows = [
            math.log(sum(math.exp(cosine(a, b) / 0.05) for b in z)) - cosine(a, a) / 0.05 for a in z
        ]
        return float(np.mean(rows))

    assert total == pytest.approx(loss(torch.tensor(method.encode(TEXTS[0])).double()), abs=1e-4)
    assert abs(total - loss(plain)) > 1e-3


@BACKBONES
@pytest.mark.parametrize(
    "variant, setting",
    [
        ("", "unsupervised"),
        ("", "supervised"),
        ("eh", "supervised"),
        ("layer-shared", "unsupervised"),
        ("input-layer", "unsupervised"),
    ],
)
def test_prompt_and_head_train_and_nothing_else(
    request: Any, backbone: str, tmp_path: Path, variant: str, setting: str
) -> None:
    method = promcse(
        request.getfixturevalue(backbone), tmp_path, setting, variant, learning_rate=1e-2
    )
    names = {"prompt.table": TABLE[variant], "head.dense.weight": (H, H), "head.dense.bias": (H,)}
    assert trained(method) == names
    assert step_of(method, batch_in(method, setting)) == set(names)


@pytest.mark.parametrize(
    "model, size, length, prompt",
    [
        ("bert", "base", 16, 294_912),
        ("bert", "base", 12, 221_184),
        ("roberta", "base", 14, 258_048),
        ("bert", "base", 10, 184_320),
        ("roberta", "large", 10, 491_520),
        ("bert", "large", 12, 589_824),
    ],
)
def test_how_many_numbers_train_at_the_papers_sizes(
    model: str, size: str, length: int, prompt: int
) -> None:
    head = 590_592 if size == "base" else 1_049_600
    assert counts(PromCSE, model, size, prompt_length=length) == {"prompt": prompt, "head": head}


def test_how_many_the_ablations_train() -> None:
    found = {
        v: counts(PromCSE, "bert", "base", v)["prompt"] for v in ("layer-shared", "input-layer")
    }
    assert found == {"layer-shared": 24_576, "input-layer": 16 * 768}


@BACKBONES
@VARIANTS
def test_a_checkpoint_is_prompt_and_head_and_gives_the_same_vectors(
    request: Any, backbone: str, tmp_path: Path, variant: str
) -> None:
    folder = request.getfixturevalue(backbone)
    names = same_after_loading(
        lambda seed: promcse(
            folder, tmp_path, "supervised", variant, seed=seed, head_at_test=True, learning_rate=0.1
        ),
        tmp_path / "c",
    )
    assert names == {"prompt.table", "head.dense.weight", "head.dense.bias"}


@BACKBONES
@VARIANTS
@pytest.mark.parametrize("dropout", [0.1, 0.0])
def test_two_rows_of_equal_ids_differ_in_training_by_dropout_alone(
    request: Any, backbone: str, tmp_path: Path, variant: str, dropout: float
) -> None:
    method = promcse(request.getfixturevalue(backbone), tmp_path, variant=variant, dropout=dropout)
    (features,) = batch_of(method, ["a man plays the guitar"] * 2).columns
    with training(method), torch.no_grad():
        one, other = method.hidden(features)
    if dropout:
        assert (one - other).abs().max() > 0.01
    else:
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


@pytest.mark.parametrize("prefix_dropout, differ", [(0.5, True), (0.0, False)])
def test_the_prompts_own_dropout(
    tiny: str, tmp_path: Path, prefix_dropout: float, differ: bool
) -> None:
    method = promcse(tiny, tmp_path, dropout=0.0, prefix_dropout=prefix_dropout)
    torch.nn.init.normal_(method.prompt.table, std=1.0)
    (features,) = batch_of(method, ["a man plays the guitar"] * 2).columns
    with training(method), torch.no_grad():
        one, other = method.hidden(features)
    assert bool((one - other).abs().max() > 1e-2) == differ


@BACKBONES
@VARIANTS
def test_vectors_do_not_depend_on_what_stands_in_the_batch(
    request: Any, backbone: str, tmp_path: Path, variant: str
) -> None:
    method = promcse(request.getfixturevalue(backbone), tmp_path, variant=variant)
    torch.nn.init.normal_(method.prompt.table, std=1.0)
    texts = [*sentences(7, seed=3), " ".join(["guitar"] * 60)]
    alone = np.concatenate([method.encode([text]) for text in texts])
    np.testing.assert_allclose(method.encode(texts), alone, rtol=0, atol=1e-5)
    np.testing.assert_allclose(method.encode(texts[::-1])[::-1], alone, rtol=0, atol=1e-5)


@BACKBONES
@VARIANTS
def test_a_sentence_has_the_positions_that_the_prompt_leaves(
    request: Any, backbone: str, tmp_path: Path, variant: str
) -> None:
    method = promcse(request.getfixturevalue(backbone), tmp_path, variant=variant)
    longest = " ".join(["guitar"] * 400)
    assert method.backbone.max_tokens == 256
    assert method.tokenize([longest])["input_ids"].shape == (1, 256 - P)
    assert method.tokenize([longest], 32)["input_ids"].shape == (1, 32)
    assert method.tokenize([longest], 255)["input_ids"].shape == (1, 256 - P)
    assert np.isfinite(method.encode([longest])).all()


@pytest.mark.parametrize("head_at_test", [False, True])
def test_the_head_is_part_of_the_vectors_only_where_the_recipe_says_so(
    tiny: str, tmp_path: Path, head_at_test: bool
) -> None:
    method = promcse(tiny, tmp_path, head_at_test=head_at_test)
    texts = sentences(3)
    with torch.no_grad():
        wanted = method.prompt.states(method.encoder, method.tokenize(texts))[:, 0]
        if head_at_test:
            wanted = torch.tanh(wanted @ method.head.dense.weight.T + method.head.dense.bias)
    np.testing.assert_allclose(method.encode(texts), wanted, rtol=0, atol=1e-6)


def test_the_two_views_are_one_pass_of_the_encoder(tiny: str, tmp_path: Path) -> None:
    method = promcse(tiny, tmp_path)
    rows = []
    method.encoder.register_forward_hook(
        lambda _m, _i, out: rows.append(len(out.last_hidden_state))
    )
    with training(method):
        method(batch_in(method, "unsupervised"))
    assert rows == [12]


def test_the_hinge_needs_triplets() -> None:
    plain, hinge = (
        merge(PromCSE, None, "", {}, trained=True),
        merge(PromCSE, None, "eh", {}, trained=True),
    )
    assert PromCSE.needs("unsupervised", plain) == ("sentences",)
    assert PromCSE.needs("supervised", plain) == ("pairs", "triplets")
    assert PromCSE.needs("supervised", hinge) == ("triplets",)
    with pytest.raises(BenchError, match="hinge loss needs hard negatives") as error:
        PromCSE.needs("unsupervised", hinge)
    assert "--setting supervised" in str(error.value.hint)


def test_the_hinge_and_mlm_add_up(tiny: str, tmp_path: Path) -> None:
    method = promcse(tiny, tmp_path, "supervised", "eh", mlm=True)
    with torch.no_grad():
        loss = method(batch_in(method, "supervised"))
    parts = {name: value.item() for name, value in loss.parts.items()}
    assert parts.keys() == {"info_nce", "hinge", "mlm"} and min(parts.values()) > 0
    assert loss.total.item() == pytest.approx(
        parts["info_nce"] + 10 * parts["hinge"] + 0.1 * parts["mlm"], abs=1e-5
    )


README = {  # PromCSE's, "Hyperparameters", unsupervised: batch, rate, prompt length, do_mlm
    "bert-base-uncased": (256, 3e-2, 16, False),
    "bert-large-uncased": (256, 3e-2, 10, False),
    "roberta-base": (64, 3e-2, 14, True),
    "roberta-large": (64, 1e-2, 10, True),
}


@pytest.mark.parametrize("backbone", README)
def test_the_unsupervised_recipes_are_those_of_the_readme(backbone: str) -> None:
    entry, line = choose(
        entries(Path(module.__file__).parent, "promcse"), "unsupervised", backbone, ""
    )
    recipe = merge(PromCSE, entry, "", {}, trained=True)
    assert line is None
    assert (recipe.batch_size, recipe.learning_rate, recipe.prompt_length, recipe.mlm) == README[
        backbone
    ]
    assert (recipe.epochs, recipe.eval_steps, recipe.head_at_test) == (1, 125, False)
    (theirs,) = [
        e
        for e in entries(Path(module.__file__).parent, "dcpcse")
        if (e.setting, e.backbone, e.variant) == ("unsupervised", backbone, "")
    ]
    known = merge(DCPCSE, theirs, theirs.variant, {}, trained=True)
    assert {key: recipe[key] for key in known if key != "shallow"} == {
        key: known[key] for key in known if key != "shallow"
    }


@pytest.mark.parametrize(
    "key, value",
    [
        ("prompt", "shallow"),
        ("prompt_length", "0"),
        ("prefix_dropout", "1"),
        ("prefix_dropout", "much"),
    ],
)
def test_a_recipe_that_cannot_work_is_one_line(key: str, value: str) -> None:
    with pytest.raises(BenchError, match=f"^{key}={value}"):
        PromCSE.check(merge(PromCSE, None, "", {key: value}, trained=True), None)


def test_masked_copies_need_keys_and_values() -> None:
    with pytest.raises(BenchError, match="input-layer prompt has none of"):
        PromCSE.check(merge(PromCSE, None, "input-layer", {"mlm": "true"}, trained=True), None)
    PromCSE.check(merge(PromCSE, None, "layer-shared", {"mlm": "true"}, trained=True), None)


def test_a_dropout_from_the_command_line_is_a_number(tiny: str, tmp_path: Path) -> None:
    recipe = merge(PromCSE, None, "", {"prefix_dropout": "0.3"}, trained=True)
    PromCSE.check(recipe, None)
    assert promcse(tiny, tmp_path, prefix_dropout=recipe.prefix_dropout).prompt.dropout.p == 0.3


def test_a_batch_of_one_column_is_left_as_it_is(tiny: str, tmp_path: Path) -> None:
    method = promcse(tiny, tmp_path)
    batch = batch_in(method, "unsupervised")
    before = {key: value.clone() for key, value in batch.columns[0].items()}
    method(Batch(batch.columns, 3))
    assert all(torch.equal(before[key], value) for key, value in batch.columns[0].items())


@pytest.mark.parametrize("faithful", [False, True])
def test_the_batch_is_gathered_as_the_recipe_says(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faithful: bool
) -> None:
    """What gathering gives is what both losses compare: here the vectors of other sentences, as candidates."""
    method = promcse(
        tiny, tmp_path, "supervised", "eh", dropout=0.0, faithful=faithful, head_at_test=True
    )
    others = [torch.tensor(method.encode(sentences(6, seed=seed))) for seed in (12, 13)]
    asked = []

    def gather(z: Any, faithful: bool) -> Any:
        asked.append(faithful)
        return [z[0], *others]

    monkeypatch.setattr("methods.promcse.across_ranks", gather)
    with torch.no_grad():
        loss = method(batch_in(method, "supervised"))
    z1, z2, z3 = (z.double() for z in (torch.tensor(method.encode(TEXTS[0])), *others))
    hinge, surprise = [], []
    for i, anchor in enumerate(z1):
        to2, to3 = [cosine(anchor, b) for b in z2], [cosine(anchor, b) for b in z3]
        own = to2[i]
        hinge.append(max(0.0, 0.2 - own + max(to2[:i] + to2[i + 1 :] + to3)))
        surprise.append(math.log(sum(math.exp(s / 0.05) for s in to2 + to3)) - own / 0.05)
    assert asked == [faithful]
    assert loss.total.item() == pytest.approx(np.mean(surprise) + 10 * np.mean(hinge), abs=1e-3)
