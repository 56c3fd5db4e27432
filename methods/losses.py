"""Losses as pure functions of vectors. They know no method.

B anchors, C candidates, D dimensions. Candidate i belongs to anchor i; if C > B, the others belong
to none.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

SMALLEST_NORM = 1e-8  # as torch's CosineSimilarity: a zero vector has cosine 0, not NaN


def cosine_matrix(a_BD: Tensor, b_CD: Tensor) -> Tensor:
    """Compute the cosine of each anchor and each candidate.

    Args:
        a_BD: B vectors.
        b_CD: C vectors.

    Returns:
        (B, C) cosines, in at least float32 also under autocast. A vector of zeros has cosine 0.
    """
    with torch.autocast(a_BD.device.type, enabled=False):
        return unit_vectors(float32_at_least(a_BD)) @ unit_vectors(float32_at_least(b_CD)).T


def dot_matrix(a_BD: Tensor, b_CD: Tensor) -> Tensor:
    """Compute the dot product of each anchor and each candidate.

    Args:
        a_BD: B vectors.
        b_CD: C vectors.

    Returns:
        (B, C) dot products, in at least float32 also under autocast.
    """
    with torch.autocast(a_BD.device.type, enabled=False):
        return float32_at_least(a_BD) @ float32_at_least(b_CD).T


Similarity = Callable[[Tensor, Tensor], Tensor]
SIMILARITIES: dict[str, Similarity] = {"cosine": cosine_matrix, "dot": dot_matrix}


def info_nce(
    anchors_BD: Tensor,
    positives_CD: Tensor,
    *negatives_CD: Tensor,
    temperature: float,
    hard_negative_weight: float = 0.0,
    similarity: Similarity = cosine_matrix,
) -> Tensor:
    """Compute the surprise of each anchor's own positive among all positives and all hard
    negatives.

    Source: SimCSE (Gao et al. 2021) eq. 1 and 5; eq. 8 for the weight, as in the authors' code.

    Args:
        anchors_BD: B anchors.
        positives_CD: C candidates; candidate i is the positive of anchor i.
        *negatives_CD: Each has one hard negative of every candidate; K of them make C (1 + K)
            candidates for each anchor.
        temperature: Divides the similarities.
        hard_negative_weight: w is added to the logits of the anchor's OWN hard negatives, so that
            their terms are multiplied by alpha = exp(w).
        similarity: ``cosine_matrix`` or ``dot_matrix``.

    Returns:
        The mean over the anchors, in nats, a scalar.

    Raises:
        ValueError: If an anchor has no candidate of its own.
    """
    own = _own(anchors_BD, positives_CD, *negatives_CD)
    blocks = [similarity(anchors_BD, positives_CD) / temperature]  # (B, C) each
    for hard_CD in negatives_CD:
        hard = similarity(anchors_BD, hard_CD) / temperature
        blocks.append(hard + hard_negative_weight * _at(own, hard))
    return cross_entropy(torch.cat(blocks, dim=1), own)  # (B, C (1 + K))


def energy_hinge(
    anchors_BD: Tensor, positives_CD: Tensor, *negatives_CD: Tensor, margin: float
) -> Tensor:
    """Compute how much each anchor's positive lacks to be nearer by ``margin`` than the nearest
    wrong candidate.

    Wrong candidates are the others' positives and all hard negatives, the anchor's own included;
    other anchors are none. There is no temperature. The gradient goes to the own positive and to
    the one nearest candidate, through both sides of each cosine.

    Source: PromCSE (Jiang et al. 2022) eq. 11, the energy-based hinge loss.

    Args:
        anchors_BD: B anchors.
        positives_CD: C candidates; candidate i is the positive of anchor i.
        *negatives_CD: Each has one hard negative of every candidate.
        margin: The lead that the positive should have, in cosines.

    Returns:
        The mean over the anchors, in cosines, a scalar.

    Raises:
        ValueError: If an anchor has no candidate of its own.
    """
    own = _own(anchors_BD, positives_CD, *negatives_CD)
    to_positives = cosine_matrix(anchors_BD, positives_CD)  # (B, C)
    mine = to_positives.gather(1, own[:, None])[:, 0]  # (B,)
    others = to_positives.masked_fill(_at(own, to_positives).bool(), float("-inf"))
    wrong = [others, *(cosine_matrix(anchors_BD, hard_CD) for hard_CD in negatives_CD)]
    hardest = torch.cat(wrong, dim=1).max(dim=1).values  # (B,)
    return (margin - mine + hardest).clamp_min(0).mean()


def focal_logits(cosines_BC: Tensor, *, temperature: float, m: float) -> Tensor:
    """Compute logits from cosines s: s^2 / tau for the anchor's own candidate, else s (s + m) /
    tau.

    Both factors carry a gradient. More columns than anchors are more negatives. A negative's term
    is smallest at s = -m / 2.

    Source: Focal-InfoNCE (Hou and Li 2023) eq. 2.

    Args:
        cosines_BC: Cosines of B anchors and C candidates.
        temperature: tau.
        m: A negative is hard if its cosine is above 1 - m.

    Returns:
        (B, C) logits.
    """
    own = torch.arange(len(cosines_BC), device=cosines_BC.device)
    return cosines_BC * (cosines_BC + m * (1 - _at(own, cosines_BC))) / temperature


def focal_info_nce(
    anchors_BD: Tensor, positives_CD: Tensor, *, temperature: float, m: float
) -> Tensor:
    """Compute InfoNCE with logits that grow faster for hard negatives and slower for easy ones.

    Source: Focal-InfoNCE (Hou and Li 2023) eq. 2 and 3; the mean as in the authors' code (eq. 3 has
    a sum).

    Args:
        anchors_BD: B anchors.
        positives_CD: C candidates; candidate i is the positive of anchor i.
        temperature: Divides the logits.
        m: A negative is hard if its cosine is above 1 - m.

    Returns:
        The mean over the anchors, in nats, a scalar.

    Raises:
        ValueError: If an anchor has no candidate of its own.
    """
    own = _own(anchors_BD, positives_CD)
    cosines = cosine_matrix(anchors_BD, positives_CD)
    return cross_entropy(focal_logits(cosines, temperature=temperature, m=m), own)


def nt_xent(first_BD: Tensor, second_BD: Tensor, *, temperature: float) -> Tensor:
    """Compute the surprise of a row's other view among all other 2B - 1 vectors, for both views as
    anchors.

    Source: SimCLR (Chen et al. 2020) eq. 1, as Mirror-BERT uses it; ConSERT's sum of two directions
    is twice this.

    Args:
        first_BD: One view of B rows.
        second_BD: The other view of the same rows.
        temperature: Divides the cosines.

    Returns:
        The mean over 2B anchors, in nats, a scalar.

    Raises:
        ValueError: If the views differ in length.
    """
    B = len(first_BD)
    if len(second_BD) != B:
        raise ValueError(
            f"{B} and {len(second_BD)} rows: row i of both views must be of one sentence"
        )
    z = torch.cat([first_BD, second_BD])  # (2B, D)
    itself = torch.eye(2 * B, dtype=torch.bool, device=z.device)
    logits = (cosine_matrix(z, z) / temperature).masked_fill(itself, float("-inf"))
    return cross_entropy(logits, torch.arange(2 * B, device=z.device).roll(B))


def _own(anchors: Tensor, *candidates: Tensor) -> Tensor:
    """Return the column of each anchor's own candidate, (B,), for every kind of candidate."""
    counts = [len(rows) for rows in candidates]
    if len(set(counts)) > 1 or counts[0] < len(anchors):
        listed = " and ".join(map(str, counts))
        raise ValueError(
            f"{len(anchors)} anchors, {listed} candidates: "
            "row i of positives and negatives must belong to anchor i"
        )
    return torch.arange(len(anchors), device=anchors.device)


def _at(own_B: Tensor, like_BC: Tensor) -> Tensor:
    """Return ones at each anchor's own column and zeros elsewhere, (B, C)."""
    return (torch.arange(like_BC.shape[1], device=own_B.device) == own_B[:, None]).to(like_BC.dtype)


def unit_vectors(x: Tensor) -> Tensor:
    """Scale vectors to length 1; a vector of zeros stays one.

    Args:
        x: (..., D).

    Returns:
        (..., D).
    """
    return x / x.norm(dim=-1, keepdim=True).clamp_min(SMALLEST_NORM)


def float32_at_least(x: Tensor) -> Tensor:
    """Turn a tensor of fewer bits into float32.

    Args:
        x: A tensor of any float type.

    Returns:
        The tensor in float64 if it is, else in float32.
    """
    return x if x.dtype == torch.float64 else x.float()
