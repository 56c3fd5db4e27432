"""A method for an encoder that is finished: it was built elsewhere, and is scored as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from bench.base.sides import SIDES
from bench.method.context import Context
from bench.method.contract import Method
from bench.method.encoder_values import load_encoder
from bench.method.prompts import Way
from bench.method.recipe import Recipe

if TYPE_CHECKING:
    import numpy as np

    from bench.backbones import Reference


class FinishedEncoder(Method):
    """The vectors of an encoder that somebody else built, with the prompt of a task around each
    sentence.
    """

    # the first parts of the names of tensors that it reads from the checkpoint besides the encoder
    # and heads: others are refused
    reads: ClassVar[tuple[str, ...]] = ()
    # around every sentence: in the place of [X], or after the prompt without one
    text_prompt: str | None = None
    # it encodes queries in another way than documents
    tells_sides: bool = False
    # the prompt of each side, where nothing else is said
    side_prompts: Mapping[str, str] = {}
    # the side that is encoded now
    side: str | None = None
    # the numbers of a vector; None: not known before something is encoded
    dimension: int | None = None

    @classmethod
    def read_backbone(cls, reference: Reference, recipe: Recipe, context: Context) -> Any:
        """Load the backbone as ``build`` gets it. Raises NotAModel if it is not available."""
        return load_encoder(reference, recipe, context, reads=cls.reads)

    def encode_with(self, way: Way, sentences: Sequence[str]) -> np.ndarray:
        """Encode in the way that a task asks for."""
        before = self.text_prompt
        if way.prompt is not None:
            self.text_prompt = way.prompt
        elif way.side is not None and way.side in self.side_prompts:
            self.text_prompt = self.side_prompts[way.side]
        self.side = way.side
        try:
            return self.encode(sentences)
        finally:
            self.text_prompt, self.side = before, None

    def facts_of_sides(self) -> dict[str, Any]:
        """Return the record's account of queries and documents, if they are encoded in two ways."""
        typed = {side: self.recipe.get(f"prompt_{side}") for side in SIDES}
        if not self.tells_sides and set(typed.values()) == {None}:
            return {}
        usual = dict.fromkeys(SIDES, self.text_prompt or "")
        own = {**usual, **self.side_prompts}
        prompts = {side: own[side] if typed[side] is None else typed[side] for side in SIDES}
        return {"sides": {"own_ways": self.tells_sides, "prompts": prompts}}

    def about(self) -> Mapping[str, Any]:
        """Return the record's facts of the encoder besides name and revision: pooling, dtype,
        prompt, ...
        """
        return {}


def reads_of(cls: type[Method]) -> tuple[str, ...]:
    """Return the first parts of the names of tensors that a method reads besides the encoder."""
    return cls.reads if issubclass(cls, FinishedEncoder) else ()
