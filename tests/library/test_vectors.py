"""Vectors from a file or a mapping have the scores of the object that they come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from bags import bag
from commands import bench as command
from commands import error_line
from evaluated import CHECK, SUITE

import bench
from bench.base.errors import BenchError


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


@pytest.mark.parametrize("prompt", [["--prefix", "q: "], ["--prompt", "check", "q: "]])
def test_sentences_are_listed_without_a_prompt_or_not_at_all(
    prompt: list[str], tmp_path: Path
) -> None:
    """Vectors are looked up by the text with its prompt, which the list would not have."""
    file = tmp_path / "s.jsonl"
    done = command("evaluate", "--list-sentences", file, "--suite", "check", *prompt)
    assert "writes sentences without a prompt" in error_line(done) and not file.exists()


def test_a_file_that_cannot_be_scored_is_one_line_and_nothing_is_written(
    captions: list[str], tmp_path: Path
) -> None:
    texts = np.array(captions)
    vectors = bag(captions)
    twice, other = np.array([*captions, captions[0]]), np.vstack([vectors, vectors[1:2]])

    def said(**arrays: Any) -> str:
        np.savez(tmp_path / "v.npz", **arrays)
        file = f"vectors:{tmp_path / 'v.npz'}"
        return error_line(command("evaluate", file, *SUITE, "--runs", tmp_path / "r"))

    assert "not numbers" in said(sentences=texts, vectors=vectors.astype(str))
    assert "two different vectors for" in said(sentences=twice, vectors=other)
    assert "sentences is not a file" in said(texts=texts, vectors=vectors)
    assert "cannot be read" in said(sentences=np.array(captions, dtype=object), vectors=vectors)
    assert not (tmp_path / "r").exists()


def test_bytes_are_refused_as_they_may_be_packed_bits(captions: list[str], tmp_path: Path) -> None:
    packed = np.packbits(bag(captions) > 0, axis=1)
    file = tmp_path / "v.npz"
    table = tmp_path / "v.parquet"
    for vectors in (packed, packed.view(np.int8)):
        np.savez(file, sentences=np.array(captions), vectors=vectors)
        columns = {"sentence": captions, "vector": pa.array(list(vectors))}
        pq.write_table(pa.table(columns), table)
        for written in (file, table):
            done = command("evaluate", f"vectors:{written}", *SUITE, "--runs", tmp_path / "r")
            assert f"holds {vectors.dtype}, which may be packed bits" in error_line(done)
            assert "np.unpackbits" in done.stderr
    assert not (tmp_path / "r").exists()


def test_an_object_that_returns_bytes_is_refused_and_its_bits_are_scored(
    captions: list[str], tmp_path: Path
) -> None:
    def bits(some: list[str]) -> np.ndarray:
        return bag(some) > 0

    def packed(some: list[str]) -> np.ndarray:
        return np.packbits(bits(some), axis=1)

    wrong = [
        packed,
        lambda some: packed(some).view(np.int8),
        lambda some: torch.from_numpy(packed(some)),
        dict(zip(captions, packed(captions), strict=True)),
    ]
    for model in wrong:
        with pytest.raises(BenchError, match="u?int8, which may be packed bits") as caught:
            bench.evaluate(model, name="m", runs=tmp_path / "r", **CHECK)
        assert "np.unpackbits" in str(caught.value) and not (tmp_path / "r").exists()

    def unpacked(some: list[str]) -> np.ndarray:  # as the hint says
        return np.unpackbits(packed(some).view(np.uint8), axis=1).astype(np.float32)

    found = bench.evaluate(unpacked, runs=tmp_path / "r", **CHECK)
    wanted = bench.evaluate(lambda some: bits(some) * 1.0, runs=tmp_path / "r2", **CHECK)
    assert found["captions"].value == pytest.approx(wanted["captions"].value, abs=1e-9)
