"""An encoder that reads behind a trained prompt.

This file came with the model and needs no other; license: Apache-2.0.

n sentences, T tokens, P length of the prompt, H hidden size, L layers, A attention heads.

* kind "deep": P slots of keys and values a layer, a (P, 2LH) table: layer by layer H numbers of a
  key, H of a value;
* kind "layer-shared": one pair for all layers, a (P, 2H) table;
* kind "input-layer": P vectors before the word embeddings, a (P, H) table.

The sentence's first token has position P. The output is the states of the sentence's own T tokens.
"""

from __future__ import annotations

import json
import os
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers.sentence_transformer.modules import Transformer
from torch import Tensor

SETTINGS, TENSORS = "prompted.json", "prompted.safetensors"


class Prefix:
    """Keys and values as transformers' cache; it is only read."""

    def __init__(self, pairs: list[tuple[Tensor, Tensor]]) -> None:
        self.pairs = pairs

    def get_seq_length(self, *_: Any, **__: Any) -> int:
        return self.pairs[0][0].shape[2]

    def update(
        self, keys: Tensor, values: Tensor, layer: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        k, v = self.pairs[layer]
        return torch.cat([k.to(keys.dtype), keys], dim=2), torch.cat(
            [v.to(values.dtype), values], dim=2
        )


class Prompted(Transformer):
    """A transformer with a prompt.

    The prompt is in ``prompted.safetensors`` and its description in ``prompted.json``, both in the
    model's own folder.
    """

    kind: str
    table: torch.nn.Parameter

    @classmethod
    def load(  # type: ignore[override]
        cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any
    ) -> Any:
        module: Any = super().load(model_name_or_path, subfolder=subfolder, **kwargs)
        hub: Any = {
            key: kwargs.get(key)
            for key in ("token", "cache_folder", "revision", "local_files_only")
        }
        places = [
            str(cls.load_file_path(model_name_or_path, name, subfolder=subfolder, **hub))
            for name in (SETTINGS, TENSORS)
        ]
        with open(places[0], encoding="utf-8") as file:
            module.kind = json.load(file)["kind"]
        module.table = torch.nn.Parameter(load_file(places[1])["table"])
        return module

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        super().save(output_path, *args, **kwargs)
        with open(os.path.join(output_path, SETTINGS), "w", encoding="utf-8") as file:
            json.dump({"kind": self.kind}, file)
        save_file(
            {"table": self.table.detach().cpu().contiguous()}, os.path.join(output_path, TENSORS)
        )

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        ids, mask = features["input_ids"], features["attention_mask"]
        P = len(self.table)
        whole = torch.cat([mask.new_ones(len(mask), P), mask], dim=1)  # (n, P + T)
        if self.kind == "input-layer":
            words = self.model.get_input_embeddings()(ids)
            inputs = torch.cat(
                [self.table.to(words.dtype).expand(len(words), -1, -1), words], dim=1
            )
            states = self.model(inputs_embeds=inputs, attention_mask=whole).last_hidden_state[:, P:]
        else:
            prefix = Prefix(self.keys_and_values(len(ids)))
            states = self.model(
                input_ids=ids, attention_mask=whole, past_key_values=prefix
            ).last_hidden_state
        features["token_embeddings"] = states  # (n, T, H)
        return features

    def keys_and_values(self, n: int) -> list[tuple[Tensor, Tensor]]:
        """Return for each layer (n, A, P, H / A) keys and as many values."""
        layers, heads = self.model.config.num_hidden_layers, self.model.config.num_attention_heads
        kinds = 2 if self.kind == "layer-shared" else 2 * layers
        cut = self.table.view(len(self.table), kinds, heads, -1)
        # key and value of layer 0, of layer 1, ...
        parts = cut.expand(n, -1, -1, -1, -1).permute(2, 0, 3, 1, 4).unbind()
        pairs = list(zip(parts[0::2], parts[1::2], strict=True))
        return pairs * layers if self.kind == "layer-shared" else pairs
