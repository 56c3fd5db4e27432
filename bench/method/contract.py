"""The contract of a method, in the parts that need no torch, and how long a training may be. Plugins import these names from
:mod:`bench.method`."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from bench.base.errors import BenchError
from bench.base.reading import SETTINGS_BYTES, read_plain_file

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from bench.backbones import Reference
    from bench.method.ranks import Alone

SETTINGS = ("unsupervised", "supervised", "none")


@dataclass(frozen=True)
class Value:
    """One recipe value and its source; ``note`` holds what another source says."""

    value: Any
    source: str
    note: str | None = None


class Recipe(Mapping[str, Any]):
    """Every hyperparameter of one run. ``recipe.temperature`` is a value, ``recipe.values_with_source()`` has the sources too."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = dict(values)

    def __getitem__(self, key: str) -> Any:
        return self._values[key].value

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):
            raise AttributeError(key)
        if key in self._values:
            return self._values[key].value
        raise AttributeError(
            f"the recipe has no key '{key}'; declare it in the method's `defaults`"
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def values_with_source(self) -> dict[str, Value]:
        return dict(self._values)


class Reporter(Protocol):
    """Shows the progress of a long step."""

    def phase(self, name: str, total: int | None = None) -> None:
        """A phase begins, of ``total`` steps where that is known."""

    def advance(self, done: int, **fields: Any) -> None:
        """So many steps of the phase are done; ``fields`` are shown with it."""

    def note(self, text: str) -> None:
        """One line for the user."""


class SilentReporter:
    """Shows nothing."""

    def phase(self, *what: Any, **fields: Any) -> None:
        """Nothing, as ``advance`` and ``note``."""

    advance = note = phase


@dataclass(frozen=True)
class Context:
    """What the harness hands to a method besides its recipe. It does not change; what changes while a method trains is in
    :class:`bench.training.progress.Progress`."""

    device: str = "cpu"
    precision: str = "fp32"  # while training: fp32, tf32, bf16 or fp16; scoring is always float32
    seed: int = 42
    folder: Path = Path(".")  # the run's folder: checkpoint/, state/, curve.jsonl
    dev_score: Callable[[Method], float] | None = None  # Spearman x 100; None: keep the last step
    reporter: Reporter = field(default_factory=SilentReporter)
    should_stop: Callable[[], bool] = lambda: False
    offline: bool = False  # open no connection
    chunk: int | None = None  # rows of a batch whose activations are held at once; None: all
    ranks: Alone | None = None  # the processes that train together; None: this one alone
    auto_batch: bool = False  # hold fewer rows at once where a batch does not fit into memory
    compiled: bool = False  # torch compiles the encoder's forward while training
    save_seconds: float = 60.0  # between two saved states; work after the last one is repeated


@dataclass
class TrainReport:
    """What training did. ``dev_score`` is Spearman x 100 of the best checkpoint, None without a dev set."""

    steps: int
    best_step: int
    dev_score: float | None
    train_seconds: float  # without dev evaluation
    dev_seconds: float
    sentences: int  # corpus rows seen, the same row in two epochs counted twice
    tokens: int = 0  # of these rows, without padding
    execution: Mapping[str, Any] = field(default_factory=dict)  # chunk, ranks, compiled

    @property
    def sentences_per_second(self) -> float:
        return self.sentences / self.train_seconds if self.train_seconds > 0 else 0.0

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.train_seconds if self.train_seconds > 0 else 0.0


def seed_for(seed: int, *what: object) -> int:
    """A 63-bit seed for one kind of randomness, named: ``seed_for(42, "data order")`` is the same for every method."""
    return int.from_bytes(hashlib.sha256(repr((seed, *what)).encode()).digest()[:8], "little") >> 1


def rng_for(seed: int, *what: object) -> np.random.Generator:
    """A numpy generator for one named draw: ``rng_for(42, "template", epoch, row)`` is always the same."""
    import numpy as np

    return np.random.default_rng(seed_for(seed, *what))


class Method:
    """A way to turn sentences into vectors.

    Class attributes: ``name`` ([a-z0-9-]+), ``settings`` (what it can be run in), ``variants`` (name -> recipe overrides),
    ``defaults`` (its own recipe keys; a :class:`Value` names its source), ``summary`` (one line), ``paper`` (citation),
    ``trains`` (one line: which parameters train), ``deterministic`` (settings in which no seed changes the result: one run
    stands for all seeds), ``by_dropout`` (settings in which only dropout makes two views of a sentence differ: a backbone
    whose own dropout is 0 is refused there), ``texts_per_row`` (how many texts a training step encodes of each row of the corpus, for the
    plan's hours and memory; None: two, or its columns), ``first_token`` (the first token's state alone stands for the sentence: a causal
    backbone is refused), ``least_rows`` (rows that a batch needs for a loss: a corpus that leaves a smaller last batch is refused),
    ``own_backbone`` (it brings its own vectors and ignores ``--backbone``; the record has this name), ``places`` (recipe keys that name a file, a folder or a backbone: the content, not the path, makes a run another
    run), ``optional`` (recipe keys that a recipe has only when they are set), ``reads`` (how the names of tensors begin that it reads
    from its backbone's checkpoint besides the encoder: a checkpoint with tensors that nothing reads is refused, except for heads) and ``fitted`` (in the setting "none", yet fitted on unlabelled text, in one "pass" of its own or in
    "steps" of the training loop: it gets a corpus, and ``fit`` is called) and ``several_negatives`` (where it can be trained on triplets, it
    takes rows with any number of hard negatives as well: views of anchor, positive and each of them).
    """

    name: ClassVar[str]
    settings: ClassVar[tuple[str, ...]] = ("none",)
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    defaults: ClassVar[Mapping[str, Any]] = {}
    summary: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    trains: ClassVar[str] = ""
    deterministic: ClassVar[tuple[str, ...]] = ()
    by_dropout: ClassVar[tuple[str, ...]] = ()
    texts_per_row: ClassVar[int | None] = None
    first_token: ClassVar[bool] = False
    least_rows: ClassVar[int] = 1
    own_backbone: ClassVar[str | None] = None
    places: ClassVar[tuple[str, ...]] = ()
    optional: ClassVar[Mapping[str, Any]] = {}
    fitted: ClassVar[str | None] = None
    reads: ClassVar[tuple[str, ...]] = ()
    several_negatives: ClassVar[bool] = False

    text_prompt: str | None = None  # put around every sentence, see :func:`prompted`
    backbone: Any
    recipe: Recipe
    context: Context

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        """Raise BenchError for a recipe that cannot work, before anything is started. ``backbone`` is its folder, if here."""

    @classmethod
    def needs(cls, setting: str, recipe: Recipe) -> tuple[str, ...]:
        """The kinds of corpus that it can be trained on, of sentences, pairs, triplets, labelled and graded. Raises BenchError
        for a setting and recipe that do not go together."""
        return ("pairs", "triplets") if setting == "supervised" else ("sentences",)

    @classmethod
    def reads_first_token(cls, recipe: Recipe) -> bool:
        """Say if the first token's state stands for a sentence: ``first_token``, or a pooler of the recipe that takes it."""
        return cls.first_token or bool(cls.over_all_tokens(recipe))

    @classmethod
    def over_all_tokens(cls, recipe: Recipe) -> dict[str, str]:
        """The values that pool over all tokens, for those keys of the recipe that take the first one; empty without such a key."""
        return {key: "avg" for key in POOLER_KEYS if recipe.get(key) in FIRST_TOKEN}

    @classmethod
    def is_split(cls) -> bool:
        """Whether its loss is made of ``views`` and ``loss``, so that a batch can be cut into chunks and shared exactly."""
        return False

    @classmethod
    def own_revision(cls, recipe: Recipe) -> str:
        """What names the vectors of a method with an ``own_backbone``: the sha256 of its file."""
        return "unknown"

    @classmethod
    def read_backbone(cls, reference: Reference, recipe: Recipe, context: Context) -> Any:
        """The backbone in memory, as :meth:`build` gets it. Raises NotAModel if it is not available."""
        from bench.backbones import load

        dtype = recipe.get("dtype", "fp32") if "dtype" in cls.optional else "fp32"
        return load(
            reference,
            dropout=recipe.get("dropout"),
            offline=context.offline,
            dtype=dtype,
            reads=cls.reads,
        )

    def build(self, backbone: Any, recipe: Recipe) -> None:
        """Create what is needed to encode and train. Called once, after ``context`` is set; touches nothing global."""
        self.backbone, self.recipe = backbone, recipe

    def fit(self, corpus: Any, context: Context) -> TrainReport | None:
        """Called with the tokenised corpus before the training loop, on every process that trains it.

        Returns None where the loop does the rest; or does all of the training, writes ``context.folder / "checkpoint"``
        and returns a report (``fitted = "pass"``).
        """
        raise NotImplementedError(f"{self.name} has nothing to train")

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        """(n, dim) float32; row i depends on sentence i alone."""
        raise NotImplementedError

    def encode_with(self, prompt: str | None, sentences: Sequence[str]) -> np.ndarray:
        """As :meth:`encode`, with a task's prompt instead of the method's; None: the method's."""
        if prompt is None:
            return self.encode(sentences)
        before, self.text_prompt = self.text_prompt, prompt
        try:
            return self.encode(sentences)
        finally:
            self.text_prompt = before

    def about(self) -> Mapping[str, Any]:
        """What the record says about a finished encoder besides its name and revision, as JSON: pooling, dtype, prompt ..."""
        return {}

    def portable(self) -> Portable:
        """What computes :meth:`encode`'s vectors, in parts that other libraries know; ``bench export`` writes them.

        Raises BenchError with the reason where that is not possible; here: the method does not define it.
        """
        raise BenchError(
            f"{self.name} does not say what computes its vectors without its own code",
            f"define {type(self).__name__}.portable(); docs/evaluate.md shows how",
        )

    def save(self, folder: Path) -> None:
        """Write what was trained, as safetensors and JSON; here, where nothing is trained, only the method's name."""
        folder.mkdir(parents=True, exist_ok=True)
        write_json(
            folder / "method.json",
            {"method": self.name, "backbone": getattr(self.backbone, "name", None)},
        )

    def load(self, folder: Path) -> None:
        """Read back what :meth:`save` wrote. Called after :meth:`build` with the same backbone and recipe."""
        stored = read_run_json(folder / "method.json").get("method")
        if stored != self.name:
            raise BenchError(f"{folder} is a checkpoint of '{stored}', not of '{self.name}'")


POOLER_KEYS = ("pooler", "pooler_at_test", "pooling")
"""The recipe keys that name how tokens are pooled."""
FIRST_TOKEN = ("cls", "cls_avg", "mlp")
"""The poolers among their values that take the first token."""


PLACE = "[X]"  # of the sentence in a template, as in Jiang et al. 2022 (PromptBERT)


def prompted(prompt: str | None, sentences: Sequence[str]) -> list[str]:
    """Each sentence in its prompt: instead of [X] where the prompt is a template, after the prompt otherwise."""
    if not prompt:
        return list(sentences)
    template = prompt if PLACE in prompt else prompt + PLACE
    return [template.replace(PLACE, sentence) for sentence in sentences]


def task_prompt(recipe: Mapping[str, Any], suite: str, task: str) -> str | None:
    """The recipe's prompt for a task, or else for its suite; None where it has neither."""
    prompts: dict[str, str] = json.loads(recipe.get("prompts") or "{}")
    return prompts.get(task, prompts.get(suite))


def check_choice(recipe: Recipe, key: str, choices: Collection[str]) -> None:
    """Raises BenchError where the recipe's value is not one of ``choices``."""
    if recipe[key] not in choices:
        raise BenchError(f"{key}={recipe[key]} is unknown", f"choose from {', '.join(choices)}")


def check_positive(recipe: Recipe, key: str) -> None:
    """Raises BenchError where the recipe's number is not greater than 0."""
    if not recipe[key] > 0:
        raise BenchError(f"{key} must be greater than 0, not {recipe[key]}", f"--set {key}=VALUE")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in ``path``, which may be a link, as in the hub's cache. Raises BenchError, naming the file, if it is missing or damaged."""
    return _json_object(path, path.resolve())


def read_run_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file of a run folder, in which no link is followed. Raises BenchError as :func:`read_json` does."""
    return _json_object(path, path)


def _json_object(path: Path, place: Path) -> dict[str, Any]:
    """The JSON object at ``place``; messages call it ``path``."""
    try:
        content = json.loads(read_plain_file(place, SETTINGS_BYTES))
    except OSError as error:
        raise BenchError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise BenchError(f"{path}: {error}") from None
    if not isinstance(content, dict):
        raise BenchError(f"{path}: expected a JSON object, found {type(content).__name__}")
    return content


# --- how long a training may be: the recipe's epochs, or a budget by which methods can be compared, ``--budget 10m`` ---
# A budget replaces the recipe's epochs. It is a recipe value, stored as :func:`canonical` text, so that one budget has one
# fingerprint however it was written.

STEPS, SENTENCES, TOKENS, SECONDS, GPU_SECONDS = "steps", "sentences", "tokens", "s", "gpu-s"
COUNTED = (STEPS, SENTENCES, TOKENS)
EXAMPLES = "--budget 10m, 2h, 5000steps, 1e6sentences, 3e7tokens, or 2gpu-h"

# as it is written -> (unit, how many of it)
_WRITTEN = {
    **{name: (unit, 1) for unit in COUNTED for name in (unit, unit[:-1])},
    **{
        prefix + name: (unit, seconds)
        for prefix, unit in (("", SECONDS), ("gpu-", GPU_SECONDS))
        for name, seconds in (("s", 1), ("m", 60), ("min", 60), ("h", 3600), ("d", 86400))
    },
}
_PATTERN = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?(?:e\+?[0-9]{1,2})?)\s*([a-z-]+)\s*")


@dataclass(frozen=True)
class Budget:
    """``amount`` of ``unit``: optimiser steps, rows of the corpus, tokens without padding, seconds of training (dev scores
    not counted), or seconds of training times GPUs."""

    amount: float
    unit: str

    @property
    def timed(self) -> bool:
        """Measured by a clock, so that two runs of it do not end at the same step."""
        return self.unit not in COUNTED

    def __str__(self) -> str:
        return f"{int(self.amount) if self.amount == int(self.amount) else self.amount}{self.unit}"


def parse(text: str) -> Budget:
    """``"10m"`` -> 600 seconds. Raises BenchError for anything but an amount of a known unit."""
    match = _PATTERN.fullmatch(text.lower())
    if match is None or match[2] not in _WRITTEN:
        raise BenchError(
            f"--budget {text}: expected a number and steps, sentences, tokens, s, m, h, d, or gpu-h",
            EXAMPLES,
        )
    unit, times = _WRITTEN[match[2]]
    amount = float(match[1]) * times
    if amount <= 0 or not math.isfinite(amount) or (unit in COUNTED and amount != int(amount)):
        raise BenchError(
            f"--budget {text}: expected {'a whole number of ' + unit if unit in COUNTED else 'a time'} above 0",
            EXAMPLES,
        )
    return Budget(amount, unit)


def canonical(text: str) -> str:
    """``"10m"``, ``"600s"`` and ``"10 min"`` are all ``"600s"``."""
    return str(parse(text))


def budget_of(recipe: Mapping[str, Any]) -> Budget | None:
    """The budget of a recipe, None without one."""
    text = recipe.get("budget")
    return None if text is None else parse(str(text))


def total_steps(recipe: Recipe, rows: int) -> int | None:
    """Optimiser steps of the whole run; None where tokens or a clock decide.

    The last short batch of an epoch counts, unless the recipe drops it (and there is a whole one).
    """
    budget, rest = budget_of(recipe), rows % recipe.batch_size
    of_epoch = rows - rest if recipe.drop_last and rows > rest else rows
    steps_of_epoch = math.ceil(of_epoch / recipe.batch_size)
    if budget is None:
        steps = math.ceil(recipe.epochs * steps_of_epoch)
    elif budget.unit == STEPS:
        steps = int(budget.amount)
    elif budget.unit == SENTENCES:  # until so many rows were seen
        epochs, rest = divmod(int(budget.amount), of_epoch)
        steps = epochs * steps_of_epoch + math.ceil(rest / recipe.batch_size)
    else:
        return None
    return min(steps, recipe.max_steps) if recipe.max_steps else steps


# --- what computes a method's vectors, in parts that other libraries know: ``portable()`` gives it to ``bench export`` ---
# sentence -> reader (tokenizer, encoder) -> pooling -> layers after it -> vector. Where no standard part does what a method does,
# it has a ModuleFile: a class in a separate source file, which is copied into the export and runs without this package.


@dataclass(frozen=True)
class Affine:
    """y = W x + b, then tanh if ``tanh``."""

    weight: Tensor  # (out, in)
    bias: Tensor | None = None  # (out,)
    tanh: bool = False


@dataclass(frozen=True)
class ModuleFile:
    """A class that is copied into the export, with what it reads.

    ``file`` imports only torch, safetensors, transformers and sentence-transformers, and has no relative import. A reader's
    class derives from sentence-transformers' ``Transformer`` or ``InputModule`` and finds ``settings`` in ``<file's stem>.json``
    and ``tensors`` in ``<file's stem>.safetensors``, in the export's own folder. The class of a layer is a ``torch.nn.Module``
    with ``load(folder)``, which finds ``config.json`` and ``model.safetensors`` there, and ``forward(features)``, which sets
    ``features["sentence_embedding"]``.
    """

    file: Path
    name: str  # of the class
    settings: Mapping[str, Any] = field(default_factory=dict)  # as JSON
    tensors: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Portable:
    """The parts of one method, with the weights that it has now.

    ``pooling``: "cls" (the first token), "mean" (over the tokens whose mask is 1), or None where the reader or the first layer
    gives the sentence's vector. ``states``: which hidden states are averaged before that, by number: 0 the embedding layer, l
    layer l, -1 the last; the last alone is the normal case.
    """

    encoder: Any = None  # transformers.PreTrainedModel
    tokenizer: Any = None  # transformers' tokenizer that goes with it
    max_tokens: int | None = None  # of a sentence, special tokens included; longer ones are cut
    pooling: str | None = None
    states: tuple[int, ...] = (-1,)
    layers: tuple[Affine | ModuleFile, ...] = ()
    reader: ModuleFile | None = None  # reads sentences instead of the plain encoder and tokenizer
    write: Callable[[Path], None] | None = (
        None  # of a sentence-transformers model: it writes itself
    )

    @property
    def module_files(self) -> tuple[ModuleFile, ...]:
        """Everything that is copied as source: the user who loads the export has to allow it."""
        return tuple(p for p in (self.reader, *self.layers) if isinstance(p, ModuleFile))
