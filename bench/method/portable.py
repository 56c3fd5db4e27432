"""What computes a method's vectors, in parts that other libraries know: ``portable()`` gives it to ``bench export``.

sentence -> reader (tokenizer, encoder) -> pooling -> layers after it -> vector. If no standard part does what a
method does, it has a :class:`ModuleFile`: a class in a separate source file, which is copied into the export and
runs without this package.
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
