"""The mean over a fixed number of positions, padding included.

This file came with the model and needs no other; license: Apache-2.0.

Every sentence is padded to ``length`` tokens (``padded.json``), and the states at all of them
count.
"""

from __future__ import annotations

import json
import os
from typing import Any

from sentence_transformers.sentence_transformer.modules import Transformer
from torch.nn.functional import pad

SETTINGS = "padded.json"


class Padded(Transformer):
    length: int
    tokenizer: Any

    @classmethod
    def load(  # type: ignore[override]
        cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any
    ) -> Any:
        module: Any = super().load(model_name_or_path, subfolder=subfolder, **kwargs)
        hub: Any = {
            key: kwargs.get(key)
            for key in ("token", "cache_folder", "revision", "local_files_only")
        }
        with open(
            str(cls.load_file_path(model_name_or_path, SETTINGS, subfolder=subfolder, **hub)),
            encoding="utf-8",
        ) as file:
            module.length = json.load(file)["length"]
        return module

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        super().save(output_path, *args, **kwargs)
        with open(os.path.join(output_path, SETTINGS), "w", encoding="utf-8") as file:
            json.dump({"length": self.length}, file)

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        after = (0, self.length - features["input_ids"].shape[1])
        ids = pad(features["input_ids"], after, value=int(self.tokenizer.pad_token_id or 0))
        mask = pad(features["attention_mask"], after)
        features["sentence_embedding"] = self.model(
            input_ids=ids, attention_mask=mask
        ).last_hidden_state.mean(1)
        return features
