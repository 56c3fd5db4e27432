"""t-SNE of sentence groups: vectors are only read, and the caption's cosines are those of the vectors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from boards_for_figures import board_of, fill

from bench.data.sets import DataFolder
from bench.score.encoding import VectorStore
from bench.show.figures import figures
from bench.show.figures.points import EACH, Pairs, pairs, stored_vectors

GOLD = tuple(float(level) for level in (0, 3, 5) for _ in range(EACH))
PAIRS = Pairs(tuple(f"first {i}" for i in range(30)), tuple(f"second {i}" for i in range(30)), GOLD)


def vectors_of(sentences: list[str]) -> np.ndarray:
    """Both sentences of a pair lie the nearer the higher their gold score."""
    rows = []
    for sentence in sentences:
        side, number = sentence.split()
        base = np.random.default_rng(int(number)).normal(size=16)
        other = np.random.default_rng(1000 + int(number)).normal(size=16)
        part = GOLD[int(number)] / 5
        rows.append(base if side == "first" else part * base + (1 - part) * other + 0.01)
    return np.array(rows, dtype=np.float32)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = fill(tmp_path / "runs", suites=("sts",))
    for run in folder.iterdir():
        if run.name.startswith("promptbert"):
            key = next(
                one.record.fingerprint
                for one in board_of(folder).runs
                if one.record.run_id == run.name
            )[:16]
            VectorStore(run / "vectors", key).add(
                [*PAIRS.first, *PAIRS.second, "first 1"], vectors_of
            )
    return folder


@pytest.mark.slow
def test_groups_of_a_run_with_vectors(runs: Path) -> None:
    board = board_of(runs)
    before = {file: file.read_bytes() for file in runs.glob("*/vectors/*")}
    one = figures(board, PAIRS)[-1]
    assert one.kind == "groups" and one.paper_figure == "ConPVP, Figure 6"
    assert {row[0] for row in one.data} == {"promptbert"}  # the only ones that have kept theirs
    first, second = vectors_of(list(PAIRS.first)), vectors_of(list(PAIRS.second))
    for _, level, n, cosine in one.data:
        chosen = [i for i, gold in enumerate(GOLD) if gold == level]
        plain = [
            float(first[i] @ second[i] / np.sqrt((first[i] @ first[i]) * (second[i] @ second[i])))
            for i in chosen
        ]
        assert n == 10.0 and cosine == pytest.approx(np.mean(plain), abs=1e-3)
    assert f"+{float(one.data[2][3]) - float(one.data[0][3]):.2f} in promptbert" in one.caption
    assert {file: file.read_bytes() for file in runs.glob("*/vectors/*")} == before
    assert figures(board, PAIRS)[-1].svg == one.svg


def test_none_without_sentences_or_without_their_vectors(runs: Path) -> None:
    board = board_of(runs)
    assert "groups" not in {one.kind for one in figures(board)}
    strange = replace(PAIRS, first=("never encoded", *PAIRS.first[1:]))
    assert "groups" not in {one.kind for one in figures(board, strange)}


def test_files_that_were_cut_short_are_no_vectors(tmp_path: Path) -> None:
    VectorStore(tmp_path, "abc").add(["first 0", "second 0"], vectors_of)
    assert stored_vectors(tmp_path, "abc", ["second 0"]) == pytest.approx(vectors_of(["second 0"]))
    assert stored_vectors(tmp_path, "../x", ["second 0"]) is None
    file = next(tmp_path.glob("*.f32"))
    file.write_bytes(file.read_bytes()[:-70])  # the second row is gone, and a part of the first
    assert stored_vectors(tmp_path, "abc", ["first 0", "second 0"]) is None
    file.unlink()
    assert stored_vectors(tmp_path, "abc", ["first 0"]) is None


def test_pairs_of_the_data(shared: Path, tmp_path: Path) -> None:
    found = pairs(DataFolder(shared / "data", offline=True, store=None))
    assert found is not None and found.gold == GOLD and len(set(found.first)) > 20
    assert pairs(DataFolder(tmp_path, offline=True, store=None)) is None
