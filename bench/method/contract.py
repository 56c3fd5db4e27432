"""The contract of every method.

Plugins import it from :mod:`bench.method`, which loads no torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bench.base.errors import BenchError
from bench.method.context import Context, TrainReport
from bench.method.json_files import read_run_json, write_json
from bench.method.portable import Portable
from bench.method.recipe import Recipe

if TYPE_CHECKING:
    import numpy as np

    from bench.backbones import Reference

SETTINGS = ("unsupervised", "supervised", "none")


class Method:
    """A way to turn sentences into vectors: define ``name`` and ``encode``.

        class Lengths(Method):
            name = "lengths"

            def encode(self, sentences):
                return np.array([[len(text), 1.0] for text in sentences], dtype=np.float32)

    It may use torch or not. A method that is trained derives from ``TorchMethod``, which derives
    from this class. ``Recipe`` holds a run's values of ``defaults``, ``Context`` everything else
    that a run gives a method; ``bench check FILE`` tests a method against this contract.

    Attributes:
        name: a-z, 0-9 and "-".
        settings: The settings in which it can be run: "unsupervised" (one column of sentences),
            "supervised" (pairs or triplets), "none" (nothing is trained).
        variants: Name -> changes to the recipe.
        defaults: Its own recipe keys; a ``Value`` names the source.
        code_version: Raised when its numbers change: runs of two versions are never one row.
        optional: Recipe keys that a recipe has only if they are set.
        summary: One line of at most 60 characters.
        paper: The citation.
        trains: One line for readers: which parameters train.
        encoder_is_frozen: No parameter of the encoder trains: adapters on it are refused, and a
            narrow base is not.
        deterministic: Settings without randomness: one run counts for all seeds.
        by_dropout: Settings in which dropout alone makes two views differ: a backbone with dropout
            0 is refused.
        first_token: The first token's state represents the sentence: a causal backbone is refused.
        pooling_keys: Recipe keys that name how tokens are pooled.
        least_rows: Rows that a batch needs for a loss: a corpus that leaves a smaller last batch is
            refused.
        several_negatives: It takes any number of hard negatives a row if it takes triplets: one
            more view for each.
        process_switches: Recipe switches that make the gradient depend on the number of processes,
            which is then part of a run's identity.
        fitted: In the setting "none", but fitted on unlabelled text: by one "pass" of its own or in
            "steps" of the training loop. It gets a corpus, and ``fit`` is called.
        own_backbone: It brings its own vectors and ignores --backbone; records name this in its
            place.
        places: Recipe keys that name a file, a folder or a backbone: its content, not its path,
            identifies a run.
        reads: Beginnings of the names of tensors that it reads from its backbone's checkpoint
            besides the encoder: a checkpoint with tensors that nothing reads is refused, except for
            heads.
        text_prompt: Put around every sentence: in the place of [X], or after the prompt without
            one.
        backbone: The ``Backbone``, once it is built.
        recipe: The run's ``Recipe``, once it is built.
        context: The run's ``Context``, before it is built.
    """

    name: ClassVar[str]
    settings: ClassVar[tuple[str, ...]] = ("none",)
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    defaults: ClassVar[Mapping[str, Any]] = {}
    code_version: ClassVar[int] = 1
    optional: ClassVar[Mapping[str, Any]] = {}
    summary: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    trains: ClassVar[str] = ""
    encoder_is_frozen: ClassVar[bool] = False
    deterministic: ClassVar[tuple[str, ...]] = ()
    by_dropout: ClassVar[tuple[str, ...]] = ()
    first_token: ClassVar[bool] = False
    pooling_keys: ClassVar[tuple[str, ...]] = ("pooling", "pooling_at_test")
    least_rows: ClassVar[int] = 1
    several_negatives: ClassVar[bool] = False
    process_switches: ClassVar[tuple[str, ...]] = ()
    fitted: ClassVar[str | None] = None
    own_backbone: ClassVar[str | None] = None
    places: ClassVar[tuple[str, ...]] = ()
    reads: ClassVar[tuple[str, ...]] = ()

    text_prompt: str | None = None
    backbone: Any
    recipe: Recipe
    context: Context

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        """Raise an error for a recipe that cannot work, before anything is started.

        Args:
            recipe: The recipe of the run.
            backbone: The backbone's folder, or None if it is not on this machine.

        Raises:
            BenchError: If the recipe or the backbone cannot work.
        """

    @classmethod
    def needs(cls, setting: str, recipe: Recipe) -> tuple[str, ...]:
        """Return the kinds of corpus that it can be trained on.

        Args:
            setting: One of ``settings``.
            recipe: The recipe of the run.

        Returns:
            Out of sentences, pairs, triplets, labelled, graded.

        Raises:
            BenchError: For a setting and a recipe that do not go together.
        """
        return ("pairs", "triplets") if setting == "supervised" else ("sentences",)

    @classmethod
    def reads_first_token(cls, recipe: Recipe) -> bool:
        """Say if the first token's state represents a sentence: by ``first_token`` or by the
        recipe.

        Args:
            recipe: The recipe of the run, perhaps with a pooler of the first token.

        Returns:
            True if it does; then a causal backbone is refused.
        """
        return cls.first_token or bool(cls.over_all_tokens(recipe))

    @classmethod
    def over_all_tokens(cls, recipe: Recipe) -> dict[str, str]:
        """Find a pooling over all tokens in the place of one of the first token.

        Args:
            recipe: The recipe of the run.

        Returns:
            For each recipe key that pools the first token, a value that pools over all of them.
        """
        return {key: "avg" for key in cls.pooling_keys if recipe.get(key) in FIRST_TOKEN}

    @classmethod
    def depends_on_processes(cls, recipe: Recipe) -> bool:
        """Say if a training on several processes computes something else than on one.

        It does if one of ``process_switches`` is on, or if the loss is a whole ``forward(batch)``,
        which sees only the rows of its process.

        Args:
            recipe: The recipe of the run.

        Returns:
            True if it does.
        """
        if any(recipe.get(switch) for switch in cls.process_switches):
            return True
        return cls.fitted != "pass" and not cls.is_split()

    @classmethod
    def is_split(cls) -> bool:
        """Say if its loss consists of ``views`` and ``loss``, so that a batch can be cut into
        chunks and shared exactly.
        """
        return False

    @classmethod
    def own_revision(cls, recipe: Recipe) -> str:
        """Name the revision of an ``own_backbone``.

        Args:
            recipe: The recipe of the run.

        Returns:
            The sha256 of its file.
        """
        return "unknown"

    @classmethod
    def read_backbone(cls, reference: Reference, recipe: Recipe, context: Context) -> Any:
        """Load the backbone as ``build`` gets it.

        Args:
            reference: The backbone's name, resolved on this machine.
            recipe: The recipe of the run: dropout, ``base_dtype``, ``adapter``.
            context: What else the run gives.

        Returns:
            A ``Backbone``.

        Raises:
            NotAModel: If it is not available.
        """
        from bench.backbones import load

        return load(
            reference,
            dropout=recipe.get("dropout"),
            offline=context.offline,
            dtype=cls.dtype_of_weights(recipe),
            reads=cls.reads,
            merge=recipe.get("adapter") != "same",
        )

    @classmethod
    def dtype_of_weights(cls, recipe: Recipe) -> str:
        """Choose the number format in which the encoder is loaded.

        Args:
            recipe: The recipe of the run.

        Returns:
            "fp32", "bf16", "fp16" or "4bit"; or "stored", as its files have it. Default "fp32",
            unless the recipe has a ``base_dtype``.
        """
        return str(recipe.get("base_dtype") or "fp32")

    def build(self, backbone: Any, recipe: Recipe) -> None:
        """Create the modules that encode and train.

        Called once, after ``context`` is set; changes nothing global.

        Args:
            backbone: The pretrained encoder, a ``Backbone``.
            recipe: The recipe of the run.
        """
        self.backbone, self.recipe = backbone, recipe

    def fit(self, corpus: Any, context: Context) -> TrainReport | None:
        """Prepare for training on the tokenised corpus; called before the training loop, on every
        process.

        Args:
            corpus: The tokenised corpus.
            context: Device, seed, folder of the run.

        Returns:
            None if the loop does the rest. With ``fitted = "pass"`` it does all of the training,
            writes ``context.folder / "checkpoint"`` and returns a report.
        """
        raise NotImplementedError(f"{self.name} has nothing to train")

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        """Turn sentences into the vectors that are scored.

        Args:
            sentences: n texts.

        Returns:
            (n, dim) float32; row i depends on sentence i alone.
        """
        raise NotImplementedError

    def encode_with(self, prompt: str | None, sentences: Sequence[str]) -> np.ndarray:
        """Encode with a task's prompt in the place of the method's.

        Args:
            prompt: The prompt; None keeps the method's.
            sentences: n texts.

        Returns:
            (n, dim) float32.
        """
        if prompt is None:
            return self.encode(sentences)
        before, self.text_prompt = self.text_prompt, prompt
        try:
            return self.encode(sentences)
        finally:
            self.text_prompt = before

    def about(self) -> Mapping[str, Any]:
        """Return what the record says of a finished encoder besides name and revision: pooling,
        dtype, prompt, ...
        """
        return {}

    def portable(self) -> Portable:
        """Return the parts that compute the vectors of ``encode``, for ``bench export``.

        Raises:
            BenchError: With the reason, if that is not possible; by default, because the method
                does not define it.
        """
        raise BenchError(
            f"{self.name} does not say what computes its vectors without its own code",
            f"define {type(self).__name__}.portable(); docs/evaluate.md shows how",
        )

    def save(self, folder: Path) -> None:
        """Write everything that was trained, as safetensors and JSON; by default only the method's
        name.

        Args:
            folder: The folder of the checkpoint, which is made.
        """
        folder.mkdir(parents=True, exist_ok=True)
        write_json(
            folder / "method.json",
            {"method": self.name, "backbone": getattr(self.backbone, "name", None)},
        )

    def load(self, folder: Path) -> None:
        """Read what ``save`` wrote.

        Called after ``build`` with the same backbone and recipe.

        Args:
            folder: The folder of the checkpoint.

        Raises:
            BenchError: If it is another method's.
        """
        stored = read_run_json(folder / "method.json").get("method")
        if stored != self.name:
            raise BenchError(f"{folder} is a checkpoint of '{stored}', not of '{self.name}'")


FIRST_TOKEN = ("cls", "cls_avg", "mlp")
"""The values of ``pooling_keys`` that take the first token."""
