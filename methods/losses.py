"""Losses as pure functions of vectors.  B anchors, C candidates, D dimensions.  They know no method."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

SMALLEST_NORM = 1e-8  # as torch's CosineSimilarity: a zero vector has cosine 0, not NaN


def cosine_matrix(a_BD: Tensor, b_CD: Tensor) -> Tensor:
    """(B, C) cosines, in float32 at least whatever autocast does around."""
    with torch.autocast(a_BD.device.type, enabled=False):
        a, b = (x if x.dtype == torch.float64 else x.float() for x in (a_BD, b_CD))
        unit_a, unit_b = (x / x.norm(dim=-1, keepdim=True).clamp_min(SMALLEST_NORM) for x in (a, b))
        return unit_a @ unit_b.T


def info_nce(
    anchors_BD: Tensor, positives_BD: Tensor, negatives_BD: Tensor | None = None, *,
    temperature: float, hard_negative_weight: float = 0.0,
) -> Tensor:  # fmt: skip
    """Surprise of each anchor's own positive among all positives and all hard negatives: mean, in nats.

    Row i of the three belongs together. ``hard_negative_weight`` w is added to the logit of the anchor's OWN hard negative,
    so that its term is multiplied by alpha = exp(w).  Raises ValueError where the row counts differ.
    Source: SimCSE (Gao et al. 2021) eq. 1 and 5; eq. 8 for the weight, as the authors' code has it.
    """
    B = len(anchors_BD)
    if len(positives_BD) != B or (negatives_BD is not None and len(negatives_BD) != B):
        raise ValueError(f"{B} anchors, {len(positives_BD)} positives: row i of each must belong together")
    logits = cosine_matrix(anchors_BD, positives_BD) / temperature  # (B, B)
    if negatives_BD is not None:
        hard = cosine_matrix(anchors_BD, negatives_BD) / temperature
        logits = torch.cat([logits, hard + hard_negative_weight * torch.eye(B, dtype=hard.dtype, device=hard.device)], dim=1)
    return cross_entropy(logits, torch.arange(B, device=logits.device))
