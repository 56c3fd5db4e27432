"""The cost of a training, as its method states it, for hours, memory and disk space of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class EncoderShape:
    """The sizes of an encoder, with which :meth:`Method.training_cost` counts weights.

    Biases and layer norms are left out everywhere: they are a thousandth of the weights.
    """

    # layers, each of which is multiplied with every token
    layers: int
    # numbers of a token's state
    hidden: int
    # numbers inside the feed-forward block of a layer
    inner: int
    # rows of the word embeddings; 0 if not known
    vocabulary: int

    @classmethod
    def from_sizes(cls, sizes: Mapping[str, int]) -> EncoderShape | None:
        """Return the shape that a model's config states, or None if it states no layers or no
        width.
        """
        hidden = sizes.get("hidden_size", 0)
        layers = sizes.get("num_hidden_layers", 0)
        if not hidden or not layers:
            return None
        inner = sizes.get("intermediate_size", 4 * hidden)
        return cls(layers, hidden, inner, sizes.get("vocab_size", 0))

    @property
    def layer_weights(self) -> int:
        """Weights of all layers: four (H, H) maps of attention and two (H, inner) ones in each."""
        return self.layers * (4 * self.hidden**2 + 2 * self.hidden * self.inner)

    @property
    def embedding_weights(self) -> int:
        """Weights of the word embeddings; the decoder of an LM head has as many."""
        return self.hidden * self.vocabulary

    @property
    def weights(self) -> int:
        """Weights of the whole encoder."""
        return self.layer_weights + self.embedding_weights


@dataclass(frozen=True)
class TrainingCost:
    """The texts that one training step encodes, and the weights in memory while a method trains."""

    # texts that are encoded for each row of the corpus
    texts_per_row: int
    # weights that train, those of the encoder among them if it trains
    trained: int
    # weights that are held and do not train
    frozen: int = 0
    # forward passes that divide these texts: autocast copies the weights of a frozen encoder for
    # each
    passes: int = 1
