"""Ids of dev sentences are asked of the tokenizer once, and are those that it gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from models import Columns, built, sentences

from bench.method import Context
from bench.methods.promptbert import PromptBERT
from bench.training.loop import run_loop


@pytest.mark.parametrize("cls", [PromptBERT])
def test_a_training_tokenises_its_dev_set_once(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cls: Any
) -> None:
    """Also within a template that is another one at a dev score than afterwards."""
    dev = sentences(6, seed=9)
    scored = []

    def dev_score(one: Any) -> float:
        scored.append(one.token_ids(dev))
        return float(one.encode(dev)[:, 0].sum())

    method = built(
        cls,
        tiny,
        tmp_path,
        setting="unsupervised",
        seed=1,
        context=Context(folder=tmp_path, dev_score=dev_score),
        batch_size=4,
        max_steps=6,
        eval_steps=2,
    )
    asked: list[str] = []
    fresh = type(method.backbone)._fresh_ids

    def counted(backbone: Any, texts: list[str]) -> list[list[int]]:
        asked.extend(texts)
        return fresh(backbone, texts)

    corpus = Columns(method.token_ids(sentences(24, seed=5)))
    at_test = method.token_ids(dev)
    monkeypatch.setattr(type(method.backbone), "_fresh_ids", counted)
    run_loop(method, corpus, method.context)
    assert len(scored) == 3 and scored[0] == scored[1] == scored[2]
    assert sorted(asked) == sorted(set(asked)) and len(asked) == len(dev)
    assert method.token_ids(dev) == at_test
