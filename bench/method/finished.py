"""A method for an encoder that is finished: it was built elsewhere, and is scored as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from bench.method.context import Context
from bench.method.contract import Method
from bench.method.encoder_values import load_encoder
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

    @classmethod
    def read_backbone(cls, reference: Reference, recipe: Recipe, context: Context) -> Any:
        """Load the backbone as ``build`` gets it. Raises NotAModel if it is not available."""
        return load_encoder(reference, recipe, context, reads=cls.reads)

    def encode_with(self, prompt: str | None, sentences: Sequence[str]) -> np.ndarray:
        """Encode with a task's prompt in the place of the encoder's own; None keeps that."""
        if prompt is None:
            return self.encode(sentences)
        before, self.text_prompt = self.text_prompt, prompt
        try:
            return self.encode(sentences)
        finally:
            self.text_prompt = before

    def about(self) -> Mapping[str, Any]:
        """Return what the record says of the encoder besides name and revision: pooling, dtype,
        prompt, ...
        """
        return {}


def reads_of(cls: type[Method]) -> tuple[str, ...]:
    """Return the first parts of the names of tensors that a method reads besides the encoder."""
    return cls.reads if issubclass(cls, FinishedEncoder) else ()
