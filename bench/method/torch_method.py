"""The torch half of the contract: what a trained method inherits. Plugins import these names from ``bench.method``.

Shapes: n rows of a batch, T tokens (padded), H hidden size, L layers.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

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
from bench.method.features import (
    Features,
    Ids,
    by_length,
    by_rows,
    exact,
    of_rows,
    pad,
    take,
    widened,
)

if TYPE_CHECKING:
    from bench.data.corpora.token_cache import TokenisedCorpus
    from bench.method.ranks import Alone


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
        from bench.method.ranks import ALONE

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


def check_schedule(recipe: Recipe) -> None:
    """Raises BenchError for a schedule that is not known."""
    if recipe.schedule not in ("linear", "constant"):
        raise BenchError(f"schedule={recipe.schedule} is unknown", "choose linear or constant")


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
