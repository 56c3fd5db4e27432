"""Pairs judged 0 or 1: what sentence-transformers measures of them, and the one that is the score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made import rated_pairs
from scored import cosines, spearman, words_in
from started import bench, error_line, record, run_folders

PAIRS = rated_pairs(160, seed=9)
JUDGED = [int(rating > 2.5 + (number % 5 == 0)) for number, (_, _, rating) in enumerate(PAIRS)]
SCORES = {"spearman": "Spearman", "average-precision": "AP", "f1": "F1", "accuracy": "accuracy"}


class WordsIn:
    """What the library's evaluator asks of a model."""

    def encode(self, texts: Sequence[str], **_: Any) -> np.ndarray:
        return words_in(texts)


def theirs() -> dict[str, float]:
    """Return the library's measures, by the names that tables here have."""
    from sentence_transformers.sentence_transformer.evaluation import BinaryClassificationEvaluator

    first, second, _ = (list(side) for side in zip(*PAIRS, strict=True))
    evaluator = BinaryClassificationEvaluator(
        first, second, JUDGED, similarity_fn_names=["cosine"], write_csv=False
    )
    found = evaluator.compute_metrics(WordsIn())["cosine"]  # type: ignore[arg-type]
    return {
        "Spearman": spearman(cosines(words_in(first), words_in(second)), JUDGED),
        "AP": 100 * found["ap"],
        "F1": 100 * found["f1"],
        "F1 threshold": found["f1_threshold"],
        "accuracy": 100 * found["accuracy"],
        "accuracy threshold": found["accuracy_threshold"],
    }


@pytest.fixture(scope="module")
def judged(made_once: Callable[[str, Callable[[Path], None]], Path]) -> Path:
    """Return a folder with a file for each score, and three encoders scored on them in ``runs``."""

    def write(folder: Path) -> None:
        rows = ["sentence1\tsentence2\tscore"]
        rows += [f"{a}\t{b}\t{one}" for (a, b, _), one in zip(PAIRS, JUDGED, strict=True)]
        for name in (*SCORES, "unsaid"):
            (folder / f"{name}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
            if name in SCORES:
                (folder / f"{name}.toml").write_text(f'score = "{name}"\n', encoding="utf-8")
        texts = list(dict.fromkeys(text for a, b, _ in PAIRS for text in (a, b)))
        np.savez(folder / "words.npz", sentences=np.array(texts), vectors=words_in(texts))
        words = ["evaluate", "vectors:words.npz", "--runs", "runs"]
        for name in (*SCORES, "unsaid"):
            words += ["--suite", f"{name}.tsv"]
        bench(*words, cwd=folder)
        words = ["run", "cls", "last-avg", "--suite", "f1.tsv", "--runs", "runs", "--plain"]
        bench(*words, "--suite", "average-precision.tsv", cwd=folder)

    return made_once("judged-pairs", write)


def score_of(folder: Path, name: str) -> dict[str, Any]:
    (run,) = (run for run in run_folders(folder / "runs") if run.name.startswith("vectors"))
    (score,) = (one for one in record(run)["scores"] if one["task"] == name)
    return dict(score)


@pytest.mark.promise(34)
@pytest.mark.parametrize("name", [*SCORES, "unsaid"])
def test_measures_are_the_librarys_and_one_is_the_score(judged: Path, name: str) -> None:
    score = score_of(judged, name)
    wanted = theirs()
    assert 50 < wanted["AP"] < 99 and 50 < wanted["F1"] < 99
    assert score["value"] == pytest.approx(wanted.pop(SCORES.get(name, "Spearman")), abs=1e-4)
    found = score["detail"]["beside"] | score["detail"]["thresholds"]
    assert found == pytest.approx(wanted, abs=1e-4)


@pytest.mark.promise(34)
def test_another_score_is_another_protocol(judged: Path) -> None:
    protocols = {name: score_of(judged, name)["protocol"] for name in (*SCORES, "unsaid")}
    assert protocols.pop("unsaid") == protocols["spearman"]
    assert len(set(protocols.values())) == 4


@pytest.mark.promise(34)
def test_differences_have_intervals_over_pairs(judged: Path) -> None:
    words = ["compare", "--runs", "runs", "--baseline", "cls", "--format", "json"]
    rows = {}
    for table in bench(*words, cwd=judged).json["tables"]:
        rows |= {(table["metric"], row["method"]): row for row in table["rows"]}
    for metric in ("best-f1", "average-precision"):
        against = rows[metric, "last-avg"]["against"]
        assert against["ci_low"] < against["difference"] < against["ci_high"]
    shown = bench("compare", "--runs", "runs", "--all", cwd=judged).out
    assert "F1 threshold" in shown and "accuracy" in shown


@pytest.mark.promise(34)
def test_a_version_with_other_scores_is_verified(judged: Path, tmp_path: Path) -> None:
    bench("publish", "--runs", judged / "runs", "--out", "boards", "--note", "", cwd=tmp_path)
    checked = bench("verify", tmp_path / "boards" / "v1", cwd=tmp_path)
    assert "nothing differs" in checked.out


@pytest.mark.promise(34, 29)
def test_a_rating_that_is_no_judgement_is_one_line_with_its_row(tmp_path: Path) -> None:
    content = "sentence1\tsentence2\tscore\na\tb\t1\nc\td\t0\ne\tf\t0.5\n"
    (tmp_path / "judged.tsv").write_text(content, encoding="utf-8")
    (tmp_path / "judged.toml").write_text('score = "f1"\n', encoding="utf-8")
    words = ["run", "cls", "--suite", "judged.tsv", "--runs", "runs"]
    line = error_line(bench(*words, cwd=tmp_path, code=2))
    assert "judged.tsv: line 4" in line and "0.5" in line


@pytest.mark.promise(34, 29)
def test_a_description_of_pairs_is_refused_beside_queries_and_said_beside_labels(
    tmp_path: Path,
) -> None:
    """A folder of queries cannot be pairs; judged pairs can be classified, too."""
    folder = tmp_path / "asked"
    folder.mkdir()
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "a"}\n', encoding="utf-8")
    (folder / "corpus.jsonl").write_text('{"_id": "d", "text": "a b"}\n', encoding="utf-8")
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n", encoding="utf-8")
    rows = [f"{a}\t{b}\t{one}\n" for (a, b, _), one in zip(PAIRS, JUDGED, strict=True)]
    content = "sentence1\tsentence2\tscore\n" + "".join(rows)
    (tmp_path / "judged.tsv").write_text(content, encoding="utf-8")
    for name in ("asked", "judged"):
        text = 'licence = "CC0"\nscore = "f1"\nscale = [0, 1]\nsides = ["query", "document"]\n'
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    words = ["run", "cls", "--dry-run", "--suite"]
    line = error_line(bench(*words, "retrieval:asked", cwd=tmp_path, code=2))
    assert "asked.toml" in line and "scale, sides and score" in line
    labelled = "classification:judged.tsv:sentence1,sentence2,score"
    shown = bench(*words, labelled, cwd=tmp_path)
    said = " ".join((shown.out + shown.err).split())
    assert "judged.toml: only rated pairs have scale, sides and score" in said
    assert "judged.toml" not in bench(*words, "judged.tsv", cwd=tmp_path).out
