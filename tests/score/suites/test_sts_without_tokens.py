"""STS without the most frequent tokens of the encoder: which are removed, from what, and what is
scored.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from stand_in import words_in
from transformers import AutoTokenizer

from bench.data.sets import DataFolder
from bench.data.sets.sts import read_sts
from bench.records.names import data_key, predictions_name
from bench.run.vectors import tokens_of
from bench.score.suites import RunPlace, suite
from bench.score.suites.frequent import REMOVED, most_frequent, without_tokens, words
from bench.score.suites.sts import STS_TASKS

PROTOCOL = "senteval-all-without-{}-tokens/1"


def tokens(tokenizer: Any) -> Any:
    method: Any = SimpleNamespace(backbone=SimpleNamespace(tokenizer=tokenizer))
    return tokens_of(method)


@pytest.fixture(scope="module")
def bert(shared: Path) -> Any:
    return AutoTokenizer.from_pretrained(shared / "models" / "bert-base-uncased-tokenizer")


@pytest.mark.slow
def test_what_is_removed_is_most_frequent_among_the_ids_of_texts(bert: Any, shared: Path) -> None:
    """And in 98 of 100 texts exactly the other ids remain."""
    texts = read_sts(DataFolder(shared / "data"), "STS-B").sentences1[::3]
    ids = bert(texts, add_special_tokens=False)["input_ids"]
    counts = Counter(one for row in ids for one in row)
    gone = most_frequent(texts, tokens(bert), 64)
    assert [counts[bert.vocab[token]] for token in gone] == sorted(counts.values())[:-65:-1]
    assert gone[:3] == [".", "a", "the"] and any(token.startswith("##") for token in gone)
    reduced = without_tokens(texts, tokens(bert), gone)
    removed = {bert.vocab[token] for token in gone}
    left = [[one for one in row if one not in removed] for row in ids]
    found = bert(reduced, add_special_tokens=False)["input_ids"]
    assert np.mean([a == b for a, b in zip(left, found, strict=True)]) > 0.98


def test_blanks_are_left_in_the_place_of_tokens_and_of_a_whole_text(bert: Any) -> None:
    texts = ["A man's cats play.", "a . a", "u.s."]
    assert without_tokens(texts, tokens(bert), ["a", ".", "'"]) == [" man s cats play", " ", "u s"]
    assert without_tokens(texts, words, ["a", "."]) == ["A man's cats play.", " ", "u.s."]


@pytest.mark.slow
def test_the_score_is_that_of_the_shortened_sentences(bert: Any, shared: Path) -> None:
    data, k = DataFolder(shared / "data"), 16
    (task,) = (one for one in suite(f"sts:{PROTOCOL.format(k)}").tasks if one.name == "STS16")
    loaded, pairs = task.load(data), read_sts(data, "STS16")
    place = RunPlace("run", "1a2b", shared, tokens(bert))
    result = loaded.score_in(place, words_in)
    gone = set(result.detail["removed_tokens"])
    counted = read_sts(data, "STS-B")
    rows = bert(counted.sentences1 + counted.sentences2, add_special_tokens=False)["input_ids"]
    counts = Counter(one for row in rows for one in row)
    assert {bert.vocab[token] for token in gone} == {one for one, _ in counts.most_common(k)}
    sides = []
    for texts in (pairs.sentences1, pairs.sentences2):
        x = words_in(without_tokens(texts, tokens(bert), gone)).astype(float)
        sides.append(x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12))
    wanted = 100 * spearmanr((sides[0] * sides[1]).sum(1), pairs.gold).statistic
    assert result.value == pytest.approx(wanted, abs=0.01)
    # words of the texts, where nobody knows the tokens
    of_words = loaded.score_in(RunPlace("run", "1a2b", shared), words_in)
    assert of_words.detail["removed_tokens"] != result.detail["removed_tokens"]
    again = task.rescore(result.predictions, task.name)
    assert again.value == result.value


def test_each_number_of_tokens_is_a_protocol_with_predictions_of_its_own() -> None:
    names = {predictions_name("STS12", "senteval-all/1")}
    for k in REMOVED:
        protocol = PROTOCOL.format(k)
        assert tuple(task.name for task in suite(f"sts:{protocol}").tasks) == STS_TASKS
        assert data_key("STS12", protocol) == f"STS12@without-{k}-tokens"
        names.add(predictions_name("STS12", protocol))
    assert len(names) == 1 + len(REMOVED)
