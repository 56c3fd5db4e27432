"""A decoder that reads each sentence inside a prompt in words; its state at the last token is the
vector.

This file came with the model and needs no other; license: Apache-2.0.

``worded.json`` says:

* ``prompts``: one or several, with ``place`` in which the sentence is put; of several, vectors are
  averaged;
* ``clean``: "prompteol" (a full stop, single quotation marks, no question mark at the end), "bellm"
  (without the quotation marks), or "none";
* ``layer``: the number of the hidden state that is read, -1 the last;
* ``pooling``: "last", the prompt's last token; "last-span" or "mean-span", the last token or the
  mean of the last place's sentence;
* ``max_tokens``: of a filled prompt; a sentence that is too long is cut, the prompt never.

The tensor ``map`` (H', H), if there is one, is applied to the vector.
"""

from __future__ import annotations

import json
import os
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers.sentence_transformer.modules import Transformer
from torch import Tensor

SETTINGS, TENSORS = "worded.json", "worded.safetensors"
ENDINGS = (".", "?", '"', "'")


class Worded(Transformer):
    settings: dict[str, Any]
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
        settings, tensors = (
            cls.load_file_path(model_name_or_path, name, subfolder=subfolder, **hub)
            for name in (SETTINGS, TENSORS)
        )
        with open(str(settings), encoding="utf-8") as file:
            module.settings = json.load(file)
        stored = load_file(tensors) if tensors else {}
        module.register_buffer("own_map", stored.get("map"))
        return module

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        super().save(output_path, *args, **kwargs)
        with open(os.path.join(output_path, SETTINGS), "w", encoding="utf-8") as file:
            json.dump(self.settings, file)
        own: Any = self.own_map
        if own is not None:
            tensors = {"map": own.detach().cpu().contiguous()}
            save_file(tensors, os.path.join(output_path, TENSORS))

    def preprocess(  # type: ignore[override]
        self, inputs: Any, prompt: str | None = None, **_: Any
    ) -> dict[str, Any]:
        texts = [self.cleaned((prompt or "") + text) for text in inputs]
        read = []
        for words in self.settings["prompts"]:
            read += [self.fitted(words, text) for text in texts]
        T = max(len(ids) for ids, _, _ in read)
        pad = int(self.tokenizer.pad_token_id or 0)
        return {
            "input_ids": torch.tensor([ids + [pad] * (T - len(ids)) for ids, _, _ in read]),
            "attention_mask": torch.tensor(
                [[1] * len(ids) + [0] * (T - len(ids)) for ids, _, _ in read]
            ),
            "span": torch.tensor([[start, stop] for _, start, stop in read]),
        }

    def cleaned(self, text: str) -> str:
        kind = self.settings["clean"]
        if kind == "none":
            return text
        if text and not text.endswith(ENDINGS):
            text += "."
        if kind == "prompteol":
            text = text.replace('"', "'")
        return text[:-1] + "." if text.endswith("?") else text

    def fitted(self, words: str, sentence: str) -> tuple[list[int], int, int]:
        """Return the ids of a filled prompt that is not too long, and the tokens of the sentence in
        its last place, from start to before stop.
        """
        longest = self.settings["max_tokens"]
        places = words.count(self.settings["place"])
        while True:
            text = words.replace(self.settings["place"], sentence)
            encoding = self.tokenizer([text.strip()], verbose=False).encodings[0]
            too_many = len(encoding.ids) - longest
            if too_many <= 0 or not sentence:
                break
            own = self.tokenizer([sentence], verbose=False).encodings[0]
            inside = self.spoken(own, 0, len(sentence))
            left = len(inside) - -(-too_many // places)
            end = own.offsets[inside[left - 1]][1] if left > 0 else 0
            sentence = sentence[: min(end, len(sentence) - 1)]
        before = words.rpartition(self.settings["place"])[0]
        begin = len(before.replace(self.settings["place"], sentence).lstrip())
        inside = self.spoken(encoding, begin, begin + len(sentence))
        if not inside:
            return list(encoding.ids), 0, 0
        return list(encoding.ids), inside[0], inside[-1] + 1

    @staticmethod
    def spoken(encoding: Any, begin: int, end: int) -> list[int]:
        """Return the tokens with a character of a part of the text."""
        found = []
        for number, (a, b) in enumerate(encoding.offsets):
            added = encoding.special_tokens_mask[number] and a == b
            if not added and a < end and b > begin:
                found.append(number)
        return found

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        mask = features["attention_mask"]
        states = self.model(
            input_ids=features["input_ids"], attention_mask=mask, output_hidden_states=True
        ).hidden_states[self.settings["layer"]]
        vector = self.pooled(states, mask, features["span"])
        several = len(self.settings["prompts"])
        vector = vector.unflatten(0, (several, -1)).mean(0)
        own: Any = self.own_map
        if own is not None:
            vector = vector @ own.to(vector.dtype).T
        features["sentence_embedding"] = vector
        return features

    def pooled(self, states: Tensor, mask: Tensor, span: Tensor) -> Tensor:
        rows = torch.arange(len(states), device=states.device)
        start, stop = span.T
        if self.settings["pooling"] == "last":
            return states[rows, mask.sum(1) - 1]
        if self.settings["pooling"] == "last-span":
            state = states[rows, (stop - 1).clamp_min(0)]
            return state * (stop > start).unsqueeze(1)
        place = torch.arange(states.shape[1], device=states.device)
        inside = (place >= start[:, None]) & (place < stop[:, None])
        weights = inside.unsqueeze(-1).to(states.dtype)
        return (states * weights).sum(1) / weights.sum(1).clamp_min(1)
