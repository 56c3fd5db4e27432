"""Readers of the clustering sets: counts, both known forms in any folder, and what is refused."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.base.errors import DataDamaged, UnknownName
from bench.data.sets import DataFolder, data_set
from bench.data.sets.clustering import CLUSTERING_TASKS, RAW_TASKS, read_clustering

CLASSES = {"AgNews": 4, "SearchSnippets": 8, "StackOverflow": 20, "Biomedical": 20, "Tweet": 89}
ORIGINALS = ("StackOverflow", "GoogleNews-TS", "GoogleNews-T", "GoogleNews-S")


@pytest.mark.parametrize("name", CLUSTERING_TASKS)
def test_both_texts_of_every_set(shared, name):
    folder = DataFolder(shared / "data")
    found = read_clustering(folder, name)
    assert len(found) == len(found.labels) == data_set(name).items["test"]
    assert len(set(found.labels.tolist())) == CLASSES.get(name, 152)
    file = shared / "data" / "clustering" / f"{name}.tsv"
    rows = [f"{label}\t{text}" for label, text in zip(found.labels, found.texts, strict=True)]
    assert rows == file.read_text(encoding="utf-8").split("\n")[:-1]
    assert (name in ORIGINALS) == (name in RAW_TASKS)
    if name not in ORIGINALS:
        with pytest.raises(UnknownName):
            read_clustering(folder, name, text="raw")
        return
    other = read_clustering(folder, name, text="raw")
    assert other.sha256 != found.sha256
    assert len(other) == (20000 if name == "StackOverflow" else 11109)
    one, two = (sorted(Counter(x.labels.tolist()).values())[1:] for x in (other, found))
    assert one == pytest.approx(two, abs=1)
    empty = [i for i, text in enumerate(other.texts) if text == "."]
    assert empty == {"GoogleNews-T": [3950], "GoogleNews-S": [6831]}.get(name, [])
    if name == "StackOverflow":  # 45 titles lost their quotes
        differ = [(a, b) for a, b in zip(other.texts, found.texts, strict=True) if a != b]
        assert len(differ) == 45
        assert all(a.replace('"', "").split() == b.replace('"', "").split() for a, b in differ)
    else:  # "lt" and "gt" were cut out
        words = [{w for text in x.texts for w in text.split()} for x in (other, found)]
        assert ["washington" in one for one in words] == [True, False]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[:-400], "rows found, 11,108 expected|altered text"),
        (lambda text: text.replace("1\tcentrepoint", "2\tcentrepoint", 1), "altered text"),
    ],
    ids=["cut", "another label"],
)
def test_a_damaged_file_is_refused_by_name(shared, tmp_path, damage, message):
    name = "GoogleNews-T"
    (tmp_path / "clustering").mkdir()
    text = (shared / "data" / "clustering" / f"{name}.tsv").read_text(encoding="utf-8")
    path = tmp_path / "clustering" / f"{name}.tsv"
    path.write_text(damage(text), encoding="utf-8")
    with pytest.raises(DataDamaged, match=message) as caught:
        read_clustering(DataFolder(tmp_path), name)
    assert str(path) in caught.value.message and name in caught.value.message
