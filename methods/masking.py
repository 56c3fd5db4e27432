"""Masked language modelling as an auxiliary task: which tokens are hidden, and the loss of guessing
them.

n sentences, T tokens, V vocabulary. Nothing here knows a method. Source: BERT (Devlin et al. 2019)
section 3.1, as SimCSE's authors add it to a contrastive loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bench.method import Backbone, Features, Loss, Recipe, check_mlm_head
from bench.method.features import constant
from bench.methods.bounds import check_at_least, check_share
from bench.methods.losses import float32_at_least

NOT_CHOSEN = -100  # the label of a position that is not to be guessed
MASKED, RANDOM = 0.8, 0.1  # shares of the chosen positions; the rest keeps its token


def check_guessing(recipe: Recipe, backbone: Path | None) -> None:
    """Raise BenchError if a recipe's ``mlm`` cannot work.

    It needs a share of the tokens, and a ``backbone`` with an MLM head.
    """
    check_share(recipe, "mlm_probability", above_zero=True, below_one=False)
    if "mlm_decay_steps" in recipe:
        check_at_least(recipe, 1, "mlm_decay_steps")
    if recipe.mlm:
        check_mlm_head(backbone)


def decayed_weight(recipe: Recipe, step: int) -> float:
    """Return the weight of masked language modelling after ``step`` updates.

    By default it falls by 5 % every 100 updates, smoothly.

    Source: DCPCSE section 2.2; PromCSE promcse/trainers.py.
    """
    weight: float = recipe.mlm_weight * recipe.mlm_decay_rate ** (step / recipe.mlm_decay_steps)
    return weight


def special_positions(ids_nT: Tensor, special_ids: Iterable[int]) -> Tensor:
    """Return True at every special token, (n, T).

    These are ``tokenizer.all_special_ids``, with padding and the unknown token among them.
    """
    return torch.isin(ids_nT, constant(tuple(sorted(special_ids)), ids_nT.device))


def mask_tokens(
    ids_nT: Tensor, spared_nT: Tensor, mask_id: int, vocab_size: int, probability: float = 0.15
) -> tuple[Tensor, Tensor]:
    """Hide a share of the tokens: return the ids to read and the labels to guess, both (n, T).

    A label is -100 if nothing is to be guessed. Each position outside ``spared_nT`` (True: never
    touched) is chosen with ``probability``, on its own. Of the chosen ones 80 % become ``mask_id``,
    10 % an id drawn from the whole vocabulary (perhaps the same one, or a special one), and 10 %
    stay.
    """
    chosen = (torch.rand(ids_nT.shape, device=ids_nT.device) < probability) & ~spared_nT
    fate = torch.rand(ids_nT.shape, device=ids_nT.device)
    drawn = torch.randint(vocab_size, ids_nT.shape, dtype=ids_nT.dtype, device=ids_nT.device)
    masked = ids_nT.masked_fill(chosen & (fate < MASKED), mask_id)
    masked = torch.where(chosen & (fate >= MASKED) & (fate < MASKED + RANDOM), drawn, masked)
    return masked, ids_nT.masked_fill(~chosen, NOT_CHOSEN)


def places_of(labels_nT: Tensor) -> tuple[Tensor, Tensor]:
    """Return rows (K,) and positions (K,) of masked tokens.

    Synchronises with the GPU, because K is known only there.
    """
    rows_K, positions_K = (labels_nT != NOT_CHOSEN).nonzero(as_tuple=True)
    return rows_K, positions_K


def surprise_of_rows(
    logits_KV: Tensor, labels_nT: Tensor, places: tuple[Tensor, Tensor], texts: int = 1
) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy summed over the chosen positions of a row, and their number, both (n
    / texts,).

    In nats, in at least float32. ``logits`` belong to the K chosen positions, in the order of
    ``places`` (:func:`places_of`). Rows of several ``texts``, one text after the other, n / texts
    each, are counted together.
    """
    each_K = cross_entropy(float32_at_least(logits_KV), labels_nT[places], reduction="none")
    sums_n = each_K.new_zeros(len(labels_nT)).index_add(0, places[0], each_K)
    counts_n = torch.zeros_like(sums_n).index_add(0, places[0], torch.ones_like(each_K))
    return sums_n.view(texts, -1).sum(0), counts_n.view(texts, -1).sum(0)


def surprise_of_copies(
    features: Features,
    texts: int,
    backbone: Backbone,
    lm_head: nn.Module,
    probability: float,
    states: Callable[[Features], Tensor],
) -> tuple[Tensor, Tensor]:
    """Return :func:`surprise_of_rows` of a masked copy of ``features``.

    They hold several ``texts``, one after the other, each masked on its own. ``states`` computes
    the (n, T, H) of the last layer from features.
    """
    ids_nT = features["input_ids"]
    spared_nT = special_positions(ids_nT, backbone.tokenizer.all_special_ids)
    masked_nT, labels_nT = mask_tokens(
        ids_nT, spared_nT, backbone.mask_id, len(backbone.tokenizer), probability
    )
    states_nTH = states({**features, "input_ids": masked_nT})
    places = places_of(labels_nT)
    # the vocabulary is computed for the chosen positions alone
    return surprise_of_rows(lm_head(states_nTH[places]), labels_nT, places, texts)


def mean_surprise(sums_n: Tensor, counts_n: Tensor) -> Tensor:
    """Return the mean over the chosen positions of all sentences.

    It is zero, with a gradient of zero, if no position was chosen: a mean over nothing would end
    the training.
    """
    return sums_n.sum() / counts_n.sum().clamp_min(1)


def split_guesses(
    views: tuple[Tensor, ...], mlm: bool
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Split views into the vectors and, with ``mlm``, the sums and counts of guesses."""
    if mlm:
        return views[:-2], views[-2:]
    return views, ()


def with_mlm(loss: Loss, guesses: Sequence[Tensor], weight: float) -> Loss:
    """Add ``weight`` times the mean surprise of ``guesses``, (n,) sums and (n,) counts, to a
    contrastive loss.
    """
    mlm = mean_surprise(*guesses)
    parts = {"info_nce": loss.total, **loss.parts, "mlm": mlm}
    return Loss(loss.total + weight * mlm, parts)
