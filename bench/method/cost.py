"""The cost of a training, as its method states it, for hours, memory and disk space of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

GATED = frozenset(
    [
        "eurobert",
        "gemma",
        "gemma2",
        "gemma3",
        "gemma3_text",
        "llama",
        "mistral",
        "modernbert",
        "nomic_bert",
        "olmo",
        "olmo2",
        "phi3",
        "qwen2",
        "qwen3",
        "smollm3",
    ]
)
"""transformers' model types with a gate in the feed-forward block."""


@dataclass(frozen=True)
class EncoderShape:
    """The sizes of an encoder, with which :meth:`Method.training_cost` counts weights.

    Biases and layer norms are left out everywhere: they are a thousandth of the weights.
    """

    # layers, each multiplied with every token
    layers: int
    # numbers of a token's state
    hidden: int
    # numbers inside the feed-forward block of a layer
    inner: int
    # rows of the word embeddings; 0 if not known
    vocabulary: int
    # numbers of all queries of a token, and of all its keys (as many as of its values); 0: as many
    # as of its state. With grouped queries, several queries share a key
    queries: int = 0
    keys: int = 0
    # the feed-forward block multiplies its inner numbers with a gate: a third matrix
    gated: bool = False

    @classmethod
    def from_sizes(cls, sizes: Mapping[str, Any]) -> EncoderShape | None:
        """Return the shape that a model's config states, or None if it states no layers or no
        width.
        """
        hidden = sizes.get("hidden_size", 0)
        layers = sizes.get("num_hidden_layers", 0)
        if not hidden or not layers:
            return None
        inner = sizes.get("intermediate_size") or 4 * hidden
        heads = sizes.get("num_attention_heads") or 1
        of_a_head = sizes.get("head_dim") or hidden // heads
        return cls(
            layers,
            hidden,
            inner,
            sizes.get("vocab_size", 0),
            queries=heads * of_a_head,
            keys=(sizes.get("num_key_value_heads") or heads) * of_a_head,
            gated=sizes.get("model_type") in GATED,
        )

    @property
    def matrices(self) -> dict[str, tuple[int, int]]:
        """The (inputs, outputs) of each matrix of a layer, by the names that Llama's have."""
        queries = self.queries or self.hidden
        keys = self.keys or self.hidden
        shapes = {
            "q_proj": (self.hidden, queries),
            "k_proj": (self.hidden, keys),
            "v_proj": (self.hidden, keys),
            "o_proj": (queries, self.hidden),
            "up_proj": (self.hidden, self.inner),
            "down_proj": (self.inner, self.hidden),
        }
        if self.gated:
            shapes["gate_proj"] = (self.hidden, self.inner)
        return shapes

    @property
    def layer_weights(self) -> int:
        """Weights of all layers: each has four maps of attention, and two or three behind it."""
        return self.layers * sum(inputs * outputs for inputs, outputs in self.matrices.values())

    def adapter_weights(self, rank: int, targets: str) -> int:
        """Count the weights of low-rank adapters on the matrices of all layers.

        ``targets``: "all", or the names of matrices with + between them. A name that is not one of
        Llama's counts as a map of attention.
        """
        shapes = self.matrices
        if targets == "all":
            sizes = list(shapes.values())
        else:
            names = targets.split("+")
            sizes = [shapes.get(name.strip(), (self.hidden, self.hidden)) for name in names]
        return self.layers * rank * sum(inputs + outputs for inputs, outputs in sizes)

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
    # weights that train, with the encoder's if it trains
    trained: int
    # weights that are held and do not train
    frozen: int = 0
    # forward passes that divide these texts: autocast copies the weights of a frozen encoder for
    # each
    passes: int = 1
