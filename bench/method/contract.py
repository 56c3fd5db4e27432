"""The contract of a method, in the part that needs no torch. Plugins import it from :mod:`bench.method`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bench.base.errors import BenchError
from bench.method.context import Context, TrainReport
from bench.method.cost import EncoderShape, TrainingCost
from bench.method.json_files import read_run_json, write_json
from bench.method.portable import Portable
from bench.method.recipe import Recipe

if TYPE_CHECKING:
    import numpy as np

    from bench.backbones import Reference

SETTINGS = ("unsupervised", "supervised", "none")


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
    # no parameter of the encoder trains: estimates of time, memory and disk space read it
    encoder_is_frozen: ClassVar[bool] = False
    # recipe switches with which the number of processes is part of a run's identity: with them, a gradient
    # is not that of one process
    process_switches: ClassVar[tuple[str, ...]] = ()
    # recipe keys that name how tokens are pooled
    pooler_keys: ClassVar[tuple[str, ...]] = ("pooler", "pooler_at_test", "pooling")

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
        return {key: "avg" for key in cls.pooler_keys if recipe.get(key) in FIRST_TOKEN}

    @classmethod
    def training_cost(cls, recipe: Recipe, shape: EncoderShape, columns: int) -> TrainingCost:
        """Return what a training with this recipe encodes and holds, for a corpus of so many columns.

        Default: every column of a row is encoded, and a single one twice (``texts_per_row`` says otherwise). The whole encoder
        trains; if ``encoder_is_frozen``, one dense layer on its vectors does. A method that holds more adds it to
        ``super().training_cost(...)``.
        """
        texts = cls.texts_per_row if cls.texts_per_row is not None else max(2, columns)
        if cls.encoder_is_frozen:
            return TrainingCost(texts, trained=shape.hidden**2, frozen=shape.weights)
        return TrainingCost(texts, trained=shape.weights)

    @classmethod
    def depends_on_processes(cls, recipe: Recipe) -> bool:
        """Say if a training on several processes computes something else than on one.

        It does if one of ``process_switches`` is on, or if the loss is a whole ``forward(batch)``, which
        sees only the rows of its process.
        """
        if any(recipe.get(switch) for switch in cls.process_switches):
            return True
        return cls.fitted != "pass" and not cls.is_split()

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

        return load(
            reference,
            dropout=recipe.get("dropout"),
            offline=context.offline,
            dtype=cls.dtype_of_weights(recipe),
            reads=cls.reads,
        )

    @classmethod
    def dtype_of_weights(cls, recipe: Recipe) -> str:
        """Return the number format in which the encoder is loaded: fp32, bf16 or fp16. Default: fp32."""
        return "fp32"

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


FIRST_TOKEN = ("cls", "cls_avg", "mlp")
"""The values of ``pooler_keys`` that take the first token."""
