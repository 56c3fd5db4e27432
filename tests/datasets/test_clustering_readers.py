"""Readers of the clustering sets: counts, text forms, and what is refused."""

from __future__ import annotations

import json
import shutil
from importlib import resources

import pytest
from make_manifest import update

from bench.base.errors import DataDamaged, DataMissing, UnknownName
from bench.data.sets import CLUSTERING_TASKS, DataFolder, data_set, read_clustering

CLASSES = {"AgNews": 4, "SearchSnippets": 8, "StackOverflow": 20, "Biomedical": 20, "Tweet": 89}


@pytest.mark.parametrize("name", CLUSTERING_TASKS)
def test_every_set(shared, name):
    folder = DataFolder(shared / "data")
    found = read_clustering(folder, name)
    assert found.form == "sccl" and len(found) == len(found.labels) == data_set(name).items["test"]
    assert len(set(found.labels.tolist())) == CLASSES.get(name, 152)
    file = shared / "data" / "clustering" / f"{name}.tsv"
    rows = [f"{label}\t{text}" for label, text in zip(found.labels, found.texts, strict=True)]
    assert rows == file.read_text(encoding="utf-8").split("\n")[:-1]


def test_what_text_selects(shared, tmp_path):
    folder = DataFolder(shared / "data")
    for text in ("tokenised", "raw", "sccl", "any"):
        assert read_clustering(folder, "GoogleNews-T", text=text).form == "sccl"
    with pytest.raises(DataMissing, match="GoogleNews-T: no other-12345678 text found, only sccl"):
        read_clustering(folder, "GoogleNews-T", text="other-12345678")
    with pytest.raises(UnknownName, match="nearest: Tweet"):
        read_clustering(folder, "Tweets")
    file = tmp_path / "clustering" / "Tweet.tsv"
    file.parent.mkdir()
    text = (shared / "data" / "clustering" / "Tweet.tsv").read_text(encoding="utf-8")
    file.write_text(text.upper(), encoding="utf-8")
    other = read_clustering(DataFolder(tmp_path), "Tweet", text="any")
    assert other.form.startswith("other-")
    for text in ("tokenised", "raw"):
        with pytest.raises(DataMissing, match=f"no {text} text found, only other-"):
            read_clustering(DataFolder(tmp_path), "Tweet", text=text)


def test_the_authors_copy_of_a_set_is_refused(shared, tmp_path):
    """Its texts hold more words than those that the papers scored."""
    (tmp_path / "clustering").mkdir()
    source = shared / "data" / "clustering" / "variants" / "GoogleNews-S.gsdmm.tsv"
    shutil.copyfile(source, tmp_path / "clustering" / "GoogleNews-S.tsv")
    with pytest.raises(DataDamaged, match="11,109 rows found, 11,108 expected"):
        read_clustering(DataFolder(tmp_path), "GoogleNews-S")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[:-400], "rows found, 11,108 expected|altered text"),
        (lambda text: "\n".join(sorted(text.splitlines())) + "\n", "altered text"),
        (lambda text: text.replace("1\tcentrepoint", "2\tcentrepoint", 1), "altered text"),
        (lambda text: text.replace("\t", " ", 1), "line 1 has 1 columns, 2 expected"),
        (lambda text: text.encode().decode("latin-1"), None),
    ],
    ids=["cut", "sorted", "another label", "no tab", "read as latin-1"],
)
def test_a_damaged_file_is_refused_by_name(shared, tmp_path, damage, message):
    name = "GoogleNews-T" if message else "SearchSnippets"
    (tmp_path / "clustering").mkdir()
    text = (shared / "data" / "clustering" / f"{name}.tsv").read_text(encoding="utf-8")
    path = tmp_path / "clustering" / f"{name}.tsv"
    path.write_text(damage(text), encoding="utf-8")
    with pytest.raises(DataDamaged, match=message or "altered text") as caught:
        read_clustering(DataFolder(tmp_path), name)
    assert str(path) in caught.value.message and name in caught.value.message


@pytest.mark.slow
@pytest.mark.parametrize("name", ["clustering.json", "cxc.json"])
def test_remaking_the_manifests_changes_nothing(shared, name):
    stored = json.loads(
        (resources.files("bench.data.sets") / "manifests" / name).read_text(encoding="utf-8")
    )
    again = json.loads(json.dumps(stored))
    assert update(again, shared / "data", shared, name) == (
        ["CxC-STS-official"] if name == "cxc.json" else []
    )
    assert again == stored
