"""TSDAE: Transformer-based Sequential Denoising Auto-Encoder (Wang, Reimers and Gurevych, Findings
of EMNLP 2021).

A sentence is damaged, encoded into one vector, and has to be rebuilt from that vector alone:

    x~ = x with each word deleted with probability `deletion`; one at least stays
    s = CLS of the encoder's last layer for x~, without a head
    loss = - sum over t of log p(x_t+1 | x_1..x_t, s) / number of tokens
                                     one mean over the tokens of the batch, [SEP] too

The decoder is the encoder itself, with the same weights: its self-attention looks at earlier tokens
only, and each layer gets a cross-attention behind it. This one attends to ONE vector, so that its
softmax is 1 whatever query and key are: they never get a gradient and are left out. Left is
output(value(s)) at every position, then Add + LayerNorm. The words are guessed by the pretrained
MLM head with the matrix of the word embeddings, or with its own if a checkpoint does not tie the
two.

Words are runs of letters and digits, and single other signs; the authors take NLTK's, which differ
in contractions. CLS is scored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, linear

from bench.backbones.families import check_layers
from bench.method import (
    Backbone,
    Batch,
    Features,
    Loss,
    Recipe,
    Value,
    check_mlm_head,
    rng_for,
)
from bench.methods.bounds import check_share
from bench.methods.layers import attended, attention_mask, embedded, fed_forward, layers_of
from bench.methods.masking import NOT_CHOSEN, mean_surprise, places_of, surprise_of_rows
from bench.methods.pooling import ScoredFirstToken

SCRIPT = "sentence-transformers 18f16f91 examples/unsupervised_learning/TSDAE/train_stsb_tsdae.py"


class TSDAE(ScoredFirstToken):
    """TSDAE: a decoder has to write a sentence from the vector of a damaged copy.

    Take it for text of a domain without pairs.

    Example:
        bench run --method tsdae --corpus target --backbone bert-base-uncased

    Relations: InfoCSE guesses masked words from the vector, next to SimCSE's loss.
    """

    name = "tsdae"
    settings = ("unsupervised",)
    summary = "a decoder rebuilds a sentence from its damaged copy's vector"
    paper = (
        "Wang, Reimers, Gurevych: TSDAE: Using Transformer-based Sequential Denoising "
        "Auto-Encoder for Unsupervised Sentence Embedding Learning, Findings of EMNLP 2021, "
        "arXiv 2104.06979"
    )
    trains = (
        "the whole encoder, which is the decoder too; while training also cross-attentions and "
        "the LM head"
    )
    trains_on = "text"
    training_only = ("cross", "lm_head", "lm_bias", "lm_words")
    variants = {"deletion-40": {"deletion": 0.4}}
    defaults = {
        "deletion": Value(
            0.6,
            "TSDAE section 4; DenoisingAutoEncoderDataset",
            "share of the words that go; ST's scripts since 2025: 0.4",
        ),
        "batch_size": Value(8, SCRIPT),
        "max_seq_length": Value(75, SCRIPT),
        "warmup_steps": Value(100, SCRIPT),
        "faithful": Value(
            False,
            "ours",
            "true: the dropout of a softmax that is always 1, of each head and position",
        ),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_share(recipe, "deletion")
        check_layers(backbone, "tsdae's decoder")
        check_mlm_head(backbone)

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.cross = nn.ModuleList(
            CrossAttention(self.encoder.config, recipe.faithful) for _ in layers_of(self.encoder)
        )
        head: Any = backbone.mlm_head()
        words_VH = head.decoder.weight
        bias_V = head.decoder.bias
        if bias_V is None:
            bias_V = words_VH.new_zeros(len(words_VH))
        self.lm_bias = nn.Parameter(bias_V.detach().clone())
        # None: the matrix is the word embeddings
        self.lm_words: nn.Parameter | None = None
        if not getattr(self.encoder.config, "tie_word_embeddings", True):
            self.lm_words = nn.Parameter(words_VH.detach().clone())
        head.decoder, head.bias = nn.Identity(), None
        self.lm_head = head

    def collate(
        self, columns: Mapping[str, Sequence[Any]], rows: np.ndarray, epoch: int
    ) -> tuple[Features, ...]:
        """Return the damaged sentences, and the complete ones."""
        (texts,) = columns.values()
        damaged = []
        for text, row in zip(texts, rows, strict=True):
            rng = rng_for(self.context.seed, "deletion", epoch, int(row))
            damaged.append(without(text, self.recipe.deletion, rng))
        length = self.recipe.max_seq_length
        read = self.assemble(self.backbone.ids(damaged), length)
        written = self.assemble(self.backbone.ids(texts), length)
        return read, written

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return the surprise summed over a sentence's tokens and their number, both (n,)."""
        damaged, whole = batch.columns
        ids_nT, known_nT = whole["input_ids"], whole["attention_mask"]
        next_nT = ids_nT[:, 1:].masked_fill(known_nT[:, 1:] == 0, NOT_CHOSEN)
        states_nTH = self.decode(ids_nT[:, :-1], self.embed(damaged))
        places = places_of(next_nT)
        return surprise_of_rows(self.logits(states_nTH[places]), next_nT, places)

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        return Loss(mean_surprise(*views))

    def decode(self, ids_nT: Tensor, vectors_nH: Tensor) -> Tensor:
        """Return the decoder's states behind each token, (n, T, H).

        They are computed from that token, those before it and the sentence's vector.
        """
        T = ids_nT.shape[1]
        states_nTH = embedded(self.encoder, ids_nT)
        # padding is on the right, and no token looks there
        earlier = torch.ones(T, T, dtype=torch.bool, device=ids_nT.device).tril()[None, None]
        mask = attention_mask(earlier, self.encoder, states_nTH.dtype)
        for layer, cross in zip(layers_of(self.encoder), self.cross, strict=True):
            states_nTH = fed_forward(layer, cross(attended(layer, states_nTH, mask), vectors_nH))
        return states_nTH

    def logits(self, states_KH: Tensor) -> Tensor:
        """Return the logits over the vocabulary, (K, V)."""
        words_VH = getattr(self, "lm_words", None)
        if words_VH is None:
            words_VH = self.encoder.get_input_embeddings().weight
        return linear(self.lm_head(states_KH), words_VH, self.lm_bias)


class CrossAttention(nn.Module):
    """Attention to one vector: output(value(s)) at every position, Add, LayerNorm.

    Weights start as N(0, 0.02), biases as 0.
    """

    def __init__(self, config: Any, faithful: bool = False) -> None:
        super().__init__()
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.output = nn.Linear(config.hidden_size, config.hidden_size)
        for layer in (self.value, self.output):
            nn.init.normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.heads = config.num_attention_heads
        self.of_softmax = config.attention_probs_dropout_prob if faithful else 0.0

    def forward(self, states_nTH: Tensor, vectors_nH: Tensor) -> Tensor:
        value = self.value(vectors_nH).unsqueeze(1).expand_as(states_nTH)
        if self.training and self.of_softmax > 0:
            softmax_nTA = dropout(
                value.new_ones(*states_nTH.shape[:2], self.heads), self.of_softmax
            )
            value = (value.unflatten(-1, (self.heads, -1)) * softmax_nTA.unsqueeze(-1)).flatten(-2)
            output: Tensor = self.output(value)
        else:
            output = self.output(value[:, :1]).expand_as(states_nTH)
        states: Tensor = self.norm(states_nTH + self.dropout(output))
        return states


def without(text: str, share: float, rng: np.random.Generator) -> str:
    """Leave out each word of a text with probability ``share``; at least one stays."""
    words = re.findall(r"\w+|[^\w\s]", text)
    if not words:
        return text
    stays = rng.random(len(words)) >= share
    if not stays.any():
        stays[rng.integers(len(words))] = True
    return " ".join(word for word, here in zip(words, stays, strict=True) if here)
