"""The data in the package: counts, hashes and sources, and that making it again from its sources
gives the same bytes.
"""

from __future__ import annotations

import hashlib
import lzma
from pathlib import Path

import pytest
from make_data import DATA, make

CONTENT = {
    "check-dev.tsv": (1126, "6c5c0bfb4c3b29f7bbb542afc00fad6412bd11bd8a6429918504437711fac238"),
    "check-test.tsv": (4743, "d9ba5d12b2679a4ccb3d699e432bc27f1496cbbe1c53e44d98c1d0d978b7e8c7"),
    "sentences.txt": (10_000, "2f2b4661cb5751455c1537112d786d290db5d951b13564768195408f1824506c"),
}


def stored() -> dict[str, bytes]:
    return {path.stem: lzma.decompress(path.read_bytes()) for path in DATA.iterdir()}


def test_the_package_has_its_data_with_known_hashes():
    found = {
        name: (len(content.splitlines()), hashlib.sha256(content).hexdigest())
        for name, content in stored().items()
    }
    assert found == CONTENT
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 500_000


@pytest.mark.nightly
@pytest.mark.slow
def test_made_again_it_is_the_same(shared: Path):
    again = make(
        shared / "data" / "cxc" / "sts_val.tsv", shared / "data" / "train" / "wiki_sentences.txt.xz"
    )
    assert again == stored()
