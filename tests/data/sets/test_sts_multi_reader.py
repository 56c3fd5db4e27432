"""Readers of the sets in other languages, against the files themselves."""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hub import StandInHub
from make_shared_sentences import number_tracks

from bench.base.errors import DataDamaged
from bench.data.sets import DataFolder, all_sources, data_set
from bench.data.sets.fetch import Fetcher
from bench.data.sets.shared_sentences import sentence_numbers
from bench.data.sets.sts import read_sts
from bench.data.sets.sts_multi import TRACKS, read_sts_multi


@pytest.fixture(scope="module")
def folder(shared: Path) -> DataFolder:
    return DataFolder(shared / "data")


@pytest.mark.parametrize("task", ["ar-ar", "tr-en"])
def test_a_track_has_the_pairs_that_have_a_rating(shared: Path, folder: DataFolder, task: str):
    wanted = data_set(TRACKS[task])
    pairs_file, gold_file = (shared / "data/sts-multi/sts17" / file.path for file in wanted.files)
    ratings = [float(line) for line in gold_file.read_text().split()]
    lines = pairs_file.read_text(encoding="utf-8").split("\n")
    assert len(lines) - 1 == (500 if task == "tr-en" else 250) and len(ratings) == 250
    found = read_sts_multi(folder, task)
    assert found.gold.tolist() == ratings
    for first, second, line in zip(found.sentences1, found.sentences2, lines, strict=False):
        assert [first, second] == [" ".join(cell.split()) for cell in line.split("\t")]


@pytest.mark.parametrize("task", ["en", "zh"])
def test_a_translation_has_the_ratings_of_the_original(folder: DataFolder, task: str):
    found = read_sts_multi(folder, task)
    assert len(found) == 1379 and len(read_sts_multi(folder, task, split="dev")) == 1500
    assert found.gold.tolist() == read_sts_multi(folder, "en").gold.tolist()
    path = folder.roots[0] / f"sts-multi/stsb/stsb-{task}-test.csv"
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))
    assert [" ".join(row[0].split()) for row in rows] == found.sentences1
    assert [float(row[2]) for row in rows] == found.gold.tolist()


def test_the_english_text_is_that_of_sts_b(folder: DataFolder):
    """The raw form, with quotation marks as CSV reads them."""
    original = read_sts(folder, "STS-B", text="raw")
    found = read_sts_multi(folder, "en")
    assert found.gold == pytest.approx(original.gold)
    same = [a == b for a, b in zip(found.sentences1, original.sentences1, strict=True)]
    assert sum(same) > 1300


def test_sentences_that_pairs_share(folder: DataFolder):
    for task, (_, numbers) in number_tracks(folder).items():
        kept = sentence_numbers(task, read_sts_multi(folder, task).gold)
        assert kept is not None and np.array_equal(kept, numbers)
    gold = read_sts_multi(folder, "zh").gold
    original = sentence_numbers("STS-B", gold)
    assert original is not None and np.array_equal(sentence_numbers("zh", gold), original)
    assert sentence_numbers("zh", gold[::-1]) is None


def test_an_altered_file_is_refused_by_name(shared: Path, tmp_path: Path):
    (tmp_path / "sts-multi/stsb").mkdir(parents=True)
    text = (shared / "data/sts-multi/stsb/stsb-ja-test.csv").read_text(encoding="utf-8")
    first, rest = text.split("\n", 1)
    path = tmp_path / "sts-multi/stsb/stsb-ja-test.csv"
    path.write_text(f"{first[:-1]}9\n{rest}", encoding="utf-8", newline="")
    with pytest.raises(DataDamaged, match="STS-B-ja") as caught:
        read_sts_multi(DataFolder(tmp_path), "ja")
    assert str(path) in caught.value.message


def packed(files: list[Path], folder: str) -> bytes:
    """A zip archive with these files in a folder, as the organisers packed theirs."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for file in files:
            archive.write(file, f"{folder}/{file.name}")
    return out.getvalue()


def test_both_archives_and_the_tables_are_fetched(shared: Path, tmp_path: Path, hub: StandInHub):
    """A fake GitHub serves them at the commits of the sources; every file is checked."""
    tracks = shared / "data/sts-multi/sts17"
    sources = all_sources()
    for name, kind in (("Sts2017.eval.v1.1.zip", "input"), ("Sts2017.gs.zip", "gs")):
        source = sources[name]
        files = sorted(tracks.glob(f"STS.{kind}.*"))
        place = f"raw.githubusercontent.com/{source.repo}/{source.revision}/{source.archive}"
        hub.serve(place, packed(files, "STS2017"))
    tables = sources["stsb-multi-mt"]
    for split in ("test", "dev"):
        file = shared / f"data/sts-multi/stsb/stsb-pl-{split}.csv"
        place = f"raw.githubusercontent.com/{tables.repo}/{tables.revision}/data/{file.name}"
        hub.serve(place, file.read_bytes())
    fetcher = Fetcher(tmp_path)
    for name in ("STS17-ar-ar", "STS17-tr-en", "STS-B-pl"):
        fetcher.get(data_set(name))
    assert len(hub.requests) == 4  # two archives, two tables
    fetched = DataFolder(tmp_path)
    for task in ("ar-ar", "tr-en", "pl"):
        there, here = (
            read_sts_multi(DataFolder(root), task) for root in (shared / "data", tmp_path)
        )
        assert there.sha256 == here.sha256 and there.sentences2 == here.sentences2
    assert fetched.look(data_set("STS17-es-es")).status == "found"  # the archives hold all tracks
