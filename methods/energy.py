"""The energy-based hinge loss, added to InfoNCE: section 3.3 of PromCSE (Jiang, Zhang and Wang
2022); table 1 has it for SimCSE, too.

The recipe keys are ``eh`` (with or without), ``eh_margin`` and ``eh_weight``.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from bench.method import BenchError, Loss, Recipe
from bench.methods.losses import energy_hinge


def needs_triplets(setting: str) -> tuple[str, ...]:
    """Return the kind of corpus for training with the hinge.

    Raises BenchError for a setting that has no hard negatives.
    """
    if setting != "supervised":
        hint = "--setting supervised --corpus FILE, of triplets (sent0, sent1, hard_neg)"
        raise BenchError(
            f"the energy-based hinge loss needs hard negatives, and the {setting} setting has none",
            hint,
        )
    return ("triplets",)


def with_hinge(contrast: Tensor, z: Sequence[Tensor], recipe: Recipe) -> Loss:
    """Add the weighted hinge to ``contrast``, the InfoNCE of ``z``: equation 12.

    ``z``: anchors, positives and one or more hard negatives, (n, H) each.
    """
    hinge = energy_hinge(*z, margin=recipe.eh_margin)
    return Loss(contrast + recipe.eh_weight * hinge, {"info_nce": contrast, "hinge": hinge})
