"""The conformance suite: what any plugin must keep, whoever wrote it. ``bench methods --check NAME-or-FILE`` runs it.

The method is built on a tiny random BERT with the built-in tokenizer, so that it takes seconds and needs no data.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.backbones import Reference, builtin_folder, quiet, resolve
from bench.base.contract import CheckResult, Failed, result_of
from bench.method import Context, Method
from bench.method.torch_method import Batch, TorchMethod
from bench.run.plan import learns
from bench.run.plugins import Plugin, build_method
from bench.run.recipe_file import entries
from bench.run.recipes import check_overrides, choose, merge

SENTENCES = [
    "A man is playing a guitar .", "Yes .", "The committee that met on Tuesday did not reach a decision about the new bridge .",
    "Dogs run .", "A man is playing a guitar .", "He said \"wait\" , and [MASK] was all that she heard .",
    "Two children build a castle of sand near the sea .",
    "Prices rose by 3.5 % in March , the bank said , although most forecasts that had been published before were much higher .",
]  # fmt: skip
TOLERANCE = 1e-5  # how far order, batch size and padding may move a vector


def check(plugin: Plugin, overrides: Mapping[str, str] = {}) -> list[CheckResult]:
    """Every check in every setting of a method. Raises BenchError where the method cannot be built at all."""
    check_overrides(overrides, [plugin.cls], any(learns(plugin.cls, setting) for setting in plugin.cls.settings))
    results: list[CheckResult] = []
    with tempfile.TemporaryDirectory() as folder:
        backbone = tiny_backbone(Path(folder) / "tiny")
        for setting in plugin.cls.settings:
            case = Case(plugin, setting, backbone, overrides, Path(folder) / setting)
            checks = ENCODING if setting == "none" else ENCODING + TRAINING
            results += [result_of(setting, name, partial(function, case)) for name, function in checks]
    return results


def tiny_backbone(folder: Path) -> str:
    """A random BERT of 2 layers, 32 wide, with the built-in vocabulary, a pooling layer and an MLM head; returns the folder's name."""
    import shutil

    from transformers import BertConfig, BertForPreTraining

    quiet()
    state = torch.get_rng_state()
    torch.manual_seed(0)
    config = BertConfig(vocab_size=8192, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
                        max_position_embeddings=256)  # fmt: skip
    model = BertForPreTraining(config)
    for parameter in model.parameters():  # the library's start is so flat that mistakes hardly show
        torch.nn.init.normal_(parameter, std=0.1) if parameter.ndim > 1 else None
    model.save_pretrained(folder)
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(builtin_folder() / name, folder / name)
    torch.set_rng_state(state)
    return str(folder)


@dataclass
class Case:
    """A method in one setting, built when it is asked for."""

    plugin: Plugin
    setting: str
    backbone: str
    overrides: Mapping[str, str]
    folder: Path

    def build(self, seed: int = 1) -> Method:
        cls, trained = self.plugin.cls, learns(self.plugin.cls, self.setting)
        backbone = Reference(cls.own_backbone, "unknown", None) if cls.own_backbone else resolve(self.backbone)
        entry, _ = choose(entries(self.plugin.folder, self.plugin.name), self.setting, self.backbone, "")
        recipe = merge(cls, entry, "", self.overrides, trained=trained)
        cls.check(recipe, backbone.path)
        return build_method(cls, backbone, recipe, Context(seed=seed, folder=self.folder), learns=trained)

    def trained(self) -> TorchMethod:
        method = self.build()
        if not isinstance(method, TorchMethod):
            raise Failed("a trained method that is no TorchMethod: its training is not checked here")
        return method

    def batch(self, method: TorchMethod) -> Batch:
        kind = method.needs(self.setting, method.recipe)[-1]
        texts: list[Any] = SENTENCES if method.trains_on == "text" else method.backbone.ids(SENTENCES)
        shifted = [texts[i:] + texts[:i] for i in range(3)]
        columns = {name: column for name, column in zip(COLUMNS[kind], shifted, strict=False)}
        if kind == "labelled":
            columns["label"] = [[i % 3] for i in range(len(SENTENCES))]
        return Batch(method.collate(columns, np.arange(len(SENTENCES)), 0))


COLUMNS = {"sentences": ("sentence",), "pairs": ("sent0", "sent1"), "triplets": ("sent0", "sent1", "hard_neg"),
           "labelled": ("sent0", "sent1", "label")}  # fmt: skip


def encode_gives_vectors(case: Case) -> str:
    vectors = case.build().encode(SENTENCES)
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or len(vectors) != len(SENTENCES):
        raise Failed(f"expected ({len(SENTENCES)}, dim), found {getattr(vectors, 'shape', type(vectors).__name__)}")
    finite = bool(np.isfinite(vectors).all())
    if vectors.dtype != np.float32 or not finite:
        raise Failed(f"expected finite float32, found {vectors.dtype}{'' if finite else ' with NaN or infinity'}")
    return f"{vectors.shape[1]} dimensions"


def encode_is_repeatable(case: Case) -> str:
    method = case.build()
    return _close(method.encode(SENTENCES), method.encode(SENTENCES), 0.0, "a second call")


def encode_ignores_order(case: Case) -> str:
    method = case.build()
    turned = method.encode(SENTENCES[::-1])[::-1]
    return _close(method.encode(SENTENCES), turned, TOLERANCE, "the reversed order")


def encode_ignores_batch_and_padding(case: Case) -> str:
    method = case.build()
    alone = np.concatenate([method.encode([sentence]) for sentence in SENTENCES])
    return _close(method.encode(SENTENCES), alone, TOLERANCE, "one sentence at a time")


def save_and_load_are_exact(case: Case) -> str:
    one, other = case.build(seed=1), case.build(seed=2)
    one.save(case.folder / "saved")
    other.load(case.folder / "saved")
    return _close(one.encode(SENTENCES), other.encode(SENTENCES), 0.0, "the loaded checkpoint")


def checkpoint_is_plain(case: Case) -> str:
    case.build().save(case.folder / "plain")
    files = [file for file in (case.folder / "plain").rglob("*") if file.is_file()]
    strange = [file.name for file in files if file.suffix not in (".safetensors", ".json")]
    if strange or not files:
        raise Failed(f"expected safetensors and JSON, found {', '.join(strange) or 'nothing'}")
    return f"{sum(file.stat().st_size for file in files):,} bytes"


def loss_is_finite(case: Case) -> str:
    method = case.trained()
    method.train()
    loss = method(case.batch(method))
    if loss.total.ndim or not torch.isfinite(loss.total):
        raise Failed(f"expected one finite number, found {loss.total}")
    return f"{loss.total.item():.3f}"


def gradient_reaches_what_trains(case: Case) -> str:
    method = case.trained()
    method.train()
    method(case.batch(method)).total.backward()
    trained = {name: p for name, p in method.named_parameters() if p.requires_grad}
    without = [name for name, p in trained.items() if p.grad is None]
    if without or not trained:
        raise Failed(f"no gradient at {', '.join(without[:3]) or 'anything'}")
    if not any(bool(p.grad.any()) for p in trained.values() if p.grad is not None):
        raise Failed("every gradient is zero")
    return f"{len(trained)} tensors, {sum(p.numel() for p in trained.values()):,} parameters"


def nothing_frozen_moves(case: Case) -> str:
    method = case.trained()
    before = {name: tensor.clone() for name, tensor in method.state_dict().items()}
    method.train()
    trained = [p for p in method.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-2)
    method(case.batch(method)).total.backward()
    optimizer.step()
    saved = set(method.training_state())
    moved = {name for name, tensor in method.state_dict().items() if not torch.equal(tensor, before[name])}
    if moved - saved:
        raise Failed(
            f"moved, and neither in the checkpoint nor in the state to resume from: {', '.join(sorted(moved - saved)[:3])}"
        )
    if not moved:
        raise Failed("an optimiser step changed nothing")
    return f"{len(moved)} tensors moved, {len(before) - len(moved)} did not"


def _close(a: np.ndarray, b: np.ndarray, tolerance: float, what: str) -> str:
    if a.shape != b.shape:
        raise Failed(f"{what} gives shape {b.shape} instead of {a.shape}")
    difference = float(np.abs(a - b).max())
    if not difference <= tolerance:
        raise Failed(f"{what} differs by {difference:.2g}, allowed {tolerance:g}")
    return f"largest difference {difference:.1g}"


def a_batch_can_be_cut(case: Case) -> str:
    """In training mode, without dropout: a view that some other cause makes random is not compared."""
    from bench.training.gradient import in_chunks

    method = case.trained()
    if not method.is_split():
        return "defines forward(batch) as a whole: no --chunk"
    batch = case.batch(method)
    method.train()
    for module in method.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0

    def views(chunk: int | None, seed: int) -> tuple[torch.Tensor, ...]:
        torch.manual_seed(seed)
        with torch.no_grad(), in_chunks(method, chunk):
            return method.views_of(batch)

    whole, apart, others = views(None, 0), views(3, 0), [views(None, seed) for seed in (1, 2, 3)]
    for i, view in enumerate(whole):
        if len(view) != batch.size:
            raise Failed(f"view {i + 1} has {len(view)} rows, the batch {batch.size}")
        fixed = view.is_floating_point() and all(torch.equal(view, other[i]) for other in others)
        moved = (view - apart[i]).abs().max().item() if fixed else 0.0
        if moved > TOLERANCE * max(1.0, view.abs().max().item()):
            raise Failed(f"a row of view {i + 1} depends on other rows: alone with two of them it differs by {moved:.1e}")
    return f"{len(whole)} views of {batch.size} rows"


Checks = tuple[tuple[str, Callable[[Case], str]], ...]
ENCODING: Checks = (
    ("encode gives (n, dim) float32", encode_gives_vectors),
    ("encode is repeatable", encode_is_repeatable),
    ("encode ignores order", encode_ignores_order),
    ("encode ignores batch size and padding", encode_ignores_batch_and_padding),
    ("save and load are exact", save_and_load_are_exact),
    ("the checkpoint is safetensors and JSON", checkpoint_is_plain),
)
TRAINING: Checks = (
    ("the loss is finite", loss_is_finite),
    ("a batch can be cut", a_batch_can_be_cut),
    ("its gradient reaches what trains", gradient_reaches_what_trains),
    ("nothing frozen moves", nothing_frozen_moves),
)
