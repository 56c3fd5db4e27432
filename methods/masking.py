"""Masked language modelling as an auxiliary task: which tokens are hidden, and the loss of guessing them.

n sentences, T tokens, V vocabulary.  Nothing here knows a method.  Source: BERT (Devlin et al. 2019) section 3.1, as
SimCSE's authors use it beside a contrastive loss.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

NOT_CHOSEN = -100  # the label of a position that is not to be guessed
MASKED, RANDOM = 0.8, 0.1  # shares of the chosen positions; the rest keeps its token


def special_positions(ids_nT: Tensor, special_ids: Iterable[int]) -> Tensor:
    """(n, T) True where a special token stands (``tokenizer.all_special_ids``): padding and the unknown token among them."""
    return torch.isin(ids_nT, torch.tensor(sorted(special_ids), dtype=ids_nT.dtype, device=ids_nT.device))


def mask_tokens(
    ids_nT: Tensor, spared_nT: Tensor, mask_id: int, vocab_size: int, probability: float = 0.15
) -> tuple[Tensor, Tensor]:
    """Hide a share of the tokens: (ids to read, labels to guess), both (n, T); labels are -100 where nothing is to be guessed.

    Each position outside ``spared_nT`` (True: never touched) is chosen with ``probability``, on its own. Of the chosen ones
    80 % become ``mask_id``, 10 % an id drawn from the whole vocabulary (which may be the same, or a special one), 10 % stay.
    """
    chosen = (torch.rand(ids_nT.shape, device=ids_nT.device) < probability) & ~spared_nT
    fate = torch.rand(ids_nT.shape, device=ids_nT.device)
    drawn = torch.randint(vocab_size, ids_nT.shape, dtype=ids_nT.dtype, device=ids_nT.device)
    masked = ids_nT.masked_fill(chosen & (fate < MASKED), mask_id)
    masked = torch.where(chosen & (fate >= MASKED) & (fate < MASKED + RANDOM), drawn, masked)
    return masked, ids_nT.masked_fill(~chosen, NOT_CHOSEN)


def mlm_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy, in nats, over the chosen positions of all sentences: logits (..., V), labels (...).

    Zero, with a gradient of zero, where no position was chosen: a mean over nothing would end the training.
    """
    logits_V, labels_1 = logits.flatten(0, -2), labels.flatten()
    if logits_V.dtype != torch.float64:
        logits_V = logits_V.float()
    total = cross_entropy(logits_V, labels_1, ignore_index=NOT_CHOSEN, reduction="sum")
    return total / (labels_1 != NOT_CHOSEN).sum().clamp_min(1)
