"""What smaller vectors cost: fewer dimensions, fewer bits, beside the whole vectors."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made import rated_pairs
from scored import IMPORTS, cosines, spearman, words_in
from started import bench, error_line, python, record, run_folders

PAIRS = rated_pairs(120, seed=21)
SIZES = [(16, "float32"), (16, "int8"), (16, "binary"), (64, "int8"), (64, "binary")]
SMALLER = f"""{IMPORTS}
{inspect.getsource(words_in)}
result = bench.evaluate(
    words_in, "pairs.tsv", name="words", runs="in-python", progress=False,
    dimensions=[16, 64], precision=["float32", "int8", "binary"],
)
table = bench.compare_runs([result, *result.smaller], baseline=result, runs="in-python")
print(json.dumps([one.frame()["value"].item() for one in result.smaller]), len(table.tables[0].rows))
"""


def made_smaller(vectors: np.ndarray, sample: np.ndarray, count: int, precision: Any) -> np.ndarray:
    """Return what sentence-transformers makes of vectors, calibrated on a sample; bits as signs."""
    from sentence_transformers.util import quantize_embeddings

    kept = vectors[:, :count]
    if precision == "binary":
        bits = np.unpackbits(np.asarray(quantize_embeddings(kept, "ubinary")), axis=1)[:, :count]
        return 2.0 * bits - 1
    calibration = sample[:, :count]
    found = quantize_embeddings(kept, precision, calibration_embeddings=calibration)
    return np.asarray(found, dtype=float)


def wanted() -> dict[tuple[int, str], float]:
    """Return Spearman's correlation by hand for each size, the whole vectors among them."""
    first, second, ratings = (list(side) for side in zip(*PAIRS, strict=True))
    sample = words_in([*first, *second])
    values = {}
    for size in [(64, "float32"), *SIZES]:
        sides = [made_smaller(words_in(side), sample, *size) for side in (first, second)]
        values[size] = spearman(cosines(*sides), ratings)
    return values


@pytest.fixture(scope="module")
def sized(made_once: Callable[[str, Callable[[Path], None]], Path]) -> Path:
    """Return a folder with the scores of all sizes in ``runs``, and what the command printed."""

    def write(folder: Path) -> None:
        rows = ["sentence1\tsentence2\tscore", *("\t".join(map(str, pair)) for pair in PAIRS)]
        (folder / "pairs.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        texts = list(dict.fromkeys(text for a, b, _ in PAIRS for text in (a, b)))
        np.savez(folder / "words.npz", sentences=np.array(texts), vectors=words_in(texts))
        words = ["evaluate", "vectors:words.npz", "--suite", "pairs.tsv", "--runs", "runs"]
        words += ["--dimensions", "16,64", "--precision", "float32,int8,binary"]
        (folder / "printed.txt").write_text(bench(*words, cwd=folder).out, encoding="utf-8")

    return made_once("sized", write)


def table(folder: Path) -> dict[tuple[int, str], dict[str, Any]]:
    """Return the rows of the comparison with the whole vectors, by size."""
    runs = run_folders(folder / "runs")
    whole = next(run.name for run in runs if "dimensions" not in record(run)["recipe"])
    words = ["compare", "--runs", "runs", "--format", "json", "--baseline"]
    for run in runs:
        if not {"dimensions", "vector_precision"} & record(run)["recipe"].keys():
            whole = run.name
    (one,) = bench(*words, whole, cwd=folder).json["tables"]
    rows = {}
    for row in one["rows"]:
        differs = row["differs"]
        count = int(differs.get("dimensions", 64)) if differs.get("dimensions") != "none" else 64
        precision = differs.get("vector_precision", "float32")
        rows[count, "float32" if precision == "none" else precision] = row
    return rows


@pytest.mark.promise(35)
def test_scores_are_those_of_the_librarys_smaller_vectors(sized: Path) -> None:
    found = {size: row["mean"] for size, row in table(sized).items()}
    values = wanted()
    assert found == pytest.approx(values, abs=1e-6)
    assert values[16, "binary"] < values[64, "binary"] < values[64, "float32"]


@pytest.mark.promise(35)
def test_the_table_has_score_bytes_and_difference_with_its_interval(sized: Path) -> None:
    rows = table(sized)
    sizes = {size: row["vector_bytes"] for size, row in rows.items()}
    assert sizes == {
        (64, "float32"): 256,
        (16, "float32"): 64,
        (16, "int8"): 16,
        (16, "binary"): 2,
        (64, "int8"): 64,
        (64, "binary"): 8,
    }
    for size in SIZES:
        against = rows[size]["against"]
        apart = rows[size]["mean"] - rows[64, "float32"]["mean"]
        assert against["difference"] == pytest.approx(apart, abs=0.01)
        assert against["ci_low"] < apart < against["ci_high"]
    shown = (sized / "printed.txt").read_text(encoding="utf-8")
    assert "bytes" in shown and "pairs: Spearman's rank correlation" in shown
    names = ["(dimensions 16)", "(dimensions 16, int8)", "(dimensions 16, binary)", "(int8)"]
    assert all(f"words {name}" in shown for name in [*names, "(binary)"]), shown


@pytest.mark.promise(35)
def test_the_sentences_are_encoded_once(sized: Path) -> None:
    folders = [run for run in run_folders(sized / "runs") if (run / "vectors").exists()]
    assert len(folders) == 1


@pytest.mark.promise(35)
def test_a_version_with_smaller_vectors_is_verified(sized: Path, tmp_path: Path) -> None:
    bench("publish", "--runs", sized / "runs", "--out", "boards", "--note", "", cwd=tmp_path)
    checked = bench("verify", tmp_path / "boards" / "v1", cwd=tmp_path)
    assert "nothing differs" in checked.out


@pytest.mark.promise(35)
def test_python_has_the_same_numbers(sized: Path) -> None:
    *numbers, rows = python(SMALLER, cwd=sized).out.splitlines()[-1].rpartition(" ")
    assert json.loads(numbers[0]) == pytest.approx([wanted()[size] for size in SIZES], abs=1e-6)
    assert int(rows) == 6


@pytest.mark.promise(35, 29)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--dimensions", "many"], "many"),
        (["--dimensions", "0"], "0"),
        (["--dimensions", "65"], "65"),
        (["--precision", "int7"], "int7"),
    ],
)
def test_a_size_that_cannot_be_is_one_line(sized: Path, words: list[str], said: str) -> None:
    first = ["evaluate", "vectors:words.npz", "--suite", "pairs.tsv", "--runs", "others"]
    done = bench(*first, *words, cwd=sized, code=2)
    assert said in error_line(done) and "done:" not in done.err
    assert run_folders(sized / "others") == []


@pytest.mark.promise(35, 29)
def test_more_dimensions_than_a_folder_has_are_refused_before_it_is_scored(
    tmp_path: Path, inputs: Path
) -> None:
    words = ["evaluate", inputs / "tiny", "--set", "pooling=mean", "--dimensions", "8,9999"]
    done = bench(*words, "--suite", inputs / "pairs.tsv", cwd=tmp_path, code=2)
    assert "--dimensions 9999" in error_line(done) and "done:" not in done.err
    assert run_folders(tmp_path / "runs") == []
