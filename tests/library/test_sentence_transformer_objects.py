"""A SentenceTransformer object: what is recorded of it can be written, and another dimension is
another model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from evaluated import CHECK
from st_folders import bert_folder, st_folder, word_tokenizer

import bench
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


def tiny_sentence_transformer(
    tiny: str, folder: Path, prompts: dict[str, str] | None = None, default: str | None = None
) -> Any:
    """A tiny SentenceTransformer: mean pooling, normalised."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    words = modules.Transformer(tiny, max_seq_length=64)
    parts = [words, modules.Pooling(32, "mean"), modules.Normalize()]
    model = SentenceTransformer(
        modules=parts, device="cpu", prompts=prompts, default_prompt_name=default
    )
    model.save(str(folder), create_model_card=False)
    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


@pytest.mark.nightly
def test_a_live_model_is_known_by_its_weights_and_keeps_its_own_prompt(
    tiny: str, tmp_path: Path
) -> None:
    folder, where = tmp_path / "prompted", {"runs": tmp_path / "runs", **CHECK}
    model = tiny_sentence_transformer(tiny, folder, {"query": "query : "}, "query")
    first = bench.evaluate(model, name="m", **where)
    assert first.model["own_prompt"] == "query : " and first.model["prompt"] == ""
    stored = bench.evaluate(folder, **where)
    assert stored.model["prompt"] == "query : "
    assert stored["captions"].value == pytest.approx(first["captions"].value, abs=1e-4)
    one, two = (bench.evaluate(it, prefix="passage : ", **where) for it in (model, folder))
    assert one["captions"].value == pytest.approx(two["captions"].value, abs=1e-4)
    assert one["captions"].value != first["captions"].value, "ours replaces its own"
    again = bench.evaluate(model, name="m", **where)
    assert again.run_id == first.run_id and again.record == first.record
    with torch.no_grad():
        next(model.parameters()).mul_(1.5)
    assert bench.evaluate(model, name="m", **where).run_id != first.run_id
