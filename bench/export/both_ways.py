"""A decoder that attends to both sides, under an adapter: its base's own config says causal.

This file came with the model and needs no other; license: Apache-2.0.
"""

from __future__ import annotations

from typing import Any

from sentence_transformers.sentence_transformer.modules import Transformer


class BothWays(Transformer):
    """A transformer of sentence-transformers with a decoder that attends to both sides."""

    @classmethod
    def load(cls, model_name_or_path: str, **kwargs: Any) -> Any:  # type: ignore[override]
        module: Any = super().load(model_name_or_path, **kwargs)
        module.model.config.is_causal = False
        for part in module.model.modules():
            if getattr(part, "is_causal", None) is True:
                part.is_causal = False
        return module
