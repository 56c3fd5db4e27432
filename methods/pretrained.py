"""Any finished encoder, nothing trained.

A sentence-transformers folder or hub name is loaded by that library and keeps its own pooling, normalisation and maximum
length. Any other checkpoint is pooled as ``--set pooling=`` says: a pooler's name, or ``mlp`` for the stored head on CLS
(what SimCSE's supervised checkpoints are scored with; unsupervised ones are scored with ``cls``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from bench.method import Affine, Backbone, BenchError, Features, Ids, Portable, Recipe, TorchMethod, Value
from methods.pooling import POOLERS, portable_of

POOLINGS = {"cls", "mlp", "mean", *POOLERS}


class Pretrained(TorchMethod):
    name = "pretrained"
    settings = ("none",)
    summary = "a finished encoder: a sentence-transformers folder as it is, or a transformers checkpoint with --set pooling="
    deterministic = ("none",)
    defaults = {
        "pooling": Value(None, "the folder's own", f"for a plain transformers checkpoint: {', '.join(sorted(POOLINGS))}"),
        "max_length": Value(None, "the model's own limit"),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        if recipe.pooling not in {None, *POOLINGS}:
            raise BenchError(f"pooling={recipe.pooling} is unknown", f"choose from {', '.join(sorted(POOLINGS))}")
        if recipe.pooling is None and backbone is not None and not (backbone / "modules.json").exists():
            raise BenchError(
                f"{backbone} is a plain transformers checkpoint: it does not say how to pool",
                "--set pooling=cls (unsupervised SimCSE), mlp (supervised SimCSE), mean, ...",
            )

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.check(recipe, backbone.path)
        self.prompt = ""
        self.pooling: str | None = {"mean": "avg"}.get(recipe.pooling, recipe.pooling)
        if self.pooling is None:
            self._load_sentence_transformer(backbone)
        elif self.pooling == "mlp":
            self.encoder = _with_pooling_layer(backbone)

    def _load_sentence_transformer(self, backbone: Backbone) -> None:
        import torch
        from sentence_transformers import SentenceTransformer

        # float32 also where the weights are stored in half precision: what is published is computed in it
        self.whole = SentenceTransformer(
            str(backbone.path), device="cpu", local_files_only=True, model_kwargs={"dtype": torch.float32}
        )
        self.encoder = self.whole[0].model
        self.limit = self.recipe.max_length or self.whole.max_seq_length or backbone.max_tokens
        self.prompt = self.whole.prompts.get(self.whole.default_prompt_name or "", "") or ""
        self.prompt_length = len(self.before) + len(super().token_ids([self.prompt])[0]) if self.prompt else 0

    def token_ids(self, sentences: Sequence[str]) -> list[list[int]]:
        """With the prompt that a sentence-transformers folder puts before every text, if it has one."""
        return super().token_ids([self.prompt + s for s in sentences] if self.prompt else sentences)

    def assemble(self, ids: Sequence[Ids], max_length: int | None = None) -> Features:
        if self.pooling is None:
            return super().assemble(ids, self.limit)
        return super().assemble(ids, max_length or self.recipe.max_length)

    def embed(self, features: Features) -> Tensor:
        if self.pooling is None:
            prompt = {"prompt_length": self.prompt_length} if self.prompt else {}
            embedded: Tensor = self.whole({**features, **prompt})["sentence_embedding"]
            return embedded
        if self.pooling == "mlp":
            head: Tensor = self.encoder(**features).pooler_output
            return head
        states = self.encoder(**features, output_hidden_states=True).hidden_states
        return POOLERS[self.pooling](states, features["attention_mask"])

    def portable(self) -> Portable:
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
    import torch
    from transformers import AutoModel

    folder = backbone.encoder.name_or_path  # in a sentence-transformers folder the transformer may lie deeper
    encoder, info = AutoModel.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    if getattr(encoder, "pooler", None) is None or any("pooler" in name for name in info["missing_keys"]):
        raise BenchError(f"{backbone.name} has no pooling layer, which pooling=mlp needs", "--set pooling=cls")
    return encoder.eval()
