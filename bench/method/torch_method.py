"""The torch half of the contract: what a trained method inherits, and the features that it works on. Plugins import these names
from ``bench.method``.

Shapes: n rows of a batch, T tokens (padded), H hidden size, L layers.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bench.backbones import Reference
from bench.backbones.direction import reads_ahead
from bench.backbones.model import Backbone
from bench.base.errors import BenchError, Interrupted, PluginFailed, RunFailed
from bench.base.paths import recorded_path
from bench.base.user_code import place_of_code
from bench.data.corpora.token_cache import TokenisedCorpus
from bench.method.checks import check_direction, check_vectors
from bench.method.contract import (
    Context,
    Method,
    Recipe,
    TrainReport,
    read_run_json,
    seed_for,
    write_json,
)
from bench.method.ranks import ALONE, Alone

# --- features: the tensors of a batch of sentences, how they are padded, joined, and cut into passes of similar length or of few rows ---

Ids = Sequence[int] | np.ndarray  # the token ids of one sentence
# input_ids (n, T) int64, attention_mask (n, T) int64, and what a method adds: (n,) describes rows, (n, T, ...) their tokens. A
# number without a dimension is the largest over all rows. It stays in main memory, so that the host need not wait for a GPU to
# read a size that `collate` knows
Features = dict[str, Tensor]


def pad(
    rows: Sequence[Ids],
    pad_id: int,
    *,
    before: Ids = (),
    after: Ids = (),
    longest: int | None = None,
) -> Features:
    """Ids of different lengths as (n, T) input_ids and attention_mask, padded on the right.

    Each row is cut to its first ``longest`` ids, with ``before`` and ``after`` around them. T is 1 at least: a row may be empty, and
    an encoder reads one token at least.
    """
    cut = [np.asarray(row[:longest], dtype=np.int64) for row in rows]
    ends = len(before) + np.fromiter((len(row) for row in cut), dtype=np.int64, count=len(cut))
    T = max(1, int(ends.max(initial=0)) + len(after)) if cut else 0
    positions = np.arange(T)
    ids = np.full((len(cut), T), pad_id, dtype=np.int64)
    ids[:, : len(before)] = before
    if cut:
        ids[(positions >= len(before)) & (positions < ends[:, None])] = np.concatenate(cut)
    for i, token in enumerate(after):
        ids[np.arange(len(cut)), ends + i] = token
    return {
        "input_ids": torch.from_numpy(ids),
        "attention_mask": torch.from_numpy(
            (positions < (ends + len(after))[:, None]).astype(np.int64)
        ),
    }


def join(parts: Sequence[Features], pad_id: int) -> Features:
    """Several (n_i, T_i) features as one (sum n_i, max T_i): one encoder pass, in which each row has its own dropout mask."""
    longest = max(part["input_ids"].shape[1] for part in parts)

    def joined(key: str) -> Tensor:
        values = [part[key] for part in parts]
        if values[0].ndim == 0:
            return torch.stack(values).max()
        if values[0].ndim > 1:
            values = [
                widened(value, longest, pad_id if key == "input_ids" else 0) for value in values
            ]
        return torch.cat(values)

    return {key: joined(key) for key in parts[0]}


def widened(tensor: Tensor, length: int, fill: int = 0) -> Tensor:
    """An (n, T, ...) tensor as (n, length, ...), filled up on the right."""
    return nn.functional.pad(
        tensor, [0, 0] * (tensor.ndim - 2) + [0, length - tensor.shape[1]], value=fill
    )


def take(features: Features, rows: Tensor, length: int) -> Features:
    """Some rows of features, cut to their first ``length`` tokens."""
    return of_rows(features, lambda value: value[rows, :length] if value.ndim > 1 else value[rows])


def of_rows(features: Features, change: Callable[[Tensor], Tensor]) -> Features:
    """Every tensor with rows, changed; numbers without a dimension as they are."""
    return {key: change(value) if value.ndim else value for key, value in features.items()}


@cache
def constant(numbers: tuple[int, ...], device: torch.device) -> Tensor:
    """Numbers that never change, as a tensor that is copied to a device once: a copy in each step would make the host wait."""
    with torch.inference_mode(False):
        return torch.tensor(numbers, device=device)


PASS_TOKENS = 128  # what one more pass through a small encoder costs on a CPU, in tokens


def by_length(mask: Tensor) -> list[Tensor]:
    """Row numbers of an (n, T) mask in groups of similar length, longest first: a new group begins where padding costs more than a pass.

    A row's length counts up to its last 1. Every row is in exactly one group.
    """
    lengths, order = (
        (mask * torch.arange(1, mask.shape[1] + 1)).amax(1).sort(descending=True, stable=True)
    )
    sizes = lengths.tolist()
    starts = [0]
    for i, length in enumerate(sizes):
        if (sizes[starts[-1]] - length) * (len(sizes) - i) >= PASS_TOKENS:
            starts.append(i)
    return [order[start:end] for start, end in zip(starts, [*starts[1:], len(sizes)], strict=True)]


def longest_row(mask: Tensor) -> int:
    """Up to where the (n, T) mask of some rows has a 1; 1 if all rows are empty."""
    seen = mask.any(0).nonzero()
    return int(seen.max()) + 1 if len(seen) else 1


@contextmanager
def attention(encoder: Any, name: str) -> Iterator[None]:
    """While open, an encoder with transformers' fused attention uses the implementation ``name``: equal except for rounding."""
    fused = getattr(encoder.config, "_attn_implementation", None) == "sdpa"
    if fused:  # else chosen by the user
        encoder.set_attn_implementation(name)
    try:
        yield
    finally:
        if fused:
            encoder.set_attn_implementation("sdpa")


@contextmanager
def float32_products(*, tf32: bool) -> Iterator[None]:
    """While open, a GPU multiplies float32 matrices in float32, or rounds them to TF32 (10 bits of 23) first; also in cuDNN's
    convolutions and LSTMs, which have a separate switch."""
    cudnn = torch.backends.cudnn
    before = torch.get_float32_matmul_precision(), cudnn.allow_tf32
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    cudnn.allow_tf32 = tf32
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        cudnn.allow_tf32 = before[1]


@contextmanager
def exact(encoder: nn.Module) -> Iterator[None]:
    """While open, an encoder computes without compilation, in float32: no option that speeds up training changes what is scored."""
    compiled = vars(encoder).pop("forward", None)  # compile=true: bench.training.loop
    try:
        with float32_products(tf32=False):
            yield
    finally:
        if compiled is not None:
            encoder.forward = compiled


def by_rows(
    function: Callable[..., tuple[Tensor, ...]], *inputs: Any, chunk: int | None = None
) -> tuple[Tensor, ...]:
    """``function(*inputs)``, slice by slice: every input and every output has n rows, and outputs of row i need only row i.

    ``inputs`` are tensors or features (dicts of tensors). A slice's activations are dropped and, if a gradient is wanted,
    computed again with the same random draws.
    """
    first = inputs[0] if isinstance(inputs[0], Tensor) else next(iter(inputs[0].values()))
    n = len(first)
    if chunk is None or chunk >= n:
        return function(*inputs)
    parts = []
    for start in range(0, n, chunk):
        slices = [cut(value, start, start + chunk) for value in inputs]
        replayed = with_same_draws(function, first.device)
        parts.append(checkpoint(replayed, *slices, use_reentrant=False))
    return tuple(torch.cat(column) for column in zip(*parts, strict=True))


def with_same_draws(function: Callable[..., Any], device: torch.device) -> Callable[..., Any]:
    """``function``, which draws on this device in every later call what it drew in the first.

    torch's checkpoint does so itself with the generators of the CPU and of CUDA. That of Apple's mps it leaves alone, because
    ``torch.mps`` does not say whether it was started (``_initialized``), as the module of a device is to.
    """
    module: Any = getattr(torch, device.type, None)
    if device.type == "cpu" or hasattr(module, "_initialized"):
        return function
    states: list[Tensor] = []

    def replayed(*inputs: Any) -> Any:
        if not states:
            states.append(module.get_rng_state())
            return function(*inputs)
        before = module.get_rng_state()
        module.set_rng_state(states[0])
        try:
            return function(*inputs)
        finally:
            module.set_rng_state(before)

    return replayed


def cut(value: Any, start: int, stop: int) -> Any:
    """Rows ``start`` to ``stop`` of a tensor or of features."""
    return (
        value[start:stop]
        if isinstance(value, Tensor)
        else of_rows(value, lambda tensor: tensor[start:stop])
    )


# --- a batch, its loss, and the method that is trained on it ---


@dataclass
class Batch:
    """Rows of the corpus as features, as :meth:`TorchMethod.collate` made them.

    By default one entry a column: (sentence,), (anchor, positive[, hard negative]), or (anchor, other, {"labels": (n,)}), or
    (first, second, {"scores": (n,)}).
    """

    columns: tuple[Features, ...]
    step: int = 0  # optimiser steps already done
    rows: np.ndarray | None = None  # (n,) their numbers in the corpus; None: made by hand
    tokens: int = 0  # of all columns of the whole batch, without padding
    whole: int | None = None  # rows of the batch over all processes; None: one process

    @property
    def size(self) -> int:
        return len(next(iter(self.columns[0].values())))


@dataclass
class Loss:
    """``total`` is the scalar to minimise; ``parts`` are logged under their names."""

    total: Tensor
    parts: Mapping[str, Tensor] = field(default_factory=dict)


def checked_loss(method: TorchMethod, returned: Any) -> Loss:
    """What a method returned as its loss. Raises PluginFailed, with the place in its code, for anything but a Loss of tensors whose
    total is one number."""
    place = place_of_code(type(method).loss if method.is_split() else type(method).forward)
    if not isinstance(returned, Loss):
        raise PluginFailed(f"{place}: returned {type(returned).__name__}; return Loss(tensor)")
    for name, value in {"total": returned.total, **returned.parts}.items():
        if not isinstance(value, Tensor):
            raise PluginFailed(
                f"{place}: '{name}' of the loss is {type(value).__name__}; expected a Tensor"
            )
    if returned.total.numel() != 1:
        raise PluginFailed(
            f"{place}: expected one finite number as the loss, "
            f"found a tensor of shape {tuple(returned.total.shape)}",
            "Loss(total.mean()), or its sum",
        )
    return returned


ENCODER_INPUTS = {"input_ids", "inputs_embeds", "attention_mask", "position_ids", "token_type_ids"}
# tokens in a batch of `encode`: the states fit in a core's cache; enough work for a kernel
CPU_TOKENS, GPU_TOKENS = 1024, 16384


class TorchMethod(Method, nn.Module):
    """A method that is a module. Define ``views`` and ``loss`` (of a batch) and ``embed`` (what is scored).

    ``trains_on`` says what :meth:`collate` gets from the corpus: token "ids", or the "text" itself (for a method that
    edits characters). ``training_only`` names modules and buffers that only training needs (a momentum copy, a queue, a
    generator): they are in the state to resume from and not in the checkpoint. ``padding_counts``: its loss depends on
    padding, as in some authors' code, so that a GPU's batches may not be padded further.
    """

    trains_on: str = "ids"
    training_only: ClassVar[tuple[str, ...]] = ()
    padding_counts: bool = False
    encode_tokens: int | None = (
        None  # padded, in one batch of `encode`; None: what suits the device
    )
    chunk: int | None = None  # rows whose activations are held at once while training; None: all

    def __init__(self) -> None:
        nn.Module.__init__(self)

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        """Sets ``self.encoder``; a subclass adds its modules after ``super().build(...)``."""
        self.backbone, self.recipe = backbone, recipe
        self.encoder = backbone.encoder
        self.before, self.after = backbone.special_tokens()

    # from sentences to features

    def token_ids(self, sentences: Sequence[str]) -> list[list[int]]:
        """The ids of each sentence that is scored, without special tokens and not cut."""
        return self.backbone.ids(sentences)

    def assemble(self, ids: Sequence[Ids], max_length: int | None = None) -> Features:
        """Ids of sentences -> features of the model's input, at most ``max_length`` tokens with the special ones."""
        room = (max_length or self.backbone.max_tokens) - len(self.before) - len(self.after)
        return pad(ids, self.pad_id, before=self.before, after=self.after, longest=room)

    def tokenize(self, sentences: Sequence[str], max_length: int | None = None) -> Features:
        return self.assemble(self.token_ids(sentences), max_length)

    def collate(
        self, columns: Mapping[str, Sequence[Any]], rows: np.ndarray, epoch: int
    ) -> tuple[Features, ...]:
        """Rows of the corpus -> the columns of a :class:`Batch`: where a method makes templated or augmented views.

        ``columns`` holds, by the corpus's column names, ids without special tokens (or strings, see ``trains_on``); ``rows``
        the row numbers. What is random here is drawn from ``rng_for(self.context.seed, "what", epoch, row)``, so that
        neither a resumed training nor another batch size changes it.
        """

        def features(name: str, cells: Sequence[Any]) -> Features:
            if name == "label":
                return {"labels": torch.tensor([int(cell[0]) for cell in cells])}
            if name == "score":
                return {"scores": torch.tensor([float(cell[0]) for cell in cells])}
            return self.assemble(cells, self.recipe.max_seq_length)

        return tuple(features(name, cells) for name, cells in columns.items())

    @property
    def pad_id(self) -> int:
        return int(self.backbone.tokenizer.pad_token_id or 0)

    # from features to numbers

    def hidden(self, features: Features) -> Tensor:
        """(n, T, H) states of the last layer; those of padding mean nothing.

        In float32 on a CPU, rows of similar length go through the encoder together, which saves 5 to 20 % of a training
        step. In bf16 and on a GPU a pass costs more than the padding that it saves.
        """
        mask = features["attention_mask"]
        worth_it = mask.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
        groups = by_length(mask) if worth_it and len(mask) > 1 else []
        if len(groups) < 2:
            return self.states(features)
        lengths = [longest_row(mask[rows]) for rows in groups]
        parts = [
            widened(self.states(take(features, rows, length)), mask.shape[1])
            for rows, length in zip(groups, lengths, strict=True)
        ]
        return torch.cat(parts)[torch.cat(groups).argsort()]

    def states(self, features: Features) -> Tensor:
        """(n, T, H): one pass through the encoder, with those of ``features`` that it takes."""
        unused = "input_ids" if "inputs_embeds" in features else ""
        inputs = {key: features[key] for key in features if key in ENCODER_INPUTS - {unused}}
        return self.encoder(**inputs).last_hidden_state

    def embed(self, features: Features) -> Tensor:
        """(n, dim): what is scored."""
        raise NotImplementedError(f"{self.name} defines no embed(features)")

    def forward(self, batch: Batch) -> Loss:
        """The loss of one batch, from :meth:`views` and :meth:`loss`.

        A method may override this instead. Then its batch cannot be cut into chunks of rows (``--chunk``).
        """
        self.prepare(batch)
        return self.loss(self.views_of(batch), batch)

    @classmethod
    def is_split(cls) -> bool:
        return cls.forward is TorchMethod.forward

    @property
    def ranks(self) -> Alone:
        """The processes that train it together."""
        context = getattr(self, "context", None)
        return (context and context.ranks) or ALONE

    def prepare(self, batch: Batch) -> None:
        """Called once before the views of a batch: for what changes the method itself, such as a momentum copy's step."""

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Everything that :meth:`loss` needs from the rows: tensors whose first dimension is the batch's n rows.

        Row i of a view depends only on row i of the batch, on the parameters and on dropout, so that a batch can be cut. A
        mean over tokens or over other parts of rows is two views, (n,) sums and (n,) counts; labels are a view.
        """
        raise NotImplementedError(
            f"{self.name} defines neither views(batch) and loss(views, batch) nor forward(batch)"
        )

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        """The loss of the views of the whole batch, where rows may meet. Of ``batch`` it reads only ``step``."""
        raise NotImplementedError(f"{self.name} defines no loss(views, batch)")

    def views_of(self, batch: Batch) -> tuple[Tensor, ...]:
        """:meth:`views`, in slices of ``chunk`` rows where that is set."""

        def views(*columns: Features) -> tuple[Tensor, ...]:
            returned = self.views(Batch(columns, batch.step))
            if not isinstance(returned, tuple | list) or not all(
                isinstance(view, Tensor) for view in returned
            ):
                raise PluginFailed(
                    f"{place_of_code(type(self).views)}: views returned {type(returned).__name__}; return a tuple of tensors"
                )
            return tuple(returned)

        return self.by_rows(views, *batch.columns)

    def by_rows(
        self, function: Callable[..., tuple[Tensor, ...]], *inputs: Any
    ) -> tuple[Tensor, ...]:
        """``function(*inputs)``, in slices of ``chunk`` rows where that is set: for a ``loss`` with a second pass that works row
        by row. Inputs are tensors, or features, of n rows each, and outputs tensors of n rows."""
        return by_rows(function, *inputs, chunk=self.chunk)

    # how it is trained

    def optimizer(self) -> torch.optim.Optimizer:
        """Over the parameters that train. Default: AdamW as the recipe says, see :func:`adamw`."""
        return adamw(self)

    def learning_rate(self, step: int, steps: int) -> float:
        """The rate of the update after ``step`` of ``steps`` updates. Default: rises over ``warmup_steps``, or ``warmup_ratio`` of
        all steps, then stays (``schedule`` "constant") or falls to 0 ("linear")."""
        peak: float = self.recipe.learning_rate
        warmup = self.recipe.warmup_steps or round(self.recipe.warmup_ratio * steps)
        if step < warmup:
            return peak * step / warmup
        return (
            peak
            if self.recipe.schedule == "constant"
            else peak * max(0.0, (steps - step) / max(1, steps - warmup))
        )

    def dev_score(self, score: Callable[[Method], float]) -> float:
        """The score by which checkpoints are selected; overridden where dev vectors differ from test vectors."""
        return score(self)

    def fit(self, corpus: TokenisedCorpus, context: Context) -> TrainReport | None:
        """Nothing: the training loop does it all."""
        return None

    # what comes for free

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        from bench.score.encoding import encode_unique

        device = torch.device(self.context.device)
        budget = self.encode_tokens or (CPU_TOKENS if device.type == "cpu" else GPU_TOKENS)
        was_training = self.training
        self.eval()

        def embed(ids: list[Sequence[int]]) -> np.ndarray:
            features = of_rows(self.assemble(ids), lambda value: value.to(device))
            with (
                torch.inference_mode(),
                torch.autocast(device.type, enabled=False),
                exact(self.encoder),
            ):
                vectors = self.embed(features)
                if not isinstance(vectors, Tensor):
                    raise PluginFailed(
                        f"{place_of_code(type(self).embed)}: embed returned {type(vectors).__name__}; expected a Tensor (n, dim)"
                    )
                return vectors.float().cpu().numpy()

        def progress(done: int, total: int) -> None:
            if self.context.should_stop():
                raise Interrupted(
                    f"stopped after encoding {done} of {total} sentences; the same command encodes them again"
                )
            self.context.reporter.advance(done, total=total)

        try:
            return encode_unique(
                sentences, tokens=self.token_ids, embed=embed, budget=budget, progress=progress
            )
        finally:
            self.train(was_training)

    def trained_state(self) -> dict[str, Tensor]:
        """The tensors of the checkpoint: trained parameters, and the buffers outside a frozen encoder."""
        return self._state(training=False)

    def training_state(self) -> dict[str, Tensor]:
        """The tensors that resume needs besides the optimiser: :meth:`trained_state` and those that only training needs."""
        return self._state(training=True)

    def _state(self, *, training: bool) -> dict[str, Tensor]:
        frozen = not any(p.requires_grad for p in self.encoder.parameters())
        only = tuple(f"{part}." for part in self.training_only)
        needed = {name for name, p in self.named_parameters() if p.requires_grad}
        needed |= {
            name for name, _ in self.named_buffers() if not (frozen and name.startswith("encoder."))
        }
        return {
            name: tensor.detach().cpu().contiguous()
            for name, tensor in self.state_dict().items()
            if (training if f"{name}.".startswith(only) else name in needed)
        }

    def save(self, folder: Path) -> None:
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        if state := self.trained_state():
            save_file(state, folder / "trained.safetensors", metadata={"format": "pt"})
        write_json(
            folder / "method.json",
            {
                "method": self.name,
                "backbone": recorded_path(self.backbone.name),
                "revision": self.backbone.revision,
                "recipe": self._named_recipe(),
                "tensors": len(state),
            },
        )

    def _named_recipe(self) -> dict[str, Any]:
        """The recipe's values, of which files, folders and backbones have their names."""
        values = dict(self.recipe)
        for key in self.places:
            if isinstance(values.get(key), str):
                values[key] = recorded_path(values[key])
        return values

    def load(self, folder: Path) -> None:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        super().load(folder)
        about = read_run_json(folder / "method.json")
        if about.get("revision") != self.backbone.revision:
            raise BenchError(
                f"{folder} was trained on {about.get('backbone')} revision {str(about.get('revision'))[:12]}, "
                f"this is {self.backbone.name} revision {self.backbone.revision[:12]}"
            )
        file = folder / "trained.safetensors"
        try:
            state = load_file(file) if about.get("tensors") else {}
        except (OSError, SafetensorError) as error:
            raise BenchError(
                f"{file} cannot be read: {' '.join(str(error).split())}", _reading_hint(file)
            ) from None
        expected = self.trained_state()
        if state.keys() != expected.keys():
            different = sorted(state.keys() ^ expected.keys())
            raise BenchError(
                f"{folder}: {len(different)} tensors differ from the method's, the first is {different[0]}"
            )
        self.load_state_dict(state, strict=False)


def _reading_hint(file: Path) -> str:
    """What to do about weights that cannot be read; training again would be over somebody else's run."""
    if os.access(file, os.R_OK):
        return "bench run with --fresh trains it again"
    return f"ask its owner: chmod -R a+rX {file.parent}"


# --- the optimiser and the learning rate of the papers' common loop, for any method with a recipe ---


class UncorrectedAdamW(torch.optim.AdamW):
    """AdamW without bias correction, as in BERT's code: p -= rate * (m / (sqrt(v) + eps) + decay * p).

    The first updates are larger than corrected ones, the very first 3.2 times as large. Source: google-research/bert
    optimization.py; ``correct_bias=False`` of transformers' former AdamW, which decays what is already updated: a difference of
    rate^2 * decay.
    """

    done: int | None = None  # updates; None: ask the state, for which the host waits

    def load_state_dict(self, state_dict: Any) -> None:
        super().load_state_dict(state_dict)
        self.done = None

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """torch's own update, with a rate, an eps and a decay that undo its corrections by 1 - beta^t."""
        if self.done is None or getattr(self, "found_inf", None) is not None:
            # in fp16 the scaler skips updates, and only the device knows which
            self.done = next(
                (int(state["step"]) for state in self.state.values() if "step" in state), 0
            )
        done, self.done = self.done, self.done + 1
        before = [(group["lr"], group["eps"], group["weight_decay"]) for group in self.param_groups]
        for group, (rate, eps, decay) in zip(self.param_groups, before, strict=True):
            of_m, of_v = (1 - beta ** (done + 1) for beta in group["betas"])
            factor = of_m / math.sqrt(of_v)
            group.update(lr=rate * factor, eps=eps / math.sqrt(of_v), weight_decay=decay / factor)
        try:
            # not super(): torch wraps the step of each class, so that hooks of a step would be called twice
            return inspect.unwrap(torch.optim.AdamW.step)(self, closure)
        finally:
            for group, (rate, eps, decay) in zip(self.param_groups, before, strict=True):
                group.update(lr=rate, eps=eps, weight_decay=decay)


def adamw(
    method: TorchMethod,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    *,
    bias_correction: bool = True,
) -> torch.optim.AdamW:
    """AdamW with the rate and decay of the method's recipe; no decay on biases and layer norms.

    Raises RunFailed where no parameter trains.
    """
    recipe = method.recipe
    trained = [p for p in method.parameters() if p.requires_grad]
    if not trained:
        raise RunFailed(f"{method.name} has no parameter that trains")
    groups = [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": recipe.weight_decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]
    return (torch.optim.AdamW if bias_correction else UncorrectedAdamW)(
        [g for g in groups if g["params"]],
        lr=recipe.learning_rate,
        betas=betas,
        eps=eps,
        fused=True,
    )


def build_method(
    cls: type[Method], backbone: Reference, recipe: Recipe, context: Context, *, learns: bool
) -> Method:
    """A method on its backbone, in evaluation mode on the context's device, with initial weights that the context's seed fixes.

    ``learns``: it is trained or fitted; otherwise its weights are frozen, because a checkpoint holds what trains. A method that
    brings its own vectors gets the reference. Raises NotAModel where the backbone is not available.
    """
    method = cls()
    method.context = context
    loaded = (
        backbone if cls.own_backbone is not None else cls.read_backbone(backbone, recipe, context)
    )
    torch.manual_seed(seed_for(context.seed, "init"))
    method.build(loaded, recipe)
    if isinstance(method, nn.Module):
        if not learns:
            method.requires_grad_(False)
        method.to(context.device).eval()
    if isinstance(method, TorchMethod) and (learns or cls.reads_first_token(recipe)):
        check_reading(method, recipe)
    return method


def check_reading(method: TorchMethod, recipe: Recipe) -> None:
    """Raises BenchError if a method takes the first token of a causal encoder for the sentence, whatever its config says."""
    try:
        causal = not reads_ahead(method.encoder)
    except Exception:  # an encoder of a plugin that reads no token ids
        return
    check_direction(type(method), recipe, method.backbone.name, causal=causal)
    if causal:
        check_vectors(method)
