"""The CxC-STS reader: the table, the published file with COCO's captions, and what is refused."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.base.errors import DataDamaged, DataMissing
from bench.data.sets import DataFolder, Form, cxc, data_set
from bench.data.sets.cxc import read_cxc


@pytest.fixture(scope="module")
def table(shared: Path) -> Path:
    return shared / "data" / "cxc" / "sts_test.tsv"


@pytest.fixture(scope="module")
def pairs(shared: Path) -> cxc.RatedCaptions:
    return read_cxc(DataFolder(shared / "data"))


@pytest.fixture(scope="module")
def captions(table: Path) -> dict[int, str]:
    rows = [line.split("\t") for line in table.read_text(encoding="utf-8").splitlines()[1:]]
    return {int(row[side].rsplit(":")[-1]): row[4 + side] for row in rows for side in (0, 1)}


@pytest.fixture(scope="module")
def official(
    table: Path, captions: dict[int, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A data folder with the published file and captions as COCO's JSON has them: not split from
    their punctuation.
    """
    root = tmp_path_factory.mktemp("data")
    (root / "cxc").mkdir()
    lines = table.read_text(encoding="utf-8").splitlines()
    rows = [
        "caption1,caption2,agg_score,sampling_method",
        *(",".join(line.split("\t")[:4]) for line in lines[1:]),
    ]
    (root / "cxc" / "sts_test.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    put(root, captions)
    return root


def put(root: Path, captions: dict[int, str], **others: object) -> None:
    joined = [
        {"image_id": 0, "id": number, "caption": text.replace(" .", ".") + "\n"}
        for number, text in captions.items()
    ]
    content = {
        "info": {},
        "annotations": [{"image_id": 1, "id": 1, "caption": "Not asked for"}, *joined],
        **others,
    }
    (root / "cxc" / "captions_val2014.json").write_text(json.dumps(content), encoding="utf-8")


def test_the_table(pairs):
    assert len(pairs) == 44045
    assert Counter(pairs.subset) == {"c2c_cocaption": 25000, "c2c_isim": 19045}
    assert pairs.gold.min() == 0 and pairs.gold.max() == 5
    assert pairs.gold.mean() == pytest.approx(2.377, abs=5e-4)
    assert pairs.sentences1[0] == "A person riding a beautiful wave very smooth"
    assert pairs.sentences2[0] == "A red surfboard is sticking up from the ocean waves ."
    wanted = (411553, 5142, 1.56, "c2c_isim")
    assert (pairs.caption1[0], pairs.caption2[0], pairs.gold[0], pairs.subset[0]) == wanted
    assert set(pairs.caption1) == set(pairs.caption2) and len(set(pairs.caption1)) == 25000
    assert Counter(Counter(pairs.caption1.tolist()).values()) == {1: 7416, 2: 16123, 3: 1461}


def test_images_are_recovered_from_the_rings(pairs):
    image_of = dict(zip(pairs.caption1.tolist(), pairs.image.tolist(), strict=True))
    members = defaultdict(set)
    for caption, image in image_of.items():
        members[image].add(caption)
    assert sorted(members) == list(range(5000)) and {len(one) for one in members.values()} == {5}
    same = np.array(pairs.subset) == cxc.SAME_IMAGE
    second = np.array([image_of[caption] for caption in pairs.caption2.tolist()])
    assert ((second == pairs.image) == same).all()
    first_seen = list(dict.fromkeys(pairs.image.tolist()))
    assert first_seen == list(range(5000))
    assert set(Counter(pairs.image.tolist()).values()) == set(range(5, 16))


@pytest.mark.nightly
def test_cocos_own_file_has_the_raw_text(official, pairs, table, tmp_path, monkeypatch):
    """COCO's file cannot be kept here: a small fake takes its place in the manifest."""
    content = (official / "cxc" / "captions_val2014.json").read_bytes()
    form = Form(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
    csv, captions = data_set(cxc.OFFICIAL).files
    files = (csv, replace(captions, forms={"any": form}))
    known = replace(data_set(cxc.OFFICIAL), files=files)
    monkeypatch.setattr(cxc, "data_set", lambda n: known if n == cxc.OFFICIAL else data_set(n))

    with pytest.raises(DataMissing, match="looked for cxc/sts_test.tsv") as caught:
        read_cxc(DataFolder(official))
    assert "--suite cxc:cxc-promcse-raw/1" in str(caught.value.hint)
    first = read_cxc(DataFolder(official), text="raw").sentences1[5]
    assert first == pairs.sentences1[5].replace(" .", ".")
    (tmp_path / "cxc").mkdir()
    for source in (table, *(official / "cxc").iterdir()):
        (tmp_path / "cxc" / source.name).symlink_to(source)
    both = [read_cxc(DataFolder(tmp_path), text=text) for text in ("raw", "tokenised")]
    assert [captions.sentences1[5] for captions in both] == [first, pairs.sentences1[5]]


@pytest.mark.slow
def test_a_table_that_was_cut_is_refused(table, tmp_path):
    file = tmp_path / "cxc" / "sts_test.tsv"
    file.parent.mkdir()
    rows = table.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join(rows[:-3]) + "\n", encoding="utf-8")
    with pytest.raises(DataDamaged, match="44,042 rows found, 44,045 expected") as caught:
        read_cxc(DataFolder(tmp_path))
    assert "sts_test.tsv" in caught.value.message


@pytest.mark.nightly
def test_another_tokenisation_and_what_is_not_there(table, tmp_path):
    (tmp_path / "cxc").mkdir()
    text, file = table.read_text(encoding="utf-8"), tmp_path / "cxc" / "sts_test.tsv"
    file.write_text(text.replace(" .\n", ".\n"), encoding="utf-8")
    with pytest.raises(DataDamaged, match="another tokenisation of it, in .*sts_test.tsv"):
        read_cxc(DataFolder(tmp_path))
    file.write_bytes(text.replace("\n", "\r\n").encode())
    assert len(read_cxc(DataFolder(tmp_path))) == 44045
    with pytest.raises(DataMissing, match="sts_test.csv"):
        read_cxc(DataFolder(tmp_path), text="raw")
