"""An encoder that reads each sentence inside a template, whose mask token's last state is the sentence's vector.

This file came with the model and needs no other; license: Apache-2.0.

n sentences, T tokens, H hidden size. ``templated.json`` says:

* ``before``, ``after``: the token ids around the sentence, special tokens included; ``mask``: where in the two together the
  mask token stands; ``first_position``: the position id of the first token;
* ``blank``: what is put before each text; ``stop``: what is put behind one that does not end in one of ``endings``
  (``trimmed``: white space at its ends does not count);
* ``vectors_at``: places in ``before`` + ``after`` where learned vectors stand, the rows of the tensor ``vectors``;
* ``transform``: activation and epsilon of a dense layer with layer norm over the state, or null.

The tensor ``bias`` (longest sentence + 1, H), if there is one, is the template's own vector behind a sentence of so many
tokens, and is subtracted.
"""

from __future__ import annotations

import inspect
import json
import os
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers.sentence_transformer.modules import Transformer
from torch import Tensor

SETTINGS, TENSORS = "templated.json", "templated.safetensors"


class Templated(Transformer):
    settings: dict[str, Any]
    tokenizer: Any

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any) -> Any:  # type: ignore[override]
        module: Any = super().load(model_name_or_path, subfolder=subfolder, **kwargs)
        hub: Any = {key: kwargs.get(key) for key in ("token", "cache_folder", "revision", "local_files_only")}
        settings, tensors = (
            cls.load_file_path(model_name_or_path, name, subfolder=subfolder, **hub) for name in (SETTINGS, TENSORS)
        )
        with open(str(settings), encoding="utf-8") as file:
            module.settings = json.load(file)
        for name, tensor in (load_file(tensors) if tensors else {}).items():
            module.register_buffer("own_" + name.replace(".", "_"), tensor)
        return module

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        super().save(output_path, *args, **kwargs)
        with open(os.path.join(output_path, SETTINGS), "w", encoding="utf-8") as file:
            json.dump(self.settings, file)
        own = {
            name.removeprefix("own_"): t.detach().cpu().contiguous()
            for name, t in self.named_buffers()
            if name.startswith("own_")
        }
        if own:
            save_file(own, os.path.join(output_path, TENSORS))

    def own(self, name: str) -> Tensor | None:
        return getattr(self, "own_" + name, None)

    def preprocess(self, inputs: Any, prompt: str | None = None, **_: Any) -> dict[str, Any]:  # type: ignore[override]
        before, after, mask = self.settings["before"], self.settings["after"], self.settings["mask"]
        texts = [self.filled((prompt or "") + text) for text in inputs]
        room = int(self.max_seq_length or 512) - len(before) - len(after)
        ids = [row[:room] for row in self.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]]
        rows = [[*before, *row, *after] for row in ids]
        T = max(map(len, rows))
        pad = int(self.tokenizer.pad_token_id or 0)
        return {
            "input_ids": torch.tensor([row + [pad] * (T - len(row)) for row in rows]),
            "attention_mask": torch.tensor([[1] * len(row) + [0] * (T - len(row)) for row in rows]),
            "position_ids": (self.settings["first_position"] + torch.arange(T)).expand(len(rows), -1).contiguous(),
            "sentence_tokens": torch.tensor([len(row) for row in ids]),
            "mask_position": torch.tensor([mask + len(row) * (mask >= len(before)) for row in ids]),
        }

    def filled(self, text: str) -> str:
        seen = text.strip() if self.settings["trimmed"] else text
        ends = not seen or seen[-1] in self.settings["endings"]
        return self.settings["blank"] + text + ("" if ends else self.settings["stop"])

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        words = self.model.get_input_embeddings()(features["input_ids"])  # (n, T, H)
        lengths = features["sentence_tokens"]
        rows = torch.arange(len(words), device=words.device)
        if (vectors := self.own("vectors")) is not None:
            first = len(self.settings["before"])
            for vector, place in zip(vectors, self.settings["vectors_at"], strict=True):
                words[rows, place + lengths * (place >= first)] = vector.to(words.dtype)
        taken = inspect.signature(self.model.forward).parameters
        named = {key: features[key] for key in ("attention_mask", "position_ids") if key in taken}
        states = self.model(inputs_embeds=words, **named).last_hidden_state
        vector = self.transformed(states[rows, features["mask_position"]])  # (n, H)
        if (bias := self.own("bias")) is not None:
            vector = vector - bias.to(vector.dtype)[lengths]
        features["sentence_embedding"] = vector
        return features

    def transformed(self, state: Tensor) -> Tensor:
        how = self.settings["transform"]
        if how is None:
            return state
        from transformers.activations import ACT2FN

        hidden = torch.nn.functional.linear(state, self.own("transform_weight"), self.own("transform_bias"))  # type: ignore[arg-type]
        weight, bias = self.own("transform_norm_weight"), self.own("transform_norm_bias")
        return torch.nn.functional.layer_norm(ACT2FN[how["activation"]](hidden), hidden.shape[-1:], weight, bias, how["eps"])
