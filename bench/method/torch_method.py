"""The torch half of the contract: what a trained method inherits, and the features that it works on. Plugins import these names
from ``bench.method``.

Shapes: n rows of a batch, T tokens (padded), H hidden size, L layers.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bench.backbones import Reference, load
from bench.backbones.model import Backbone
from bench.base.contract import place_of_code
from bench.base.errors import BenchError, Interrupted, PluginFailed, RunFailed
from bench.method.contract import (
    Context,
    Method,
    Recipe,
    TrainReport,
    read_json,
    seed_for,
    write_json,
)
from bench.method.ranks import ALONE, Alone

if TYPE_CHECKING:
    from bench.data.corpora.token_cache import TokenisedCorpus


# --- features: the tensors of a batch of sentences, how they are padded, joined, and cut into passes of similar length or of few rows ---

Ids = Sequence[int] | np.ndarray  # the token ids of one sentence
# input_ids (n, T) int64, attention_mask (n, T) int64, and what a method adds: (n,) says something of a row, and what has
# two dimensions or more of its tokens, (n, T, ...). One number, without a dimension, is of all rows: the largest of them. It stays
# in main memory, so that a size that `collate` knows need not be asked of a GPU, for which the host would wait
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

    Of each row the first ``longest`` ids are taken, and stand between ``before`` and ``after``.
    """
    cut = [np.asarray(row[:longest], dtype=np.int64) for row in rows]
    ends = len(before) + np.fromiter((len(row) for row in cut), dtype=np.int64, count=len(cut))
    T = int(ends.max(initial=0)) + len(after) if cut else 0
    positions = np.arange(T)
    ids = np.full((len(cut), T), pad_id, dtype=np.int64)
    ids[:, : len(before)] = before
    if cut:
        ids[(positions >= len(before)) & (positions < ends[:, None])] = np.concatenate(cut)
    for i, token in enumerate(after):
        ids[np.arange(len(cut)), ends + i] = token
    mask = positions < (ends + len(after))[:, None]
    return {
        "input_ids": torch.from_numpy(ids),
        "attention_mask": torch.from_numpy(mask.astype(np.int64)),
    }


def join(parts: Sequence[Features], pad_id: int) -> Features:
    """Several (n_i, T_i) features as one (sum n_i, max T_i): one encoder pass, a dropout mask of its own for each row."""
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
    after = [0, 0] * (tensor.ndim - 2) + [0, length - tensor.shape[1]]
    return nn.functional.pad(tensor, after, value=fill)


def take(features: Features, rows: Tensor, length: int) -> Features:
    """Some rows of features, cut to their first ``length`` tokens."""
    picked = of_rows(features, lambda value: value[rows])
    return {key: value if value.ndim < 2 else value[:, :length] for key, value in picked.items()}


def of_rows(features: Features, change: Callable[[Tensor], Tensor]) -> Features:
    """Every tensor that has rows, changed; numbers of all rows as they are."""
    return {key: change(value) if value.ndim else value for key, value in features.items()}


@cache
def constant(numbers: tuple[int, ...], device: torch.device) -> Tensor:
    """Numbers that never change, as a tensor: copied to a device once, for a copy in each step would hold up the host."""
    with torch.inference_mode(False):
        return torch.tensor(numbers, device=device)


PASS_TOKENS = 128  # what one more pass through a small encoder costs on a CPU, in tokens


def by_length(mask: Tensor) -> list[Tensor]:
    """Row numbers of a (n, T) mask in groups of similar length, longest first: padding that costs more than a pass is cut.

    A row's length counts up to its last 1. Every row stands in exactly one group.
    """
    positions = torch.arange(1, mask.shape[1] + 1)
    lengths, order = (mask * positions).amax(1).sort(descending=True, stable=True)
    sizes = lengths.tolist()
    starts = [0]
    for i, length in enumerate(sizes):
        if (sizes[starts[-1]] - length) * (len(sizes) - i) >= PASS_TOKENS:
            starts.append(i)
    return [order[start:end] for start, end in zip(starts, [*starts[1:], len(sizes)], strict=True)]


@contextmanager
def attention(encoder: Any, name: str) -> Iterator[None]:
    """While open, an encoder that uses transformers' fused attention computes it as ``name`` says: equal but for rounding."""
    before = getattr(encoder.config, "_attn_implementation", None)
    if before != "sdpa":  # somebody's own choice
        yield
        return
    encoder.set_attn_implementation(name)
    try:
        yield
    finally:
        encoder.set_attn_implementation(before)


@contextmanager
def float32_products(*, tf32: bool) -> Iterator[None]:
    """While open, a GPU multiplies float32 matrices in float32, or rounds them to TF32 (10 bits of 23) first: also in cuDNN's convolutions and
    LSTMs, which have a switch of their own."""
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
    """While open, an encoder computes as it is, in float32: what is scored depends on nothing that training was sped up with."""
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
    """``function(*inputs)``, slice by slice: every input and every output has n rows, and outputs of row i need row i alone.

    ``inputs`` are tensors or features (dicts of tensors). A slice's activations are dropped and, where a gradient is wanted,
    computed again with the same random draws.
    """
    n = rows_of(inputs[0])
    if chunk is None or chunk >= n:
        return function(*inputs)
    slices = [
        [cut(tensor, start, start + chunk) for tensor in inputs] for start in range(0, n, chunk)
    ]
    parts = [checkpoint(function, *one, use_reentrant=False) for one in slices]
    return tuple(torch.cat(column) for column in zip(*parts, strict=True))


def rows_of(value: Tensor | dict[str, Tensor]) -> int:
    return len(value if isinstance(value, Tensor) else next(iter(value.values())))


def cut(value: Any, start: int, stop: int) -> Any:
    """Rows ``start`` to ``stop`` of a tensor or of features."""
    if isinstance(value, Tensor):
        return value[start:stop]
    return of_rows(value, lambda tensor: tensor[start:stop])


# --- a batch, its loss, and the method that is trained on it ---


@dataclass
class Batch:
    """Rows of the corpus as features, as :meth:`TorchMethod.collate` made them.

    By default one entry a column: (sentence,), (anchor, positive[, hard negative]), or (anchor, other, {"labels": (n,)}), or
    (first, second, {"scores": (n,)}).
    """

    columns: tuple[Features, ...]
    step: int = 0  # optimiser steps already done
    rows: np.ndarray | None = None  # (n,) where they stand in the corpus; None: made by hand
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
    """What a method returned as its loss. Raises PluginFailed, with the place in its code, for anything but a Loss of tensors, its total of
    one number."""
    place = place_of_code(type(method).loss if method.is_split() else type(method).forward)
    if not isinstance(returned, Loss):
        raise PluginFailed(f"{place}: returned {type(returned).__name__}; return Loss(tensor)")
    for name, value in {"total": returned.total, **returned.parts}.items():
        if not isinstance(value, Tensor):
            raise PluginFailed(
                f"{place}: '{name}' of the loss is {type(value).__name__}, and a Tensor is expected"
            )
    if returned.total.numel() != 1:
        shape = tuple(returned.total.shape)
        raise PluginFailed(
            f"{place}: expected one finite number as the loss, found a tensor of shape {shape}",
            "Loss(total.mean()), or its sum",
        )
    return returned


ENCODER_INPUTS = {"input_ids", "inputs_embeds", "attention_mask", "position_ids", "token_type_ids"}
CPU_TOKENS, GPU_TOKENS = (
    1024,
    16384,
)  # of a batch of `encode`: states that stay in a core's cache; enough work for a kernel


class TorchMethod(Method, nn.Module):
    """A method that is a module. Define ``views`` and ``loss`` (of a batch) and ``embed`` (what is scored).

    ``trains_on`` says what :meth:`collate` is handed of the corpus: token "ids", or the "text" itself (for a method that
    edits characters). ``training_only`` names modules and buffers that only training needs (a momentum copy, a queue, a
    generator): they stand in the state to resume from and not in the checkpoint. ``padding_counts``: its loss looks at
    padding, as some authors' code does, so that no more of it may be added for a GPU's sake.
    """

    trains_on: ClassVar[str] = "ids"
    training_only: ClassVar[tuple[str, ...]] = ()
    padding_counts: bool = False
    encode_tokens: int | None = (
        None  # padded tokens in one batch of `encode`; None: what suits the device
    )
    chunk: int | None = (
        None  # rows of a batch whose activations are held at once while training; None: all of them
    )

    def __init__(self) -> None:
        nn.Module.__init__(self)

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        """Takes the encoder as ``self.encoder``; a subclass adds its own modules after ``super().build(...)``."""
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
        length = self.recipe.max_seq_length

        def features(name: str, cells: Sequence[Any]) -> Features:
            if name == "label":
                return {"labels": torch.tensor([int(cell[0]) for cell in cells])}
            if name == "score":
                return {"scores": torch.tensor([float(cell[0]) for cell in cells])}
            return self.assemble(cells, length)

        return tuple(features(name, cells) for name, cells in columns.items())

    @property
    def pad_id(self) -> int:
        return int(self.backbone.tokenizer.pad_token_id or 0)

    # from features to numbers

    def hidden(self, features: Features) -> Tensor:
        """(n, T, H) states of the last layer; what stands at padding means nothing.

        In float32 on a CPU, rows of similar length go through the encoder together, which saves 5 to 20 % of a training
        step. In bf16 and on a GPU a pass itself costs more than the padding that it saves.
        """
        mask = features["attention_mask"]
        worth_it = mask.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
        groups = by_length(mask) if worth_it and len(mask) > 1 else []
        if len(groups) < 2:
            return self.states(features)
        parts = []
        for rows in groups:
            used = int(mask[rows].any(0).nonzero().max()) + 1
            parts.append(widened(self.states(take(features, rows, used)), mask.shape[1]))
        return torch.cat(parts)[torch.cat(groups).argsort()]

    def states(self, features: Features) -> Tensor:
        """(n, T, H): one pass through the encoder, with what of ``features`` it understands."""
        inputs = {key: value for key, value in features.items() if key in ENCODER_INPUTS}
        if "inputs_embeds" in inputs:
            inputs.pop("input_ids", None)
        return self.encoder(**inputs).last_hidden_state

    def embed(self, features: Features) -> Tensor:
        """(n, dim): what is scored."""
        raise NotImplementedError(f"{self.name} defines no embed(features)")

    def forward(self, batch: Batch) -> Loss:
        """The loss of one batch, as :meth:`views` and :meth:`loss` say it.

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
        """Called once before the views of a batch: what changes the method itself, as a momentum copy's step does."""

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """All that :meth:`loss` needs to know of the rows: tensors whose first dimension is the batch's n rows.

        Row i of a view depends on row i of the batch, on the parameters and on dropout alone, so that a batch can be cut. A
        mean over tokens or over other parts of rows comes as two views, (n,) sums and (n,) counts; labels come as a view.
        """
        raise NotImplementedError(
            f"{self.name} defines neither views(batch) and loss(views, batch) nor forward(batch)"
        )

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        """The loss of the views of the whole batch, where rows may meet. Of ``batch`` it reads nothing but ``step``."""
        raise NotImplementedError(f"{self.name} defines no loss(views, batch)")

    def views_of(self, batch: Batch) -> tuple[Tensor, ...]:
        """:meth:`views`, in slices of ``chunk`` rows where that is set."""

        def views(*columns: Features) -> tuple[Tensor, ...]:
            returned = self.views(Batch(columns, batch.step))
            in_order = isinstance(returned, tuple | list)
            if not in_order or not all(isinstance(view, Tensor) for view in returned):
                raise PluginFailed(
                    f"{place_of_code(type(self).views)}: views returned {type(returned).__name__}; return a tuple of tensors"
                )
            return tuple(returned)

        return self.by_rows(views, *batch.columns)

    def by_rows(
        self, function: Callable[..., tuple[Tensor, ...]], *inputs: Any
    ) -> tuple[Tensor, ...]:
        """``function(*inputs)``, in slices of ``chunk`` rows where that is set: for a ``loss`` with a second pass that works row
        by row. ``inputs`` are tensors, or features, of n rows each; so is what comes back."""
        return by_rows(function, *inputs, chunk=self.chunk)

    # how it is trained

    def optimizer(self) -> torch.optim.Optimizer:
        """Over the parameters that train. Default: AdamW as the recipe says, see :func:`adamw`."""
        return adamw(self)

    def learning_rate(self, step: int, steps: int) -> float:
        """The rate of the update after ``step`` of ``steps`` updates. Default: the recipe's ``schedule``, and ``warmup_steps`` or
        ``warmup_ratio`` of all steps."""
        recipe = self.recipe
        warmup = recipe.warmup_steps or round(recipe.warmup_ratio * steps)
        return learning_rate_at(
            step, peak=recipe.learning_rate, steps=steps, warmup=warmup, schedule=recipe.schedule
        )

    def dev_score(self, score: Callable[[Method], float]) -> float:
        """The score by which checkpoints are selected; overridden where dev vectors are not the test vectors."""
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
                    place = place_of_code(type(self).embed)
                    raise PluginFailed(
                        f"{place}: embed returned {type(vectors).__name__}, and a Tensor (n, dim) is expected"
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
        """What the checkpoint holds: trained parameters, and the buffers outside a frozen encoder."""
        return self._state(training=False)

    def training_state(self) -> dict[str, Tensor]:
        """What resume needs besides the optimiser: :meth:`trained_state` and everything that only training needs."""
        return self._state(training=True)

    def _state(self, *, training: bool) -> dict[str, Tensor]:
        frozen = not any(p.requires_grad for p in self.encoder.parameters())
        needed = {name for name, p in self.named_parameters() if p.requires_grad}
        needed |= {
            name for name, _ in self.named_buffers() if not (frozen and name.startswith("encoder."))
        }
        return {
            name: tensor.detach().cpu().contiguous()
            for name, tensor in self.state_dict().items()
            if (training if self._for_training_only(name) else name in needed)
        }

    def _for_training_only(self, name: str) -> bool:
        return any(name == part or name.startswith(part + ".") for part in self.training_only)

    def save(self, folder: Path) -> None:
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        state = self.trained_state()
        if state:
            save_file(state, folder / "trained.safetensors", metadata={"format": "pt"})
        about = {
            "method": self.name,
            "backbone": self.backbone.name,
            "revision": self.backbone.revision,
        }
        write_json(
            folder / "method.json", {**about, "recipe": dict(self.recipe), "tensors": len(state)}
        )

    def load(self, folder: Path) -> None:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        super().load(folder)
        about = read_json(folder / "method.json")
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
                f"{file} cannot be read: {' '.join(str(error).split())}",
                "bench run with --fresh trains it again",
            ) from None
        expected = self.trained_state()
        if state.keys() != expected.keys():
            different = sorted(state.keys() ^ expected.keys())
            raise BenchError(
                f"{folder}: {len(different)} tensors do not fit the method, the first is {different[0]}"
            )
        self.load_state_dict(state, strict=False)


# --- the optimiser and the learning rate of the papers' common loop, for any method with a recipe ---


class UncorrectedAdamW(torch.optim.AdamW):
    """AdamW without bias correction, as in BERT's own code: p -= rate * (m / (sqrt(v) + eps) + decay * p).

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
            # in fp16 the scaler leaves updates out, and the device alone knows which
            steps = (int(state["step"]) for state in self.state.values() if "step" in state)
            self.done = next(steps, 0)
        done, self.done = self.done, self.done + 1
        before = [(group["lr"], group["eps"], group["weight_decay"]) for group in self.param_groups]
        for group, (rate, eps, decay) in zip(self.param_groups, before, strict=True):
            of_m, of_v = (1 - beta ** (done + 1) for beta in group["betas"])
            factor = of_m / math.sqrt(of_v)
            group.update(lr=rate * factor, eps=eps / math.sqrt(of_v), weight_decay=decay / factor)
        try:
            # not super(): torch wraps the step of each class, and whoever asked to be told of a step would be told twice
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
    cls = torch.optim.AdamW if bias_correction else UncorrectedAdamW
    return cls(
        [g for g in groups if g["params"]],
        lr=recipe.learning_rate,
        betas=betas,
        eps=eps,
        fused=True,
    )


def learning_rate_at(
    step: int, *, peak: float, steps: int, warmup: int = 0, schedule: str = "linear"
) -> float:
    """The rate of the update after ``step`` updates: rises over ``warmup`` steps, then stays ("constant") or falls to 0 at ``steps``."""
    if step < warmup:
        return peak * step / warmup
    if schedule == "constant":
        return peak
    return peak * max(0.0, (steps - step) / max(1, steps - warmup))


def build_method(
    cls: type[Method], backbone: Reference, recipe: Recipe, context: Context, *, learns: bool
) -> Method:
    """A method on its backbone, in evaluation mode on the context's device, with initial weights that the context's seed fixes.

    ``learns``: it is trained or fitted; else its weights are frozen, for what trains decides what a checkpoint holds. A method that
    brings its own vectors is handed the reference. Raises NotAModel where the backbone cannot be had.
    """
    method = cls()
    method.context = context
    loaded: Any = backbone
    if cls.own_backbone is None:
        dtype = recipe.get("dtype", "fp32") if "dtype" in cls.optional else "fp32"
        loaded = load(
            backbone,
            dropout=recipe.get("dropout"),
            offline=context.offline,
            dtype=dtype,
            reads=cls.reads,
        )
    torch.manual_seed(seed_for(context.seed, "init"))
    method.build(loaded, recipe)
    if isinstance(method, nn.Module):
        if not learns:
            method.requires_grad_(False)
        method.to(context.device)
        method.eval()
    return method
