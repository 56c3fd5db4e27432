"""The mean of the vectors of a sentence's known words.

This file came with the model and needs no other; license: Apache-2.0.

Words are separated by white space, and looked up as written, then lower-cased; unknown ones are
skipped, and a sentence without a known word is a zero vector. ``word_means.json`` lists the words,
``word_means.safetensors`` their vectors.
"""

from __future__ import annotations

import json
import os
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers.base.modules import InputModule

SETTINGS, TENSORS = "word_means.json", "word_means.safetensors"


class WordMeans(InputModule):
    tokenizer: Any = None
    max_seq_length: int | None = None

    def __init__(self, words: list[str], table: torch.Tensor) -> None:
        super().__init__()
        self.words = words
        self.row = {word: number for number, word in enumerate(words)}
        self.table = torch.nn.Parameter(table, requires_grad=False)

    @classmethod
    def load(  # type: ignore[override]
        cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any
    ) -> WordMeans:
        hub: Any = {
            key: kwargs.get(key)
            for key in ("token", "cache_folder", "revision", "local_files_only")
        }
        settings, tensors = (
            str(cls.load_file_path(model_name_or_path, name, subfolder=subfolder, **hub))
            for name in (SETTINGS, TENSORS)
        )
        with open(settings, encoding="utf-8") as file:
            return cls(json.load(file)["words"], load_file(tensors)["table"])

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        with open(os.path.join(output_path, SETTINGS), "w", encoding="utf-8") as file:
            json.dump({"words": self.words}, file, ensure_ascii=False)
        save_file(
            {"table": self.table.detach().cpu().contiguous()}, os.path.join(output_path, TENSORS)
        )

    def get_embedding_dimension(self) -> int:
        return int(self.table.shape[1])

    def preprocess(self, inputs: Any, prompt: str | None = None, **_: Any) -> dict[str, Any]:
        found = [
            [
                self.row.get(word, self.row.get(word.lower(), -1))
                for word in ((prompt or "") + text).split()
            ]
            for text in inputs
        ]
        rows = [[number for number in row if number >= 0] for row in found]
        T = max(1, *(len(row) for row in rows))
        ids = torch.tensor([row + [0] * (T - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (T - len(row)) for row in rows])
        return {"input_ids": ids, "attention_mask": mask}

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        mask = features["attention_mask"].unsqueeze(-1).double()
        vectors = torch.nn.functional.embedding(features["input_ids"], self.table).double()
        mean = (vectors * mask).sum(1) / mask.sum(1).clamp_min(1)
        features["sentence_embedding"] = mean.to(self.table.dtype)
        return features
