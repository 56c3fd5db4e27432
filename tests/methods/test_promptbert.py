"""PromptBERT: its vectors and losses against passes made by hand, and what differs between training, dev and test."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from models import built, sentences
from torch import Tensor

import methods
from bench.method import Batch, BenchError, Features
from bench.run.recipe_file import entries
from bench.run.recipes import choose, merge
from methods.promptbert import PromptBERT

BERT = ('This sentence of "', '" means[MASK].'), ('This sentence : "', '" means[MASK].')
ROBERTA = ("This sentence : '", " ' means<mask>."), ("The sentence : '", " ' means<mask>.")
TEXTS_1 = "This sentence : ' {s} ' means{m}.", "The sentence : ' {s} ' means{m}."
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
def family(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def backbone(request: pytest.FixtureRequest, family: str) -> str:
    return request.getfixturevalue("tiny" if family == "bert" else "tiny_roberta")


def promptbert(backbone: str, folder: Path, family: str = "bert", **values: Any) -> PromptBERT:
    if family == "roberta":
        values = {"template_1": TEXTS_1[0], "template_2": TEXTS_1[1]} | values
    return built(PromptBERT, backbone, folder, **values).double()


def batch_of(method: PromptBERT, *columns: Sequence[str]) -> Batch:
    ids = {f"sent{i}": method.backbone.ids(column) for i, column in enumerate(columns)}
    return Batch(method.collate(ids, np.arange(len(columns[0])), 0))


def by_hand(
    method: PromptBERT, inner: Sequence[int], pieces: tuple[str, str], positions_from: int
) -> tuple[Tensor, Tensor]:
    """(H,) the mask's state around the ids of one sentence, and the template's bias for it: one sentence a pass, no padding."""
    tokenizer, first = method.backbone.tokenizer, method.backbone.first_position
    before, after = tokenizer(pieces[0])["input_ids"][:-1], tokenizer(pieces[1])["input_ids"][1:]
    mask = after.index(tokenizer.mask_token_id)

    def state(ids: list[int], positions: list[int], place: int) -> Tensor:
        return method.encoder(
            input_ids=torch.tensor([ids]), position_ids=torch.tensor([positions])
        ).last_hidden_state[0, place]

    whole = [*before, *inner, *after]
    h = state(whole, list(range(first, first + len(whole))), len(before) + len(inner) + mask)
    shifted = [*range(len(before)), *range(len(before) + len(inner), len(whole))]
    return h, state(before + after, [positions_from + p for p in shifted], len(before) + mask)


def info_nce(anchors: Tensor, *candidates: Tensor) -> float:
    unit = [(z / z.norm(dim=1, keepdim=True)).detach().numpy() for z in (anchors, *candidates)]
    scores = np.concatenate([unit[0] @ z.T for z in unit[1:]], axis=1) / 0.05
    return float(np.mean([np.log(np.exp(row - row[i]).sum()) for i, row in enumerate(scores)]))


@pytest.mark.slow
@pytest.mark.parametrize("delta_positions", ["repo", "aligned"])
@pytest.mark.parametrize("variant", ["", "one-template", "no-debias", "one-template-no-debias"])
def test_the_unsupervised_loss(
    backbone: str, family: str, tmp_path: Path, variant: str, delta_positions: str
) -> None:
    values = {"template_2": None} if variant.startswith("one-template") else {}
    method = promptbert(
        backbone,
        tmp_path,
        family,
        setting="unsupervised",
        variant=variant,
        dropout=0.0,
        delta_positions=delta_positions,
        **values,
    )
    texts = [*sentences(4, seed=2), 'he said "no" [MASK] <mask>']
    first = method.backbone.first_position if delta_positions == "aligned" else 0
    pieces = BERT if family == "bert" else ROBERTA
    with torch.no_grad():
        z = []
        for i in (0, 0 if variant.startswith("one-template") else 1):
            pairs = [by_hand(method, ids, pieces[i], first) for ids in method.backbone.ids(texts)]
            z.append(
                torch.stack(
                    [h if variant.endswith("no-debias") else h - delta for h, delta in pairs]
                )
            )
        z = [torch.tanh(one @ method.head.dense.weight.T + method.head.dense.bias) for one in z]
        assert method(batch_of(method, texts)).total.item() == pytest.approx(
            info_nce(*z), abs=1e-10
        )


def test_repo_and_aligned_positions_differ_on_roberta_and_agree_on_bert(
    backbone: str, family: str, tmp_path: Path
) -> None:
    repo, aligned = (
        promptbert(
            backbone,
            tmp_path,
            family,
            setting="unsupervised",
            debias_at_test=True,
            delta_positions=how,
        ).encode(sentences(3))
        for how in ("repo", "aligned")
    )
    assert np.array_equal(repo, aligned) == (family == "bert")


def test_the_supervised_loss_has_one_template_and_berts_own_transform_on_state_and_bias(
    backbone: str, family: str, tmp_path: Path
) -> None:
    from transformers import AutoModelForMaskedLM

    head = "mlm-transform" if family == "bert" else "tanh"
    method = promptbert(
        backbone, tmp_path, family, setting="supervised", dropout=0.0, head=head, template_2=None
    )
    columns = [
        sentences(4, seed=seed, longest=longest) for seed, longest in ((1, 5), (2, 12), (3, 9))
    ]
    pretrained = AutoModelForMaskedLM.from_pretrained(backbone).double().eval()
    pieces = (BERT if family == "bert" else ROBERTA)[0]
    with torch.no_grad():
        z = []
        for column in columns:
            pairs = [by_hand(method, ids, pieces, 0) for ids in method.backbone.ids(column)]
            h, delta = (torch.stack(part) for part in zip(*pairs, strict=True))
            if family == "bert":
                transform = pretrained.cls.predictions.transform
                z.append(transform(h) - transform(delta))
            else:
                z.append(
                    torch.tanh((h - delta) @ method.head.dense.weight.T + method.head.dense.bias)
                )
        total = method(batch_of(method, *columns)).total.item()
    assert total == pytest.approx(info_nce(*z), abs=1e-10)


def test_a_bare_state_goes_through_the_transform_once(tiny: str, tmp_path: Path) -> None:
    """Supervised without denoising: nothing is subtracted, the head stays."""
    method = promptbert(
        tiny,
        tmp_path,
        setting="supervised",
        dropout=0.0,
        variant="no-debias",
        head="mlm-transform",
        head_at_test=True,
    )
    texts = ["a man plays."]
    with torch.no_grad():
        h, _ = by_hand(method, method.backbone.ids(texts)[0], BERT[0], 0)
        np.testing.assert_allclose(method.encode(texts)[0], method.head(h), rtol=0, atol=1e-6)


def scored(method: PromptBERT, texts: list[str], *, dev: bool) -> np.ndarray:
    vectors = []
    if not dev:
        return method.encode(texts)
    assert method.dev_score(lambda m: vectors.append(m.encode(texts)) or 71.0) == 71.0  # type: ignore[func-returns-value]
    return vectors[0]


@pytest.mark.parametrize("setting", ["unsupervised", "supervised"])
def test_dev_and_test_vectors_differ_as_in_the_authors_code(
    backbone: str, family: str, tmp_path: Path, setting: str
) -> None:
    sup = setting == "supervised"
    method = promptbert(
        backbone, tmp_path, family, setting=setting, debias_at_test=sup, head_at_test=sup
    )
    pieces = (BERT if family == "bert" else ROBERTA)[0]
    tokenizer = method.backbone.tokenizer
    texts = ["a man plays", "a man plays.", 'she said "no"', "who?", "never!"]
    at_test = ["a man plays.", "a man plays.", 'she said "no"', "who?", "never!."]
    blank = " " if family == "roberta" else ""
    with torch.no_grad():
        dev = [
            by_hand(method, ids, pieces, 0)
            for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]
        ]
        ids = tokenizer([blank + s for s in at_test], add_special_tokens=False)["input_ids"]
        test = [by_hand(method, row, pieces, 0) for row in ids]
        wanted_dev = torch.stack([h - delta for h, delta in dev])
        wanted_test = torch.stack([h - delta if sup else h for h, delta in test])
        if sup:
            wanted_dev, wanted_test = (
                torch.tanh(one @ method.head.dense.weight.T + method.head.dense.bias)
                for one in (wanted_dev, wanted_test)
            )
    np.testing.assert_allclose(scored(method, texts, dev=True), wanted_dev, rtol=0, atol=1e-6)
    np.testing.assert_allclose(scored(method, texts, dev=False), wanted_test, rtol=0, atol=1e-6)


def test_a_failing_dev_score_leaves_test_vectors_as_they_were(tiny: str, tmp_path: Path) -> None:
    method = promptbert(tiny, tmp_path, setting="unsupervised")
    before = method.encode(["a man plays"])
    with pytest.raises(ZeroDivisionError):
        method.dev_score(lambda _: 1 / 0)
    assert np.array_equal(before, method.encode(["a man plays"]))


def test_no_full_stop_where_the_recipe_says_so(tiny: str, tmp_path: Path) -> None:
    plain = promptbert(tiny, tmp_path, append_full_stop_at_test=False)
    stop = promptbert(tiny, tmp_path)
    assert np.array_equal(plain.encode(["a man."]), stop.encode(["a man"]))
    assert not np.array_equal(plain.encode(["a man"]), stop.encode(["a man"]))


@pytest.mark.parametrize("head", ["tanh", "mlm-transform"])
def test_encoder_and_head_train_and_all_of_them_get_a_gradient(
    tiny: str, tmp_path: Path, head: str
) -> None:
    method = promptbert(tiny, tmp_path, setting="unsupervised", head=head)
    method.train()
    method(batch_of(method, sentences(5))).total.backward()
    of_head = {n: p for n, p in method.named_parameters() if not n.startswith("encoder.")}
    dense = {"head.dense.weight", "head.dense.bias"}
    assert set(of_head) == (
        dense if head == "tanh" else dense | {"head.LayerNorm.weight", "head.LayerNorm.bias"}
    )
    assert sum(p.numel() for p in of_head.values()) == 32 * 33 + (0 if head == "tanh" else 64)
    without = {n for n, p in method.named_parameters() if p.grad is None or not p.grad.any()}
    # softmax does not see a key's bias; the last bias of the encoder cancels in h - delta, that of Tr in Tr(h) - Tr(delta)
    blind = {
        n
        for n, _ in method.named_parameters()
        if n.endswith(("key.bias", "layer.1.output.LayerNorm.bias"))
    }
    blind |= {"head.LayerNorm.bias"} if head == "mlm-transform" else set()
    assert without <= blind and all(p.grad is not None for p in method.parameters())
    assert set(method.trained_state()) == {n for n, _ in method.named_parameters()}


def test_every_text_has_a_dropout_mask_of_its_own(tiny: str, tmp_path: Path) -> None:
    method = promptbert(
        tiny, tmp_path, setting="unsupervised", variant="one-template-no-debias", template_2=None
    )
    pooled: list[Tensor] = []
    method.head.register_forward_hook(lambda _m, given, _o: pooled.append(given[0].detach()))
    method.train()
    method(batch_of(method, sentences(4)))
    assert len(pooled) == 2 and all(not torch.equal(a, b) for a, b in zip(*pooled, strict=True))


def test_the_batch_is_gathered_as_the_recipe_says(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What gathering gives is what is compared: here the candidates in the opposite order."""
    seen: list[bool] = []

    def gather(z: Sequence[Tensor], faithful: bool) -> list[Tensor]:
        seen.append(faithful)
        return [z[0], z[1].flip(0)]

    method = promptbert(tiny, tmp_path, setting="unsupervised", dropout=0.0, faithful=True)
    pooled: list[Tensor] = []
    method.head.register_forward_hook(lambda _m, _i, out: pooled.append(out.detach()))
    monkeypatch.setattr("methods.promptbert.across_ranks", gather)
    loss = method(batch_of(method, sentences(4))).total.item()
    first, second = (z / z.norm(dim=1, keepdim=True) for z in pooled)
    scores = (first @ second.T / 0.05).numpy()
    assert seen == [True]
    assert loss == pytest.approx(
        np.mean([np.log(np.exp(row - row[3 - i]).sum()) for i, row in enumerate(scores)]), abs=1e-10
    )


@pytest.mark.parametrize("head", ["tanh", "mlm-transform"])
def test_a_checkpoint_gives_the_same_vectors_bit_for_bit(
    tiny: str, tmp_path: Path, head: str
) -> None:
    values = {"setting": "supervised", "head": head, "head_at_test": True, "debias_at_test": True}
    one, other = (built(PromptBERT, tiny, tmp_path, seed=seed, **values) for seed in (1, 2))
    with torch.no_grad():
        for p in one.parameters():
            p.add_(torch.randn_like(p) * 0.01)
    assert not np.array_equal(one.encode(sentences(5)), other.encode(sentences(5)))
    one.save(tmp_path / "saved")
    other.load(tmp_path / "saved")
    assert np.array_equal(one.encode(sentences(5)), other.encode(sentences(5)))


def test_untrained_no_seed_changes_anything_and_nothing_is_saved(tiny: str, tmp_path: Path) -> None:
    one, other = (built(PromptBERT, tiny, tmp_path, seed=seed) for seed in (1, 2))
    assert (
        np.array_equal(one.encode(sentences(5)), other.encode(sentences(5)))
        and not one.trained_state()
    )


@pytest.mark.slow
@pytest.mark.parametrize("debias", [False, True])
def test_vectors_do_not_depend_on_batch_mates(
    backbone: str, family: str, tmp_path: Path, debias: bool
) -> None:
    method = promptbert(backbone, tmp_path, family, debias_at_test=debias)
    texts = [*AWKWARD, *sentences(3), "a man plays " * 300]
    alone = np.concatenate([method.encode([text]) for text in texts])
    np.testing.assert_allclose(method.encode(texts), alone, rtol=0, atol=1e-6)
    assert np.isfinite(alone).all() and len(np.unique(alone.round(4), axis=0)) > len(texts) - 2


def test_training_cuts_the_sentence_and_never_the_template(
    backbone: str, family: str, tmp_path: Path
) -> None:
    method = promptbert(backbone, tmp_path, family, setting="unsupervised")
    columns: tuple[Features, ...] = batch_of(method, ["man " * 100, "man"]).columns
    for features, template in zip(columns, method.templates, strict=True):
        assert features["input_ids"].shape[1] == 32 + len(template)
        assert features["sentence_mask"].sum(1).tolist() == [
            32,
            len(method.backbone.ids(["man"])[0]),
        ]
        at = features["input_ids"].gather(1, features["mask_position"].unsqueeze(1))
        assert (at == method.backbone.mask_id).all()


@pytest.mark.parametrize(
    "values",
    [
        {"template_1": "no gap {m}"},
        {"temperature": 0.0},
        {"template_2": "{s}"},
        {"head": "mlp"},
        {"delta_positions": "x"},
    ],
)
def test_a_recipe_that_cannot_work_is_refused_before_anything_starts(
    tiny: str, tmp_path: Path, values: dict[str, Any]
) -> None:
    recipe = built(PromptBERT, tiny, tmp_path).recipe
    PromptBERT.check(recipe, None)
    from bench.method import Recipe, Value

    with pytest.raises(BenchError):
        PromptBERT.check(
            Recipe(recipe.values_with_source() | {k: Value(v, "test") for k, v in values.items()}),
            None,
        )


def test_robertas_mlm_transform_is_what_stands_before_its_decoder(
    tiny_roberta: str, tmp_path: Path
) -> None:
    from transformers import AutoModelForMaskedLM

    head = AutoModelForMaskedLM.from_pretrained(tiny_roberta, dtype=torch.float64).lm_head
    states = torch.randn(3, 32, dtype=torch.float64)
    x = states @ head.dense.weight.T + head.dense.bias
    x = 0.5 * x * (1 + torch.erf(x / 2**0.5))
    x = (x - x.mean(-1, keepdim=True)) / (
        x.var(-1, unbiased=False, keepdim=True) + head.layer_norm.eps
    ).sqrt()
    ours = promptbert(tiny_roberta, tmp_path, "roberta", head="mlm-transform").head
    torch.testing.assert_close(ours(states), x * head.layer_norm.weight + head.layer_norm.bias)


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
    "debias_train",
    "append_full_stop_at_test",
)


def test_the_recipes_are_those_of_the_authors_scripts(shared: Path) -> None:
    listed = json.loads((shared / "reference" / "recipes.json").read_text(encoding="utf-8"))[
        "recipes"
    ]
    listed = [known for known in listed if known["method"] == "promptbert"]
    assert len(listed) == 5
    for known in listed:
        entry, line = choose(
            entries(Path(methods.__file__).parent, "promptbert"),
            known["setting"],
            known["backbone"],
            "",
        )
        assert entry is not None and line is None
        ours = merge(PromptBERT, entry, "", {}, trained=known["setting"] != "none")
        stated = {key: parameter["value"] for key, parameter in known["parameters"].items()}
        assert {key: ours[key] for key in SAME_KEYS if key in stated} == {
            key: stated[key] for key in SAME_KEYS if key in stated
        }
        assert ours["debias_at_test"] == stated["debias_test"]
        assert ours["head_at_test"] == ("no head" not in stated["pooler_test"])
        if known["setting"] == "supervised":
            assert (ours["head"] == "mlm-transform") == ("MLM transform" in stated["pooler_train"])
        mask = "[MASK]" if known["backbone"].startswith("bert") else "<mask>"
        for key in ("template_1", "template_2"):
            if key in stated or known["setting"] != "none":
                written = (
                    ours[key].replace("{s}", "X").replace("{m}", " " + mask) if ours[key] else None
                )
                assert written == stated.get(key)
