"""ConPVP: its loss against the authors' code and against passes made by hand; which templates are drawn; what is scored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from formula import NUMBERED, TEMPLATES, Formula
from models import built, sentences
from torch import Tensor, nn

import methods
from bench.method import Batch, BenchError, Features, Recipe, Value
from bench.run.recipe_file import entries
from bench.run.recipes import choose, merge
from methods.conpvp import NEGATIVE, POSITIVE, ConPVP
from methods.losses import info_nce
from methods.templates import wrap

AWKWARD = [
    "",
    '"',
    "'quoted' and \"doubly\"",
    "[MASK]",
    "<mask> <mask>",
    "a <pad> man",
    "a [PAD] man [SEP]",
    "{s} {m}",
]


@pytest.fixture(params=["bert", "roberta"])
def backbone(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue("tiny" if request.param == "bert" else "tiny_roberta")


def conpvp(backbone: str, folder: Path, **values: Any) -> ConPVP:
    return built(ConPVP, backbone, folder, setting="unsupervised", **values).double()


def views(
    method: ConPVP, texts: Sequence[str], epoch: int = 0, rows: Sequence[int] | None = None
) -> tuple[Features, ...]:
    return method.collate(
        {"sentence": method.backbone.ids(texts)}, np.array(rows or range(len(texts))), epoch
    )


def words(method: ConPVP, features: Features) -> list[str]:
    rows = zip(features["input_ids"], features["attention_mask"], strict=True)
    return [method.backbone.tokenizer.decode(ids[mask.bool()]) for ids, mask in rows]


def test_loss_and_gradients_are_those_of_the_authors_code(reference_b: dict[str, Any]) -> None:
    known = reference_b["conpvp"]
    v, positive, negative = (
        torch.tensor(reference_b["inputs"][key], dtype=torch.float64, requires_grad=True)
        for key in ("v", "c_pos", "c_neg")
    )
    for stated, given in (
        (known, (v, positive, negative)),
        (known["without_c_neg"], (v, positive)),
    ):
        loss = info_nce(*given, temperature=known["tau"])
        assert loss.item() == pytest.approx(stated["loss"], abs=1e-10)
        for found, key in zip(
            torch.autograd.grad(loss, given), ("grad_v", "grad_c_pos", "grad_c_neg"), strict=False
        ):
            torch.testing.assert_close(
                found, torch.tensor(stated[key], dtype=torch.float64), rtol=0, atol=1e-10
            )


def test_the_loss_of_a_tiny_bert_is_that_of_the_authors_code(reference_b: dict[str, Any]) -> None:
    """The whole forward pass: prompt in the place of words, mask states, biases, all prototypes of the batch."""
    known = reference_b["tiny_bert"]
    f, method = Formula(known), ConPVP()
    method.encoder, method.prompt, method.head = f.encoder, nn.Parameter(f.prompt), nn.Identity()  # type: ignore[assignment]
    method.backbone = SimpleNamespace(tokenizer=SimpleNamespace(pad_token_id=0))
    method.anchor = TEMPLATES["anchor"]
    method.recipe = Recipe(
        {
            key: Value(value, "test")
            for key, value in {
                "debias": "prompt-mask",
                "temperature": 0.05,
                "faithful": False,
            }.items()
        }
    )
    columns = []
    for kind, template in TEMPLATES.items():
        inner = [
            r["input_ids"][len(template.before) : -len(template.after)]
            for r in known["conpvp"]
            if r["kind"] == kind
        ]
        columns.append(wrap(inner, [template] * 2, NUMBERED))  # type: ignore[arg-type]
    loss = method(Batch(tuple(columns))).total.item()
    assert loss == pytest.approx(known["conpvp_loss_tau_0.05_without_head"], abs=1e-10)


def by_hand(
    method: ConPVP, ids: Sequence[int], slots: Sequence[int], mask: int, seen: Sequence[int] | None
) -> Tensor:
    """(H,) the mask's state of one whole sequence; ``seen``: the places that can be attended to."""
    embedded = method.encoder.get_input_embeddings()(torch.tensor([ids])).clone()
    if slots:
        embedded[0, slots] = method.prompt
    attention = torch.tensor([[int(seen is None or i in seen) for i in range(len(ids))]])
    first = method.backbone.first_position
    out = method.encoder(
        inputs_embeds=embedded,
        attention_mask=attention,
        position_ids=torch.arange(first, first + len(ids))[None],
    )
    return out.last_hidden_state[0, mask]


def vector(method: ConPVP, sentence: str, text: str, debias: str) -> Tensor:
    """(H,) the debiased vector of a sentence in a template, tokenised here with the tokenizer's own special tokens."""
    tokenizer = method.backbone.tokenizer
    before, after = (
        text.replace("{m}", tokenizer.mask_token).replace("{p}", tokenizer.pad_token).split("{s}")
    )
    head, tail = tokenizer(before)["input_ids"][:-1], tokenizer(after)["input_ids"][1:]
    inner = tokenizer(sentence, add_special_tokens=False)["input_ids"]
    ids, count = [*head, *inner, *tail], text.count("{p}")
    mask = len(head) + len(inner) + tail.index(tokenizer.mask_token_id)
    template = [*range(len(head)), *range(len(head) + len(inner), len(ids))]
    h = by_hand(method, ids, slots := list(range(mask - count, mask)), mask, None)
    if debias == "none":
        return h
    return h - by_hand(
        method, ids, slots, mask, template if debias == "empty-template" else template[1:-1]
    )


@pytest.mark.slow
@pytest.mark.parametrize("debias", ["prompt-mask", "empty-template", "none"])
@pytest.mark.parametrize("prototypes", ["both", "positive", "none"])
def test_the_loss_by_hand(backbone: str, tmp_path: Path, debias: str, prototypes: str) -> None:
    method = conpvp(backbone, tmp_path, dropout=0.0, debias=debias, prototypes=prototypes)
    texts = [*sentences(4, seed=5), 'a <pad> "man" [MASK] <mask>']
    method.positive, method.negative = (
        method.positive[:1],
        method.negative[:1],
    )  # what is drawn is known
    with torch.no_grad():
        kinds = ["{s}  {p} {p} {p} {p} {m} .", POSITIVE["repo"][0], NEGATIVE["repo"][0]]
        kinds = {"both": kinds, "positive": kinds[:2], "none": kinds[:1] * 2}[prototypes]
        z = [torch.stack([vector(method, s, text, debias) for s in texts]) for text in kinds]
        z = [torch.tanh(one @ method.head.dense.weight.T + method.head.dense.bias) for one in z]
        z = [one / one.norm(dim=1, keepdim=True) for one in z]
        scores = torch.cat([z[0] @ other.T for other in z[1:]], dim=1).numpy() / 0.05
        wanted = np.mean([np.log(np.exp(row - row[i]).sum()) for i, row in enumerate(scores)])
        assert method(Batch(views(method, texts))).total.item() == pytest.approx(wanted, abs=1e-10)


def test_what_is_scored_is_the_raw_anchor_without_head(backbone: str, tmp_path: Path) -> None:
    for head_at_test in (False, True):
        method = conpvp(backbone, tmp_path, head_at_test=head_at_test)
        with torch.no_grad():
            h = vector(method, "a man plays", "{s}  {p} {p} {p} {p} {m} .", "none")
            wanted = torch.tanh(method.head.dense(h)) if head_at_test else h
        np.testing.assert_allclose(method.encode(["a man plays"])[0], wanted, rtol=0, atol=1e-6)


def test_draws_belong_to_seed_row_and_epoch_alone(tiny: str, tmp_path: Path) -> None:
    method = conpvp(tiny, tmp_path)
    texts = sentences(40)
    once = [words(method, view) for view in views(method, texts)]
    assert once == [words(method, view) for view in views(method, texts)]
    backwards = [
        words(method, view)[::-1] for view in views(method, texts[::-1], rows=list(range(40))[::-1])
    ]
    assert once == backwards
    assert once[0] == words(method, views(method, texts, epoch=1)[0]) and once[1] != words(
        method, views(method, texts, epoch=1)[1]
    )
    assert once[1] != words(
        conpvp(tiny, tmp_path, seed=2), views(conpvp(tiny, tmp_path, seed=2), texts)[1]
    )


@pytest.mark.slow
@pytest.mark.parametrize("lists", ["repo", "paper"])
def test_every_pair_of_templates_is_drawn_and_all_equally_often(
    tiny: str, tmp_path: Path, lists: str
) -> None:
    """Independent and uniform: the 9 x 8 (8 x 8) pairs over 3,600 lines, each within 5 standard deviations."""
    method = conpvp(tiny, tmp_path, templates=lists)
    _, positive, negative = views(method, ["x"] * 3600)
    pairs = np.array([words(method, positive), words(method, negative)])
    _, counts = np.unique(pairs, axis=1, return_counts=True)
    assert len(counts) == len(POSITIVE[lists]) * len(NEGATIVE[lists])
    mean = 3600 / len(counts)
    assert np.abs(counts - mean).max() < 5 * mean**0.5


def test_backbone_prompt_and_head_train_and_all_of_them_get_a_gradient(
    backbone: str, tmp_path: Path
) -> None:
    method = conpvp(backbone, tmp_path)
    assert (
        method.prompt.shape == (4, 32)
        and method.prompt.min() >= 0
        and method.prompt.max() < 1
        and method.prompt.std() > 0.2
    )
    own = {n: p.numel() for n, p in method.named_parameters() if not n.startswith("encoder.")}
    assert own == {"prompt": 4 * 32, "head.dense.weight": 32 * 32, "head.dense.bias": 32}
    method.train()
    method(Batch(views(method, sentences(5)))).total.backward()
    without = {n for n, p in method.named_parameters() if p.grad is None or not p.grad.any()}
    # softmax does not see a key's bias, and the last bias of the encoder cancels in f(text) - b(text)
    blind = {
        n
        for n in dict(method.named_parameters())
        if n.endswith(("key.bias", "layer.1.output.LayerNorm.bias"))
    }
    assert without <= blind and all(p.grad is not None for p in method.parameters())
    assert all(bool(row.any()) for row in method.prompt.grad)  # type: ignore[union-attr]
    assert set(method.trained_state()) == set(dict(method.named_parameters()))


def test_gradient_reaches_the_prompt_through_the_bias_as_well(tiny: str, tmp_path: Path) -> None:
    method = conpvp(tiny, tmp_path, dropout=0.0)
    (anchors, *_) = views(method, sentences(3))
    method.bias(anchors)[:, 0].sum().backward()
    assert method.prompt.grad is not None and method.prompt.grad.abs().max() > 1e-3


@pytest.mark.parametrize("variant", ["manual", "no-negative-prototypes", "no-prototypes"])
def test_variants(backbone: str, tmp_path: Path, variant: str) -> None:
    method = conpvp(backbone, tmp_path, variant=variant)
    columns = views(method, ["a man plays"] * 3)
    assert len(columns) == (3 if variant == "manual" else 2)
    if variant == "manual":
        assert not hasattr(method, "prompt") and not columns[0]["slot"].any()
        family = method.backbone.family
        assert ("sentence of" if family == "bert" else "sentence :") in words(method, columns[0])[0]
    if variant == "no-prototypes":
        assert words(method, columns[0]) == words(method, columns[1])
        method.train()
        assert (
            method(Batch(columns)).total.item() > 0.01
        )  # two dropout masks, three equal rows: near log 3
    method(Batch(columns)).total.backward()
    assert method.head.dense.weight.grad is not None


def test_an_anchor_of_ones_own_and_other_lengths_of_the_prompt(
    tiny_roberta: str, tmp_path: Path
) -> None:
    own = conpvp(tiny_roberta, tmp_path, anchor="{s} means {m}")
    assert words(own, views(own, ["man"])[0])[0].replace(" ", "") == "<s>manmeans<mask></s>"
    ten = conpvp(tiny_roberta, tmp_path, prompt_length=10, anchor_layout="clean")
    (anchors, *_) = views(ten, ["man"])
    assert ten.prompt.shape == (10, 32)
    start = len(ten.backbone.ids(["man"])[0]) + 1
    assert anchors["slot"][0].tolist()[: start + 11] == [0] * start + list(range(1, 11)) + [0]
    assert (
        not anchors["slot"][0, start + 10 :].any()
        and anchors["input_ids"][0, start + 10] == ten.backbone.mask_id
    )


def test_a_checkpoint_gives_the_same_vectors_bit_for_bit(backbone: str, tmp_path: Path) -> None:
    one, other = (
        built(ConPVP, backbone, tmp_path, setting="unsupervised", seed=seed) for seed in (1, 2)
    )
    with torch.no_grad():
        for p in one.parameters():
            p.add_(torch.randn_like(p) * 0.01)
    assert not np.array_equal(one.encode(sentences(5)), other.encode(sentences(5)))
    one.save(tmp_path / "saved")
    other.load(tmp_path / "saved")
    assert np.array_equal(one.encode(sentences(5)), other.encode(sentences(5)))
    assert torch.equal(one.prompt, other.prompt) and torch.equal(
        one.head.dense.weight, other.head.dense.weight
    )


def test_the_batch_is_gathered_as_the_recipe_says(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What gathering gives is what is compared: here the candidates in the opposite order."""
    seen: list[bool] = []

    def gather(z: Sequence[Tensor], faithful: bool) -> list[Tensor]:
        seen.append(faithful)
        return [z[0], *(view.flip(0) for view in z[1:])]

    method = conpvp(tiny, tmp_path, dropout=0.0, faithful=True)
    pooled: list[Tensor] = []
    method.head.register_forward_hook(lambda _m, _i, out: pooled.append(out.detach()))
    monkeypatch.setattr("methods.conpvp.across_ranks", gather)
    loss = method(Batch(views(method, sentences(4)))).total.item()
    z = pooled[0] / pooled[0].norm(dim=1, keepdim=True)  # (12, H): anchors, positive, negative
    scores = (z[:4] @ z[4:].T / 0.05).numpy()
    assert seen == [True]
    assert loss == pytest.approx(
        np.mean([np.log(np.exp(row - row[3 - i]).sum()) for i, row in enumerate(scores)]), abs=1e-10
    )


@pytest.mark.parametrize("anchor", ["continuous", "manual"])
def test_vectors_do_not_depend_on_batch_mates(backbone: str, tmp_path: Path, anchor: str) -> None:
    method = conpvp(backbone, tmp_path, anchor=anchor)
    texts = [*AWKWARD, *sentences(3), "a man plays " * 300]
    alone = np.concatenate([method.encode([text]) for text in texts])
    np.testing.assert_allclose(method.encode(texts), alone, rtol=0, atol=1e-6)
    assert np.isfinite(alone).all() and len(np.unique(alone.round(4), axis=0)) == len(texts)


def test_training_cuts_the_sentence_and_never_the_template(backbone: str, tmp_path: Path) -> None:
    method = conpvp(backbone, tmp_path)
    for features in views(method, ["man " * 100, "man"]):
        assert features["sentence_mask"].sum(1).tolist() == [
            32,
            len(method.backbone.ids(["man"])[0]),
        ]
        assert (
            features["input_ids"].gather(1, features["mask_position"].unsqueeze(1))
            == method.backbone.mask_id
        ).all()


@pytest.mark.parametrize(
    "values",
    [
        {"templates": "mine"},
        {"temperature": 0.0},
        {"debias": "yes"},
        {"anchor": "{s}"},
        {"prompt_length": 0},
        {"prototypes": "all"},
        {"anchor_layout": ""},
    ],
)
def test_a_recipe_that_cannot_work_is_refused_before_anything_starts(
    values: dict[str, Any],
) -> None:
    recipe = merge(ConPVP, None, "", {}, trained=True)
    ConPVP.check(recipe, None)
    with pytest.raises(BenchError):
        ConPVP.check(
            Recipe(recipe.values_with_source() | {k: Value(v, "test") for k, v in values.items()}),
            None,
        )


SAME_KEYS = (
    "batch_size",
    "learning_rate",
    "epochs",
    "max_seq_length",
    "eval_steps",
    "temperature",
    "warmup_steps",
    "weight_decay",
    "max_grad_norm",
    "prompt_length",
)


def test_the_recipes_are_those_of_the_paper(shared: Path) -> None:
    listed = json.loads((shared / "reference" / "recipes.json").read_text(encoding="utf-8"))[
        "recipes"
    ]
    listed = [known for known in listed if known["method"] == "conpvp"]
    assert len(listed) == 4
    for known in listed:
        entry, line = choose(
            entries(Path(methods.__file__).parent, "conpvp"), "unsupervised", known["backbone"], ""
        )
        assert entry is not None and line is None
        ours = merge(ConPVP, entry, "", {}, trained=True)
        assert {key: ours[key] for key in SAME_KEYS} == {
            key: known["parameters"][key]["value"] for key in SAME_KEYS
        }
        assert len(POSITIVE[ours.templates]) == known["parameters"]["templates_positive"]["value"]
        assert len(NEGATIVE[ours.templates]) == known["parameters"]["templates_negative"]["value"]
        assert ours.head_at_test == ("no head" not in known["parameters"]["pooler_test"]["value"])
