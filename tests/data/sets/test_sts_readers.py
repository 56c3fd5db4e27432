"""The STS readers: real data in both text forms, and every way in which a copy can be wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from bench.base.errors import DataDamaged
from bench.data.sets import DataFolder
from bench.data.sets.sts import read_sts

COUNTS = {
    "STS12": "MSRpar 750 MSRvid 750 SMTeuroparl 459 surprise.OnWN 750 surprise.SMTnews 399",
    "STS13": "FNWN 189 headlines 750 OnWN 561",
    "STS14": "deft-forum 450 deft-news 300 headlines 750 images 750 OnWN 750 tweet-news 750",
    "STS15": "answers-forums 375 answers-students 750 belief 375 headlines 750 images 750",
    "STS16": "answer-answer 254 headlines 249 plagiarism 230 postediting 244 question-question 209",
    "STS-B": "STS-B 1379",
    "SICK-R": "SICK-R 4927",
}
SUBSETS = {
    task: dict(zip(text.split()[::2], map(int, text.split()[1::2]), strict=True))
    for task, text in COUNTS.items()
}
FORM_FOLDERS = {"tokenised": "senteval-moses", "raw": "senteval"}
PAIRS = "STS/STS13-en-test/STS.input.FNWN.txt"


@pytest.fixture
def copy(shared, tmp_path):
    """A data folder with STS13 and STS-B, tokenised; (data folder, its downstream folder)."""
    return tmp_path, copied(shared, tmp_path, "tokenised")


def copied(shared: Path, to: Path, form: str, as_: str | None = None) -> Path:
    home = FORM_FOLDERS[form]
    target = to / (as_ or home) / "downstream"
    for part in ("STS/STS13-en-test", "STS/STSBenchmark"):
        shutil.copytree(
            shared / "data" / home / "downstream" / part,
            target / part,
            copy_function=shutil.copyfile,
        )
        for path in (target / part).iterdir():
            path.chmod(0o644)
        (target / part).chmod(0o755)
    return target


@pytest.mark.parametrize("task", SUBSETS)
def test_the_real_data_has_the_known_counts(shared, task):
    pairs = read_sts(DataFolder(shared / "data"), task)
    counts = {name: pairs.subset.count(name) for name in dict.fromkeys(pairs.subset)}
    assert counts == SUBSETS[task] and list(counts) == list(SUBSETS[task])
    assert len(pairs) == len(pairs.sentences2) == len(pairs.gold) == sum(SUBSETS[task].values())
    assert pairs.split == "test" and pairs.gold.dtype == np.float64
    assert pairs.gold.min() >= (1 if task == "SICK-R" else 0) and pairs.gold.max() <= 5
    assert all(pairs.sentences1) and all(pairs.sentences2)


def test_the_two_forms_are_the_same_pairs(shared):
    folder = DataFolder(shared / "data")
    for task in SUBSETS:
        raw, tokenised = read_sts(folder, task, text="raw"), read_sts(folder, task)
        assert (raw.gold == tokenised.gold).all() and raw.subset == tokenised.subset
        assert raw.sha256 != tokenised.sha256 and raw.sentences1 != tokenised.sentences1


def test_empty_gold_lines_are_dropped_with_their_pairs(shared):
    """Against a plain second reading of one real file pair."""
    folder = shared / "data" / "senteval" / "downstream" / "STS" / "STS16-en-test"
    lines = (folder / "STS.input.headlines.txt").read_text(encoding="utf-8").splitlines()
    gold = (folder / "STS.gs.headlines.txt").read_text().splitlines()
    want = [
        (" ".join(line.split("\t")[0].split()), float(score))
        for line, score in zip(lines, gold, strict=True)
        if score
    ]
    pairs = read_sts(DataFolder(shared / "data"), "STS16", text="raw")
    found = [
        (a, g)
        for a, g, s in zip(pairs.sentences1, pairs.gold, pairs.subset, strict=True)
        if s == "headlines"
    ]
    assert found == want and len(want) < len(lines)


@pytest.mark.parametrize(
    "task, split, n",
    [
        ("STS-B", "dev", 1500),
        ("STS-B", "train", 5749),
        ("SICK-R", "dev", 500),
        ("SICK-R", "all", 9927),
    ],
)
def test_other_splits(shared, task, split, n):
    assert len(read_sts(DataFolder(shared / "data"), task, split=split)) == n


def test_a_users_own_senteval_folder_is_recognised_by_content(copy):
    root, downstream = copy
    target = root / "own" / "data" / "downstream"
    target.parent.mkdir(parents=True)
    downstream.rename(target)
    assert len(read_sts(DataFolder(root / "own"), "STS13")) == 1500


def change(path: Path, lines) -> None:
    path.write_bytes(b"".join(lines(path.read_bytes().splitlines(keepends=True))))


def swapped(lines):
    return [lines[1], lines[0], *lines[2:]]


def altered(lines):
    return [lines[0].replace(b"the", b"a", 1), *lines[1:]]


def test_a_truncated_file_is_refused_with_both_counts(copy):
    root, downstream = copy
    change(downstream / PAIRS, lambda lines: lines[:-1])
    with pytest.raises(DataDamaged, match="188 rows found, 189 expected") as caught:
        read_sts(DataFolder(root), "STS13")
    assert Path(PAIRS).name in caught.value.message and "\n" not in caught.value.message


def test_an_altered_file_is_refused(copy):
    root, downstream = copy
    change(downstream / PAIRS, altered)
    with pytest.raises(DataDamaged, match="altered text.*STS.input.FNWN.txt"):
        read_sts(DataFolder(root), "STS13")


def test_two_forms_in_one_folder_are_refused(shared, copy):
    root, downstream = copy
    shutil.copyfile(shared / "data/senteval/downstream" / PAIRS, downstream / PAIRS)
    with pytest.raises(
        DataDamaged, match="is raw, STS.input|is tokenised, STS.input|STS.input.*is raw"
    ):
        read_sts(DataFolder(root), "STS13")


def test_another_tokenisation_is_refused(copy):
    root, downstream = copy
    path = downstream / PAIRS
    path.write_text(path.read_text(encoding="utf-8").replace(" ,", ","), encoding="utf-8")
    for text in ("tokenised", "any"):
        with pytest.raises(DataDamaged, match="or another tokenisation") as caught:
            read_sts(DataFolder(root), "STS13", text=text)
        assert path.name in caught.value.message and "\n" not in caught.value.message
        assert "bench data fetch sts" in str(caught.value.hint)


def test_a_damaged_copy_where_the_form_lives_is_not_hidden_by_a_whole_copy_of_the_other(
    shared, copy
):
    root, downstream = copy
    copied(shared, root, "raw")
    change(downstream / PAIRS, swapped)
    with pytest.raises(DataDamaged, match="senteval-moses"):
        read_sts(DataFolder(root), "STS13")
    assert len(read_sts(DataFolder(root), "STS13", text="raw")) == 1500
