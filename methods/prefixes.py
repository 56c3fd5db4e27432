"""Matryoshka: the same loss on the first coordinates of every vector too (Kusupati et al., NeurIPS
2022, arXiv 2205.13147).

    L = sum over d of L(first d coordinates of every vector, normalised)

so that a shorter vector may be stored. The whole vector is always among them. It is a sum, so that
learning rate and clipping see a gradient of about as many times the size. If a head is between the
trained and the scored vector, its output is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor
from torch.nn.functional import normalize

from bench.method import BenchError, Loss, Recipe


def check_prefixes(recipe: Recipe) -> None:
    """Raise BenchError if the recipe's ``matryoshka`` lists anything but sizes."""
    text = recipe.matryoshka
    if text is not None and not all(part.isdigit() and int(part) > 0 for part in str(text).split()):
        raise BenchError(
            f"matryoshka={text}: expected sizes of prefixes", '--set matryoshka="256 128 64"'
        )


def prefix_sizes(text: str | int | None, hidden: int) -> list[int]:
    """Return the sizes below ``hidden`` that a recipe lists, the longest first; None lists none."""
    sizes = {int(part) for part in str(text or "").split()}
    return sorted((size for size in sizes if size < hidden), reverse=True)


def on_prefixes(
    loss: Callable[..., Loss], vectors: Sequence[Tensor], sizes: str | int | None
) -> Loss:
    """Return the loss of the whole vectors plus the loss of each of their prefixes, all with weight
    1.

    If no size is listed, it is the loss of the whole vectors.

    Source: sentence-transformers MatryoshkaLoss, which normalises prefixes whatever the loss.
    """
    whole = loss(*vectors)
    cut = prefix_sizes(sizes, vectors[0].shape[-1])
    if not cut:
        return whole
    losses = {
        size: loss(*(normalize(vector[..., :size], dim=-1) for vector in vectors)).total
        for size in cut
    }
    total = whole.total + sum(losses.values())
    return Loss(
        total,
        dict(whole.parts)
        | {"whole": whole.total}
        | {f"first_{size}": one for size, one in losses.items()},
    )
