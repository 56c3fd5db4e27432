"""The mean of the first token's state and of the mean over all tokens.

This file came with the model and needs no other; license: Apache-2.0.

n sentences, T tokens, H hidden size. ``config.json`` names H; there are no weights.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import Any

from torch import nn


class FirstAndMean(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden

    @classmethod
    def load(cls, folder: str) -> FirstAndMean:
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            return cls(**json.load(file))

    def save(self, folder: str, **_: Any) -> None:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump({"hidden": self.hidden}, file)
        # the library looks for this file in the folder above
        shutil.copyfile(__file__, os.path.join(folder, os.pardir, os.path.basename(__file__)))

    def get_embedding_dimension(self) -> int:
        return self.hidden

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        states = features["token_embeddings"]  # (n, T, H)
        weights = features["attention_mask"].unsqueeze(-1).to(states.dtype)
        mean = (states * weights).sum(1) / weights.sum(1).clamp_min(1)
        features["sentence_embedding"] = (states[:, 0] * weights[:, 0] + mean) / 2
        return features
