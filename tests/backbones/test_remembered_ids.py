"""Ids of dev sentences are asked of the tokenizer once, and are those that it gives."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from models import Columns, built, sentences

from bench.backbones import remembered_ids
from bench.backbones.remembered_ids import RememberedIds
from bench.method import Context
from bench.methods.promptbert import PromptBERT
from bench.methods.simcse import SimCSE
from bench.training.loop import run_loop

TEXTS = ["one two", "", "one two", "Ünïcode  中文 \U0001f600", "x " * 40]


class Counted:
    """A tokenizer that gives the characters of a text, and notes which texts it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: list[str]) -> list[list[int]]:
        self.asked += texts
        return [[ord(letter) for letter in text] for text in texts]


def test_each_sentence_is_tokenised_once_and_gets_its_own_list() -> None:
    memory, tokenise = RememberedIds(), Counted()
    wanted = Counted()(TEXTS)
    with memory.in_use():
        first = memory.ids(TEXTS, tokenise)
        assert first == wanted
        first[0].append(7)
        assert memory.ids(TEXTS[::-1], tokenise) == wanted[::-1]
        assert memory.ids([*TEXTS, "new"], tokenise)[-1] == [ord(letter) for letter in "new"]
    assert tokenise.asked == [*dict.fromkeys(TEXTS), "new"]
    memory.ids(TEXTS, tokenise)  # not in use any more
    assert tokenise.asked[-len(TEXTS) :] == TEXTS


def test_another_thread_neither_fills_it_nor_reads_it() -> None:
    memory, tokenise, other = RememberedIds(), Counted(), Counted()
    with memory.in_use():
        memory.ids(["a"], tokenise)
        thread = threading.Thread(target=lambda: memory.ids(["a", "b"], other))
        thread.start()
        thread.join()
        memory.ids(["a", "b"], tokenise)
    assert other.asked == ["a", "b"] and tokenise.asked == ["a", "b"]


def test_its_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered_ids, "MOST_IDS", 10)
    memory, tokenise = RememberedIds(), Counted()
    texts = ["abcd", "efgh", "ijkl"]  # 5 each
    with memory.in_use():
        for _ in range(2):
            assert memory.ids(texts, tokenise) == Counted()(texts)
    assert tokenise.asked == [*texts, "ijkl"]


@pytest.mark.parametrize("cls", [SimCSE, PromptBERT])
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
