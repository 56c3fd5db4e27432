"""DCPCSE: the MLM variant against the authors' arithmetic, the template prompt, and what each trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from frozen import TEXTS, batch_in, batch_of, counts, same_after_loading, step_of, trained, training
from models import built, sentences
from torch.nn.functional import cross_entropy

from bench.method import Batch, BenchError
from bench.run.recipes import merge
from methods import dcpcse as dcpcse_module
from methods import masking, prefix
from methods.dcpcse import DCPCSE
from methods.promcse import PromCSE

BACKBONES = pytest.mark.parametrize("backbone", ["tiny", "tiny_roberta"])
P, L, H = 4, 2, 32


def dcpcse(
    backbone: str, folder: Path, setting: str = "unsupervised", variant: str = "", **values: Any
) -> DCPCSE:
    return built(
        DCPCSE,
        backbone,
        folder,
        setting=setting,
        variant=variant,
        **({"prompt_length": P} | values),
    )


@pytest.mark.parametrize("setting", ["unsupervised", "supervised"])
def test_without_mlm_it_is_promcse_without_the_hinge(
    tiny: str, tmp_path: Path, setting: str
) -> None:
    ours, theirs = (
        dcpcse(tiny, tmp_path, setting),
        built(PromCSE, tiny, tmp_path, setting=setting, prompt_length=P),
    )
    theirs.load_state_dict(ours.state_dict())
    totals = []
    for method in (ours, theirs):
        with training(method), torch.no_grad():
            torch.manual_seed(4)
            totals.append(method(batch_in(method, setting)).total.item())
    assert totals[0] == totals[1]
    np.testing.assert_array_equal(ours.encode(TEXTS[0]), theirs.encode(TEXTS[0]))


BOTH = pytest.mark.parametrize(
    "cls", [DCPCSE, PromCSE], ids=lambda cls: cls.name
)  # one repository, one auxiliary task


def with_mlm(cls: Any, backbone: str, folder: Path, **values: Any) -> Any:
    return built(
        cls,
        backbone,
        folder,
        setting="unsupervised",
        variant="mlm",
        **({"prompt_length": P} | values),
    )


@BOTH
@pytest.mark.parametrize("step", ["0", "1", "50", "100", "1000"])
def test_the_weight_of_mlm_falls_as_the_authors(
    reference: dict[str, Any], tiny: str, tmp_path: Path, step: str, cls: Any
) -> None:
    known = reference["dcpcse_lambda"]["values"][step]
    method = with_mlm(cls, tiny, tmp_path)
    assert masking.decayed_weight(method.recipe, int(step)) == pytest.approx(known, abs=1e-11)
    batch = batch_of(method, TEXTS[0], step=int(step))
    with torch.no_grad():
        loss = method(batch)
    assert loss.total.item() == pytest.approx(
        (loss.parts["info_nce"] + known * loss.parts["mlm"]).item(), abs=1e-6
    )


@BOTH
@pytest.mark.parametrize("step", ["0", "50", "1000"])
def test_the_total_of_both_losses_is_the_authors(
    reference: dict[str, Any],
    tiny: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    cls: Any,
) -> None:
    """Their head outputs and logits in the place of ours: eight rows of three tokens, of which three are to be guessed."""
    z, mlm = reference["contrastive"]["inputs"], reference["mlm_auxiliary"]
    vectors = torch.tensor(z["z1"] + z["z2"], dtype=torch.float64)[:, None].expand(-1, 3, -1)
    logits = torch.tensor(mlm["logits"], dtype=torch.float64)
    labels = torch.full((8, 3), -100)
    labels[:2] = torch.tensor(mlm["labels"])
    places = torch.arange(24, dtype=torch.float64).reshape(
        8, 3, 1
    )  # each state names its own position
    passes = [vectors, places]
    method = with_mlm(cls, tiny, tmp_path)
    method.head = torch.nn.Identity()  # type: ignore[assignment]
    method._modules.pop("lm_head")
    method.lm_head = lambda states: logits.flatten(0, 1)[states[:, 0].long()]
    monkeypatch.setattr(prefix, "states_behind_prefix", lambda *_: passes.pop(0))
    monkeypatch.setattr(masking, "mask_tokens", lambda ids, *_: (ids, labels))
    loss = method(batch_of(method, ["word"] * 4, step=int(step)))
    assert loss.total.item() == pytest.approx(mlm["dcpcse_total"]["values"][step], abs=1e-10)
    assert loss.parts["mlm"].item() == pytest.approx(mlm["mlm_loss"], abs=1e-10)


@BOTH
@BACKBONES
def test_both_passes_see_one_draw_of_the_prompt_and_one_has_masked_tokens(
    request: Any, backbone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cls: Any
) -> None:
    method = with_mlm(cls, request.getfixturevalue(backbone), tmp_path, mlm_probability=1.0)
    seen: list[Any] = []
    real = prefix.states_behind_prefix
    monkeypatch.setattr(
        prefix, "states_behind_prefix", lambda *given: seen.append(given) or real(*given)
    )
    with training(method):
        loss = method(batch_in(method, "unsupervised"))
    (_, first, drawn), (_, second, again) = seen
    assert drawn is again
    assert any(bool((k == 0).any()) for k, _ in drawn), "the prompt's dropout is off"
    assert torch.equal(first["attention_mask"], second["attention_mask"])
    tokenizer = method.backbone.tokenizer
    special = torch.isin(first["input_ids"], torch.tensor(tokenizer.all_special_ids))
    assert torch.equal(first["input_ids"][special], second["input_ids"][special])
    shares = (second["input_ids"] == tokenizer.mask_token_id)[~special].double().mean().item()
    assert shares == pytest.approx(0.8, abs=0.2)
    assert not torch.equal(second["input_ids"][:6], second["input_ids"][6:]), (
        "the two views are masked alike"
    )
    assert loss.parts["mlm"].item() > 1


@BOTH
@BACKBONES
def test_the_mlm_loss_of_a_given_masking(
    request: Any, backbone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cls: Any
) -> None:
    """Cross-entropy of the pretrained head's logits at every position, of which the chosen ones count; of one text twice."""
    method = with_mlm(cls, request.getfixturevalue(backbone), tmp_path, dropout=0.0)
    (features,) = batch_in(method, "unsupervised").columns
    ids = features["input_ids"]
    labels = torch.full_like(ids, -100)
    labels[:, 1], labels[2, 2] = ids[:, 1], ids[2, 2]
    masked = ids.masked_fill(labels != -100, method.backbone.mask_id)
    nothing = torch.full_like(ids, -100)  # of the second view
    monkeypatch.setattr(
        masking, "mask_tokens", lambda *_: (torch.cat([masked, ids]), torch.cat([labels, nothing]))
    )
    with torch.no_grad():
        *_, sums_n, counts_n = method.views(Batch((features,)))
        logits = method.backbone.mlm_head()(
            method.prompt.states(method.encoder, {**features, "input_ids": masked})
        ).double()
    rows = [
        cross_entropy(logits[i, t], labels[i, t]).item()
        for i, t in (labels != -100).nonzero().tolist()
    ]
    sums, counts = sums_n.tolist(), counts_n.tolist()
    assert counts == [1, 1, 2, 1, 1, 1] and sums[0] == pytest.approx(rows[0], abs=1e-5)
    assert len(rows) == 7 and sum(sums) == pytest.approx(np.sum(rows), abs=1e-4)


PROMPT_AND_HEAD = {
    "prompt.table": (P, 2 * L * H),
    "head.dense.weight": (H, H),
    "head.dense.bias": (H,),
}


def lm_head(V: int, backbone: str) -> dict[str, tuple[int, ...]]:
    dense, norm = (
        ("transform.dense", "transform.LayerNorm")
        if backbone == "tiny"
        else ("dense", "layer_norm")
    )
    return {
        f"lm_head.{dense}.weight": (H, H),
        f"lm_head.{dense}.bias": (H,),
        f"lm_head.{norm}.weight": (H,),
        f"lm_head.{norm}.bias": (H,),
        "lm_head.decoder.weight": (V, H),
        "lm_head.bias": (V,),
    }


@pytest.mark.slow
@BACKBONES
@pytest.mark.parametrize("setting", ["unsupervised", "supervised"])
@pytest.mark.parametrize("variant, frozen", [("", False), ("mlm", False), ("mlm", True)])
def test_what_trains(
    request: Any, backbone: str, tmp_path: Path, setting: str, variant: str, frozen: bool
) -> None:
    folder = request.getfixturevalue(backbone)
    method = dcpcse(folder, tmp_path, setting, variant, freeze_lm_head=frozen, learning_rate=1e-2)
    heads = lm_head(method.encoder.config.vocab_size, backbone) if variant and not frozen else {}
    found = trained(method)
    assert {
        name.replace("lm_head.decoder.bias", "lm_head.bias"): shape for name, shape in found.items()
    } == PROMPT_AND_HEAD | heads
    changed = step_of(method, batch_in(method, setting))
    # a bias that two modules share has two names in a state and one among the parameters
    assert changed - {"lm_head.decoder.bias", "lm_head.bias"} == set(found) - {
        "lm_head.decoder.bias",
        "lm_head.bias",
    }
    assert any("bias" in name for name in changed if name.startswith("lm_head")) == bool(heads)


@pytest.mark.parametrize(
    "model, size, length, found",
    [
        ("bert", "base", 16, {"prompt": 294_912, "head": 590_592, "lm_head": 24_063_546}),
        ("roberta", "base", 14, {"prompt": 258_048, "head": 590_592, "lm_head": 39_245_913}),
        ("roberta", "large", 10, {"prompt": 491_520, "head": 1_049_600, "lm_head": 52_573_273}),
    ],
)
def test_how_many_numbers_train_at_the_papers_sizes(
    model: str, size: str, length: int, found: dict[str, int]
) -> None:
    frozen = {part: count for part, count in found.items() if part != "lm_head"}
    for cls in (DCPCSE, PromCSE):
        assert counts(cls, model, size, "mlm", prompt_length=length) == found
        assert (
            counts(cls, model, size, "mlm", prompt_length=length, freeze_lm_head="true") == frozen
        )
        assert counts(cls, model, size, prompt_length=length) == frozen


@BACKBONES
@pytest.mark.parametrize("variant", ["", "mlm", "shallow"])
def test_a_checkpoint_is_prompt_and_head_and_gives_the_same_vectors(
    request: Any, backbone: str, tmp_path: Path, variant: str
) -> None:
    folder = request.getfixturevalue(backbone)

    def build(seed: int) -> DCPCSE:
        return dcpcse(
            folder, tmp_path, "supervised", variant, seed=seed, head_at_test=True, learning_rate=0.1
        )

    assert same_after_loading(build, tmp_path / "checkpoint") == {
        "prompt.table",
        "head.dense.weight",
        "head.dense.bias",
    }


@BACKBONES
@pytest.mark.parametrize("frozen", [False, True])
def test_the_state_to_resume_from_holds_the_lm_head(
    request: Any, backbone: str, tmp_path: Path, frozen: bool
) -> None:
    method = dcpcse(
        request.getfixturevalue(backbone), tmp_path, variant="mlm", freeze_lm_head=frozen
    )
    extra = method.training_state().keys() - method.trained_state().keys()
    assert "lm_head.decoder.weight" in extra and all(name.startswith("lm_head.") for name in extra)


@BACKBONES
@pytest.mark.parametrize("variant", ["", "shallow"])
@pytest.mark.parametrize("dropout", [0.1, 0.0])
def test_two_rows_of_equal_ids_differ_in_training_by_dropout_alone(
    request: Any, backbone: str, tmp_path: Path, variant: str, dropout: float
) -> None:
    method = dcpcse(request.getfixturevalue(backbone), tmp_path, variant=variant, dropout=dropout)
    (features,) = batch_of(method, ["a man plays the guitar"] * 2).columns
    with training(method), torch.no_grad():
        one, other = method.hidden(features)
    if dropout:
        assert (one - other).abs().max() > 0.01
    else:
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


def test_a_sentence_has_the_positions_that_the_prompt_leaves(tiny: str, tmp_path: Path) -> None:
    longest = " ".join(["guitar"] * 400)
    assert dcpcse(tiny, tmp_path).tokenize([longest])["input_ids"].shape == (1, 256 - P)
    assert dcpcse(tiny, tmp_path, variant="shallow").tokenize([longest])["input_ids"].shape == (
        1,
        256,
    )


@BACKBONES
@pytest.mark.parametrize("variant", ["", "mlm", "shallow"])
def test_vectors_do_not_depend_on_what_stands_in_the_batch(
    request: Any, backbone: str, tmp_path: Path, variant: str
) -> None:
    method = dcpcse(request.getfixturevalue(backbone), tmp_path, variant=variant)
    torch.nn.init.normal_(method.prompt.table, std=1.0)
    texts = [*sentences(7, seed=3), " ".join(["guitar"] * 60)]
    alone = np.concatenate([method.encode([text]) for text in texts])
    np.testing.assert_allclose(method.encode(texts), alone, rtol=0, atol=1e-5)


# what the command line may ask for


@pytest.mark.parametrize(
    "values, line",
    [
        ({"mlm": "true", "shallow": "true"}, "mlm and shallow"),
        ({"prompt_length": "0"}, "prompt_length=0"),
        ({"prefix_dropout": "1"}, "prefix_dropout=1"),
        ({"mlm_decay_steps": "0"}, "mlm_decay_steps=0"),
        ({"mlm_probability": "0"}, "mlm_probability=0"),
        ({"mlm_probability": "1.5"}, "mlm_probability=1.5"),
    ],
)
def test_a_recipe_that_cannot_work_is_one_line(values: dict[str, str], line: str) -> None:
    with pytest.raises(BenchError, match=f"^{line}"):
        DCPCSE.check(merge(DCPCSE, None, "", values, trained=True), None)


@pytest.mark.parametrize("variant", ["", "mlm", "shallow"])
def test_what_it_trains_on(variant: str) -> None:
    recipe = merge(DCPCSE, None, variant, {}, trained=True)
    DCPCSE.check(recipe, None)
    assert DCPCSE.needs("unsupervised", recipe) == ("sentences",)
    assert DCPCSE.needs("supervised", recipe) == ("pairs", "triplets")


@pytest.mark.parametrize("variant", ["", "mlm", "shallow"])
@pytest.mark.parametrize("faithful", [False, True])
def test_the_batch_is_gathered_as_the_recipe_says(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: str, faithful: bool
) -> None:
    """What gathering gives is what is compared: here the vectors of other sentences, as candidates."""
    method = dcpcse(
        tiny, tmp_path, variant=variant, dropout=0.0, faithful=faithful, head_at_test=True
    )
    other = torch.tensor(method.encode(TEXTS[1]))
    asked = []

    def gather(z: Any, faithful: bool) -> Any:
        asked.append(faithful)
        return [z[0], other]

    monkeypatch.setattr(dcpcse_module, "across_ranks", gather)
    with torch.no_grad():
        loss = method(batch_in(method, "unsupervised"))
    ours = loss.parts.get("info_nce", loss.total).item()
    z = torch.nn.functional.normalize(torch.tensor(method.encode(TEXTS[0])).double())
    cosines = z @ torch.nn.functional.normalize(other.double()).T / 0.05
    wanted = (cosines.logsumexp(1) - cosines.diagonal()).mean().item()
    assert asked == [faithful] and ours == pytest.approx(wanted, abs=1e-4)
