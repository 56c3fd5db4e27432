"""A file of rated pairs or of labelled texts is a suite."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from made import rated_pairs, sentences
from pyarrow import parquet
from scored import cosines, score_each, spearman, words_in
from sklearn.cluster import KMeans
from started import bench, error_line, run_folders
from test_score_suites import matched
from test_score_transfer import Items, nested, probe

PAIRS = rated_pairs(60, seed=5)
GOOD, BAD = ["good", "happy", "nice", "fine", "great"], ["bad", "sad", "ugly", "poor", "awful"]
THINGS = ["boat", "song", "cat", "house", "dog", "tree", "fish", "king", "car", "river"]
HEAD = "sentence1\tsentence2\tscore\n"
Answers = dict[str, Any]


def pairs_value(gold: list[float] | None = None) -> float:
    first, second, ratings = (list(side) for side in zip(*PAIRS, strict=True))
    return spearman(cosines(words_in(first), words_in(second)), gold or ratings)


def opinions(count: int, words: int = 1, seed: int = 0) -> list[tuple[str, int]]:
    """Return texts of two kinds; each has so many words of its kind among two of any kind."""
    chosen = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        own = chosen.choice(GOOD if number % 2 else BAD, words)
        rows.append((" ".join(["the", *own, *chosen.choice(THINGS, 2)]), number % 2))
    return rows


def mixed(count: int) -> list[tuple[str, int]]:
    """Return opinions of which every fourth has the words of the other kind."""
    return [
        (text, label if number % 8 < 6 else 1 - label)
        for number, (text, label) in enumerate(opinions(count, words=2, seed=3))
    ]


def topics() -> list[tuple[str, int]]:
    """Return texts of three kinds, each of its own words; every tenth is given another label."""
    chosen = np.random.default_rng(8)
    rows = []
    for number in range(90):
        text = " ".join(chosen.choice([GOOD, BAD, THINGS[:5]][number % 3], 6))
        rows.append((text, (number + (number % 10 == 0)) % 3))
    return rows


def in_order(rows: list[tuple[str, int]]) -> Items:
    """Return vectors and labels as SentEval sorts them: by number of words, then by label."""
    kept = sorted(rows, key=lambda row: (len(row[0].split()), row[1]))
    return words_in([text for text, _ in kept]).astype(float), np.array([one for _, one in kept])


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows in the format that the file's name says."""
    if path.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(rows), path)
        return
    if ".jsonl" in path.name:
        text = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        separator = "," if ".csv" in path.name else "\t"
        lines = [separator.join(rows[0])]
        lines += [separator.join(str(cell) for cell in row.values()) for row in rows]
        text = "\n".join(lines) + "\n"
    content = text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def labelled(rows: list[tuple[Any, Any]], text: str = "text") -> list[dict[str, Any]]:
    return [{text: one, "label": label} for one, label in rows]


def split_of(number: int) -> str:
    return ["train", "train", "dev", "test"][number // 2 % 4]


FORMATS = ["pairs.csv", "pairs.tsv", "pairs.jsonl", "pairs.parquet", "pairs.tsv.gz", "пары.tsv"]
NAMED = "named.csv:question,duplicate,stars"
OTHER_RATING = [float(number * 7 % 11) for number in range(len(PAIRS))]

WRONG = {
    "rating.tsv": (HEAD + "a\tb\t1\nc\td\tmany\n", ["line 3", "'many'"]),
    "empty-rating.tsv": (HEAD + "a\tb\t1\nc\td\t\n", ["line 3", "rating"]),
    "nan.tsv": (HEAD + "a\tb\tnan\nc\td\t1\n", ["line 2", "'nan'"]),
    "sentence.csv": ("sentence1,sentence2,score\na,b,1\n,d,2\n", ["line 3", "empty"]),
    "constant.tsv": (HEAD + "a\tb\t1\nc\td\t1\n", ["all 2 ratings"]),
    "yes.tsv": (HEAD + "a\tb\t1\nc\td\tyes\n", ["line 3", "'yes'"]),
    "labels.tsv": ("sentence1\tsentence2\tlabel\na\tb\t1\n", ["ratings of pairs"]),
    "searched.tsv": ("query\tdocument\trelevance\na\tb\t1\n", ["their relevance"]),
    "unknown.tsv": ("a\tb\t1\nc\td\t2\n", ["columns"]),
    "null.jsonl": ('{"sentence1": "a", "sentence2": null, "score": 1}\n', ["sentence2", "null"]),
    "semicolons.csv": ("sentence1;sentence2;score\na;b;1,5\n", ["semicolons"]),
    "no-json.jsonl": ("not json\n", ["line 1", "JSON"]),
    "nothing.csv": ("", ["empty"]),
    "classification:label.csv": ("text,label\n" + "a,1\n" * 12 + "b,\n", ["line 14", "label"]),
    "classification:few.csv": ("text,label\na,1\nb,2\n", ["class"]),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all files of these tests."""
    made = tmp_path_factory.mktemp("own-files")
    rated = [{"sentence1": a, "sentence2": b, "score": score} for a, b, score in PAIRS]
    for name in FORMATS:
        write_table(made / name, rated)
    named = [
        {"id": i, "question": a, "duplicate": b, "stars": s} for i, (a, b, s) in enumerate(PAIRS)
    ]
    write_table(made / "named.csv", named)
    both = [
        {"sentence1": a, "sentence2": b, "gold": gold, "score": other}
        for (a, b, gold), other in zip(PAIRS, OTHER_RATING, strict=True)
    ]
    write_table(made / "gold.csv", both)
    as_bytes = [
        {"sentence1": a.encode(), "sentence2": b.encode(), "score": score} for a, b, score in PAIRS
    ]
    write_table(made / "bin.parquet", as_bytes)
    write_table(made / "bool.parquet", [row | {"score": row["score"] > 2} for row in rated])
    german = [row | {"score": str(row["score"]).replace(".", ",")} for row in rated]
    write_table(made / "deci.tsv", german)

    write_table(made / "opinions.csv", labelled(opinions(100, words=6)))
    shuffled = np.random.default_rng(4).permutation([label for _, label in opinions(100)])
    noise = [
        (text, label) for (text, _), label in zip(opinions(100), shuffled.tolist(), strict=True)
    ]
    write_table(made / "noise.csv", labelled(noise))
    write_table(made / "mixed.jsonl", labelled(mixed(160)))
    split = [row | {"split": split_of(i)} for i, row in enumerate(labelled(mixed(160)))]
    write_table(made / "split.jsonl", split)
    write_table(made / "topics.csv", labelled(topics()))

    floats = [
        (text, label if i < 50 else float(label))
        for i, (text, label) in enumerate(opinions(100, words=6))
    ]
    write_table(made / "floats.csv", labelled(floats))
    lists = [
        (text, [label, 2] if i % 3 else [label])
        for i, (text, label) in enumerate(opinions(100, words=6))
    ]
    write_table(made / "lists.jsonl", labelled(lists))
    titles = [
        {"label": label, "title": text, "content": f"it came on day {i % 9}"}
        for i, (text, label) in enumerate(opinions(100, words=6))
    ]
    write_table(made / "titles.jsonl", titles)
    asked = [
        {
            "question": f"who saw the {THINGS[i % 10]} today",
            "sentence": f"he saw the {other}",
            "label": int(other == THINGS[i % 10]),
        }
        for i in range(100)
        for other in [THINGS[i % 10 if i % 2 else (i + 3) % 10]]
    ]
    write_table(made / "asked.jsonl", asked)
    for name, (content, _) in WRONG.items():
        (made / name.rpartition(":")[2]).write_text(content, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def answers(folder: Path) -> Answers:
    """What one process of bench says of each file: a value, or one line."""
    files = ["opinions.csv", "noise.csv", "mixed.jsonl", "split.jsonl", "floats.csv", "lists.jsonl"]
    files += ["titles.jsonl", "asked.jsonl", "titles.jsonl:title,label"]
    files += ["asked.jsonl:question,sentence,label"]
    suites = [*FORMATS, NAMED, "gold.csv", "gold.csv:sentence1,sentence2,gold", "bin.parquet"]
    suites += ["bool.parquet", "deci.tsv", *[f"classification:{name}" for name in files]]
    return score_each(folder, [*suites, "clustering:topics.csv", *WRONG])


@pytest.mark.promise(14)
def test_rated_pairs_in_every_format_are_scipys_spearman(answers: Answers) -> None:
    assert 20 < pairs_value() < 95
    for name in (*FORMATS, NAMED):
        assert answers[name] == pytest.approx(pairs_value(), abs=0.01), name
    assert answers["gold.csv:sentence1,sentence2,gold"] == pytest.approx(pairs_value(), abs=0.01)


@pytest.mark.promise(14)
@pytest.mark.nightly
def test_labelled_texts_are_predicted_by_sentevals_classifier(answers: Answers) -> None:
    wanted = nested(in_order(mixed(160)))
    assert 50 < wanted < 95
    assert answers["classification:mixed.jsonl"] == pytest.approx(wanted, abs=0.01)
    assert answers["classification:opinions.csv"] > 85
    assert 25 < answers["classification:noise.csv"] < 75


@pytest.mark.promise(14)
def test_a_column_of_splits_says_what_is_fitted_and_what_is_tested(answers: Answers) -> None:
    rows = mixed(160)
    parts = {
        split: in_order([row for i, row in enumerate(rows) if split_of(i) == split])
        for split in ("train", "dev", "test")
    }
    penalties = [1e-5, 1e-4, 1e-3, 1e-2]
    fitted = [probe(parts["train"], penalty, dev=parts["dev"]) for penalty in penalties]
    shares = [round(100 * one.score(parts["dev"]), 2) for one in fitted]
    wanted = 100 * fitted[int(np.argmax(shares))].score(parts["test"])
    assert answers["classification:split.jsonl"] == pytest.approx(wanted, abs=0.01)


@pytest.mark.promise(14)
def test_labels_are_found_again_by_clustering(answers: Answers) -> None:
    texts, labels = zip(*topics(), strict=True)
    vectors, gold = words_in(texts), np.array(labels)
    kmeans = [KMeans(3, n_init=10, random_state=seed) for seed in range(10)]
    wanted = np.mean([matched(one.fit_predict(vectors), gold) for one in kmeans])
    assert 60 < wanted < 99
    assert answers["clustering:topics.csv"] == pytest.approx(wanted, abs=0.01)


@pytest.mark.promise(14, 29)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_row_is_one_line_with_file_and_row(answers: Answers, name: str) -> None:
    said = answers[name]
    assert isinstance(said, str) and "\n" not in said, said
    for word in (name.rpartition(":")[2], *WRONG[name][1]):
        assert word in said


@pytest.mark.promise(14, 29)
def test_a_wrong_row_ends_the_command_before_anything_is_written(
    folder: Path, tmp_path: Path
) -> None:
    words = ["run", "cls", "--suite", folder / "rating.tsv", "--runs", tmp_path / "runs"]
    line = error_line(bench(*words, cwd=tmp_path, code=2))
    assert "rating.tsv" in line and "line 3" in line and "many" in line
    assert not (tmp_path / "runs").exists()


AMBIGUOUS = {
    "gold.csv": ("gold", "score"),
    "classification:titles.jsonl": ("title", "content"),
    "classification:asked.jsonl": ("question", "sentence"),
}


@pytest.mark.promise(14)
def test_named_columns_are_taken_and_others_are_not(answers: Answers) -> None:
    assert answers["classification:titles.jsonl:title,label"] > 85
    assert answers["classification:asked.jsonl:question,sentence,label"] > 80


@pytest.mark.promise(14)
@pytest.mark.parametrize("name", AMBIGUOUS)
def test_ambiguous_columns_are_refused_by_name(answers: Answers, name: str) -> None:
    said = str(answers[name])
    assert all(column in said for column in AMBIGUOUS[name]), f"{name} is scored: {said}"


@pytest.mark.promise(14)
def test_whole_numbers_and_their_decimals_are_one_label(answers: Answers) -> None:
    wanted = answers["classification:opinions.csv"]
    assert answers["classification:floats.csv"] == wanted, "0 and 0.0 are two labels"


@pytest.mark.promise(14)
def test_lists_of_labels_are_refused(answers: Answers) -> None:
    said = answers["classification:lists.jsonl"]
    assert isinstance(said, str) and "label" in said, f"lists of labels are scored: {said}"


@pytest.mark.promise(14)
def test_text_that_is_stored_as_bytes_is_decoded(answers: Answers) -> None:
    found = answers["bin.parquet"]
    assert found == pytest.approx(pairs_value(), abs=0.01), f"bytes are no text: {found}"


@pytest.mark.promise(14, 29)
def test_ratings_that_are_true_or_false_are_taken_or_lead_to_classification(
    answers: Answers,
) -> None:
    found = answers["bool.parquet"]
    wanted = pairs_value([float(score > 2) for _, _, score in PAIRS])
    right = found == pytest.approx(wanted, abs=0.01) if isinstance(found, float) else False
    assert right or "classification:" in str(found), f"no way out of {found}"


@pytest.mark.promise(14, 29)
def test_a_decimal_comma_is_named(answers: Answers) -> None:
    said = str(answers["deci.tsv"])
    assert "decimal" in said, f"no word of the decimal comma: {said}"


@pytest.mark.promise(14)
def test_compare_shows_texts_of_a_file_that_is_named_again(ten_runs: Path, inputs: Path) -> None:
    two = [run.name for run in run_folders(ten_runs) if run.name.startswith(("cls", "last-avg"))]
    words = ["compare", *two, "--runs", ten_runs, "--items", "--task", "pairs"]
    plain = bench(*words, cwd=inputs)
    again = bench(*words, "--suite", inputs / "pairs.tsv", cwd=inputs, code=None)
    texts = sentences(80, seed=1)
    said = plain.out + again.out
    assert any(text in said for text in texts), "items of an own file have no texts"
