"""MNTP, masked next-token prediction: the first step of LLM2Vec (BehnamGhader et al., COLM 2024).

A decoder that attends both ways (``attention=bidirectional``) learns to use the tokens behind a
token: some tokens are masked, and each is predicted from the state BEFORE it, as the decoder
predicts its next token anyway.

    loss = mean over masked positions i of - log p(x_i | state at i - 1 of the masked text)

The output matrix is the decoder's own and does not train; the authors train adapters on the layers
(``adapter=lora``). The mean over the sentence's tokens is scored, special tokens included.

Here a row is a sentence of the corpus; the authors pack text to 512 tokens.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from bench.backbones.direction import is_causal
from bench.backbones.folder import read_transformer_config
from bench.method import (
    Backbone,
    Batch,
    BenchError,
    Features,
    Loss,
    Recipe,
    Value,
)
from bench.methods.bounds import check_share
from bench.methods.masking import (
    NOT_CHOSEN,
    mask_tokens,
    mean_surprise,
    places_of,
    special_positions,
    surprise_of_rows,
)
from bench.methods.output_matrix import output_matrix
from bench.methods.pooling import ScoredMean

CODE = "McGill-NLP/llm2vec run_mntp.py"
CONFIG = "McGill-NLP/llm2vec train_configs/mntp"


class MNTP(ScoredMean):
    """MNTP: masked tokens of a decoder that attends both ways, each predicted from the state before
    it.

    Take it before ``simcse+llm2vec``, which goes on from its run: ``--backbone RUN``.

    Example:
        bench run --method mntp --setting unsupervised --backbone Qwen/Qwen3-0.6B

    Relations: SimCSE's variant ``llm2vec`` is the second step; TSDAE and InfoCSE mask encoders.
    """

    name = "mntp"
    settings = ("unsupervised",)
    summary = "masked tokens predicted from the state before them"
    paper = (
        "BehnamGhader, Adlakha, Mosbach, Bahdanau, Chapados, Reddy: LLM2Vec: Large Language Models "
        "Are Secretly Powerful Text Encoders, COLM 2024, arXiv 2404.05961"
    )
    trains = "the whole decoder; the authors train adapters"
    training_only = ("matrix",)
    variants = {"all-masked": {"all_masked": True, "mask_probability": 0.8}}
    defaults = {
        "mask_text": Value(
            "_",
            CODE + ":675-684",
            "this text's last token masks; of a backbone with a mask token of its own, that one",
        ),
        "mask_probability": Value(
            0.2, CONFIG, "share of the tokens; 0.8 for Mistral, whose chosen tokens are all masked"
        ),
        "all_masked": Value(
            False, CONFIG, "true: every chosen token is masked, none kept or drawn at random"
        ),
        "batch_size": Value(32, CONFIG),
        "learning_rate": Value(5e-5, CONFIG + ": the HF trainer's default"),
        "max_steps": Value(1000, CONFIG),
        "max_seq_length": Value(512, CONFIG),
        "select_on": Value("last", CODE + " keeps the last step"),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_share(recipe, "mask_probability", above_zero=True, below_one=False)
        if backbone is None or recipe.get("attention") == "bidirectional":
            return
        if is_causal(read_transformer_config(backbone)):
            raise BenchError(
                f"{backbone} attends only to earlier tokens, and mntp is there to use what "
                "stands behind a token",
                "--set attention=bidirectional",
            )

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.register_buffer("matrix", output_matrix(backbone))
        tokenizer = backbone.tokenizer
        self.mask_id = tokenizer.mask_token_id
        if self.mask_id is None:
            ids = backbone.ids([recipe.mask_text or ""])[0]
            if not ids:
                raise BenchError(
                    f"mask_text={recipe.mask_text!r} has no token", "--set mask_text=_"
                )
            self.mask_id = ids[-1]

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return the surprise summed over a row's masked tokens and their number, both (n,)."""
        (features,) = batch.columns
        masked_nT, labels_nT = self.masked(features)
        states_nTH = self.hidden({**features, "input_ids": masked_nT})
        # the state at position i - 1 predicts the token at i
        wanted_nT = torch.full_like(labels_nT, NOT_CHOSEN)
        wanted_nT[:, :-1] = labels_nT[:, 1:]
        places = places_of(wanted_nT)
        matrix: Any = self.matrix
        logits_KV = linear(states_nTH[places].to(matrix.dtype), matrix)
        return surprise_of_rows(logits_KV, wanted_nT, places)

    def masked(self, features: Features) -> tuple[Tensor, Tensor]:
        """Return the ids to read and the labels to guess, both (n, T).

        Special tokens, padding and a row's first token stay: the first has no token before it.
        """
        ids_nT, mask_nT = features["input_ids"], features["attention_mask"]
        special = set(self.backbone.tokenizer.all_special_ids)
        spared_nT = special_positions(ids_nT, special) | (mask_nT == 0)
        spared_nT[:, 0] = True
        share = self.recipe.mask_probability
        masked_nT, labels_nT = mask_tokens(
            ids_nT, spared_nT, int(self.mask_id), len(self.backbone.tokenizer), share
        )
        if self.recipe.all_masked:
            chosen_nT = labels_nT != NOT_CHOSEN
            masked_nT = ids_nT.masked_fill(chosen_nT, int(self.mask_id))
        return masked_nT, labels_nT

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        return Loss(mean_surprise(*views))
