"""Any finished encoder, nothing trained.

A sentence-transformers folder or hub name is loaded by that library and keeps its own pooling, normalisation and maximum
length. Any other checkpoint is pooled as ``--set pooling=`` says: a pooler's name, ``last`` for the last token (a decoder's), or
``mlp`` for the stored head on CLS (what SimCSE's supervised checkpoints are scored with; unsupervised ones are scored with ``cls``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from bench.methods.padding import check_left_padding, on_the_left
from bench.methods.pooling import POOLERS, last_token, masked_mean, portable_of
from torch import Tensor

from bench.method import (
    PLACE,
    Affine,
    Backbone,
    BenchError,
    Features,
    Ids,
    Portable,
    Recipe,
    TorchMethod,
    Value,
    check_choice,
    prompted,
)

POOLINGS = {"cls", "last", "mlp", "mean", *POOLERS}
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Pretrained(TorchMethod):
    name = "pretrained"
    settings = ("none",)
    summary = "a finished encoder: a sentence-transformers folder as it is, or a transformers checkpoint with --set pooling="
    deterministic = ("none",)
    defaults = {
        "pooling": Value(None, "the folder's own", f"for a plain transformers checkpoint: {', '.join(sorted(POOLINGS))}"),
        "max_length": Value(None, "the model's own limit"),
    }
    optional = {
        "prompt": Value("", "the model's own, if it has one"),
        "prompts": Value("", "none: every task has the same"),
        "padding": Value(
            "right", "as the others here", "many decoders' own code pads on the left: the same vectors, but for rounding"
        ),
        "dtype": Value("fp32", "what published scores are computed in"),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        if recipe.pooling not in {None, *POOLINGS}:
            raise BenchError(f"pooling={recipe.pooling} is unknown", f"choose from {', '.join(sorted(POOLINGS))}")
        if recipe.pooling is None and backbone is not None and not (backbone / "modules.json").exists():
            raise BenchError(
                f"{backbone} is a plain transformers checkpoint: it does not say how to pool",
                "--set pooling=cls (unsupervised SimCSE), mlp (supervised SimCSE), mean, last (decoders), ...",
            )
        for key, choices in (("padding", ("left", "right")), ("dtype", DTYPES)):
            if key in recipe:
                check_choice(recipe, key, choices)
        if recipe.pooling is None and recipe.get("padding") == "left":
            raise BenchError("padding=left is for a plain checkpoint; this folder says itself how it pads", "leave padding out")
        if recipe.get("padding") == "left" and recipe.pooling not in ("last", "mean", "avg"):
            raise BenchError(f"padding=left with pooling={recipe.pooling}", "--set pooling=last or mean")

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.check(recipe, backbone.path)
        self.text_prompt = recipe.get("prompt")
        self.pooling: str | None = {"mean": "avg"}.get(recipe.pooling, recipe.pooling)
        if self.pooling is None:
            self._load_sentence_transformer(backbone)
        elif self.pooling == "mlp":
            self.encoder = _with_pooling_layer(backbone)
        backbone.encoder = self.encoder  # one copy of the weights
        if getattr(self.encoder.config, "use_cache", False):
            self.encoder.config.use_cache = False  # of keys and values, which only generating needs
        self.to(DTYPES[recipe.get("dtype", "fp32")])
        if recipe.get("padding") == "left":
            check_left_padding(self)

    def _load_sentence_transformer(self, backbone: Backbone) -> None:
        from sentence_transformers import SentenceTransformer

        # float32 also where the weights are stored in half precision, unless another is asked for: what is published is computed in it
        number = DTYPES[self.recipe.get("dtype", "fp32")]
        self.whole = SentenceTransformer(str(backbone.path), device="cpu", local_files_only=True, model_kwargs={"dtype": number})
        self.encoder = self.whole[0].model
        self.limit = self.recipe.max_length or self.whole.max_seq_length or backbone.max_tokens
        if self.text_prompt is None:
            self.text_prompt = self.whole.prompts.get(self.whole.default_prompt_name or "", "") or ""

    @property
    def longest(self) -> int:
        """Tokens of a text, special ones included; longer ones are cut."""
        return int(self.limit if self.pooling is None else self.recipe.max_length or self.backbone.max_tokens)

    def token_ids(self, sentences: Sequence[str]) -> list[list[int]]:
        """With the prompt around every sentence. Of a sentence that is too long its own end is cut, not what the template says after it."""
        ids = super().token_ids(prompted(self.text_prompt, sentences))
        if self.text_prompt and not self.text_prompt.endswith(PLACE) and PLACE in self.text_prompt:
            room = self.longest - len(self.before) - len(self.after)
            ids = [self._cut(sentence, room) if len(row) > room else row for sentence, row in zip(sentences, ids, strict=True)]
        return ids

    def _cut(self, sentence: str, room: int) -> list[int]:
        """The ids of the prompt around as much of the sentence's beginning as fits."""
        words = super().token_ids([sentence])[0]
        kept, row = len(words), super().token_ids(prompted(self.text_prompt, [sentence]))[0]
        while len(row) > room and kept:
            kept = max(0, kept - (len(row) - room))
            row = super().token_ids(prompted(self.text_prompt, [self.backbone.tokenizer.decode(words[:kept])]))[0]
        return row

    def assemble(self, ids: Sequence[Ids], max_length: int | None = None) -> Features:
        if self.pooling is None:
            return super().assemble(ids, self.limit)
        features = super().assemble(ids, max_length or self.recipe.max_length)
        if self.recipe.get("padding") == "left":
            return on_the_left(features, self.backbone.first_position)
        return features

    def embed(self, features: Features) -> Tensor:
        if self.pooling is None:
            before = self.text_prompt if self.text_prompt and PLACE not in self.text_prompt else ""
            prompt = {"prompt_length": len(self.before) + len(super().token_ids([before])[0])} if before else {}
            embedded: Tensor = self.whole({**features, **prompt})["sentence_embedding"]
            return embedded
        if self.pooling == "mlp":
            head: Tensor = self.encoder(**features).pooler_output
            return head
        if self.pooling in ("last", "avg"):
            last, mask = self.encoder(**features).last_hidden_state, features["attention_mask"]
            return last_token(last, mask) if self.pooling == "last" else masked_mean(last.float(), mask)
        states = self.encoder(**features, output_hidden_states=True).hidden_states
        return POOLERS[self.pooling](states, features["attention_mask"])

    def about(self) -> dict[str, Any]:
        """What the record says of it."""
        parts = [type(part).__name__ for part in self.whole] if self.pooling is None else []
        pooling = {"avg": "mean"}.get(self.pooling or "", self.pooling)
        if "Pooling" in parts:
            part: Any = self.whole[parts.index("Pooling")]
            mode = getattr(part, "pooling_mode", None) or part.get_pooling_mode_str()
            pooling = mode if isinstance(mode, str) else "+".join(mode)
        return {
            "pooling": pooling,
            "modules": parts,
            "dtype": self.recipe.get("dtype", "fp32"),
            "max_tokens": self.longest,
            "prompt": self.text_prompt or "",
            "prompts": json.loads(self.recipe.get("prompts") or "{}"),
            "padding": self.recipe.get("padding", "right"),
        }

    def portable(self) -> Portable:
        if "prompt" in self.recipe or "prompts" in self.recipe or self.pooling == "last":
            what = "pools the last token" if self.pooling == "last" else "has a prompt of its own"
            raise BenchError(f"this run {what}, which an export does not carry yet", "bench encode gives its vectors")
        if self.pooling is None:
            return Portable(tokenizer=self.backbone.tokenizer, max_tokens=self.limit, write=self.write)
        if self.pooling != "mlp":
            return portable_of(self, self.pooling, max_tokens=self.recipe.max_length)
        dense = self.encoder.pooler.dense
        return portable_of(self, "cls", Affine(dense.weight, dense.bias, tanh=True), max_tokens=self.recipe.max_length)

    def write(self, folder: Path) -> None:
        """The sentence-transformers model as it is, in float32 and with this maximum length."""
        self.whole.max_seq_length = self.limit
        self.whole.save(str(folder), create_model_card=False)


def _with_pooling_layer(backbone: Backbone) -> Any:
    """The encoder with the pooling layer of its checkpoint; BenchError where the checkpoint has none."""
    from transformers import AutoModel

    folder = backbone.encoder.name_or_path  # in a sentence-transformers folder the transformer may lie deeper
    encoder, info = AutoModel.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    if getattr(encoder, "pooler", None) is None or any("pooler" in name for name in info["missing_keys"]):
        raise BenchError(f"{backbone.name} has no pooling layer, which pooling=mlp needs", "--set pooling=cls")
    return encoder.eval()
