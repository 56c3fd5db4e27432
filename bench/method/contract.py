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

FAITHFUL = "faithful"
"""The recipe key of the authors' code, in which a loss sees the rows of one process."""
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
        summary: One line of at most 60 characters.
        paper: The citation.
        trains: One line for readers: which parameters train.
        defaults: Its own recipe keys; a ``Value`` names the source. The key "faithful" means "as
            the authors' code, whose loss sees the rows of one process": with it, the number of
            processes is part of a run's identity.
        variants: Name -> changes to the recipe.
        optional: Further recipe keys, which a recipe has only if something sets them: runs without
            them keep their ids.
        code_version: Raised when its numbers change: runs of two versions are never one row.
        places: Recipe keys that name a file, a folder or a backbone: its content, not its path,
            identifies a run.
        deterministic: Settings without randomness: one run counts for all seeds.
        by_dropout: Settings in which dropout alone makes two views differ: a backbone with dropout
            0 is refused.
        first_token: The first token's state represents the sentence: a causal backbone is refused.
        encoder_is_frozen: No parameter of the encoder trains: adapters on it are refused, and a
            narrow base is not.
        several_negatives: It takes any number of hard negatives per row if it takes triplets: one
            more view for each.
        backbone: The ``Backbone``, once it is built.
        recipe: The run's ``Recipe``, once it is built.
        context: The run's ``Context``, before it is built.
    """

    name: ClassVar[str]
    settings: ClassVar[tuple[str, ...]] = ("none",)
    summary: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    trains: ClassVar[str] = ""
    defaults: ClassVar[Mapping[str, Any]] = {}
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    optional: ClassVar[Mapping[str, Any]] = {}
    code_version: ClassVar[int] = 1
    places: ClassVar[tuple[str, ...]] = ()
    deterministic: ClassVar[tuple[str, ...]] = ()
    by_dropout: ClassVar[tuple[str, ...]] = ()
    first_token: ClassVar[bool] = False
    encoder_is_frozen: ClassVar[bool] = False
    several_negatives: ClassVar[bool] = False

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

        A method whose only setting is "none" and that defines ``fit`` is fitted on a corpus. If it
        defines no loss, ``fit`` does all of that and returns a report.

        Args:
            corpus: The tokenised corpus.
            context: Device, seed, folder of the run.

        Returns:
            None if the training loop does the rest.
        """
        return None

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        """Turn sentences into the vectors that are scored.

        Args:
            sentences: n texts.

        Returns:
            (n, dim) float32; row i depends on sentence i alone.
        """
        raise NotImplementedError

    def portable(self) -> Portable:
        """Return the parts that compute the vectors of ``encode``, for ``bench export``.

        Raises:
            BenchError: With the reason, if that is not possible; by default, because the method
                does not define it.
        """
        raise BenchError(
            f"{self.name} does not say what computes its vectors without its own code: an export "
            f"needs {type(self).__name__}.portable(), which docs/evaluate.md shows"
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


def how_fitted(cls: type[Method]) -> str | None:
    """Say how a method is fitted on unlabelled text: in one "pass" of its own, or in "steps" of the
    training loop; None if it is not.
    """
    if cls.settings != ("none",) or cls.fit is Method.fit:
        return None
    defined = set[str]()
    for one in cls.__mro__:
        if not one.__module__.startswith(("bench.method.", "torch.")):
            defined |= vars(one).keys()
    return "steps" if defined & {"loss", "forward"} else "pass"
