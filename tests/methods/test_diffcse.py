"""DiffCSE: its two losses, the edited sentences, what the discriminator reads, and what trains and is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fine_tuned import TEXTS, batch_of, check_checkpoint, check_resume, check_step, rows_of
from models import built
from torch import Tensor

from bench.method import BenchError, TorchMethod, join
from methods.diffcse import DiffCSE, batch_norm_head, detection_loss, read_with

BACKBONES = ("tiny", "tiny_roberta")


@pytest.fixture(params=BACKBONES)
def folder(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def diffcse(folder: str, tmp_path: Path, **values: Any) -> DiffCSE:
    return built(DiffCSE, folder, tmp_path, setting="unsupervised", **values)


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a / np.linalg.norm(a, axis=1, keepdims=True)) @ (
        b / np.linalg.norm(b, axis=1, keepdims=True)
    ).T


def test_detection_loss_and_gradient_equal_the_reference_values(
    reference_b: dict[str, Any],
) -> None:
    known = reference_b["diffcse_rtd"]
    logits = torch.tensor(known["logits"], dtype=torch.float64, requires_grad=True)
    labels = np.array(known["labels"])
    loss = detection_loss(logits, torch.tensor(labels)).mean()
    assert loss.item() == pytest.approx(known["loss_mean_over_all_positions"], abs=1e-11)
    loss.backward()
    p = np.exp(np.array(known["logits"]))
    p /= p.sum(-1, keepdims=True)
    np.testing.assert_allclose(
        logits.grad, (p - np.eye(2)[labels]) / labels.size, rtol=0, atol=1e-10
    )


def test_the_head_normalises_twice_over_the_batch() -> None:
    torch.manual_seed(0)
    head = batch_norm_head(6).double()
    x = torch.randn(5, 6, dtype=torch.float64)
    W, V = head[0].weight.detach().numpy(), head[3].weight.detach().numpy()
    assert (
        W.shape == (12, 6)
        and V.shape == (6, 12)
        and head[0].bias is None
        and head[4].weight is None
    )
    assert abs(W.std() - 0.02) < 0.006

    def normal(a: np.ndarray) -> np.ndarray:
        return (a - a.mean(0)) / np.sqrt(a.var(0) + 1e-5)

    wanted = normal(np.maximum(normal(x.numpy() @ W.T), 0) @ V.T)
    np.testing.assert_allclose(head(x).detach(), wanted, rtol=0, atol=1e-10)


def test_the_discriminator_reads_the_vector_in_the_place_of_the_first_embedding(
    folder: str, tmp_path: Path
) -> None:
    """What the embedding layer gives for another first token, put there, is the other sentence to the encoder."""
    method = diffcse(folder, tmp_path)
    one = method.tokenize(TEXTS)
    other = {**one, "input_ids": one["input_ids"].clone()}
    other["input_ids"][:, 0] = 77
    with torch.no_grad():
        vectors = method.encoder.embeddings(input_ids=other["input_ids"])[:, 0]
        wanted, plain = (method.encoder(**x).last_hidden_state for x in (other, one))
        found = read_with(method.encoder, one, vectors)
        assert torch.equal(found, wanted) and not torch.allclose(found, plain, atol=1e-2)
        assert torch.equal(method.encoder(**one).last_hidden_state, plain), "the hook is gone"


def test_the_generator_rewrites_every_position_but_the_first_and_padding(
    folder: str, tmp_path: Path
) -> None:
    method = diffcse(folder, tmp_path)
    features = join(batch_of(method).columns * 2, method.pad_id)
    ids, mask = features["input_ids"], features["attention_mask"]
    seen = []

    def write(masked: Tensor, given_mask: Tensor) -> Tensor:
        """As likeliest: the next id where the token is odd, else what stands there in the original."""
        seen.append(masked)
        assert torch.equal(given_mask, mask)
        return torch.nn.functional.one_hot(
            ids + ids % 2, len(method.backbone.tokenizer) + 1
        ).float()

    method.generator.forward = write
    edited, replaced = method.edit(features)
    wanted = torch.where((mask == 1) & (torch.arange(ids.shape[1]) > 0), ids + ids % 2, ids)
    assert torch.equal(edited, wanted) and torch.equal(replaced, (wanted != ids).long())
    assert replaced.any() and not replaced[:, 0].any() and not replaced[mask == 0].any()
    (masked,) = seen
    special = torch.isin(ids, torch.tensor(method.backbone.tokenizer.all_special_ids))
    assert torch.equal(masked[special], ids[special])
    assert (masked != ids).any() and not torch.equal(masked[: len(TEXTS)], masked[len(TEXTS) :]), (
        "each view is masked on its own"
    )


def test_the_share_that_is_masked_is_the_recipe_s(tiny: str, tmp_path: Path) -> None:
    method = diffcse(tiny, tmp_path)
    text = " ".join(["guitar"] * 200)
    features = method.tokenize([text] * 40)
    masks = []
    method.generator.forward = lambda masked, _mask: (
        masks.append(masked),
        torch.zeros(*masked.shape, 2),
    )[1]
    torch.manual_seed(0)
    method.edit(features)
    share = (masks[0] == method.backbone.mask_id).float().mean().item()
    assert share == pytest.approx(0.3 * 0.8, abs=0.015)


@pytest.mark.parametrize("variant", ["", "focal"])
def test_the_loss_is_the_contrast_of_the_heads_vectors_and_a_little_detection(
    folder: str, tmp_path: Path, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = diffcse(folder, tmp_path, variant=variant)
    method.train()
    heads, logits, edits, edit = [], [], [], method.edit
    monkeypatch.setattr(method, "edit", lambda views: edits.append(edit(views)) or edits[-1])
    method.head.register_forward_hook(
        lambda _m, _i, out: heads.append(out.detach().double().numpy())
    )
    method.classifier.register_forward_hook(
        lambda _m, _i, out: logits.append(out.detach().double())
    )
    torch.manual_seed(1)
    loss = method(batch_of(method))
    h1, h2 = np.split(heads[0], 2)
    s = cosines(h1, h2)
    scaled = s * (s + 0.3 * (1 - np.eye(len(s)))) / 0.07 if variant else s / 0.05
    contrastive = np.mean(np.log(np.exp(scaled).sum(1)) - np.diag(scaled))
    assert loss.parts["contrastive"].item() == pytest.approx(contrastive, abs=1e-4)
    p, labels = torch.softmax(logits[0], -1), edits[0][1]
    assert (
        p.shape[:2] == (16, max(len(row) for row in rows_of(batch_of(method).columns[0])))
        and labels.any()
    )
    detection = -p.gather(-1, labels[..., None]).log().mean().item()
    assert loss.parts["detection"].item() == pytest.approx(detection, abs=1e-5)
    assert loss.total.item() == pytest.approx(contrastive + 0.005 * detection, abs=1e-4)


def test_detection_reaches_the_encoder_through_the_vector_alone(
    folder: str, tmp_path: Path
) -> None:
    method = diffcse(folder, tmp_path, detection_weight=1.0)
    method.train()
    views = join(batch_of(method).columns * 2, method.pad_id)
    h = method.head(method.embed(views))
    edited, replaced = method.edit(views)
    given = {**views, "input_ids": edited}, replaced
    method.detect(*given, h)[0].mean().backward(retain_graph=True)
    reached = method.encoder.encoder.layer[0].output.dense.weight.grad.clone()
    assert reached.abs().sum() > 0
    method.zero_grad()
    method.detect(*given, h.detach())[0].mean().backward()
    assert all(p.grad is None or not p.grad.any() for p in method.encoder.parameters())


def test_everything_trains_but_the_generator(folder: str, tmp_path: Path) -> None:
    check_step(diffcse(folder, tmp_path), frozen=["generator."])


def test_the_discriminator_starts_as_the_backbone_and_shares_nothing_with_it(
    folder: str, tmp_path: Path
) -> None:
    method = diffcse(folder, tmp_path)
    pairs = list(zip(method.encoder.parameters(), method.discriminator.parameters(), strict=True))
    assert all(torch.equal(a, b) and a.data_ptr() != b.data_ptr() for a, b in pairs)


def test_the_checkpoint_is_the_encoder_alone(folder: str, tmp_path: Path) -> None:
    def build(**values: Any) -> TorchMethod:
        return diffcse(folder, tmp_path, learning_rate=1e-3, **values)

    check_checkpoint(
        build, tmp_path / "saved", absent=["head.", "discriminator.", "classifier.", "generator."]
    )


def test_a_resumed_training_ends_like_one_that_was_not_stopped(tiny: str, tmp_path: Path) -> None:
    def build(**values: Any) -> TorchMethod:
        return diffcse(tiny, tmp_path, learning_rate=1e-3, **values)

    check_resume(build, tmp_path, extra=["head", "discriminator", "classifier"])


def test_what_is_scored_is_cls_without_the_head(folder: str, tmp_path: Path) -> None:
    method = diffcse(folder, tmp_path)
    with torch.no_grad():
        wanted = method.encoder(**method.tokenize(TEXTS)).last_hidden_state[:, 0]
    np.testing.assert_allclose(method.encode(TEXTS), wanted, rtol=0, atol=1e-5)


def test_another_generator_is_found_by_name_and_must_have_the_same_vocabulary(
    tiny: str, tiny_roberta: str, tmp_path: Path
) -> None:
    method = diffcse(tiny_roberta, tmp_path, generator=tiny_roberta)
    assert not [p for p in method.generator.parameters() if p.requires_grad]
    with pytest.raises(BenchError, match="vocabular"):
        diffcse(tiny, tmp_path, generator=tiny_roberta)
    assert DiffCSE.places == ("generator",)


@pytest.mark.parametrize("values", [{"masking": 0.0}, {"masking": 1.5}, {"temperature": 0.0}])
def test_a_recipe_that_cannot_work_is_refused(
    tiny: str, tmp_path: Path, values: dict[str, float]
) -> None:
    method = diffcse(tiny, tmp_path, **values)
    with pytest.raises(BenchError, match=next(iter(values))):
        DiffCSE.check(method.recipe, None)
