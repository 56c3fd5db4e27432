"""AnglE-LLaMA: AnglE's losses on a decoder's last token behind a prompt (Li and Li, ACL 2024).

    Summarize sentence "x" in one word:"

The three losses come from :mod:`methods.angle`; the vector is read as PromptEOL's. The library
takes the last token of a decoder whatever pooling its command names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bench.method import Batch, Features, Loss, Recipe, Value
from bench.methods.angle import check_scales, text_number, three_losses
from bench.methods.pcc_tuning import PccTuning
from bench.methods.prompteol import PromptEOL

CODE = "SeanLee97/AnglE README.md of 2023-10-18 (de7b750:40-47)"


class AnglELLaMA(PccTuning):
    """AnglE-LLaMA: a decoder's last token behind a prompt, trained with AnglE's losses of scored
    pairs.

    Take it for NLI pairs scored 0 or 1 on a decoder.

    Example:
        bench run --method angle-llama --setting supervised --corpus pairs.csv --backbone \\
          facebook/opt-125m

    Relations: AnglE has the same losses on an encoder; PromptEOL trains triplets.
    """

    name = "angle-llama"
    summary = "AnglE's losses on a decoder's last token"
    paper = (
        "Li, Li: AoE: Angle-optimized Embeddings for Semantic Textual Similarity, ACL 2024, "
        "arXiv 2309.12871"
    )
    variants = dict[str, Any]()
    defaults = {
        "template": Value('Summarize sentence "[X]" in one word:"', CODE),
        "layer": Value(-1, CODE),
        "clean_at_test": PromptEOL.defaults["clean_at_test"],
        "cosine_weight": Value(1.0, CODE + ": w1"),
        "contrast_weight": Value(35.0, CODE + ": w2"),
        "angle_weight": Value(1.0, CODE + ": w3"),
        "cosine_scale": Value(20.0, "AnglE AngleLoss default"),
        "contrast_scale": Value(20.0, "AnglE AngleLoss default"),
        "angle_scale": Value(1.0, "AnglE AngleLoss default until 2024"),
        "learning_rate": Value(2e-4, CODE, "since 2024-01-11: 1e-4"),
        "warmup_steps": Value(0, "not said"),
        "max_seq_length": Value(45, CODE, "since 2024-01-11: 50; of the sentence"),
        "eval_steps": Value(125, "harness default"),
        "batch_size": Value(160, CODE, "accumulation 4 on 4 GPUs; since 2024-01-11: 120"),
        "epochs": Value(1, CODE),
        "select_on": Value("last", CODE),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        super().check(recipe, backbone)
        check_scales(recipe)

    def collate(
        self, columns: Mapping[str, Sequence[Any]], rows: np.ndarray, epoch: int
    ) -> tuple[Features, ...]:
        first, second, scores = super().collate(columns, rows, epoch)
        pairs = zip(*list(columns.values())[:2], strict=True)
        numbers = [[text_number(list(text.encode())) for text in pair] for pair in pairs]
        return first, second, scores | {"texts": torch.tensor(numbers)}

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return x and y, (n, H) each, the scores (n,), and the sentences' numbers (n, 2)."""
        return *super().views(batch), batch.columns[2]["texts"]

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        x, y, scores_n, texts_n2 = views
        return three_losses(x, y, scores_n, texts_n2, self.recipe)
