"""The contract of a trained method, which plugins import from ``bench.method``.

Shapes: n rows of a batch, T tokens (padded), H hidden size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from bench.backbones.adapters import has_adapters
from bench.backbones.model import Backbone
from bench.base.errors import BenchError, Interrupted, PluginFailed, RunFailed
from bench.base.paths import recorded_path
from bench.base.user_code import place_of_code
from bench.method.batch import Batch, Loss
from bench.method.checkpoint_files import read_tensors, write_checkpoint
from bench.method.contract import Method
from bench.method.features import (
    Features,
    Ids,
    group_by_length,
    longest_row,
    map_rows,
    pad,
    take,
    widened,
)
from bench.method.json_files import read_run_json
from bench.method.optimizer import UncorrectedAdamW
from bench.method.passes import by_rows, compute_exactly
from bench.method.recipe import Recipe

ENCODER_INPUTS = {"input_ids", "inputs_embeds", "attention_mask", "position_ids", "token_type_ids"}
CPU_TOKENS = 1024
"""Tokens in a batch of ``encode`` on a CPU: the states fit into a core's cache."""
GPU_TOKENS = 16384
"""Tokens in a batch of ``encode`` on a GPU: enough work for a kernel."""
GATHERED = 1 << 24
"""Numbers of vectors that wait on a GPU for their way back: 64 MiB."""


class TorchMethod(Method, nn.Module):
    """A method that is a torch module: define ``views`` and ``loss`` of a batch, and ``embed``.

    SimCSE without its head:

        class Plain(TorchMethod):
            name, settings = "plain", ("unsupervised",)

            def views(self, batch):
                return self.embed(join(batch.columns * 2, self.pad_id)).chunk(2)

            def loss(self, views, batch):
                return Loss(info_nce(*views, temperature=0.05))

            def embed(self, features):
                return self.hidden(features)[:, 0]

    Training, precision, large batches on small devices, checkpoints, resume and progress come with
    it. ``Method`` lists the other class attributes.

    Shapes: n rows of a batch, T tokens (padded), H hidden size.

    Attributes:
        trains_on: What ``collate`` gets from the corpus: token "ids", or the "text" (for a method
            that edits characters).
        training_only: Modules and buffers that only training needs (a momentum copy, a queue, a
            generator): they are in the state to resume from and not in the checkpoint.
        encoder: The backbone's encoder, once it is built.
        before: The ids of the special tokens before a sentence, once it is built.
        after: The ids of the special tokens after it.
    """

    trains_on: str = "ids"
    training_only: ClassVar[tuple[str, ...]] = ()
    encoder: Any
    before: Sequence[int]
    after: Sequence[int]
    # rows whose activations are held at once while training; None: all
    _chunk: int | None = None

    def __init__(self) -> None:
        nn.Module.__init__(self)

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        """Set ``self.encoder``; a subclass adds its modules after ``super().build(...)``.

        Args:
            backbone: The pretrained encoder.
            recipe: The recipe of the run.
        """
        self.backbone, self.recipe = backbone, recipe
        self.encoder = backbone.encoder
        self.before, self.after = backbone.special_tokens()

    def token_ids(self, sentences: Sequence[str]) -> list[list[int]]:
        """Tokenise the sentences that are scored.

        Args:
            sentences: n texts.

        Returns:
            The ids of each sentence, without special tokens and not cut.
        """
        return self.backbone.ids(sentences)

    def assemble(self, ids: Sequence[Ids], max_length: int | None = None) -> Features:
        """Turn ids into features of the model's input.

        Args:
            ids: The ids of n sentences, without special tokens.
            max_length: Tokens of a row at most, with the special ones. None: as many as the encoder
                reads.

        Returns:
            input_ids and attention_mask, (n, T), padded on the right.
        """
        room = (max_length or self.backbone.max_tokens) - len(self.before) - len(self.after)
        return pad(ids, self.pad_id, before=self.before, after=self.after, longest=room)

    def collate(
        self, columns: Mapping[str, Sequence[Any]], rows: np.ndarray, epoch: int
    ) -> tuple[Features, ...]:
        """Turn rows of the corpus into the columns of a ``Batch``; templates and augmentations go
        here.

        Random choices are drawn from ``rng_for(self.context.seed, "what", epoch, row)``, so that
        neither a resumed training nor another batch size changes them.

        Args:
            columns: By the corpus's column names, n ids without special tokens (or strings, see
                ``trains_on``).
            rows: (n,) numbers of the rows in the corpus.
            epoch: How often the corpus has been read, from 0.

        Returns:
            One entry per column, each of n rows.
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
        """The id of the padding token, 0 if the tokenizer has none."""
        return int(self.backbone.tokenizer.pad_token_id or 0)

    def hidden(self, features: Features) -> Tensor:
        """Compute the states of the last layer, rows of similar length together.

        In float32 on a CPU that saves 5 to 20 % of a training step. In bf16 and on a GPU a pass
        costs more than the padding that it saves.

        Args:
            features: Features of n rows, (n, T).

        Returns:
            (n, T, H); the states of padding mean nothing.
        """
        mask = features["attention_mask"]
        worth_it = mask.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
        groups = group_by_length(mask) if worth_it and len(mask) > 1 else []
        if len(groups) < 2:
            return self.states(features)
        lengths = [longest_row(mask[rows]) for rows in groups]
        parts = [
            widened(self.states(take(features, rows, length)), mask.shape[1])
            for rows, length in zip(groups, lengths, strict=True)
        ]
        return torch.cat(parts)[torch.cat(groups).argsort()]

    def states(self, features: Features) -> Tensor:
        """Compute the last layer's states in one pass over the features that the encoder takes.

        ``hidden`` calls it. A method overrides it if the encoder reads more than the features, such
        as a trained prefix.

        Args:
            features: Features of n rows, (n, T).

        Returns:
            (n, T, H).
        """
        unused = "input_ids" if "inputs_embeds" in features else ""
        inputs = {key: features[key] for key in features if key in ENCODER_INPUTS - {unused}}
        return self.encoder(**inputs).last_hidden_state

    def embed(self, features: Features) -> Tensor:
        """Compute the vectors that are scored.

        Args:
            features: Features of n rows, (n, T).

        Returns:
            (n, dim).
        """
        raise NotImplementedError(f"{self.name} defines no embed(features)")

    def forward(self, batch: Batch) -> Loss:
        """Compute the loss of one batch, from ``views`` and ``loss``.

        A method may override this instead of both. Then its batch cannot be cut into chunks
        (``--chunk``).

        Args:
            batch: n rows of the corpus.

        Returns:
            The loss of the batch.
        """
        self.prepare(batch)
        return self.loss(views_of(self, batch), batch)

    def prepare(self, batch: Batch) -> None:
        """Update the method once per batch, before its views, such as a momentum copy.

        Args:
            batch: n rows of the corpus.
        """

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Compute everything that ``loss`` needs from the rows.

        Row i of a view depends only on row i of the batch, on the parameters and on dropout, so
        that a batch can be cut. A mean over tokens or over other parts of rows is two views, (n,)
        sums and (n,) counts; labels are a view.

        Args:
            batch: n rows of the corpus, or of a chunk.

        Returns:
            Tensors with n rows, as the batch has.
        """
        raise NotImplementedError(
            f"{self.name} defines neither views(batch) and loss(views, batch) nor forward(batch)"
        )

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        """Compute the loss from the views of the whole batch; here rows may meet.

        Args:
            views: What ``views`` returned, for all rows of the batch.
            batch: Only ``batch.step`` may be read.

        Returns:
            The loss of the batch, with its parts.
        """
        raise NotImplementedError(f"{self.name} defines no loss(views, batch)")

    def by_rows(
        self, function: Callable[..., tuple[Tensor, ...]], *inputs: Any
    ) -> tuple[Tensor, ...]:
        """Compute ``function(*inputs)`` for the rows of one chunk after the other (``--chunk``).

        It is for a ``loss`` with a second pass that works row by row.

        Args:
            function: Turns inputs of some rows into tensors of these rows.
            *inputs: Tensors or features, all of n rows.

        Returns:
            Tensors of n rows.
        """
        return by_rows(function, *inputs, chunk=self._chunk)

    def optimizer(self) -> torch.optim.Optimizer:
        """Return an optimiser of the parameters that train. Default: ``adamw``."""
        return adamw(self)

    def learning_rate(self, step: int, steps: int) -> float:
        """Compute the rate of one update.

        Default: it rises over ``warmup_steps``, or ``warmup_ratio`` of all steps, then stays
        (``schedule`` "constant") or falls to 0 ("linear"). ``schedule_steps`` takes the place of
        ``steps``: a training may end in the middle of its schedule.

        Args:
            step: Updates that are done, from 0.
            steps: Updates of the whole training.

        Returns:
            The learning rate.
        """
        peak: float = self.recipe.learning_rate
        steps = self.recipe.get("schedule_steps") or steps
        warmup = self.recipe.warmup_steps or round(self.recipe.warmup_ratio * steps)
        if step < warmup:
            return peak * step / warmup
        if self.recipe.schedule == "constant":
            return peak
        return peak * max(0.0, (steps - step) / max(1, steps - warmup))

    def dev_score(self, score: Callable[[Method], float]) -> float:
        """Compute the score that selects the checkpoint.

        Override it if dev vectors differ from test vectors.

        Args:
            score: Gives Spearman x 100 of a method's vectors on the dev set.

        Returns:
            Spearman x 100; the highest is kept.
        """
        return score(self)

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        from bench.score.encoding import encode_unique

        device = torch.device(self.context.device)
        was_training = self.training
        self.eval()

        on_gpu = device.type == "cuda"

        def upload(value: Tensor) -> Tensor:
            if on_gpu:
                value = value.pin_memory()
            return value.to(device, non_blocking=True)

        def embed(ids: list[Sequence[int]]) -> Tensor:
            features = map_rows(self.assemble(ids), upload)
            with (
                torch.inference_mode(),
                torch.autocast(device.type, enabled=False),
                compute_exactly(self.encoder),
            ):
                vectors = self.embed(features)
                if not isinstance(vectors, Tensor):
                    raise PluginFailed(
                        f"{place_of_code(type(self).embed)}: embed returned "
                        f"{type(vectors).__name__}; expected a Tensor (n, dim)"
                    )
                # a method may return the same memory for each batch
                return vectors.to(torch.float32, copy=on_gpu)

        def gather(batches: list[Tensor]) -> np.ndarray:
            return torch.cat(batches).cpu().numpy()

        try:
            return encode_unique(
                sentences,
                tokens=self.token_ids,
                embed=embed,
                gather=gather,
                gathered=GATHERED if on_gpu else 0,
                budget=tokens_at_once(self),
                progress=partial(report_encoded, self),
            )
        finally:
            self.train(was_training)

    def save(self, folder: Path) -> None:
        state = {name: tensor.cpu().contiguous() for name, tensor in trained_state(self).items()}
        write_checkpoint(folder, state, self._facts())

    def _facts(self) -> dict[str, Any]:
        """Return what ``method.json`` says besides the number of tensors."""
        return {
            "method": self.name,
            "backbone": recorded_path(self.backbone.name),
            "revision": self.backbone.revision,
            "recipe": self._named_recipe(),
        }

    def _named_recipe(self) -> dict[str, Any]:
        """Return the recipe's values; files, folders and backbones have the names that records
        have.
        """
        values = dict(self.recipe)
        for key in self.places:
            if isinstance(values.get(key), str):
                values[key] = recorded_path(values[key])
        return values

    def load(self, folder: Path) -> None:
        super().load(folder)
        about = read_run_json(folder / "method.json")
        if about.get("revision") != self.backbone.revision:
            raise BenchError(
                f"{folder} was trained on {about.get('backbone')} "
                f"revision {str(about.get('revision'))[:12]}, "
                f"this is {self.backbone.name} revision {self.backbone.revision[:12]}"
            )
        state = read_tensors(folder) if about.get("tensors") else {}
        expected = trained_state(self)
        if state.keys() != expected.keys():
            different = sorted(state.keys() ^ expected.keys())
            raise BenchError(
                f"{folder}: {len(different)} tensors differ from the method's, "
                f"the first is {different[0]}"
            )
        self.load_state_dict(state, strict=False)


def tokens_at_once(method: TorchMethod) -> int:
    """Return the padded tokens of a batch that is encoded."""
    on_cpu = torch.device(method.context.device).type == "cpu"
    return CPU_TOKENS if on_cpu else GPU_TOKENS


def report_encoded(method: TorchMethod, done: int, total: int) -> None:
    """Show how many sentences are encoded. Raises Interrupted if the user asked to stop."""
    if method.context.should_stop():
        raise Interrupted(
            f"stopped after encoding {done} of {total} sentences; "
            "the same command encodes them again"
        )
    method.context.reporter.advance(done, total=total)


def adamw(
    method: TorchMethod,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    *,
    bias_correction: bool = True,
) -> torch.optim.AdamW:
    """Build AdamW with the rate and decay of the method's recipe; no decay on biases and layer
    norms.

    Args:
        method: The method; its parameters with ``requires_grad`` train.
        betas: Decay of the two running means.
        eps: Added to the root in the denominator.
        bias_correction: False as in BERT's code, where the first updates are larger.

    Returns:
        The optimiser.

    Raises:
        RunFailed: If no parameter trains.
    """
    recipe = method.recipe
    trained = [p for p in method.parameters() if p.requires_grad]
    if not trained:
        raise RunFailed(f"{method.name} has no parameter that trains")
    groups = [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": recipe.weight_decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]
    filled = [group for group in groups if group["params"]]
    kind = torch.optim.AdamW if bias_correction else UncorrectedAdamW
    return kind(filled, lr=recipe.learning_rate, betas=betas, eps=eps, fused=True)


def is_split(method: Method | type[Method]) -> bool:
    """Say if a loss consists of ``views`` and ``loss``, so that a batch can be cut into chunks and
    shared exactly.
    """
    cls = method if isinstance(method, type) else type(method)
    return issubclass(cls, TorchMethod) and cls.forward is TorchMethod.forward


def views_of(method: TorchMethod, batch: Batch) -> tuple[Tensor, ...]:
    """Compute the views of a batch, for the rows of one chunk after the other.

    Raises PluginFailed, with the place in the method's code, unless they are tensors.
    """

    def views(*columns: Features) -> tuple[Tensor, ...]:
        returned = method.views(batch.with_columns(columns))
        if not isinstance(returned, tuple | list) or not all(
            isinstance(view, Tensor) for view in returned
        ):
            raise PluginFailed(
                f"{place_of_code(type(method).views)}: views returned {type(returned).__name__}; "
                "return a tuple of tensors"
            )
        return tuple(returned)

    return method.by_rows(views, *batch.columns)


def trained_state(method: TorchMethod) -> dict[str, Tensor]:
    """Return the tensors of the checkpoint: trained parameters, and buffers outside an encoder that
    is frozen, be it under adapters.
    """
    return _state(method, training=False)


def training_state(method: TorchMethod) -> dict[str, Tensor]:
    """Return the tensors that resume needs besides the optimiser: the checkpoint's and
    ``training_only``.
    """
    state = _state(method, training=True)
    return {name: tensor.cpu().contiguous() for name, tensor in state.items()}


def _state(method: TorchMethod, *, training: bool) -> dict[str, Tensor]:
    trains = any(p.requires_grad for p in method.encoder.parameters())
    frozen = not trains or has_adapters(method.encoder)
    prefixes = tuple(f"{part}." for part in method.training_only)
    needed = {name for name, p in method.named_parameters() if p.requires_grad}
    for name, _ in method.named_buffers():
        if not (frozen and name.startswith("encoder.")):
            needed.add(name)
    state = {}
    for name, tensor in method.state_dict().items():
        is_kept = training if f"{name}.".startswith(prefixes) else name in needed
        if is_kept:
            state[name] = tensor.detach()
    return state
