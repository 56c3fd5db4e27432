"""Parts that compute a method's vectors and that other libraries know: ``bench export`` writes
them.

sentence -> reader (tokenizer, encoder) -> pooling -> layers after it -> vector. If no standard part
fits a method, the method has a :class:`ModuleFile`: a class in a separate source file, which is
copied into the export and runs without this package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Affine:
    """A dense layer of an export: y = W x + b, then tanh if ``tanh``.

    Attributes:
        weight: W, (out, in).
        bias: b, (out,). None: no bias.
        tanh: Apply tanh to the sum.
    """

    weight: Tensor
    bias: Tensor | None = None
    tanh: bool = False


@dataclass(frozen=True)
class ModuleFile:
    """A class that is copied into the export, with the settings and tensors that it reads.

    A reader's class derives from sentence-transformers' ``Transformer`` or ``InputModule`` and
    finds ``settings`` in ``<file's stem>.json`` and ``tensors`` in ``<file's stem>.safetensors``,
    in the export's own folder. The class of a layer is a ``torch.nn.Module`` with ``load(folder)``,
    which finds ``config.json`` and ``model.safetensors`` there, and ``forward(features)``, which
    sets ``features["sentence_embedding"]``.

    Attributes:
        file: Its source, which imports only torch, safetensors, transformers and
            sentence-transformers, and nothing relative.
        name: Name of the class in that file.
        settings: Written as JSON.
        tensors: Written as safetensors.
    """

    file: Path
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    tensors: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Portable:
    """The parts of one method, with the weights that it has now.

    BERT's first token, then a dense layer with tanh:

        Portable(encoder, tokenizer, 512, pooling="cls", layers=(Affine(weight, bias, tanh=True),))

    Attributes:
        encoder: A transformers.PreTrainedModel.
        tokenizer: transformers' tokenizer that goes with it.
        max_tokens: Tokens of a sentence, special ones included; longer sentences are cut.
        pooling: "cls" (the first token), "mean" (over the tokens with mask 1), "cls+mean" (one
            behind the other), or None if the reader or the first layer gives the sentence's vector.
        states: Hidden states that are averaged before pooling: 0 the embedding layer, l layer l, -1
            the last.
        layers: Applied to the pooled vector, in this order.
        reader: Reads sentences instead of the plain encoder and tokenizer.
        write: Writes the export itself: for a model of sentence-transformers.
    """

    encoder: Any = None
    tokenizer: Any = None
    max_tokens: int | None = None
    pooling: str | None = None
    states: tuple[int, ...] = (-1,)
    layers: tuple[Affine | ModuleFile, ...] = ()
    reader: ModuleFile | None = None
    write: Callable[[Path], None] | None = None

    @property
    def module_files(self) -> tuple[ModuleFile, ...]:
        """The parts that are copied as source: a user who loads the export has to allow it."""
        parts = (self.reader, *self.layers)
        return tuple(part for part in parts if isinstance(part, ModuleFile))
