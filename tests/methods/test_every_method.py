"""What holds for every trained method: what trains, what is stored, resume, batch mates, gathering, refusals, sizes.

The same contract on other sentences is checked by the conformance suite (tests/test_conformance.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from harness import TEXTS, batch_of, counts, focal, hinge, info_nce, training
from models import built

from bench.method import BenchError, TorchMethod
from bench.run.recipes import merge
from methods.conpvp import ConPVP
from methods.consert import ConSERT
from methods.ct import CT
from methods.dclr import DCLR
from methods.dcpcse import DCPCSE
from methods.diffcse import DiffCSE
from methods.esimcse import ESimCSE
from methods.flow import Flow
from methods.focal_infonce import FocalInfoNCE
from methods.is_bert import ISBert
from methods.mirror_bert import MirrorBert
from methods.promcse import PromCSE
from methods.promptbert import PromptBERT
from methods.sbert import SBERT
from methods.sg_opt import SGOpt
from methods.simcse import SimCSE
from methods.sncse import SNCSE
from methods.whitening import Whitening

U, S = "unsupervised", "supervised"
LAST_BIAS = "layer.1.output.LayerNorm.bias"  # it cancels where a template's bias is subtracted
JOINT = {"classifier": True, "view1": "none", "view2": "token-cutoff", "rate2": 0.3}
MLM_HEAD = {"head": "mlm-transform", "head_at_test": True, "debias_at_test": True}


@dataclass(frozen=True)
class Case:
    """``trains``, ``stored``, ``extra``: first parts of names; ``extra`` is what only a state to resume from holds."""

    cls: Any
    trains: str
    stored: str
    extra: str = ""
    setting: str = U
    variant: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    frozen: tuple[str, ...] = ("-",)
    follows: tuple[str, ...] = ("-",)
    blind: tuple[str, ...] = ()

    def build(self, backbone: str, folder: Path, **more: Any) -> Any:
        values = {key: backbone if v is BACKBONE else v for key, v in self.values.items()}
        given = {"setting": self.setting, "variant": self.variant, "learning_rate": 1e-3}
        return built(self.cls, backbone, folder, **(given | values | more))

    @property
    def texts(self) -> list[list[str]]:
        if self.setting == U:
            return TEXTS[:1]
        return TEXTS[:2] if self.labels else TEXTS

    @property
    def labels(self) -> list[int]:
        return [0, 1, 2, 0, 1, 2] if self.cls is SBERT or "classifier" in self.values else []

    def batch(self, method: TorchMethod) -> Any:
        return batch_of(method, *self.texts, labels=self.labels)


BACKBONE = object()
ENCODER = ("encoder.",)
CASES = {
    "simcse": Case(SimCSE, "encoder head", "encoder head"),
    "simcse+eh": Case(SimCSE, "encoder head", "encoder head", setting=S, variant="eh"),
    "simcse+mlm": Case(SimCSE, "encoder head lm_head", "encoder head", "lm_head", variant="mlm"),
    "simcse+no-head": Case(SimCSE, "encoder", "encoder", variant="no-head"),
    "focal-infonce": Case(FocalInfoNCE, "encoder head", "encoder head"),
    "promcse": Case(PromCSE, "prompt head", "prompt head", frozen=ENCODER),
    "promcse+eh": Case(PromCSE, "prompt head", "prompt head", "", S, "eh", frozen=ENCODER),
    **{
        f"promcse+{v}": Case(PromCSE, "prompt head", "prompt head", variant=v, frozen=ENCODER)
        for v in ("layer-shared", "input-layer")
    },
    "dcpcse": Case(DCPCSE, "prompt head", "prompt head", setting=S, frozen=ENCODER),
    "dcpcse+shallow": Case(DCPCSE, "prompt head", "prompt head", "", U, "shallow", frozen=ENCODER),
    "dcpcse+mlm": Case(
        DCPCSE, "prompt head lm_head", "prompt head", "lm_head", U, "mlm", frozen=ENCODER
    ),
    "dcpcse+mlm, its head frozen": Case(
        DCPCSE,
        "prompt head",
        "prompt head",
        "lm_head",
        U,
        "mlm",
        {"freeze_lm_head": True},
        (*ENCODER, "lm_head."),
    ),
    "conpvp": Case(ConPVP, "encoder prompt head", "encoder prompt head", blind=(LAST_BIAS,)),
    "promptbert": Case(PromptBERT, "encoder head", "encoder head", blind=(LAST_BIAS,)),
    "promptbert, supervised": Case(
        PromptBERT,
        "encoder head",
        "encoder head",
        setting=S,
        values=MLM_HEAD,
        blind=(LAST_BIAS, "head.LayerNorm.bias", "head.2.bias"),
    ),
    "sncse": Case(SNCSE, "encoder head", "encoder head", values={"max_seq_length": 64}),
    "esimcse": Case(
        ESimCSE,
        "encoder head",
        "encoder",
        "head momentum queue",
        frozen=("momentum.",),
        follows=("momentum.", "queue."),
    ),
    "mirror-bert": Case(MirrorBert, "encoder", "encoder"),
    "consert": Case(ConSERT, "encoder", "encoder"),
    "consert, joint": Case(ConSERT, "encoder classifier", "encoder", "classifier", S, values=JOINT),
    "ct": Case(CT, "encoder second", "encoder", "second"),
    "dclr": Case(
        DCLR, "encoder head", "encoder", "head", values={"teacher": BACKBONE}, frozen=("teacher.",)
    ),
    "diffcse": Case(
        DiffCSE,
        "encoder head discriminator classifier",
        "encoder",
        "head discriminator classifier",
        frozen=("generator.",),
    ),
    "is-bert": Case(ISBert, "encoder convolutions", "encoder convolutions", values={"channels": 8}),
    "sg-opt": Case(
        SGOpt,
        "encoder head",
        "encoder",
        "head",
        values={"head_width": 64},
        frozen=("start.", "encoder.embeddings."),
    ),
    "sbert": Case(SBERT, "encoder classifier", "encoder", "classifier", S),
}
EVERY = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))


def roots(names: Any) -> set[str]:
    return {name.split(".")[0] for name in names}


@EVERY
def test_what_trains_moves_and_nothing_else(case: Case, backbone: str, tmp_path: Path) -> None:
    """Two steps of the method's own optimiser. A softmax does not see a key's bias: its gradient is rounding."""
    method = case.build(backbone, tmp_path)
    state = {name: tensor.clone() for name, tensor in method.state_dict().items()}
    parameters = dict(method.named_parameters())
    assert roots(n for n, p in parameters.items() if p.requires_grad) == set(case.trains.split())
    optimizer, blind = method.optimizer(), ("key.bias", *case.blind)
    with training(method):
        torch.manual_seed(0)
        for _ in range(2):  # what follows the encoder moves only after the encoder has moved
            method(case.batch(method)).total.backward()
            for name, p in parameters.items():
                assert p.requires_grad == (p.grad is not None) != name.startswith(case.frozen), name
                assert p.grad is None or name.endswith(blind) or p.grad.any(), name
            optimizer.step()
    moved = {n for n, tensor in method.state_dict().items() if not torch.equal(tensor, state[n])}
    assert moved >= {n for n, p in parameters.items() if p.requires_grad and not n.endswith(blind)}
    followed = {name for name in moved if name.startswith(case.follows)}
    assert not {n for n, p in parameters.items() if not p.requires_grad} & moved - followed
    assert roots(followed) == {name.split(".")[0] for name in case.follows if name != "-"}


@pytest.mark.parametrize("head_at_test", [False, True])
@pytest.mark.parametrize(
    "name", ["simcse", "focal-infonce", "promcse", "esimcse", "dclr", "diffcse", "sg-opt"]
)
def test_what_is_scored_is_cls_and_the_head_only_where_the_recipe_says_so(
    backbone, tmp_path, name, head_at_test
):
    case = CASES[name]
    if head_at_test and "head_at_test" not in case.cls.defaults:
        pytest.skip("its head is for training alone")
    method = case.build(backbone, tmp_path, head_at_test=head_at_test)
    features = method.tokenize(TEXTS[0])
    with torch.no_grad():
        if name == "promcse":
            wanted = method.prompt.states(method.encoder, features)[:, 0]
        else:
            wanted = method.encoder(**features).last_hidden_state[:, 0]
        if head_at_test:
            wanted = torch.tanh(wanted @ method.head.dense.weight.T + method.head.dense.bias)
    np.testing.assert_allclose(method.encode(TEXTS[0]), wanted, rtol=0, atol=1e-5)


GATHERED = ["simcse", "simcse+eh", "focal-infonce", "promcse", "promcse+eh", "dcpcse+mlm"]
GATHERED += ["dcpcse+shallow", "conpvp", "promptbert", "sncse", "diffcse"]


@pytest.mark.parametrize("faithful", [False, True])
@pytest.mark.parametrize("name", GATHERED)
def test_what_gathering_gives_is_what_is_compared(tiny, tmp_path, monkeypatch, name, faithful):
    """The candidates in the opposite order, as if they came from other processes."""
    case, seen = CASES[name], []

    def gather(z: Any, faithful: bool) -> Any:
        turned = [z[0], *(view.flip(0) for view in z[1:])]
        seen.append((faithful, [view.detach().numpy() for view in turned]))
        return turned

    monkeypatch.setattr(f"{case.cls.__module__}.across_ranks", gather)
    method = case.build(tiny, tmp_path, dropout=0.0, faithful=faithful).double()
    loss = method(case.batch(method))
    ((asked, z),) = seen
    parts = [
        loss.parts[key] for key in ("info_nce", "contrast", "contrastive") if key in loss.parts
    ]
    found = (parts or [loss.total])[0].item()
    if name == "focal-infonce":
        wanted = focal(*z, tau=method.recipe.temperature, m=0.3)
    else:
        wanted = info_nce(*z)
    assert asked == faithful and found == pytest.approx(wanted, abs=1e-6)
    if "hinge" in loss.parts:
        assert loss.parts["hinge"].item() == pytest.approx(hinge(*z, margin=0.2), abs=1e-6)


# --- what is refused ---

REFUSED = {
    SimCSE: "pooler=max similarity=euclid edit=swap edit_share=0 edit_share=1 temperature=0"
    " mlm_probability=1.5",
    FocalInfoNCE: "temperature=0",
    PromCSE: "prompt=shallow prefix_dropout=1 prefix_dropout=much prompt=input-layer,mlm=true",
    DCPCSE: "mlm=true,shallow=true prompt_length=0 mlm_decay_steps=0 mlm_probability=0",
    ConPVP: "templates=mine temperature=0 debias=yes anchor={s} prompt_length=0 prototypes=all"
    " anchor_layout=",
    PromptBERT: "template_1={m} template_2={s} temperature=0 head=mlp delta_positions=x",
    SNCSE: "template_1={m} temperature=0 alpha=0.4 max_seq_length=10",
    MirrorBert: "pooling=max drophead=1",
    ConSERT: "view1=crop train_pooler=max rate1=1",
    CT: "group=1 rate_steps=0",
    DCLR: "teacher=none teacher=x,loss=bce teacher=x,noise_times=-1 teacher=x,temperature=0",
    DiffCSE: "masking=0 masking=1.5 temperature=0",
    Flow: "levels=6 depth=0 pooling=mlp permutation=shuffled",
    Whitening: "components=0 components=33 pooling=mlp",
}


@pytest.mark.parametrize(
    ("cls", "values"), [(cls, one) for cls, every in REFUSED.items() for one in every.split()]
)
def test_a_recipe_that_cannot_work_is_refused(cls, values, tiny, tmp_path):
    """One line, by the check before anything starts or when the method is built."""
    setting = U if U in cls.settings else "none"
    texts = dict(one.split("=") for one in values.split(","))
    recipe = merge(cls, None, "", texts, trained=True)
    with pytest.raises(BenchError) as caught:
        cls.check(recipe, None)
        built(cls, tiny, tmp_path, setting=setting, **{key: recipe[key] for key in texts})
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(("cls", "key"), [(DCLR, "teacher"), (DiffCSE, "generator")])
def test_a_second_model_must_have_the_same_vocabulary(cls, key, tiny, tiny_roberta, tmp_path):
    method = built(cls, tiny_roberta, tmp_path, setting=U, **{key: tiny_roberta})
    assert not [p for p in getattr(method, key).parameters() if p.requires_grad]
    with pytest.raises(BenchError, match="vocabular"):
        built(cls, tiny, tmp_path, setting=U, **{key: tiny_roberta})
    assert cls.places == (key,)


# --- sizes ---

HEAD = {"base": 590_592, "large": 1_049_600}
BERT, ROBERTA = 108_891_648, 124_055_040  # encoders of base size without their pooling layers
LM_HEAD = {("bert", "base"): 24_063_546, ("roberta", "base"): 39_245_913}
LM_HEAD |= {("roberta", "large"): 52_573_273}


@pytest.mark.parametrize(
    ("cls", "model", "variant", "values", "parts"),
    [
        (PromCSE, "bert", "layer-shared", {}, {"prompt": 24_576, "head": HEAD["base"]}),
        (PromCSE, "bert", "input-layer", {}, {"prompt": 12_288, "head": HEAD["base"]}),
        (SimCSE, "bert", "", {}, {"encoder": BERT, "head": HEAD["base"]}),
        (SimCSE, "roberta", "", {}, {"encoder": ROBERTA, "head": HEAD["base"]}),
        (SimCSE, "bert", "", {"pooler": "avg"}, {"encoder": BERT}),
        (
            SimCSE,
            "roberta",
            "mlm",
            {},
            {"encoder": ROBERTA, "head": HEAD["base"], "lm_head": LM_HEAD["roberta", "base"]},
        ),
        (FocalInfoNCE, "bert", "", {}, {"encoder": BERT, "head": HEAD["base"]}),
    ],
)
def test_how_many_numbers_train_at_the_papers_sizes(cls, model, variant, values, parts):
    assert counts(cls, model, "base", variant, **values) == parts
