"""Vectors from a file or a mapping have the scores of the object that they come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bags import bag
from commands import bench as command
from commands import error_line
from evaluated import CHECK, SUITE

import bench


def test_vectors_of_a_file_or_a_mapping_have_the_score_of_the_object(
    plain_score: float, captions: list[str], tmp_path: Path
) -> None:
    file, runs = tmp_path / "bags.npz", tmp_path / "r"
    np.savez(file, sentences=np.array(captions), vectors=bag(captions))
    done = command("evaluate", f"vectors:{file}", *SUITE, "--runs", runs)
    assert done.exit_code == 0, done.stderr
    (found,) = bench.load_runs(runs)
    assert found["captions"].value == pytest.approx(plain_score, abs=1e-4) and found.name == "bags"
    assert found.model["kind"] == "vectors" and found.model["dimension"] == 48
    made_of = found.record.provenance.backbone
    assert str(tmp_path) not in str(made_of)
    vectors = dict(zip(captions, bag(captions), strict=True))
    mapping = bench.evaluate(vectors, name="m", runs=runs, **CHECK)
    assert mapping["captions"].value == found["captions"].value
    assert mapping.record.provenance.backbone.revision == made_of.revision  # type: ignore[index]
    assert command("verify", found.folder).exit_code == 0


def test_a_file_that_cannot_be_scored_is_one_line_and_nothing_is_written(
    captions: list[str], tmp_path: Path
) -> None:
    texts = np.array(captions)
    vectors = bag(captions)
    n = len(captions)
    bad = vectors.copy()
    bad[3, 0] = np.nan
    twice, other = np.array([*captions, captions[0]]), np.vstack([vectors, vectors[1:2]])

    def said(**arrays: Any) -> str:
        np.savez(tmp_path / "v.npz", **arrays)
        file = f"vectors:{tmp_path / 'v.npz'}"
        return error_line(command("evaluate", file, *SUITE, "--runs", tmp_path / "r"))

    few = said(sentences=texts[2:], vectors=vectors[2:])
    assert f"lacks 2 of {n:,} sentences: '{captions[0][:20]}" in few
    assert f"shape ({n - 1}, 48) for {n} sentences" in said(sentences=texts, vectors=vectors[1:])
    assert "holds NaN or infinity for 1 of" in said(sentences=texts, vectors=bad)
    assert "not numbers" in said(sentences=texts, vectors=vectors.astype(str))
    assert "two different vectors for" in said(sentences=twice, vectors=other)
    assert "sentences is not a file" in said(texts=texts, vectors=vectors)
    assert "cannot be read" in said(sentences=np.array(captions, dtype=object), vectors=vectors)
    assert not (tmp_path / "r").exists()
