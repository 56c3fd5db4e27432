"""Queries and documents of one's own: searched, scored by query, compared, published, verified."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from made import sentences
from pyarrow import parquet
from scored import words_in
from started import bench, error_line, record, run_folders

QUERIES, DOCUMENTS = 40, 150
COLUMNS = ("query-id", "corpus-id", "score")
BESIDE = ("MRR@10", "recall@100", "MAP@100")


def made() -> tuple[list[str], list[str], dict[tuple[int, int], int]]:
    """Return queries, documents, and how relevant a document is to a query that shares words."""
    queries = list(dict.fromkeys(sentences(200, seed=11)))[:QUERIES]
    documents = list(dict.fromkeys(sentences(900, seed=12)))[:DOCUMENTS]
    grades = {}
    for q, query in enumerate(queries):
        shared = [len({*query.split()} & {*document.split()}) for document in documents]
        for d in np.argsort(shared, kind="stable")[-(1 + q % 4) :].tolist():
            grades[q, d] = 1 + (q + d) % 3
    return queries, documents, grades


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def write(folder: Path) -> None:
    """Write ``asked`` in BEIR's layout, ``packed`` in Parquet, and ``asked.tsv``."""
    queries, documents, grades = made()
    texts = [{"_id": f"q{q}", "text": text} for q, text in enumerate(queries)]
    corpus = [{"_id": f"d{d:03}", "title": "", "text": text} for d, text in enumerate(documents)]
    judged = [
        dict(zip(COLUMNS, (f"q{q}", f"d{d:03}", grade), strict=True))
        for (q, d), grade in grades.items()
    ]
    tsv = "\n".join(["\t".join(COLUMNS), *("\t".join(map(str, row.values())) for row in judged)])
    asked = folder / "asked"
    packed = folder / "packed"
    asked.mkdir()
    packed.mkdir()
    (asked / "queries.jsonl").write_text(lines(texts), encoding="utf-8")
    (asked / "corpus.jsonl").write_text(lines(corpus), encoding="utf-8")
    (asked / "qrels.tsv").write_text(tsv + "\n", encoding="utf-8")
    for name, rows in (("queries", texts), ("corpus", corpus), ("qrels", judged)):
        parquet.write_table(pa.Table.from_pylist(rows), packed / f"{name}.parquet")
    one = ["query\tdocument\trelevance"]
    one += [
        f"{query}\t{document}\t{grades.get((q, d), 0)}"
        for q, query in enumerate(queries)
        for d, document in enumerate(documents)
    ]
    (folder / "asked.tsv").write_text("\n".join(one) + "\n", encoding="utf-8")


def by_hand() -> dict[str, np.ndarray]:
    """Rank all documents by the cosines of ``words_in``, and measure each query's ranking."""
    queries, documents, grades = made()
    a, b = words_in(queries).astype(float), words_in(documents).astype(float)
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    b /= np.linalg.norm(b, axis=1, keepdims=True)
    found: dict[str, list[float]] = {name: [] for name in ("nDCG@10", *BESIDE)}
    for q, cosine in enumerate(a @ b.T):
        # of equal cosines the greater id comes first
        order = sorted(range(DOCUMENTS), key=lambda d: (-round(cosine[d], 7), -d))
        gains = [grades.get((q, d), 0) for d in order]
        best = sorted(gains, reverse=True)
        right = [rank for rank, gain in enumerate(gains[:100], 1) if gain]
        answers = sum(gain > 0 for gain in gains)

        def dcg(ranking: list[int]) -> float:
            return sum(gain / np.log2(rank + 1) for rank, gain in enumerate(ranking[:10], 1))

        found["nDCG@10"].append(dcg(gains) / dcg(best))
        found["MRR@10"].append(1 / right[0] if right and right[0] <= 10 else 0)
        found["recall@100"].append(len(right) / answers)
        found["MAP@100"].append(sum(n / rank for n, rank in enumerate(right, 1)) / answers)
    return {name: np.array(values) for name, values in found.items()}


@pytest.fixture(scope="module")
def asked(made_once: Callable[[str, Callable[[Path], None]], Path]) -> Path:
    """Return a folder with the files, the scores of three encoders on ``asked`` in ``runs``,
    and those of one on the others in ``others``."""

    def write_and_score(folder: Path) -> None:
        write(folder)
        np.savez(folder / "words.npz", **vectors(folder))
        words = ["evaluate", "vectors:words.npz", "--name", "words", "--suite"]
        bench(*words, "retrieval:asked", "--runs", "runs", cwd=folder)
        others = ["retrieval:packed", "--suite", "retrieval:one=asked.tsv"]
        bench(*words, *others, "--runs", "others", cwd=folder)
        two = ["run", "cls", "last-avg", "--runs", folder / "runs", "--plain"]
        bench(*two, "--suite", f"retrieval:{folder / 'asked'}", cwd=folder.parent)

    return made_once("asked-files", write_and_score)


def vectors(folder: Path) -> dict[str, np.ndarray]:
    queries, documents, _ = made()
    texts = [*dict.fromkeys([*queries, *documents])]
    return {"sentences": np.array(texts), "vectors": words_in(texts)}


def run_of(folder: Path, method: str) -> Path:
    (run,) = (run for run in run_folders(folder / "runs") if run.name.startswith(method))
    return run


@pytest.mark.promise(32)
def test_every_form_of_the_data_has_the_scores_of_a_search_by_hand(asked: Path) -> None:
    runs = [run_of(asked, "vectors"), *run_folders(asked / "others")]
    scores = {one["task"]: one for run in runs for one in record(run)["scores"]}
    assert scores.keys() == {"asked", "packed", "one"}
    assert scores["asked"]["protocol"] == scores["packed"]["protocol"]
    wanted = {name: 100 * values.mean() for name, values in by_hand().items()}
    assert 40 < wanted["nDCG@10"] < 95
    for name in ("asked", "packed"):
        found = {"nDCG@10": scores[name]["value"], **scores[name]["detail"]["beside"]}
        assert found == pytest.approx(wanted, abs=1e-6), name
    # in one file ids count texts, which orders equal cosines in another way
    assert scores["one"]["value"] == pytest.approx(wanted["nDCG@10"], abs=3)


@pytest.mark.promise(32)
def test_each_query_keeps_its_score_and_its_first_documents(asked: Path) -> None:
    (file,) = run_of(asked, "vectors").rglob("asked*.npz")
    with np.load(file, allow_pickle=False) as stored:
        assert stored["prediction"] == pytest.approx(by_hand()["nDCG@10"], abs=1e-9)
        assert stored["documents"].shape == (QUERIES, 10)
        assert set(stored["documents"][0].tolist()) <= {f"d{d:03}" for d in range(DOCUMENTS)}


@pytest.mark.promise(32)
def test_differences_have_intervals_over_queries(asked: Path) -> None:
    words = ["compare", "--runs", "runs", "--baseline", "cls", "--format"]
    tables = bench(*words, "json", cwd=asked).json["tables"]
    (rows,) = (
        {row["method"]: row for row in one["rows"]} for one in tables if len(one["rows"]) > 1
    )
    against = rows["last-avg"]["against"]
    values = []
    for method in ("last-avg", "cls"):
        (file,) = run_of(asked, method).rglob("asked*.npz")
        with np.load(file, allow_pickle=False) as stored:
            values.append(100 * stored["prediction"])
    apart = values[0] - values[1]
    assert against["difference"] == pytest.approx(apart.mean(), abs=0.01)
    error = apart.std(ddof=1) / QUERIES**0.5
    assert against["se"] == pytest.approx(error, rel=1e-6)
    assert against["ci_low"] < apart.mean() < against["ci_high"]
    shown = unescape(bench(*words, "md", cwd=asked).out)
    assert all(name in shown for name in BESIDE)


@pytest.mark.promise(32)
def test_items_are_the_queries_on_which_two_runs_differ(asked: Path) -> None:
    words = ["compare", run_of(asked, "cls").name, run_of(asked, "last-avg").name, "--items"]
    words += ["--runs", "runs", "--suite", "retrieval:asked", "--top", "3"]
    shown = bench(*words, cwd=asked).out
    queries, _, _ = made()
    assert sum(query in shown for query in queries) == 3
    assert " d0" in shown or " d1" in shown


@pytest.mark.promise(32)
def test_a_version_keeps_what_a_check_needs_and_no_text(asked: Path, tmp_path: Path) -> None:
    made_version = bench(
        "publish", "--runs", asked / "runs", "--out", "boards", "--note", "", cwd=tmp_path
    )
    version = tmp_path / "boards" / "v1"
    checked = bench("verify", version, cwd=tmp_path)
    assert "nothing differs" in checked.out, made_version.out
    queries, documents, _ = made()
    for path in version.rglob("*"):
        if path.suffix in (".html", ".json", ".md", ".csv"):
            content = path.read_text(encoding="utf-8")
            assert not any(text in content for text in (*queries, *documents)), path
            assert str(asked.parent) not in content, path
    page = unescape((version / "index.html").read_text(encoding="utf-8"))
    assert all(name in page for name in BESIDE)


WRONG = {
    "a judgement of no document": ("qrels.tsv", "q0\td999\t1\n", "'d999'"),
    "a relevance below 0": ("qrels.tsv", "q0\td140\t-1\n", "-1"),
    "an id twice": ("corpus.jsonl", '{"_id": "d000", "title": "", "text": "x"}\n', "'d000'"),
    "a query without an answer": ("queries.jsonl", '{"_id": "q99", "text": "why"}\n', "'why'"),
}


@pytest.mark.promise(32, 29)
@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_in_a_file_is_one_line_with_its_row(kind: str, tmp_path: Path) -> None:
    write(tmp_path)
    name, row, word = WRONG[kind]
    file = tmp_path / "asked" / name
    content = file.read_text(encoding="utf-8") + row
    file.write_text(content, encoding="utf-8")
    done = bench("run", "cls", "--suite", "retrieval:asked", "--runs", "runs", cwd=tmp_path, code=2)
    line = error_line(done)
    assert f"{name}: line {len(content.splitlines())}" in line and word in line
    assert not (tmp_path / "runs").exists()
