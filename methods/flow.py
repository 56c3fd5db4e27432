"""BERT-flow: On the Sentence Embeddings from Pre-trained Language Models (Li et al., EMNLP 2020).

Where whitening makes pooled vectors u of mean 0 and covariance 1, an invertible network f makes
them standard normal:

    max over f of  E_u [ log N(f(u); 0, 1) + log |det df/du| ]          (section 3.2, in words)

by maximum likelihood on unlabelled sentences; f is Glow (methods/glow.py) with additive couplings,
the encoder is frozen. The loss is the negative of it in bits per dimension. z = f(u) is scored, by
its cosines, without a normalisation before.

"The last two layers" of the paper are, in the authors' code, the FIRST and the last: an index runs
over -0 and -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bench.method import (
    Backbone,
    Batch,
    BenchError,
    Context,
    Features,
    Ids,
    Loss,
    ModuleFile,
    Portable,
    Recipe,
    TorchMethod,
    Value,
    check_choice,
    rng_for,
)
from bench.method.optimizer import UncorrectedAdamW
from bench.methods import glow
from bench.methods.bounds import check_at_least
from bench.methods.glow import Glow, bits_per_channel
from bench.methods.losses import float32_at_least
from bench.methods.pooling import POOLERS, pooled, portable_of

CONFIG = "BERT-flow flow/config/config_l3_d3_w32.json"
CODE = "BERT-flow optimization_bert_flow.py"
RUN = "BERT-flow run_siamese.py"


class Flow(TorchMethod):
    """BERT-flow: an invertible network maps the pooled vectors of a frozen encoder to a standard
    normal distribution.

    Take it as a post-processing that trains nothing in the encoder; whitening needs one pass only.

    Example:
        bench run --method flow --corpus target --backbone bert-base-uncased

    Relations: whitening is the linear case.
    """

    name = "flow"
    settings = ("none",)
    summary = "invertible network that makes pooled vectors normal"
    paper = (
        "Li, Zhou, He, Wang, Yang, Li: On the Sentence Embeddings from Pre-trained Language "
        "Models, EMNLP 2020, arXiv 2011.05864"
    )
    trains = "the flow alone (additive Glow, 3 levels x 3 steps, width 32); the encoder is frozen"
    encoder_is_frozen = True
    defaults = {
        "pooling": Value(
            "avg_first_last",
            RUN + ": avg-last-2",
            "the paper says the last two layers; the code's index takes the first and the last",
        ),
        "levels": Value(3, CONFIG),
        "depth": Value(3, CONFIG, "steps of a level"),
        "width": Value(32, CONFIG, "of the coupling's hidden layers"),
        "permutation": Value(
            "reversed",
            "BERT-flow flow/glow_ops_1x1.py: the fixed matrix turns the order of the channels "
            "round",
            "random: Glow's fixed permutation, drawn from the seed",
        ),
        "batch_size": Value(
            32,
            RUN + ": train_batch_size",
            "of pairs, whose two losses are added; here of sentences",
        ),
        "learning_rate": Value(1e-3, "BERT-flow README: --flow_learning_rate"),
        "schedule": Value(
            "constant", CODE + ": only the encoder's rate decays, and the encoder is frozen"
        ),
        "weight_decay": Value(
            0.01, CODE, "on every parameter of the flow: none is named as those that are excluded"
        ),
        "max_grad_norm": Value(1.0, CODE),
        "epochs": Value(1, "BERT-flow README: --num_train_epochs"),
        "max_seq_length": Value(
            64, RUN + ": of the sentences that it is fitted on and of those that are scored"
        ),
        "dropout": Value(
            None,
            RUN + ": the frozen encoder reads training text with its dropout on; "
            "dropout=0 switches it off",
        ),
        "select_on": Value("last", RUN + ": no dev selection"),
        "corpus_column": Value(
            "all",
            "SimCSE appendix C: NLI text",
            "target text (--corpus target) is the paper's other option",
        ),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_choice(recipe, "pooling", sorted(POOLERS))
        check_at_least(recipe, 1, "levels", "depth", "width")
        check_choice(recipe, "permutation", ("random", "reversed"))

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.check(recipe, backbone.path)
        self.encoder.requires_grad_(False)
        try:
            self.glow = Glow(
                backbone.hidden_size, recipe.levels, recipe.depth, recipe.width, recipe.permutation
            )
        except ValueError as error:
            raise BenchError(
                f"flow on {backbone.name}: {error}", "--set levels= a smaller number"
            ) from None

    def assemble(self, ids: Sequence[Ids], max_length: int | None = None) -> Features:
        return super().assemble(ids, max_length or self.recipe.max_seq_length)

    def fit(self, corpus: Any, context: Context) -> None:
        """Start the actnorms on one batch of the corpus; the common loop does the rest."""
        if len(corpus) < 2:
            raise BenchError(
                "one sentence has no variance for the flow to start from", "give a larger --corpus"
            )
        self.to(context.device).eval()
        rows = rng_for(context.seed, "actnorm").permutation(len(corpus))[: self.recipe.batch_size]
        (features,) = self.collate({"sentence": corpus.column(0).rows(rows)}, rows, 0)
        with torch.no_grad():
            self.glow(
                self.pooled({key: value.to(context.device) for key, value in features.items()}),
                start=True,
            )

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return z, (n, H)."""
        with torch.no_grad():
            u_nH = self.pooled(batch.columns[0])
        with torch.autocast(u_nH.device.type, enabled=False):
            return (self.glow(float32_at_least(u_nH)),)

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        (z_nH,) = views
        with torch.autocast(z_nH.device.type, enabled=False):
            return Loss(bits_per_channel(z_nH, self.glow.log_determinant()))

    def embed(self, features: Features) -> Tensor:
        z_nH: Tensor = self.glow(self.pooled(features))
        return z_nH

    def portable(self) -> Portable:
        recipe = self.recipe
        settings = {
            "channels": self.backbone.hidden_size,
            "levels": recipe.levels,
            "depth": recipe.depth,
            "width": recipe.width,
        }
        tensors = {f"glow.{name}": tensor for name, tensor in self.glow.state_dict().items()}
        layer = ModuleFile(Path(glow.__file__), "GlowLayer", settings, tensors)
        return portable_of(self, recipe.pooling, layer, max_tokens=recipe.max_seq_length)

    def pooled(self, features: Features) -> Tensor:
        return pooled(self, features, self.recipe.pooling)  # (n, H)

    def optimizer(self) -> torch.optim.Optimizer:
        """Return BERT's AdamW: no bias correction, eps 1e-6, decay on all of the flow."""
        recipe = self.recipe
        return UncorrectedAdamW(
            self.glow.parameters(),
            lr=recipe.learning_rate,
            eps=1e-6,
            weight_decay=recipe.weight_decay,
        )
