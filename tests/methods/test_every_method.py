"""The contract of every trained method: what trains, what is stored, resume, batch mates,
gathering, refusals, sizes.

The conformance suite checks the same contract on other sentences
(tests/run/conformance/test_conformance.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from harness import TEXTS, batch_of, counts, focal, hinge, info_nce, training, views
from models import built, sentences
from safetensors.torch import load_file

from bench.backbones.adapters import KEY, AdapterSettings, add_adapters
from bench.method import BenchError, TorchMethod, building
from bench.method.plugins import discover
from bench.method.recipes import merge_recipe
from bench.method.torch_method import trained_state

U, S = "unsupervised", "supervised"
LAST_BIAS = "layer.1.output.LayerNorm.bias"  # it cancels if a template's bias is subtracted
JOINT = {"classifier": True, "view1": "none", "view2": "token-cutoff", "rate2": 0.3}
MLM_HEAD = {"head": "mlm-transform", "head_at_test": True, "debias_at_test": True}
REGISTRY = discover()


@dataclass(frozen=True)
class Case:
    """``name``: method[+variant][, remark]; ``trains``, ``kept``: first parts of names, ``kept``
    those that a checkpoint holds.
    """

    name: str
    trains: str
    kept: str = ""
    setting: str = U
    values: dict[str, Any] = field(default_factory=dict)
    frozen: tuple[str, ...] = ("-",)
    follows: tuple[str, ...] = ("-",)
    blind: tuple[str, ...] = ()

    @property
    def cls(self) -> Any:
        return REGISTRY[self.name.split(",")[0].split("+")[0]].cls

    def build(self, backbone: str, folder: Path, **more: Any) -> Any:
        values = {key: backbone if v is BACKBONE else v for key, v in self.values.items()}
        variant = self.name.split(",")[0].partition("+")[2]
        given = {"setting": self.setting, "variant": variant, "learning_rate": 1e-3}
        return built(self.cls, backbone, folder, **(given | values | more))

    def batch(self, method: TorchMethod) -> Any:
        labelled = self.name == "sbert" or "classifier" in self.values
        graded = self.name in ("cosent", "angle", "claif")
        columns = 2 if labelled or graded else 3
        texts = TEXTS[: 1 if self.setting == U else columns]
        scores = [0, 0.5, 1] * 2 if graded else []
        return batch_of(method, *texts, labels=[0, 1, 2] * 2 if labelled else [], scores=scores)


BACKBONE = object()
ENCODER = ("encoder.",)
EVERY_CASE = [
    *(Case(name, "encoder head") for name in ("simcse", "focal-infonce")),
    Case("simcse+eh", "encoder head", setting=S),
    Case("simcse+mlm", "encoder head lm_head", "encoder head"),
    *(Case(name, "encoder") for name in ("simcse+no-head", "mirror-bert", "consert")),
    *(
        Case(name, "prompt head", frozen=ENCODER)
        for name in ("promcse", "promcse+layer-shared", "promcse+input-layer", "dcpcse+shallow")
    ),
    *(Case(name, "prompt head", setting=S, frozen=ENCODER) for name in ("promcse+eh", "dcpcse")),
    Case("promcse, hidden", "prompt head", values={"prompt": "hidden"}, frozen=ENCODER),
    Case(
        "dcpcse+mlm, hidden",
        "prompt head lm_head",
        "prompt head",
        values={"prompt": "hidden"},
        frozen=ENCODER,
    ),
    Case("dcpcse+mlm", "prompt head lm_head", "prompt head", frozen=ENCODER),
    Case(
        "dcpcse+mlm, its head frozen",
        "prompt head",
        values={"freeze_lm_head": True},
        frozen=(*ENCODER, "lm_head."),
    ),
    Case("conpvp", "encoder prompt head", blind=(LAST_BIAS,)),
    Case("promptbert", "encoder head", blind=(LAST_BIAS,)),
    Case("cot-bert", "encoder head", "encoder", blind=(LAST_BIAS,)),
    Case(
        "promptbert, supervised",
        "encoder head",
        setting=S,
        values=MLM_HEAD,
        blind=(LAST_BIAS, "head.LayerNorm.bias", "head.2.bias"),
    ),
    Case("sncse", "encoder head", values={"max_seq_length": 64}),
    Case("infocse", "encoder head extra lm_head", "encoder", frozen=("shallow.",)),
    *(
        Case(
            name, parts, "encoder", U, {"predictor_blocks": 1}, ("target.",), ("target.", *buffers)
        )
        for name, parts, *buffers in (
            ("unsee", "encoder predictor", "predictor."),
            ("unsee+barlow", "encoder predictor scale", "predictor.", "scale."),
        )
    ),
    Case("crop-documents", "encoder"),
    Case("pcl", "encoder head peer", "encoder"),
    Case("pcl, faithful", "encoder head peer peer_pooler", "encoder", values={"faithful": True}),
    Case("tsdae", "encoder cross lm_head lm_bias", "encoder"),
    Case("esimcse", "encoder head", "encoder", U, {}, ("momentum.",), ("momentum.", "queue.")),
    Case("consert, joint", "encoder classifier", "encoder", S, JOINT),
    Case("ct", "encoder second", "encoder"),
    Case("dclr", "encoder head", "encoder", U, {"teacher": BACKBONE}, ("teacher.",)),
    Case(
        "rankcse",
        "encoder head",
        "encoder",
        U,
        {"teacher_1": BACKBONE, "teacher_2": BACKBONE},
        ("teachers.",),
    ),
    Case(
        "guided-simcse",
        "encoder head",
        "encoder head",
        S,
        {"guide": BACKBONE, "phi": 2.0},
        ("guide.",),
    ),
    *(Case(name, "encoder", "encoder", S) for name in ("cosent", "angle", "claif")),
    Case("diffcse", "encoder head discriminator classifier", "encoder", frozen=("generator.",)),
    Case("is-bert", "encoder convolutions", values={"channels": 8}),
    Case(
        "sg-opt",
        "encoder head",
        "encoder",
        U,
        {"head_width": 64},
        ("start.", "encoder.embeddings."),
    ),
    Case("sbert", "encoder classifier", "encoder", S),
]
CASES = {case.name: case for case in EVERY_CASE}
QUICK = ("simcse", "simcse+mlm", "promcse", "dcpcse+mlm, its head frozen", "conpvp", "esimcse")
QUICK += ("unsee+barlow", "dclr", "diffcse", "sg-opt", "sbert", "tsdae")
"""One of each kind: what is frozen, what follows, what is kept."""
EVERY = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name, marks=() if name in QUICK else pytest.mark.nightly)
        for name, case in CASES.items()
    ],
)


def roots(names: Any) -> set[str]:
    return {name.split(".")[0] for name in names}


@EVERY
def test_trained_parameters_move_and_no_others(case: Case, tiny: str, tmp_path: Path) -> None:
    """Two steps of the method's own optimiser. A softmax does not see a key's bias: its gradient is
    rounding.
    """
    method = case.build(tiny, tmp_path)
    state = {name: tensor.clone() for name, tensor in method.state_dict().items()}
    parameters = dict(method.named_parameters())
    assert roots(n for n, p in parameters.items() if p.requires_grad) == set(case.trains.split())
    assert case.cls.encoder_is_frozen == ("encoder." in case.frozen)
    optimizer, blind = method.optimizer(), ("key.bias", *case.blind)
    with training(method):
        torch.manual_seed(0)
        for _ in range(2):  # layers after the encoder move only after the encoder has moved
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
    assert roots(trained_state(method)) == set((case.kept or case.trains).split())


@EVERY
def test_draws_depend_on_seed_epoch_and_row_alone(case, tiny, tmp_path):
    """Rows in the opposite order, whatever the state of every generator; another epoch or seed may
    draw otherwise.
    """
    if case.setting == S:
        pytest.skip("several columns; what is drawn for them is the same")
    texts, rows = sentences(6, seed=3, longest=14), [3, 1, 4, 15, 9, 2]

    def drawn(method: Any, way: int) -> list[Any]:
        torch.manual_seed(way)
        np.random.seed(way + 1)
        made = views(method, texts[::way], rows=rows[::way])
        of_rows = [{key: tensor for key, tensor in view.items() if tensor.ndim} for view in made]
        return [{key: tensor.tolist()[::way] for key, tensor in view.items()} for view in of_rows]

    method = case.build(tiny, tmp_path)
    forwards, backwards = drawn(method, 1), drawn(method, -1)
    pairs = range(
        1 if case.name == "ct" else len(forwards)
    )  # the others of a batch are ct's negatives
    assert [forwards[i] for i in pairs] == [backwards[i] for i in pairs]


@pytest.mark.parametrize("head_at_test", [False, True])
@pytest.mark.parametrize("name", ["simcse", "focal-infonce", "promcse"])
def test_encode_gives_cls_and_uses_the_head_only_if_the_recipe_says_so(
    backbone, tmp_path, name, head_at_test
):
    case = CASES[name]
    method = case.build(backbone, tmp_path, head_at_test=head_at_test)
    features = method.assemble(method.token_ids(TEXTS[0]))
    with torch.no_grad():
        if name == "promcse":
            wanted = method.prompt.states(method.encoder, features)[:, 0]
        else:
            wanted = method.encoder(**features).last_hidden_state[:, 0]
        if head_at_test:
            wanted = torch.tanh(wanted @ method.head.dense.weight.T + method.head.dense.bias)
    np.testing.assert_allclose(method.encode(TEXTS[0]), wanted, rtol=0, atol=1e-5)


GATHERED = ["simcse", "simcse+eh", "focal-infonce", "promcse", "promcse+eh", "dcpcse+mlm"]
GATHERED += ["dcpcse+shallow", "conpvp", "promptbert", "sncse", "diffcse", "infocse"]


@pytest.mark.matrix(every=3)
@pytest.mark.parametrize("faithful", [False, True])
@pytest.mark.parametrize("name", GATHERED)
def test_the_loss_compares_exactly_the_gathered_vectors(
    tiny, tmp_path, monkeypatch, name, faithful
):
    """The candidates in the opposite order, as if they came from other processes."""
    case, seen = CASES[name], []

    def gather(z: Any, faithful: bool) -> Any:
        turned = [z[0], *(view.flip(0) for view in z[1:])]
        seen.append((faithful, [view.detach().numpy() for view in turned]))
        return turned

    monkeypatch.setattr(f"{case.cls.loss.__module__}.across_ranks", gather)
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


REFUSED = {
    "simcse": "pooling=max edit_share=1 mlm_probability=1.5",
    "focal-infonce": "temperature=0",
    "promcse": "prompt=shallow prompt=input-layer,mlm=true gradient_checkpointing=true",
    "dcpcse": "mlm=true,shallow=true prompt_length=0 prompt=input-layer prompt=hidden,shallow=true",
    "conpvp": "anchor={s} anchor_layout= anchor={p}{s}{m} anchor={s}{p}and{p}{m}",
    "cot-bert": "anchor={m}",
    "promptbert": "template_2={s} head=mlp",
    "sncse": "alpha=0.4 max_seq_length=10",
    "mirror-bert": "drophead=1",
    "consert": "view1=crop",
    "ct": "group=1",
    "cosent": "scale=0 matryoshka=half",
    "dclr": "teacher=none",
    "diffcse": "masking=1.5",
    "flow": "levels=6",
    "infocse": "token_states_from_layer=0",
    "unsee": "momentum=1.5",
    "tsdae": "deletion=1",
    "whitening": "components=33",
}


@pytest.mark.parametrize(
    ("name", "values"), [(name, one) for name, all_ in REFUSED.items() for one in all_.split()]
)
def test_a_recipe_that_cannot_work_is_refused(name, values, tiny, tmp_path):
    """One line, by the check before anything starts or when the method is built."""
    cls = REGISTRY[name].cls
    setting = U if U in cls.settings else cls.settings[0]
    texts = dict(one.split("=") for one in values.split(","))
    recipe = merge_recipe(cls, None, "", texts, trained=True)
    with pytest.raises(BenchError) as caught:
        cls.check(recipe, None)
        built(cls, tiny, tmp_path, setting=setting, **{key: recipe[key] for key in texts})
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(("name", "key"), [("dclr", "teacher"), ("diffcse", "generator")])
def test_a_second_model_must_have_the_same_vocabulary(name, key, tiny, tiny_roberta, tmp_path):
    cls = REGISTRY[name].cls
    method = built(cls, tiny_roberta, tmp_path, setting=U, **{key: tiny_roberta})
    assert not [p for p in getattr(method, key).parameters() if p.requires_grad]
    with pytest.raises(BenchError, match="vocabular"):
        built(cls, tiny, tmp_path, setting=U, **{key: tiny_roberta})
    assert cls.places == (key,)


# base size, no pooling layers
BERT = 108_891_648
ROBERTA = 124_055_040
HEAD = 590_592


@pytest.mark.parametrize(
    ("name", "model", "parts"),
    [
        ("promcse", "bert", {"prompt": 2 * 16 * 12 * 768, "head": HEAD}),
        ("promcse, hidden", "bert", {"prompt": 16 * 12 * 768, "head": HEAD}),
        ("dcpcse, hidden", "roberta", {"prompt": 16 * 12 * 768, "head": HEAD}),
        ("promcse+layer-shared", "bert", {"prompt": 24_576, "head": HEAD}),
        ("promcse+input-layer", "bert", {"prompt": 12_288, "head": HEAD}),
        ("simcse", "bert", {"encoder": BERT, "head": HEAD}),
        ("simcse+mlm", "roberta", {"encoder": ROBERTA, "head": HEAD, "lm_head": 39_245_913}),
    ],
)
def test_how_many_numbers_train_at_the_papers_sizes(name, model, parts):
    name, _, prompt = name.partition(", ")
    method, _, variant = name.partition("+")
    values = {"prompt": prompt} if prompt else {}
    assert counts(REGISTRY[method].cls, model, variant, **values) == parts


TRAINED = [case for case in EVERY_CASE if "encoder." not in case.frozen]


@pytest.fixture
def adapted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every method get an encoder with adapters."""
    plain = building.read_backbone

    def read_backbone(*given: Any) -> Any:
        backbone = plain(*given)
        add_adapters(backbone.encoder, AdapterSettings(4, 8.0, 0.05), seed=1)
        return backbone

    monkeypatch.setattr(building, "read_backbone", read_backbone)


@pytest.mark.slow
@pytest.mark.matrix(every=12)
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")
@pytest.mark.parametrize("case", TRAINED, ids=[case.name for case in TRAINED])
def test_adapters_train_and_alone_are_kept_of_the_encoder(
    case: Any, adapted: None, tiny: str, tmp_path: Path
) -> None:
    method = case.build(tiny, tmp_path)
    with training(method):
        torch.manual_seed(0)
        for _ in range(2):
            method(case.batch(method)).total.backward()
    for name, parameter in method.encoder.named_parameters():
        assert parameter.requires_grad == (KEY in name) == (parameter.grad is not None), name
    method.save(tmp_path / "checkpoint")
    names = load_file(tmp_path / "checkpoint" / "trained.safetensors")
    assert any(KEY in name for name in names)
    assert not [name for name in names if name.startswith("encoder.") and KEY not in name]
    again = case.build(tiny, tmp_path)
    again.load(tmp_path / "checkpoint")
    method.eval()
    assert (again.encode(TEXTS[0]) == method.encode(TEXTS[0])).all()
