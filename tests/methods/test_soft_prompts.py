"""PromCSE and DCPCSE, one repository: losses against the authors' arithmetic, MLM, the template
prompt, the prompt's dropout.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from harness import TEXTS, batch_of, info_nce
from models import built

from bench.methods import masking, prefix
from bench.methods.dcpcse import DCPCSE
from bench.methods.promcse import PromCSE

P, H = 4, 32
U, S = "unsupervised", "supervised"
BOTH = pytest.mark.parametrize("cls", [DCPCSE, PromCSE], ids=lambda cls: cls.name)
KINDS = pytest.mark.parametrize(
    ("cls", "variant"),
    [(PromCSE, ""), (PromCSE, "layer-shared"), (PromCSE, "input-layer"), (DCPCSE, "shallow")],
)


def soft_prompt_method(
    cls: Any, folder: str, run: Path, setting: str = U, variant: str = "", **more: Any
) -> Any:
    values = {"prompt_length": P} | more
    return built(cls, folder, run, setting=setting, variant=variant, **values)


def fed(method: PromCSE, known: dict[str, Any], *names: str) -> tuple[Any, torch.Tensor]:
    """The loss of given head outputs z1, z2[, z3], and its gradient with respect to z1, in
    float64.
    """
    z = [torch.tensor(known["inputs"][n], dtype=torch.float64, requires_grad=True) for n in names]
    method.head = torch.nn.Identity()  # type: ignore[assignment]
    method.hidden = lambda _: torch.cat(z)[:, None]  # type: ignore[method-assign]
    loss = method(batch_of(method, *[["word"] * len(z[0])] * len(z)))
    loss.total.backward()
    assert z[0].grad is not None
    return loss, z[0].grad


@pytest.mark.parametrize(
    ("variant", "names", "key"),
    [
        ("", ("z1", "z2", "z3"), "infonce_hard_negative_weight_0"),
        ("", ("z1", "z2"), "infonce_unsup"),
        ("eh", ("z1", "z2", "z3"), "total_promcse_eh"),
    ],
)
def test_the_supervised_loss_is_the_authors(reference, tiny, tmp_path, variant, names, key):
    known = reference["contrastive"]
    loss, gradient = fed(soft_prompt_method(PromCSE, tiny, tmp_path, S, variant), known, *names)
    assert loss.total.item() == pytest.approx(known[key]["loss"], abs=1e-10)
    np.testing.assert_allclose(gradient, known[key]["grad_z1"], rtol=0, atol=1e-10)


@KINDS
def test_the_unsupervised_loss_from_the_vectors_alone(backbone, tmp_path, cls, variant):
    """Both views are one vector without dropout.

    Without the prompt the vectors give another loss.
    """
    method = soft_prompt_method(cls, backbone, tmp_path, U, variant, dropout=0.0, head_at_test=True)
    torch.nn.init.normal_(method.prompt.table, std=1.0)
    z = method.encode(TEXTS[0])
    with torch.no_grad():
        total = method(batch_of(method, TEXTS[0])).total.item()
        features = method.backbone.tokenizer(TEXTS[0], padding=True, return_tensors="pt")
        plain = method.head(method.encoder(**features).last_hidden_state[:, 0])
    assert total == pytest.approx(info_nce(z, z), abs=1e-4)
    assert abs(total - info_nce(plain, plain)) > 1e-3


@BOTH
@pytest.mark.parametrize("step", ["0", "1000"])
def test_the_total_of_both_losses_is_the_authors(reference, tiny, tmp_path, monkeypatch, step, cls):
    """The authors' head outputs and logits replace ours: eight rows of three tokens, and three
    tokens to guess.
    """
    z, mlm = reference["contrastive"]["inputs"], reference["mlm_auxiliary"]
    vectors = torch.tensor(z["z1"] + z["z2"], dtype=torch.float64)[:, None].expand(-1, 3, -1)
    logits, labels = torch.tensor(mlm["logits"], dtype=torch.float64), torch.full((8, 3), -100)
    labels[:2] = torch.tensor(mlm["labels"])
    # each state names its own position
    passes = [vectors, torch.arange(24, dtype=torch.float64).reshape(8, 3, 1)]
    method = soft_prompt_method(cls, tiny, tmp_path, U, "mlm")
    method.head = torch.nn.Identity()
    method._modules.pop("lm_head")
    method.lm_head = lambda states: logits.flatten(0, 1)[states[:, 0].long()]
    monkeypatch.setattr(prefix, "states_behind_prefix", lambda *_: passes.pop(0))
    monkeypatch.setattr(masking, "mask_tokens", lambda ids, *_: (ids, labels))
    loss = method(batch_of(method, ["word"] * 4, step=int(step)))
    assert loss.total.item() == pytest.approx(mlm["dcpcse_total"]["values"][step], abs=1e-10)
    assert loss.parts["mlm"].item() == pytest.approx(mlm["mlm_loss"], abs=1e-10)


def test_each_vector_has_its_own_place_and_mask_and_full_stop_are_not_trained(backbone, tmp_path):
    """The embeddings that reach the encoder: k-th vector at the k-th word of the template, words
    everywhere else.
    """
    method = soft_prompt_method(DCPCSE, backbone, tmp_path, U, "shallow")
    count = len(method.prompt.table)
    with torch.no_grad():
        method.prompt.table.copy_(100.0 + torch.arange(count)[:, None].expand(-1, H))
    given: list[Any] = []
    method.encoder.register_forward_pre_hook(
        lambda _m, _a, named: given.append(named), with_kwargs=True
    )
    texts = ["a man", "woman reads book in park", '"[MASK]" means <mask> .']
    features = method.assemble(method.token_ids(texts))
    with torch.no_grad():
        method.states(features)
    before = len(method.backbone.ids(['This sentence : "'])[0])
    for i, text in enumerate(texts):
        length = len(method.backbone.ids([text])[0])
        places = [1 + k if k < before else 1 + length + k for k in range(count)]
        row = given[0]["inputs_embeds"][i]
        assert [row[place, 0].item() for place in places] == [100.0 + k for k in range(count)]
        rest = [t for t in range(int(features["attention_mask"][i].sum())) if t not in places]
        words = method.encoder.get_input_embeddings()(features["input_ids"][i, rest])
        assert torch.equal(row[rest], words)
        assert features["mask_position"][i] == 1 + length + count  # directly behind the last vector
