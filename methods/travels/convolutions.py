"""Convolutions over the tokens' states, averaged over the sentence.

This file came with the model and needs no other; license: Apache-2.0.

n sentences, T tokens, H hidden size. ``config.json`` names the widths and the channels of each;
states at padding are 0.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn


class Convolutions(nn.Module):
    def __init__(self, hidden: int, channels: int, widths: list[int]) -> None:
        super().__init__()
        self.settings = {"hidden": hidden, "channels": channels, "widths": widths}
        self.convolutions = nn.ModuleList(
            nn.Conv1d(hidden, channels, width, padding=width // 2) for width in widths
        )

    @classmethod
    def load(cls, folder: str) -> Convolutions:
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            module = cls(**json.load(file))
        module.load_state_dict(load_file(os.path.join(folder, "model.safetensors")))
        return module

    def save(self, folder: str, **_: Any) -> None:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(self.settings, file)
        save_file(self.state_dict(), os.path.join(folder, "model.safetensors"))
        # the library puts this file next to the tensors, and looks for it in the folder above
        shutil.copyfile(__file__, os.path.join(folder, os.pardir, os.path.basename(__file__)))

    def get_embedding_dimension(self) -> int:
        channels: Any = self.settings["channels"]
        widths: Any = self.settings["widths"]
        return int(channels * len(widths))

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        mask = features["attention_mask"].unsqueeze(-1)  # (n, T, 1)
        states = features["token_embeddings"].masked_fill(mask == 0, 0).transpose(1, 2)  # (n, H, T)
        local = torch.cat([one(states) for one in self.convolutions], dim=1).transpose(1, 2)
        weights = mask.to(local.dtype)
        features["sentence_embedding"] = (local * weights).sum(1) / weights.sum(1).clamp_min(1)
        return features
