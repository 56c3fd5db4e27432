"""Encoders that read each sentence behind a trained prompt, inside a template, or in a prompt in
words.

This file came with the model and needs no other; license: Apache-2.0.

n sentences, T tokens, P length of a trained prompt, H hidden size, L layers, A attention heads.
``readers.json`` describes one of the classes below, ``readers.safetensors`` has its tensors.
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

SETTINGS, TENSORS = "readers.json", "readers.safetensors"
ENDINGS = (".", "?", '"', "'")


class Reader(Transformer):
    """A transformer with settings and tensors of its own, both in the model's own folder."""

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

    def own(self, name: str) -> Any:
        """Return one of the tensors; None if there is none of that name."""
        return getattr(self, "own_" + name, None)

    def padded(self, rows: list[list[int]]) -> dict[str, Tensor]:
        """Return ids and mask of rows, (n, T), padded on the right."""
        T = max(map(len, rows))
        pad = int(self.tokenizer.pad_token_id or 0)
        return {
            "input_ids": torch.tensor([row + [pad] * (T - len(row)) for row in rows]),
            "attention_mask": torch.tensor([[1] * len(row) + [0] * (T - len(row)) for row in rows]),
        }

    def encoding(self, text: str) -> Any:
        return self.tokenizer([text], verbose=False).encodings[0]

    @staticmethod
    def spoken(encoding: Any, begin: int, end: int) -> list[int]:
        """Return the tokens with a character of a part of the text."""
        found = []
        for number, (a, b) in enumerate(encoding.offsets):
            added = encoding.special_tokens_mask[number] and a == b
            if not added and a < end and b > begin:
                found.append(number)
        return found


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


class Prompted(Reader):
    """A transformer behind a trained prompt, the tensor ``table``.

    * kind "deep": P slots of keys and values a layer, a (P, 2LH) table: layer by layer H numbers of
      a key, H of a value;
    * kind "layer-shared": one pair for all layers, a (P, 2H) table;
    * kind "input-layer": P vectors before the word embeddings, a (P, H) table.

    The sentence's first token has position P. The output is the states of the sentence's own T
    tokens.
    """

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        ids, mask, table = features["input_ids"], features["attention_mask"], self.own("table")
        P = len(table)
        whole = torch.cat([mask.new_ones(len(mask), P), mask], dim=1)  # (n, P + T)
        if self.settings["kind"] == "input-layer":
            words = self.model.get_input_embeddings()(ids)
            inputs = torch.cat([table.to(words.dtype).expand(len(words), -1, -1), words], dim=1)
            states = self.model(inputs_embeds=inputs, attention_mask=whole).last_hidden_state[:, P:]
        else:
            prefix = Prefix(self.keys_and_values(table, len(ids)))
            states = self.model(
                input_ids=ids, attention_mask=whole, past_key_values=prefix
            ).last_hidden_state
        features["token_embeddings"] = states  # (n, T, H)
        return features

    def keys_and_values(self, table: Tensor, n: int) -> list[tuple[Tensor, Tensor]]:
        """Return for each layer (n, A, P, H / A) keys and as many values."""
        layers, heads = self.model.config.num_hidden_layers, self.model.config.num_attention_heads
        is_shared = self.settings["kind"] == "layer-shared"
        kinds = 2 if is_shared else 2 * layers
        cut = table.view(len(table), kinds, heads, -1)
        # key and value of layer 0, of layer 1, ...
        parts = cut.expand(n, -1, -1, -1, -1).permute(2, 0, 3, 1, 4).unbind()
        pairs = list(zip(parts[0::2], parts[1::2], strict=True))
        return pairs * layers if is_shared else pairs


class Templated(Reader):
    """A transformer that reads each sentence inside a template; the mask token's last state is its
    vector.

    The settings are

    * ``before``, ``after``: the token ids around the sentence, special tokens included; ``mask``:
      the mask token's position in the two together; ``first_position``: the position id of the
      first token;
    * ``blank``: put before each text; ``stop``: put behind a text that does not end in one of
      ``endings`` (``trimmed``: white space at its ends does not count);
    * ``filling``: null if the sentence's ids are put between ``before`` and ``after``; else the
      text is filled and tokenised once: ``first`` and ``last`` are the texts around the sentence,
      ``mask`` and ``slots`` the places, in characters of the two together, of the mask token and of
      the learned vectors;
    * ``vectors_at``: places of learned vectors in ``before`` + ``after``, the rows of the tensor
      ``vectors``;
    * ``transform``: activation and epsilon of a dense layer with layer norm over the state, or
      null.

    The tensor ``bias`` (longest sentence + 1, H), if there is one, is the template's own vector
    behind a sentence of so many tokens, and is subtracted.
    """

    def preprocess(  # type: ignore[override]
        self, inputs: Any, prompt: str | None = None, **_: Any
    ) -> dict[str, Any]:
        texts = [self.ended((prompt or "") + text) for text in inputs]
        if self.settings["filling"]:
            rows = [self.filled(text) for text in texts]
        else:
            ids = self.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
            room = self.longest - len(self.settings["before"]) - len(self.settings["after"])
            rows = [self.in_pieces(row[:room]) for row in ids]
        features = self.padded([row for row, _, _ in rows])
        T = features["input_ids"].shape[1]
        positions = self.settings["first_position"] + torch.arange(T)
        around = len(self.settings["before"]) + len(self.settings["after"])
        return {
            **features,
            "position_ids": positions.expand(len(rows), -1).contiguous(),
            "sentence_tokens": torch.tensor([max(0, len(row) - around) for row, _, _ in rows]),
            "mask_position": torch.tensor([mask for _, mask, _ in rows]),
            "slots": torch.tensor([slots for _, _, slots in rows], dtype=torch.int64),
        }

    @property
    def longest(self) -> int:
        return int(self.max_seq_length or 512)

    def ended(self, text: str) -> str:
        seen = text.strip() if self.settings["trimmed"] else text
        ends = not seen or seen[-1] in self.settings["endings"]
        return self.settings["blank"] + text + ("" if ends else self.settings["stop"])

    def in_pieces(self, inner: list[int]) -> tuple[list[int], int, list[int]]:
        """Return a sentence's ids inside the template's, the place of the mask, and the places of
        the learned vectors.
        """
        before, after = self.settings["before"], self.settings["after"]
        places = [self.settings["mask"], *self.settings["vectors_at"]]
        mask, *slots = (place + len(inner) * (place >= len(before)) for place in places)
        return [*before, *inner, *after], mask, slots

    def filled(self, sentence: str) -> tuple[list[int], int, list[int]]:
        """Return the ids of the filled template, the place of its mask, and the places of its
        learned vectors.

        A sentence that is too long is cut.
        """
        filling = self.settings["filling"]
        first, last = filling["first"], filling["last"]
        while True:
            read = self.encoding(first + sentence + last)
            begin = len(first)
            inside = self.spoken(read, begin, begin + len(sentence))
            kept = len(inside) - (len(read.ids) - self.longest)
            if len(read.ids) <= self.longest or not sentence:
                break
            at = read.offsets[inside[kept - 1]][1] - begin if kept > 0 else 0
            sentence = sentence[: max(0, min(at, len(sentence) - 1))]
        ids = list(read.ids)

        def token(place: int) -> int:
            character = place if place < begin else place + len(sentence)
            return next(i for i, (a, b) in enumerate(read.offsets) if a <= character < b)

        slots = [token(place) for place in filling["slots"]]
        if slots or not self.settings["vectors_at"]:
            return ids, token(filling["mask"]), slots
        # each learned vector replaces a token of the template
        before, after = list(self.settings["before"]), list(self.settings["after"])
        start = inside[0] if inside else len(before)
        stop = inside[-1] + 1 if inside else start
        inner = ids[start:stop]
        if ids[:start] != before or ids[stop:] != after:
            inner = self.tokenizer(sentence, add_special_tokens=False)["input_ids"][: len(inside)]
        return self.in_pieces(inner)

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        words = self.model.get_input_embeddings()(features["input_ids"])  # (n, T, H)
        rows = torch.arange(len(words), device=words.device)
        vectors = self.own("vectors")
        if vectors is not None:
            for number, vector in enumerate(vectors):
                words[rows, features["slots"][:, number]] = vector.to(words.dtype)
        taken = inspect.signature(self.model.forward).parameters
        named = {key: features[key] for key in ("attention_mask", "position_ids") if key in taken}
        states = self.model(inputs_embeds=words, **named).last_hidden_state
        vector = self.transformed(states[rows, features["mask_position"]])  # (n, H)
        bias = self.own("bias")
        if bias is not None:
            vector = vector - bias.to(vector.dtype)[features["sentence_tokens"]]
        features["sentence_embedding"] = vector
        return features

    def transformed(self, state: Tensor) -> Tensor:
        how = self.settings["transform"]
        if how is None:
            return state
        from transformers.activations import ACT2FN

        hidden = torch.nn.functional.linear(
            state, self.own("transform_weight"), self.own("transform_bias")
        )
        weight, bias = self.own("transform_norm_weight"), self.own("transform_norm_bias")
        return torch.nn.functional.layer_norm(
            ACT2FN[how["activation"]](hidden), hidden.shape[-1:], weight, bias, how["eps"]
        )


class Worded(Reader):
    """A decoder that reads each sentence inside a prompt in words; its state at the last token is
    the vector.

    The settings are

    * ``prompts``: one or several, with ``place`` in which the sentence is put; of several, vectors
      are averaged;
    * ``clean``: "prompteol" (a full stop, single quotation marks, no question mark at the end),
      "bellm" (without the quotation marks), or "none";
    * ``layer``: the number of the hidden state that is read, -1 the last;
    * ``pooling``: "last", the prompt's last token; "last-span" or "mean-span", the last token or
      the mean of the last place's sentence;
    * ``max_tokens``: of a filled prompt; a sentence that is too long is cut, the prompt never.

    The tensor ``map`` (H', H), if there is one, is applied to the vector.
    """

    def preprocess(  # type: ignore[override]
        self, inputs: Any, prompt: str | None = None, **_: Any
    ) -> dict[str, Any]:
        texts = [self.cleaned((prompt or "") + text) for text in inputs]
        read = []
        for words in self.settings["prompts"]:
            read += [self.fitted(words, text) for text in texts]
        span = torch.tensor([[start, stop] for _, start, stop in read])
        return {**self.padded([ids for ids, _, _ in read]), "span": span}

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
            encoding = self.encoding(text.strip())
            too_many = len(encoding.ids) - longest
            if too_many <= 0 or not sentence:
                break
            own = self.encoding(sentence)
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

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        mask = features["attention_mask"]
        states = self.model(
            input_ids=features["input_ids"], attention_mask=mask, output_hidden_states=True
        ).hidden_states[self.settings["layer"]]
        vector = self.pooled(states, mask, features["span"])
        several = len(self.settings["prompts"])
        vector = vector.unflatten(0, (several, -1)).mean(0)
        own = self.own("map")
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
