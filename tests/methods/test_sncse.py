"""SNCSE: its loss, its three texts, and the negation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from models import built, sentences
from torch import Tensor

import methods
from bench.method import Batch, BenchError, Recipe, Value
from bench.run.recipe_file import entries
from bench.run.recipes import choose, merge
from methods.losses import info_nce
from methods.sncse import SNCSE, ended, margin_loss, negate

BERT = ('This sentence : " ', ' " means [MASK] .'), ('This sentence of " ', ' " means [MASK] .')


@pytest.fixture(params=["bert", "roberta"])
def backbone(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue("tiny" if request.param == "bert" else "tiny_roberta")


def sncse(backbone: str, folder: Path, **values: Any) -> SNCSE:
    return built(
        SNCSE, backbone, folder, setting="unsupervised", **({"max_seq_length": 64} | values)
    ).double()


def batch_of(method: SNCSE, texts: Sequence[str]) -> Batch:
    return Batch(method.collate({"sentence": texts}, np.arange(len(texts)), 0))


def test_the_loss_is_that_of_the_authors_code(reference_b: dict[str, Any]) -> None:
    known, inputs = reference_b["sncse"], reference_b["inputs"]
    z1, z2, z3 = (
        torch.tensor(inputs[key], dtype=torch.float64, requires_grad=True)
        for key in ("v", "c_pos", "c_neg")
    )
    margin = margin_loss(z1, z2, z3, alpha=known["alpha"], beta=known["beta"])
    assert margin.item() == pytest.approx(known["bml"], abs=1e-10)
    total = info_nce(z1, z2, temperature=0.05) + known["lambda"] * margin
    assert total.item() == pytest.approx(known["total"], abs=1e-10)


def test_the_margin_loss_pulls_the_difference_between_its_two_bounds() -> None:
    """d below -beta is pulled up, d above -alpha down, with slope 1; between them there is no loss and no gradient."""
    for d, loss, slope in ((-0.5, 0.2, -1), (-0.2, 0.0, 0), (0.05, 0.15, 1)):
        cosine = torch.tensor([0.4 + d], dtype=torch.float64, requires_grad=True)
        unit = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
        positive = torch.tensor([[0.4, 0.84**0.5]], dtype=torch.float64)
        found = margin_loss(
            unit,
            positive,
            torch.stack([cosine, (1 - cosine**2).sqrt()], dim=1),
            alpha=0.1,
            beta=0.3,
        )
        assert found.item() == pytest.approx(loss, abs=1e-12)
        found.backward()
        assert cosine.grad is not None and cosine.grad.item() == pytest.approx(slope, abs=1e-12)


def state(method: SNCSE, sentence: str, pieces: tuple[str, str], blank: str = "") -> Tensor:
    """(H,) the mask's state of one sentence in a template that is tokenised here, in one pass of its own."""
    tokenizer, first = method.backbone.tokenizer, method.backbone.first_position
    before, after = (piece.replace("[MASK]", tokenizer.mask_token) for piece in pieces)
    head, tail = (
        tokenizer(before.rstrip(" ") if blank else before)["input_ids"][:-1],
        tokenizer(after)["input_ids"][1:],
    )
    ids = [*head, *tokenizer(blank + sentence, add_special_tokens=False)["input_ids"], *tail]
    place = len(ids) - len(tail) + tail.index(tokenizer.mask_token_id)
    positions = torch.arange(first, first + len(ids))[None]
    return method.encoder(input_ids=torch.tensor([ids]), position_ids=positions).last_hidden_state[
        0, place
    ]


def test_the_loss_by_hand(backbone: str, tmp_path: Path) -> None:
    method = sncse(backbone, tmp_path, dropout=0.0, margin_weight=0.5)
    texts = [
        "a man is near the sea",
        "prices rose!",
        'the "child" [MASK] sleeps <mask>.',
        "he will not win",
    ]
    same = [
        "a man is near the sea .",
        "prices rose!",
        'the "child" [MASK] sleeps <mask>.',
        "he will not win .",
    ]
    opposite = [
        "a man is not near the sea .",
        "Not prices rose!",
        'Not the "child" [MASK] sleeps <mask>.',
        "he will win .",
    ]
    with torch.no_grad():
        z = [
            torch.tanh(method.head.dense(torch.stack([state(method, s, pieces) for s in some])))
            for some, pieces in ((same, BERT[0]), (same, BERT[1]), (opposite, BERT[1]))
        ]
        u = [(one / one.norm(dim=1, keepdim=True)).numpy() for one in z]
        scores = u[0] @ u[1].T / 0.05
        contrast = np.mean([np.log(np.exp(row - row[i]).sum()) for i, row in enumerate(scores)])
        d = (u[0] * u[2]).sum(1) - (u[0] * u[1]).sum(1)
        margin = np.mean([max(x + 0.1, 0) + max(-x - 0.3, 0) for x in d])
        loss = method(batch_of(method, texts))
    assert loss.total.item() == pytest.approx(contrast + 0.5 * margin, abs=1e-10)
    assert loss.parts["margin"].item() == pytest.approx(margin, abs=1e-10)
    assert loss.parts["contrast"].item() == pytest.approx(contrast, abs=1e-10)


def test_what_is_scored_is_the_state_in_the_first_filled_template(
    backbone: str, tmp_path: Path
) -> None:
    method = sncse(backbone, tmp_path)
    with torch.no_grad():
        wanted = state(method, "a man plays .", BERT[0], blank=" ")
    np.testing.assert_allclose(method.encode(["a man plays"])[0], wanted, rtol=0, atol=1e-6)
    assert np.array_equal(method.encode(["a man plays"]), method.encode(["a man plays ."]))


@pytest.mark.parametrize(
    ("sentence", "negation"),
    [
        ("He is not here.", "He is here."),
        ("They did not, and not once.", "They did , and not once."),
        ("The cat is on the mat.", "The cat is not on the mat."),
        ("It can-do what it will.", "It can-do what it will not."),
        ("He has played there.", "He has not played there."),
        ("He has a dog.", "Not He has a dog."),
        ("In May 2005 Will Smith played.", "Not In May 2005 Will Smith played."),
        ("One cannot win.", "One can win."),
        ("isn't it", "Not isn't it"),
        ("not", "Not not"),
        ("knots were tied", "knots were not tied"),
        ("", ""),
        (" ", " "),
    ],
)
def test_negation(sentence: str, negation: str) -> None:
    assert negate(sentence) == negation


WORDS = [
    "not",
    "cannot",
    "is",
    "Is",
    "He",
    "has",
    "been",
    "played",
    "isn't",
    "knots",
    ",",
    "not-so",
    "May",
    "may",
    "",
]


@given(st.one_of(st.text(max_size=40), st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)))
def test_a_negation_differs_from_its_sentence_by_one_not(sentence: str) -> None:
    found = negate(sentence)
    if sentence.strip():
        assert (
            found != sentence
            and abs(found.lower().count("not") - sentence.lower().count("not")) == 1
        )
    else:
        assert found == sentence


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [("a man", "a man ."), ("a man.", "a man."), ("a)  ", "a)  "), ("", ""), (" ", " ")],
)
def test_a_full_stop_where_no_punctuation_ends_the_sentence(sentence: str, wanted: str) -> None:
    assert ended(sentence) == wanted


def test_the_length_counts_the_template_and_cuts_the_sentence(tiny: str, tmp_path: Path) -> None:
    method = sncse(tiny, tmp_path, max_seq_length=32)
    for features in batch_of(method, ["man " * 100, "man"]).columns:
        assert features["input_ids"].shape[1] == 32
        assert (
            features["input_ids"].gather(1, features["mask_position"].unsqueeze(1))
            == method.backbone.mask_id
        ).all()
    with pytest.raises(BenchError, match="no room"):
        sncse(tiny, tmp_path, max_seq_length=10)


def test_backbone_and_head_train_and_all_of_them_get_a_gradient(
    backbone: str, tmp_path: Path
) -> None:
    method = sncse(backbone, tmp_path)
    own = {n: p.numel() for n, p in method.named_parameters() if not n.startswith("encoder.")}
    assert own == {"head.dense.weight": 32 * 32, "head.dense.bias": 32}
    method.train()
    method(batch_of(method, sentences(5))).total.backward()
    without = {n for n, p in method.named_parameters() if p.grad is None or not p.grad.any()}
    assert without <= {
        n for n in dict(method.named_parameters()) if n.endswith("key.bias")
    }  # softmax does not see a key's bias


def test_a_checkpoint_gives_the_same_vectors_bit_for_bit(backbone: str, tmp_path: Path) -> None:
    one, other = (
        built(SNCSE, backbone, tmp_path, setting="unsupervised", seed=seed, max_seq_length=64)
        for seed in (1, 2)
    )
    with torch.no_grad():
        for p in one.parameters():
            p.add_(torch.randn_like(p) * 0.01)
    one.save(tmp_path / "saved")
    assert not np.array_equal(one.encode(sentences(5)), other.encode(sentences(5)))
    other.load(tmp_path / "saved")
    assert np.array_equal(one.encode(sentences(5)), other.encode(sentences(5)))


def test_vectors_do_not_depend_on_batch_mates(backbone: str, tmp_path: Path) -> None:
    method = sncse(backbone, tmp_path)
    texts = [
        "",
        '"',
        "[MASK]",
        "<mask> <mask>",
        "a <pad> man",
        "a [PAD] man [SEP]",
        *sentences(3),
        "a man plays " * 300,
    ]
    alone = np.concatenate([method.encode([text]) for text in texts])
    np.testing.assert_allclose(method.encode(texts), alone, rtol=0, atol=1e-6)
    assert np.isfinite(alone).all()


@pytest.mark.parametrize(
    "values", [{"template_1": "{m}"}, {"temperature": 0.0}, {"template_2": "x"}, {"alpha": 0.4}]
)
def test_a_recipe_that_cannot_work_is_refused_before_anything_starts(
    values: dict[str, Any],
) -> None:
    recipe = merge(SNCSE, None, "", {}, trained=True)
    SNCSE.check(recipe, None)
    with pytest.raises(BenchError):
        SNCSE.check(
            Recipe(recipe.values_with_source() | {k: Value(v, "test") for k, v in values.items()}),
            None,
        )


def test_the_recipes_follow_the_authors_script(reference_b: dict[str, Any]) -> None:
    for backbone, batch, rate, weight in (
        ("bert-base-uncased", 256, 1e-5, 1e-3),
        ("roberta-large", 128, 5e-6, 5e-4),
    ):
        entry, line = choose(
            entries(Path(methods.__file__).parent, "sncse"), "unsupervised", backbone, ""
        )
        assert line is None
        ours = merge(SNCSE, entry, "", {}, trained=True)
        assert (ours.batch_size, ours.learning_rate, ours.margin_weight) == (batch, rate, weight)
    templates = reference_b["templates"]["sncse"]
    assert [ours.template_1, ours.template_2] == templates
