"""The checks of a method, which is built on a tiny random BERT with the built-in tokenizer.

They take seconds and need no data.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from bench.backbones import Reference, builtin_folder, resolve, silence_transformers
from bench.backbones.folder import WEIGHTS
from bench.backbones.loading import PREFIX
from bench.base.errors import BenchError, UnknownName
from bench.base.findings import AGREES, Finding
from bench.base.user_code import place_of_code
from bench.data.corpora.columns import COLUMNS_OF
from bench.method import Context, Method
from bench.method.batch import Batch, Loss
from bench.method.building import build_method
from bench.method.finished import reads_of
from bench.method.own_vectors import OwnVectors
from bench.method.plugins import Plugin
from bench.method.recipe_checks import check_entries, check_overrides
from bench.method.recipe_files import read_recipes
from bench.method.recipes import choose_entry, merge_recipe, variants_of
from bench.method.torch_method import TorchMethod, is_split, training_state, views_of
from bench.run.conformance import Failed, fail_if, once_each, result_of
from bench.run.planned import learns
from bench.training.gradient import checked_loss, in_chunks

SENTENCES = [
    "A man is playing a guitar .",
    "Yes .",
    "The committee that met on Tuesday did not reach a decision about the new bridge .",
    "Dogs run .",
    "A man is playing a guitar .",
    'He said "wait" , and [MASK] was all that she heard .',
    "Two children build a castle of sand near the sea .",
    "Prices rose by 3.5 % in March , the bank said , although most forecasts that had been "
    "published before were much higher .",
]
TOLERANCE = 1e-5  # how far order, batch size and padding may move a vector


def check_method(plugin: Plugin, overrides: Mapping[str, str] = {}) -> list[Finding]:
    """Run every check in every setting of a method, and the shorter ones of its variants.

    Raises BenchError if the method cannot be built.
    """
    cls = plugin.cls
    check_overrides(overrides, [cls], any(learns(cls, setting) for setting in cls.settings))
    check_entries(cls, read_recipes(plugin.folder, plugin.name).recipes)
    results: list[Finding] = []
    with tempfile.TemporaryDirectory() as folder:
        backbone = tiny_backbone(Path(folder) / "tiny", prefix=5 if PREFIX in reads_of(cls) else 0)
        for setting, variant in product(cls.settings, ("", *variants_of(cls))):
            name = f"{setting}+{variant}" if variant else setting
            case = Case(plugin, setting, backbone, overrides, Path(folder) / name, variant)
            checks = ENCODING if setting == "none" else ENCODING + TRAINING
            if variant:
                built = build_variant(case, name)
                results.append(built)
                is_built = built.kind == "can be built" and built.passed
                checks = tuple(known for known in checks if is_built and known in OF_VARIANTS)
            for kind, function in checks:
                results.append(result_of(name, kind, partial(function, case)))
    return once_each(results)


def build_variant(case: Case, name: str) -> Finding:
    """Check that a variant can be built; a setting may also refuse it."""
    try:
        return result_of(name, "can be built", partial(can_be_built, case))
    except BenchError as error:  # not every setting needs to have every variant
        return Finding("may be refused", name, AGREES, f"refused: {error.message}")


def can_be_built(case: Case) -> str:
    """Build the method. Raises Failed for a recipe key that the variant misspells."""
    try:
        method = case.build()
        if isinstance(method, TorchMethod) and case.setting != "none":
            method.needs(case.setting, method.recipe)
    except UnknownName as error:
        raise Failed(f"{place_of_code(case.plugin.cls)}: {error.message}") from None
    return "built"


def tiny_backbone(folder: Path, *, prefix: int = 0) -> str:
    """Write a random BERT of 2 layers, 32 wide, with the built-in vocabulary, a pooler and MLM
    head.

    ``prefix``: length of a prefix that it also has, with a head over CLS, like PromCSE's
    checkpoints. Returns the folder's name.
    """
    from transformers import BertConfig, BertForPreTraining

    silence_transformers()
    state = torch.get_rng_state()
    torch.manual_seed(0)
    model = BertForPreTraining(
        BertConfig(
            vocab_size=8192,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=256,
        )
    )
    for parameter in model.parameters():
        if parameter.ndim > 1:
            # with the library's smaller weights mistakes hardly show
            torch.nn.init.normal_(parameter, std=0.1)
    model.save_pretrained(folder)
    if prefix:
        weights = folder / WEIGHTS[0]
        more = {  # in this order: each draws from the generator
            f"{PREFIX}embedding.weight": torch.randn(prefix, 2 * 2 * 32),
            "mlp.dense.weight": torch.randn(32, 32),
            "mlp.dense.bias": torch.randn(32),
        }
        save_file(load_file(weights) | more, weights, {"format": "pt"})
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(builtin_folder() / name, folder / name)
    torch.set_rng_state(state)
    return str(folder)


@dataclass
class Case:
    """A method in one setting."""

    plugin: Plugin
    setting: str
    backbone: str
    overrides: Mapping[str, str]
    folder: Path
    variant: str = ""

    def build(self, seed: int = 1) -> Method:
        cls = self.plugin.cls
        trained = learns(cls, self.setting)
        if issubclass(cls, OwnVectors):
            backbone = Reference(name=cls.own_backbone, revision="unknown", path=None)
        else:
            backbone = resolve(self.backbone)
        recipes = read_recipes(self.plugin.folder, self.plugin.name).recipes
        entry = choose_entry(recipes, self.setting, self.backbone, self.variant)
        recipe = merge_recipe(cls, entry, self.variant, self.overrides, trained=trained)
        cls.check(recipe, backbone.path)
        context = Context(seed=seed, folder=self.folder)
        return build_method(cls, backbone, recipe, context, learns=trained)

    def trained(self) -> TorchMethod:
        method = self.build()
        if not isinstance(method, TorchMethod):
            raise Failed("its training is not checked, because it is not a TorchMethod")
        method.train()
        return method

    def loss(self, method: TorchMethod, step: int = 0) -> Loss:
        computed_by = type(method).loss if is_split(method) else type(method).forward
        return checked_loss(computed_by, method(self.batch(method, step)))

    def batch(self, method: TorchMethod, step: int = 0) -> Batch:
        """Return a batch of the sentences, in another order at every step."""
        kind = method.needs(self.setting, method.recipe)[-1]
        texts: list[Any] = SENTENCES
        if method.trains_on != "text":
            texts = method.backbone.ids(SENTENCES)
        columns: dict[str, Any] = {}
        # each column has another sentence in a row, and each step moves all of them on by one
        for shift, name in enumerate(COLUMNS_OF[kind], step):
            columns[name] = texts[shift:] + texts[:shift]
        rows = range(len(SENTENCES))
        if kind == "labelled":
            columns["label"] = [[row % 3] for row in rows]
        elif kind == "graded":
            columns["score"] = [[row % 3 / 2] for row in rows]
        return Batch(method.collate(columns, np.arange(len(SENTENCES)), step), step)


def encode_gives_vectors(case: Case) -> str:
    vectors = case.build().encode(SENTENCES)
    found = getattr(vectors, "shape", type(vectors).__name__)
    fail_if(
        not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or len(vectors) != len(SENTENCES),
        f"expected ({len(SENTENCES)}, dim), found {found}",
    )
    finite = bool(np.isfinite(vectors).all())
    odd = "" if finite else " with NaN or infinity"
    fail_if(
        vectors.dtype != np.float32 or not finite,
        f"expected finite float32, found {vectors.dtype}{odd}",
    )
    fail_if(
        np.ptp(vectors, axis=0).max(initial=0.0) <= TOLERANCE,
        "different sentences have the same vector: the encoder ignores its sentence",
    )
    return f"{vectors.shape[1]} dimensions"


def same_vectors(
    others: Callable[[Case, Method], np.ndarray], what: str, tolerance: float = TOLERANCE
) -> Callable[[Case], str]:
    """Make a check that ``others`` gives the vectors of the sentences, too."""

    def compare(case: Case) -> str:
        method = case.build()
        a, b = method.encode(SENTENCES), others(case, method)
        fail_if(a.shape != b.shape, f"{what} gives shape {b.shape} instead of {a.shape}")
        difference = float(np.abs(a - b).max())
        fail_if(
            not difference <= tolerance,
            f"{what} differs by {difference:.2g}, allowed {tolerance:g}",
        )
        return f"largest difference {difference:.1g}"

    return compare


Checks = tuple[tuple[str, Callable[["Case"], str]], ...]


def encode_loaded(case: Case, method: Method) -> np.ndarray:
    """Encode with another object that loads the checkpoint of this one."""
    other = case.build(seed=2)
    method.save(case.folder / "saved")
    other.load(case.folder / "saved")
    return other.encode(SENTENCES)


def checkpoint_is_plain(case: Case) -> str:
    folder = case.folder / "plain"
    case.build().save(folder)
    files = [file for file in folder.rglob("*") if file.is_file()]
    strange = [file.name for file in files if file.suffix not in (".safetensors", ".json")]
    fail_if(
        strange or not files,
        f"expected safetensors and JSON, found {', '.join(strange) or 'nothing'}",
    )
    return f"{sum(file.stat().st_size for file in files):,} bytes"


def loss_is_finite(case: Case) -> str:
    total = case.loss(case.trained()).total
    fail_if(not torch.isfinite(total).all(), f"expected one finite number, found {total}")
    return f"{total.item():.3f}"


def gradient_reaches_what_trains(case: Case) -> str:
    method = case.trained()
    case.loss(method).total.backward()
    trained = {name: p for name, p in method.named_parameters() if p.requires_grad}
    without = [name for name, p in trained.items() if p.grad is None]
    fail_if(without or not trained, f"no gradient at {', '.join(without[:3]) or 'anything'}")
    fail_if(
        not any(bool(p.grad.any()) for p in trained.values() if p.grad is not None),
        "every gradient is zero",
    )
    return f"{len(trained)} tensors, {sum(p.numel() for p in trained.values()):,} parameters"


def nothing_frozen_moves(case: Case) -> str:
    method = case.trained()
    before = {name: tensor.clone() for name, tensor in method.state_dict().items()}
    optimizer = torch.optim.AdamW([p for p in method.parameters() if p.requires_grad], lr=1e-2)
    case.loss(method).total.backward()
    optimizer.step()
    now = method.state_dict()
    moved = {name for name, tensor in before.items() if not torch.equal(tensor, now[name])}
    lost = ", ".join(sorted(moved - set(training_state(method)))[:3])
    fail_if(lost, f"moved, but neither in the checkpoint nor in the state to resume from: {lost}")
    fail_if(not moved, "an optimiser step changed nothing")
    return f"{len(moved)} tensors moved, {len(before) - len(moved)} did not"


STEPS = 6
STOPPED = 3
"""Steps of a training, and the one that it is stopped after."""


def training_goes_on(case: Case) -> str:
    """Stop after three of six steps and continue with a new object, like ``bench run`` after a
    crash.
    """
    first = case.trained()
    torch.manual_seed(0)
    optimizer = first.optimizer()
    losses = [_step(first, case, optimizer, step) for step in range(STOPPED)]
    state = {name: tensor.clone() for name, tensor in training_state(first).items()}
    optimizer_state = copy.deepcopy(optimizer.state_dict())
    generator_state = torch.get_rng_state()
    losses += [_step(first, case, optimizer, step) for step in range(STOPPED, STEPS)]
    second = case.trained()
    again = second.optimizer()
    second.load_state_dict(state, strict=False)
    again.load_state_dict(optimizer_state)
    torch.set_rng_state(generator_state)
    for step in range(STOPPED, STEPS):
        loss = _step(second, case, again, step)
        fail_if(
            abs(loss - losses[step]) > TOLERANCE * max(1.0, abs(loss)),
            f"the loss of step {step + 1} is {losses[step]:.5f}, and {loss:.5f} if the training "
            f"was stopped after step {STOPPED}: a plain attribute loses its value; "
            "register_buffer keeps it "
            "(list it in training_only if the checkpoint does not need it)",
        )
    return f"{STEPS} steps, stopped after {STOPPED}: {losses[0]:.3f} to {losses[-1]:.3f}"


def _step(method: TorchMethod, case: Case, optimizer: torch.optim.Optimizer, step: int) -> float:
    total = case.loss(method, step).total
    fail_if(not torch.isfinite(total).all(), f"step {step + 1}: the loss is {total}")
    total.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return float(total.detach())


def a_batch_can_be_cut(case: Case) -> str:
    """Compare views in training mode, without dropout.

    A view that is random for another reason is not compared.
    """

    method = case.trained()
    if not is_split(method):
        return "--chunk does not apply: it defines forward(batch) as a whole"
    batch = case.batch(method)
    for module in method.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0

    def views(chunk: int | None, seed: int) -> tuple[torch.Tensor, ...]:
        torch.manual_seed(seed)
        with torch.no_grad(), in_chunks(method, chunk):
            return views_of(method, batch)

    whole, apart = views(None, 0), views(3, 0)
    others = [views(None, seed) for seed in (1, 2, 3)]
    for i, view in enumerate(whole):
        fail_if(
            len(view) != batch.size, f"view {i + 1} has {len(view)} rows, the batch {batch.size}"
        )
        fixed = view.is_floating_point() and all(torch.equal(view, other[i]) for other in others)
        moved = (view - apart[i]).abs().max().item() if fixed else 0.0
        fail_if(
            moved > TOLERANCE * max(1.0, view.abs().max().item()),
            f"a row of view {i + 1} depends on other rows: "
            f"in a chunk of three it differs by {moved:.1e}",
        )
    return f"{len(whole)} views of {batch.size} rows"


ENCODING: Checks = (
    ("encode gives (n, dim) float32", encode_gives_vectors),
    (
        "encode is repeatable",
        same_vectors(lambda _, method: method.encode(SENTENCES), "a second call", 0.0),
    ),
    (
        "encode ignores order",
        same_vectors(lambda _, method: method.encode(SENTENCES[::-1])[::-1], "the reversed order"),
    ),
    (
        "encode ignores batch size and padding",
        same_vectors(
            lambda _, method: np.concatenate([method.encode([text]) for text in SENTENCES]),
            "one sentence at a time",
        ),
    ),
    ("save and load are exact", same_vectors(encode_loaded, "the loaded checkpoint", 0.0)),
    ("the checkpoint is safetensors and JSON", checkpoint_is_plain),
)
TRAINING: Checks = (
    ("the loss is finite", loss_is_finite),
    ("a batch can be cut", a_batch_can_be_cut),
    ("its gradient reaches what trains", gradient_reaches_what_trains),
    ("nothing frozen moves", nothing_frozen_moves),
    ("a stopped training goes on", training_goes_on),
)
OF_VARIANTS: Checks = (ENCODING[0], TRAINING[0], TRAINING[-1])
