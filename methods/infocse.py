"""InfoCSE: Information-aggregated Contrastive Learning of Sentence Embeddings (Wu et al., Findings
of EMNLP 2022).

Unsupervised SimCSE; its [CLS] also helps to guess masked words that can hardly be guessed without
it:

    x masked -> the first six layers of the start checkpoint, frozen -> states m_1 .. m_T-1
    [ CLS of the encoder for x | m_1 .. m_T-1 ] -> two new layers -> LM head
              -> mean surprise of the masked tokens of both views
    loss = InfoNCE of head(CLS) + mlm_weight * this

The head is DiffCSE's, with batch normalisation, and serves training only. The weight of 1e-5 comes
from the authors' scripts: Adam rescales it away for parameters with only this gradient (new layers,
LM head), and the encoder feels 1e-5 of it. The start of the printed scores is Condenser, which was
pretrained in the same way, and not BERT. Its own two head layers are read by the authors' code only
from a local folder; here, as in their script, the layers begin at random.

CLS is scored without the head.
"""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from torch import Tensor

from bench.backbones.families import check_layers
from bench.method import (
    Backbone,
    Batch,
    Features,
    Loss,
    Recipe,
    Value,
    check_mlm_head,
    check_positive,
    join,
)
from bench.methods.bounds import check_at_least, check_share
from bench.methods.diffcse import batch_norm_head
from bench.methods.gather import across_ranks
from bench.methods.layers import attended, attention_mask, fed_forward, layers_of, new_layers
from bench.methods.losses import info_nce
from bench.methods.masking import surprise_of_copies, with_mlm
from bench.methods.momentum import FrozenCopy
from bench.methods.pooling import ScoredFirstToken

RUN = "InfoCSE/Infocse-bert-base.sh"


class InfoCSE(ScoredFirstToken):
    """InfoCSE: SimCSE, and masked words that are guessed from the sentence's vector and shallow
    states.

    Take it if vectors should carry the words of a sentence; masked copies are read, too.

    Example:
        bench run --method infocse --setting unsupervised --backbone bert-base-uncased

    Relations: SimCSE's variant ``mlm`` guesses from the encoder's own states; TSDAE writes the
    whole sentence.
    """

    name = "infocse"
    settings = ("unsupervised",)
    by_dropout = ("unsupervised",)
    summary = "SimCSE, and masked words guessed from the vector"
    paper = (
        "Wu, Gao, Lin, Han, Wang, Hu: InfoCSE: Information-aggregated Contrastive Learning of "
        "Sentence Embeddings, Findings of EMNLP 2022, arXiv 2210.06432"
    )
    trains = "the whole encoder; while training also the head, two new layers and the LM head"
    training_only = ("head", "shallow", "extra", "lm_head")
    defaults = {
        "learning_rate": Value(7e-6, RUN),
        "batch_size": Value(64, RUN),
        "epochs": Value(2, RUN),
        "temperature": Value(0.05, RUN),
        "mlm_weight": Value(1e-5, RUN),
        "mlm_probability": Value(0.4, RUN, "share of the tokens; 0.3 in the large script"),
        "extra_layers": Value(2, RUN),
        "token_states_from_layer": Value(6, RUN, "of a backbone with fewer layers: its last"),
        "frozen_dropout": Value(
            False, RUN + ": --mlm_eval", "true in the large script, which lacks the flag"
        ),
        "faithful": Value(
            False,
            "an exact gradient over several processes",
            "true: the authors' gather, gradient divided by their number",
        ),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_positive(recipe, "temperature")
        check_share(recipe, "mlm_probability", above_zero=True, below_one=False)
        check_at_least(recipe, 1, "extra_layers", "token_states_from_layer")
        check_layers(backbone, "infocse")
        check_mlm_head(backbone)

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.head = batch_norm_head(backbone.hidden_size)
        first = copy.deepcopy(self.encoder)
        first.encoder.layer = layers_of(first)[: recipe.token_states_from_layer]
        self.shallow = FrozenCopy(first, dropout=recipe.frozen_dropout)
        self.extra = new_layers(self.encoder, recipe.extra_layers)
        self.lm_head = backbone.mlm_head()

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return CLS of both views, (n, H) each, the (n,) sums of the masked tokens' surprise, and
        their (n,) counts.
        """
        # (2n, T): each row under its own dropout masks, one encoder pass
        texts = join(batch.columns * 2, self.pad_id)
        cls = self.embed(texts)
        return *cls.chunk(2), *self.guess(texts, cls)

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        cls1, cls2, *guesses = views
        h = self.head(torch.cat([cls1, cls2]))  # (2n, H): batch statistics over both views
        both = across_ranks(h.chunk(2), self.recipe.faithful)
        contrast = info_nce(*both, temperature=self.recipe.temperature)
        return with_mlm(Loss(contrast), guesses, self.recipe.mlm_weight)

    def guess(self, texts: Features, cls_nH: Tensor) -> tuple[Tensor, Tensor]:
        """Return the MLM surprise of masked copies of both views and the number of guessed tokens,
        both (n,).

        Each copy is masked on its own.
        """

        def states(masked: Features) -> Tensor:
            seen = masked["attention_mask"]
            shallow_nTH = self.shallow(
                input_ids=masked["input_ids"], attention_mask=seen
            ).last_hidden_state
            first_n1H = cls_nH.unsqueeze(1).to(shallow_nTH.dtype)
            states_nTH = torch.cat([first_n1H, shallow_nTH[:, 1:]], dim=1)
            mask = attention_mask(seen.bool()[:, None, None], self.encoder, states_nTH.dtype)
            for layer in self.extra:
                states_nTH = fed_forward(layer, attended(layer, states_nTH, mask))
            return states_nTH

        return surprise_of_copies(
            texts, 2, self.backbone, self.lm_head, self.recipe.mlm_probability, states
        )
