"""An encoder that reads each sentence inside a template; the mask token's last state is its vector.

This file came with the model and needs no other; license: Apache-2.0.

n sentences, T tokens, H hidden size. ``templated.json`` says:

* ``before``, ``after``: the token ids around the sentence, special tokens included; ``mask``: the
  mask token's position in the two together; ``first_position``: the position id of the first token;
* ``blank``: put before each text; ``stop``: put behind a text that does not end in one of
  ``endings`` (``trimmed``: white space at its ends does not count);
* ``filling``: null if the sentence's ids are put between ``before`` and ``after``; else the text is
  filled and tokenised once: ``first`` and ``last`` are the texts around the sentence, ``mask`` and
  ``slots`` the places, in characters of the two together, of the mask token and of the learned
  vectors;
* ``vectors_at``: places of learned vectors in ``before`` + ``after``, the rows of the tensor
  ``vectors``;
* ``transform``: activation and epsilon of a dense layer with layer norm over the state, or null.

The tensor ``bias`` (longest sentence + 1, H), if there is one, is the template's own vector behind
a sentence of so many tokens, and is subtracted.
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

    def preprocess(  # type: ignore[override]
        self, inputs: Any, prompt: str | None = None, **_: Any
    ) -> dict[str, Any]:
        before = self.settings["before"]
        after = self.settings["after"]
        mask = self.settings["mask"]
        texts = [self.filled((prompt or "") + text) for text in inputs]
        if self.settings.get("filling"):
            return self.tokenised_once(texts)
        room = int(self.max_seq_length or 512) - len(before) - len(after)
        ids = [
            row[:room]
            for row in self.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
        ]
        rows = [[*before, *row, *after] for row in ids]
        T = max(map(len, rows))
        pad = int(self.tokenizer.pad_token_id or 0)
        return {
            "input_ids": torch.tensor([row + [pad] * (T - len(row)) for row in rows]),
            "attention_mask": torch.tensor([[1] * len(row) + [0] * (T - len(row)) for row in rows]),
            "position_ids": (self.settings["first_position"] + torch.arange(T))
            .expand(len(rows), -1)
            .contiguous(),
            "sentence_tokens": torch.tensor([len(row) for row in ids]),
            "mask_position": torch.tensor([mask + len(row) * (mask >= len(before)) for row in ids]),
        }

    def filled(self, text: str) -> str:
        seen = text.strip() if self.settings["trimmed"] else text
        ends = not seen or seen[-1] in self.settings["endings"]
        return self.settings["blank"] + text + ("" if ends else self.settings["stop"])

    def tokenised_once(self, texts: list[str]) -> dict[str, Any]:
        """Return the features of filled templates."""
        rows = [self.row(text) for text in texts]
        T = max(len(ids) for ids, _, _ in rows)
        pad = int(self.tokenizer.pad_token_id or 0)
        around = len(self.settings["before"]) + len(self.settings["after"])
        return {
            "input_ids": torch.tensor([ids + [pad] * (T - len(ids)) for ids, _, _ in rows]),
            "attention_mask": torch.tensor(
                [[1] * len(ids) + [0] * (T - len(ids)) for ids, _, _ in rows]
            ),
            "position_ids": (self.settings["first_position"] + torch.arange(T))
            .expand(len(rows), -1)
            .contiguous(),
            "sentence_tokens": torch.tensor([max(0, len(ids) - around) for ids, _, _ in rows]),
            "mask_position": torch.tensor([mask for _, mask, _ in rows]),
            "slots": torch.tensor([slots for _, _, slots in rows]),
        }

    def row(self, sentence: str) -> tuple[list[int], int, list[int]]:
        """Return the ids of the filled template, the place of its mask, and the places of its
        learned vectors.

        A sentence that is too long is cut.
        """
        filling, longest = self.settings["filling"], int(self.max_seq_length or 512)
        first, last = filling["first"], filling["last"]
        while True:
            read = self.tokenizer([first + sentence + last], verbose=False).encodings[0]
            begin, end = len(first), len(first) + len(sentence)
            spoken = [
                i
                for i, (a, b) in enumerate(read.offsets)
                if not (read.special_tokens_mask[i] and a == b)
            ]
            inside = [i for i in spoken if read.offsets[i][0] < end and read.offsets[i][1] > begin]
            kept = len(inside) - (len(read.ids) - longest)
            if len(read.ids) <= longest or not sentence:
                break
            at = read.offsets[inside[kept - 1]][1] - begin if kept > 0 else 0
            sentence = sentence[: max(0, min(at, len(sentence) - 1))]
        ids = list(read.ids)
        before = list(self.settings["before"])
        after = list(self.settings["after"])

        def token(place: int) -> int:
            character = place if place < begin else place + len(sentence)
            return next(i for i, (a, b) in enumerate(read.offsets) if a <= character < b)

        at_mask, slots = token(filling["mask"]), [token(place) for place in filling["slots"]]
        if (
            self.settings["vectors_at"] and not slots
        ):  # each learned vector replaces a token of the template
            start = inside[0] if inside else len(before)
            stop = inside[-1] + 1 if inside else start
            if ids[:start] != before or ids[stop:] != after:
                inner = self.tokenizer(sentence, add_special_tokens=False)["input_ids"][
                    : len(inside)
                ]
                ids, at_mask = [*before, *inner, *after], self.settings["mask"] + len(inner)
        return ids, at_mask, slots

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        words = self.model.get_input_embeddings()(features["input_ids"])  # (n, T, H)
        lengths = features["sentence_tokens"]
        rows = torch.arange(len(words), device=words.device)
        if (vectors := self.own("vectors")) is not None:
            first = len(self.settings["before"])
            slots = features.get("slots")
            for number, (vector, place) in enumerate(
                zip(vectors, self.settings["vectors_at"], strict=True)
            ):
                at = place + lengths * (place >= first)
                if slots is not None and slots.shape[1]:
                    at = slots[:, number]
                words[rows, at] = vector.to(words.dtype)
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

        hidden = torch.nn.functional.linear(
            state,
            self.own("transform_weight"),  # type: ignore[arg-type]
            self.own("transform_bias"),
        )
        weight, bias = self.own("transform_norm_weight"), self.own("transform_norm_bias")
        return torch.nn.functional.layer_norm(
            ACT2FN[how["activation"]](hidden), hidden.shape[-1:], weight, bias, how["eps"]
        )
