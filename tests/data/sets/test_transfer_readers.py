"""The transfer sets as SentEval reads them, on its real files; and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from bench.base.errors import DataDamaged
from bench.data.sets import DataFolder, data_set
from bench.data.sets.transfer import read_transfer

# (split, items, items per class), as SentEval's readers count them
COUNTS = {
    "MR": [("test", 10662, [5331, 5331])],
    "CR": [("test", 3775, [1368, 2407])],
    "SUBJ": [("test", 10000, [5000, 5000])],
    "MPQA": [("test", 10606, [7294, 3312])],
    "SST-2": [
        ("train", 67349, [29780, 37569]),
        ("dev", 872, [428, 444]),
        ("test", 1821, [912, 909]),
    ],
    "TREC": [
        ("train", 5452, [86, 1162, 1250, 1223, 835, 896]),
        ("test", 500, [9, 138, 94, 65, 81, 113]),
    ],
    "MRPC": [("train", 4076, [1323, 2753]), ("test", 1725, [578, 1147])],
}


@pytest.fixture(scope="module")
def folder(shared) -> DataFolder:
    return DataFolder(shared / "data")


@pytest.fixture
def copy(shared, tmp_path):
    """``copy("TREC")``: the files of a set in a folder of one's own, which may be changed."""

    def copied(task: str) -> Path:
        target = tmp_path / "downstream" / task
        shutil.copytree(
            shared / "data/senteval-moses/downstream" / task, target, copy_function=shutil.copyfile
        )
        target.chmod(0o755)
        return target

    return copied


@pytest.mark.parametrize("task", COUNTS)
def test_the_real_data_has_the_known_counts(folder, task):
    texts = read_transfer(folder, task)
    for split, n, per_class in COUNTS[task]:
        member = texts.split == split
        assert member.sum() == n == data_set(task).items[split]
        assert np.bincount(texts.labels[member]).tolist() == per_class
    assert len(texts) == sum(n for _, n, _ in COUNTS[task]) == len(texts.texts[0])
    assert len(texts.classes) == len(COUNTS[task][0][2])
    assert len(texts.texts) == (2 if task == "MRPC" else 1)


def test_blank_lines_stay_as_empty_sentences_with_a_label(folder):
    assert [
        read_transfer(folder, task).texts[0].count("") for task in ("MR", "CR", "SUBJ", "MPQA")
    ] == [0, 4, 0, 3]


def test_positive_comes_first_and_letters_outside_ascii_are_read_as_senteval_does(folder):
    assert read_transfer(folder, "SUBJ").labels.tolist() == [1] * 5000 + [0] * 5000
    trec = read_transfer(folder, "TREC").texts[0]
    assert any("sister\xf0city" in question for question in trec)  # latin-1; no valid UTF-8
    assert any("\xe9" in text for text in read_transfer(folder, "SST-2").texts[0])  # UTF-8


def test_rows_are_sorted_by_tokens_then_label_and_else_stay_in_place(shared, folder):
    """Against a plain second reading."""
    items = []
    for file, label in (("custrev.pos", 1), ("custrev.neg", 0)):
        path = shared / "data/senteval-moses/downstream/CR" / file
        text = path.read_bytes().decode("latin-1")
        items += [(line.split(), label) for line in text.splitlines()]
    items.sort(key=lambda item: (len(item[0]), item[1]))
    texts = read_transfer(folder, "CR")
    assert [(texts.texts[0][i].split(), texts.labels[i]) for i in texts.rows("test")] == items
    assert len(texts.rows("train")) == 0


def test_a_users_own_folder_and_other_line_ends_are_recognised(folder, copy):
    for task in ("TREC", "MRPC", "CR"):
        target = copy(task)
        for path in target.iterdir():
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        own, known = read_transfer(DataFolder(target.parents[1]), task), read_transfer(folder, task)
        wanted = (known.texts, known.sha256, known.labels.tolist())
        assert (own.texts, own.sha256, own.labels.tolist()) == wanted


def truncated(data: bytes) -> bytes:
    return b"".join(data.splitlines(keepends=True)[:-1])


def encoded_twice(data: bytes) -> bytes:
    return data.decode("latin-1").encode("utf-8")


def swapped(old: bytes, new: bytes):
    return lambda data: data.replace(old, new, 1)


TRAIN, TEST = "train_5500.label", "msr_paraphrase_test.txt"
DAMAGES = [
    ("MR", "rt-polarity.neg", truncated, "MR: 5,330 rows found, 5,331 expected"),
    ("TREC", TRAIN, encoded_twice, "TREC: altered text"),
    ("MRPC", TEST, swapped(b"\n1\t", b"\n0\t"), "MRPC: altered text"),
]


@pytest.mark.parametrize("task, file, damage, message", DAMAGES)
def test_a_damaged_file_is_refused_by_name(copy, task, file, damage, message):
    target = copy(task)
    path = target / file
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataDamaged, match=message) as caught:
        read_transfer(DataFolder(target.parents[1]), task)
    assert file in caught.value.message and "\n" not in caught.value.message
