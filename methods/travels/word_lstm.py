"""The largest outputs of a bidirectional LSTM over the vectors of a sentence's known words.

This file came with the model and needs no other; license: Apache-2.0.

Words are separated by white space, and looked up as written; unknown ones are skipped. <s> and </s>
are put around them, the last two rows of the table. ``word_lstm.json`` lists the words,
``word_lstm.safetensors`` has their vectors and the LSTM.
"""

from __future__ import annotations

import json
import os
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers.base.modules import InputModule

SETTINGS, TENSORS = "word_lstm.json", "word_lstm.safetensors"


class WordLSTM(InputModule):
    tokenizer: Any = None
    max_seq_length: int | None = None

    def __init__(self, words: Any, size: Any, table: torch.Tensor, **weights: torch.Tensor) -> None:
        super().__init__()
        self.words, self.size = words, size
        self.row = {word: number + 1 for number, word in enumerate(words)}
        self.table = torch.nn.Parameter(table, requires_grad=False)
        self.lstm = torch.nn.LSTM(table.shape[1], size, batch_first=True, bidirectional=True)
        self.lstm.load_state_dict(weights)

    @classmethod
    def load(  # type: ignore[override]
        cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any
    ) -> WordLSTM:
        hub: Any = {
            key: kwargs.get(key)
            for key in ("token", "cache_folder", "revision", "local_files_only")
        }
        settings, tensors = (
            str(cls.load_file_path(model_name_or_path, name, subfolder=subfolder, **hub))
            for name in (SETTINGS, TENSORS)
        )
        with open(settings, encoding="utf-8") as file:
            about = json.load(file)
        return cls(about["words"], about["size"], **load_file(tensors))

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        with open(os.path.join(output_path, SETTINGS), "w", encoding="utf-8") as file:
            json.dump({"words": self.words, "size": self.size}, file, ensure_ascii=False)
        tensors = {"table": self.table, **self.lstm.state_dict()}
        save_file(
            {name: one.detach().cpu().contiguous() for name, one in tensors.items()},
            os.path.join(output_path, TENSORS),
        )

    def get_embedding_dimension(self) -> int:
        return 2 * self.size

    def preprocess(self, inputs: Any, prompt: str | None = None, **_: Any) -> dict[str, Any]:
        last = len(self.table) - 1
        found = [
            [self.row[word] for word in ((prompt or "") + text).split() if word in self.row]
            for text in inputs
        ]
        rows = [[last - 1, *row, last] for row in found]
        T = max(map(len, rows))
        ids = torch.tensor([row + [0] * (T - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (T - len(row)) for row in rows])
        return {"input_ids": ids, "attention_mask": mask}

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        mask = features["attention_mask"]
        vectors = torch.nn.functional.embedding(features["input_ids"], self.table)
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            vectors, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False
        )
        states, _lengths = torch.nn.utils.rnn.pad_packed_sequence(
            self.lstm(packed)[0], batch_first=True, total_length=mask.shape[1]
        )
        features["sentence_embedding"] = states.masked_fill(
            mask.unsqueeze(-1) == 0, -torch.inf
        ).amax(1)
        return features
