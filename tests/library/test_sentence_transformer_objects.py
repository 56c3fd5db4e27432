"""A SentenceTransformer object: what is recorded of it can be written, and another dimension is
another model.
"""

from __future__ import annotations

from pathlib import Path

import torch
from st_folders import bert_folder, st_folder, word_tokenizer

from bench.run.external.objects import object_plugin


def test_word_vectors_have_no_longest_text() -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    torch.manual_seed(0)
    module = StaticEmbedding(word_tokenizer().backend_tokenizer, embedding_dim=6)
    cls = object_plugin(SentenceTransformer(modules=[module], device="cpu"), "words").cls
    method = cls()
    method.build(None, {})  # type: ignore[arg-type]
    cls.own_revision({})  # type: ignore[arg-type]
    assert method.about()["max_tokens"] is None


def test_another_dimension_is_another_model(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    folder = str(st_folder(tmp_path / "model", bert_folder(tmp_path / "bert")))
    revisions = [
        object_plugin(
            SentenceTransformer(folder, device="cpu", truncate_dim=size), "one"
        ).cls.own_revision({})  # type: ignore[arg-type]
        for size in (None, 8, 4)
    ]
    assert len(set(revisions)) == 3
