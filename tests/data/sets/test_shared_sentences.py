"""The numbers of sentences that are kept, against the data they were made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from make_shared_sentences import number_sentences

from bench.data.sets import DataFolder
from bench.data.sets.shared_sentences import sentence_numbers
from bench.data.sets.sts import STS_TASKS, read_sts


@pytest.mark.nightly
@pytest.mark.parametrize(("folder", "text"), [("senteval-moses", "tokenised"), ("senteval", "raw")])
def test_the_stored_lists_of_sentences_agree_with_the_data(
    shared: Path, folder: str, text: str
) -> None:
    data = DataFolder(shared / "data" / folder)
    for task, (_, numbers) in number_sentences(data, text).items():
        kept = sentence_numbers(task, read_sts(data, task, text=text).gold)
        assert kept is not None and np.array_equal(kept, numbers)


def test_the_counts_of_the_issue(shared: Path) -> None:
    """18,850 pairs, and 17,318 with other letters: 153 of SMTeuroparl are there twice (149 sign for
    sign).
    """
    data = DataFolder(shared / "data" / "senteval-moses")
    kept = {task: sentence_numbers(task, read_sts(data, task).gold) for task in STS_TASKS}
    pairs = np.sort(
        np.concatenate([numbers for numbers in kept.values() if numbers is not None]), axis=1
    )
    assert len(pairs) == 18_850 and len(np.unique(pairs, axis=0)) == 17_318
    subset = np.array(read_sts(data, "STS12").subset)
    assert kept["STS12"] is not None
    european = np.sort(kept["STS12"][subset == "SMTeuroparl"], axis=1)
    assert len(european) - len(np.unique(european, axis=0)) == 153


def test_the_sentences_of_a_set_are_numbered_by_pair_and_by_words(shared: Path) -> None:
    pairs = read_sts(DataFolder(shared / "data" / "senteval-moses"), "STS-B", split="test")
    every = [*pairs.sentences1, *pairs.sentences2]
    kept = sentence_numbers("uniformity", np.zeros(len(every)))
    assert kept is not None and kept.shape == (len(every), 2)
    assert np.array_equal(kept[: len(pairs), 0], kept[len(pairs) :, 0])
    assert len(np.unique(kept[:, 0])) == len(pairs)
    assert set(kept[:, 0].tolist()).isdisjoint(kept[:, 1].tolist())
    words = ["".join(filter(str.isalnum, text.casefold())) for text in every]
    numbers = dict(zip(words, kept[:, 1].tolist(), strict=True))
    assert len(numbers) == len(np.unique(kept[:, 1]))
    assert [numbers[word] for word in words] == kept[:, 1].tolist()
    assert sentence_numbers("uniformity", np.zeros(12)) is None
