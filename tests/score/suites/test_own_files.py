"""A user's own files as suites: read in every format, scored as the papers' suites are, compared
and verified without the file.
"""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from commands import bench, error_line, the_run
from probe_sequential import fit_sequential
from scipy.stats import spearmanr

from bench.base.errors import BenchError
from bench.data.own.items import read_classed, read_labelled, read_pairs, with_kind
from bench.data.own.naming import parse_own_file, split_files
from bench.data.sets import DataFolder
from bench.records import RunsFolder
from bench.score.metrics.probe import Split, holdout
from bench.score.suites import rescore, split_names, suite
from bench.score.suites.own import task_of_file

Table = list[dict[str, object]]
WORDS = [
    "man",
    "woman",
    "dog",
    "cat",
    "runs",
    "sleeps",
    "plays",
    "guitar",
    "grass",
    "paris",
    "rain",
    "car",
    "onion",
    "market",
    "falls",
    "eats",
    "red",
    "blue",
]


def rated(count: int = 30) -> Table:
    """Pairs that share from none to five of five words; the rating says how many."""
    rng = np.random.default_rng(0)
    rows: Table = []
    for number in range(count):
        first = rng.choice(WORDS, 5).tolist()
        shared = number % 6
        second = first[:shared] + rng.choice(WORDS, 5 - shared).tolist()
        rows.append(
            {"sentence1": " ".join(first), "sentence2": " ".join(second), "score": float(shared)}
        )
    return rows


def labelled(count: int = 60) -> Table:
    """Texts of three classes that each have words of their own, but for one word."""
    rng = np.random.default_rng(1)
    rows: Table = []
    for number in range(count):
        kind = number % 3
        words = [*rng.choice(WORDS[6 * kind : 6 * kind + 6], 4), rng.choice(WORDS)]
        rows.append({"text": " ".join(words), "label": ["bad", "fair", "good"][kind]})
    return rows


def write(path: Path, rows: Table) -> Path:
    """The rows in the format that the file's name says."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path)
        return path
    if name.endswith(".jsonl"):
        text = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        separator = "," if name.endswith(".csv") else "\t"
        lines = [separator.join(rows[0])]
        for row in rows:
            lines.append(separator.join(str(cell) for cell in row.values()))
        text = "\n".join(lines) + "\n"
    content = text.encode()
    path.write_bytes(gzip.compress(content) if path.name.endswith(".gz") else content)
    return path


def letters(sentences) -> np.ndarray:
    """Encode without a model: how often each letter occurs."""
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    return np.array([[s.count(c) for c in alphabet] for s in sentences], dtype=np.float32)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet", "a.tsv.gz"])
def test_every_format_is_the_same_data(tmp_path: Path, name: str) -> None:
    rows = rated()
    pairs = read_pairs(with_kind(parse_own_file(str(write(tmp_path / name, rows)))))
    assert pairs.sentences1 == [row["sentence1"] for row in rows]
    assert pairs.gold.tolist() == [row["score"] for row in rows]
    other = read_pairs(with_kind(parse_own_file(str(write(tmp_path / "other.csv", rows)))))
    assert pairs.sha256 == other.sha256


def test_a_saved_data_set_keeps_its_splits_and_the_names_of_its_labels(tmp_path: Path) -> None:
    from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

    features = Features({"text": Value("string"), "label": ClassLabel(names=["no", "yes"])})

    def part(count: int) -> Dataset:
        rows = {"text": [f"text {i}" for i in range(count)], "label": [i % 2 for i in range(count)]}
        return Dataset.from_dict(rows, features=features)

    DatasetDict(train=part(40), test=part(10)).save_to_disk(str(tmp_path / "saved"))
    own = with_kind(parse_own_file(f"classification:{tmp_path / 'saved'}"))
    texts = read_labelled(own)
    assert texts.classes == ("no", "yes")
    assert texts.split.tolist() == ["train"] * 40 + ["test"] * 10
    loaded = task_of_file(own).load(DataFolder(None))
    assert "10 tested texts also in the train or dev split" in loaded.notes[0]


def test_rated_pairs_score_the_spearman_of_cosine_and_rating(tmp_path: Path) -> None:
    rows = rated()
    task = task_of_file(parse_own_file(str(write(tmp_path / "pairs.tsv", rows))))
    result = task.load(DataFolder(None)).score(letters)
    a = letters([row["sentence1"] for row in rows]).astype(float)
    b = letters([row["sentence2"] for row in rows]).astype(float)
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    expected = spearmanr(cosine.astype(np.float32), [row["score"] for row in rows]).statistic
    assert result.value == pytest.approx(100 * expected, abs=1e-9)
    sha256 = task.load(DataFolder(None)).sha256
    about = (result.suite, result.task, result.protocol)
    assert about == ("own", "pairs", f"own-pairs-{sha256[:8]}/1")


def test_only_the_test_split_of_pairs_is_scored(tmp_path: Path) -> None:
    rows = rated(40)
    for number, row in enumerate(rows):
        row["split"] = "test" if number % 2 else "train"
    pairs = read_pairs(with_kind(parse_own_file(str(write(tmp_path / "pairs.csv", rows)))))
    assert pairs.sentences1 == [row["sentence1"] for row in rows[1::2]]


@pytest.mark.slow
def test_labels_without_splits_are_predicted_in_ten_folds(tmp_path: Path) -> None:
    task = task_of_file(parse_own_file(f"classification:{write(tmp_path / 'a.csv', labelled(90))}"))
    result = task.load(DataFolder(None)).score(letters)
    right = result.predictions["prediction"] == result.predictions["gold"]
    fold = result.predictions["fold"]
    each = [round(100 * float(right[fold == k].mean()), 2) for k in range(10)]
    assert result.n == 90 and sum(fold == k for k in range(10)).all()
    assert result.value == round(float(np.mean(each)), 2)


@pytest.mark.slow
def test_a_split_column_says_what_is_fitted_and_what_is_tested(tmp_path: Path) -> None:
    rows = labelled(90)
    for number, row in enumerate(rows):
        row["split"] = ["train", "train", "validation", "test"][number % 4]
    task = task_of_file(parse_own_file(f"classification:{write(tmp_path / 'b.csv', rows)}"))
    loaded = task.load(DataFolder(None))
    result = loaded.score(letters)
    x_ND = letters([row["text"] for row in rows])
    y_N = np.array([["bad", "fair", "good"].index(str(row["label"])) for row in rows])
    # SentEval's order: by number of words, then by label
    order = sorted(range(90), key=lambda i: (len(str(rows[i]["text"]).split()), y_N[i]))
    train = np.array([i for i in order if i % 4 < 2])
    dev = np.array([i for i in order if i % 4 == 2])
    split = Split(train, np.arange(3, 90, 4), dev)
    want = holdout(x_ND, y_N, split, 3, fit_sequential)
    assert result.predictions["prediction"].tolist() == want.predicted.tolist()
    assert (result.value, result.n) == (want.test, 22)
    assert result.detail["classes"] == ["bad", "fair", "good"]


def test_clustering_takes_the_same_file(tmp_path: Path) -> None:
    file = write(tmp_path / "texts.csv", labelled())
    own = with_kind(parse_own_file(f"clustering:{file}"))
    assert len(read_classed(own)) == 60
    task = task_of_file(own)
    loaded = task.load(DataFolder(None))
    assert (task.name, task.protocol) == ("texts-clusters", f"own-kmeans-{loaded.sha256[:8]}/1")
    result = loaded.score(letters)
    again = rescore(("own", task.name, task.protocol), result.predictions)
    assert again is not None and again.value == result.value


def test_columns_are_named_in_the_order_of_the_kind(tmp_path: Path) -> None:
    rows = [
        {"id": i, "q": r["sentence1"], "a": r["sentence2"], "stars": r["score"]}
        for i, r in enumerate(rated())
    ]
    file = write(tmp_path / "pairs.csv", rows)
    pairs = read_pairs(with_kind(parse_own_file(f"mine={file}:q,a,stars")))
    assert pairs.name == "mine" and pairs.sentences2 == [row["a"] for row in rows]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "sts,pairs.tsv:a,b,rating,more.csv,cxc",
            ("sts", "own:pairs.tsv:a,b,rating,more.csv", "cxc"),
        ),
        (
            "clustering:texts.csv,clustering:AgNews",
            ("own:clustering:texts.csv", "clustering:AgNews"),
        ),
        ("sts:STS12,STS13", ("sts:STS12,STS13",)),
        ("mine=folder/pairs.jsonl.gz:a,b,c", ("own:mine=folder/pairs.jsonl.gz:a,b,c",)),
    ],
)
def test_a_suite_option_is_taken_apart(text: str, parts: tuple[str, ...]) -> None:
    assert split_names(text) == parts


def test_a_comma_separates_files_and_columns() -> None:
    assert split_files("pairs.tsv:a,b,rating,more.csv") == ["pairs.tsv:a,b,rating", "more.csv"]


def test_one_task_of_a_suite_can_be_chosen() -> None:
    assert [task.name for task in suite("sts:STS-B,STS12").tasks] == ["STS12", "STS-B"]


WRONG = [
    ("pairs.tsv", "a\tb\t1\nc\td\t2\n", "names the columns a, b, 1; none is known"),
    ("pairs.tsv", "sentence1\tsentence2\tscore\na\tb\t1\nc\td\t\n", "line 3 has the rating ''"),
    (
        "pairs.tsv",
        "sentence1\tsentence2\tscore\na\tb\tnan\nc\td\t1\n",
        "line 2 has the rating 'nan'",
    ),
    ("pairs.tsv", "sentence1\tsentence2\tscore\na\tb\t1\nc\td\t1\n", "all 2 ratings are 1"),
    ("pairs.tsv", "sentence1\tsentence2\tscore\na\tb\t1\n", "one pair"),
    ("pairs.tsv", "sentence1\tsentence2\tscore\n", "no rows"),
    (
        "pairs.tsv",
        "sentence1\tsentence2\tscore\tsplit\na\tb\t1\ttrain\nc\td\t2\ttrain\n",
        "no row is of the split test",
    ),
    (
        "pairs.tsv",
        "sentence1\tsentence2\tscore\tsplit\na\tb\t1\thidden\nc\td\t2\ttest\n",
        "line 2 has the split 'hidden'",
    ),
    (
        "pairs.jsonl",
        '{"sentence1": "a", "sentence2": null, "score": 1}\n',
        "'sentence2' is null, expected a text",
    ),
    (
        "pairs.jsonl",
        '{"sentence1": "a", "sentence2": "b", "score": 1}\n{"sentence1": "a", "score": 2}\n',
        "line 2 has no 'sentence2'",
    ),
    (
        "pairs.csv",
        "sentence1;sentence2;score\na;b;1,5\n",
        "its columns are separated by semicolons",
    ),
    ("pairs.csv", "sentence1\tsentence2\tscore\na\tb\t1\n", "its columns are separated by tabs"),
    ("pairs.tsv", "sentence1,sentence2,score\na,b,1\n", "its columns are separated by commas"),
    ("pairs.csv", "sentence1,sentence2,score\na,b,1\n,d,2\n", "line 3 has an empty sentence"),
    ("pairs.csv", "", "pairs.csv is empty"),
    ("pairs.jsonl", "not json\n", "line 1 is not a JSON object"),
    ("pairs.parquet", "not parquet\n", "not a readable Parquet file"),
    ("texts.csv", "text,label\na,1\nb,2\n", "has labels"),
    ("classification:texts.csv", "text,label\na,1\nb,2\n", "the largest class, '1', has 1 text"),
    ("classification:texts.csv", "text,label\n" + "a,1\n" * 12, "one class, '1'"),
    ("classification:texts.csv", "text,label\n" + "a,1\n" * 12 + "b,\n", "line 14 has no label"),
    (
        "classification:texts.csv",
        "text,label,split\n" + "a,1,train\n" * 12 + "b,2,test\n",
        "no text of the train split has the class '2'",
    ),
    ("clustering:texts.csv", "text,label\na,1\nb,2\n", "clustering needs"),
    ("pairs.tsv:a,b", "a\tb\tc\nx\ty\t1\n", "has labels"),
    ("pairs.tsv:a,b,rating", "a\tb\tc\nx\ty\t1\n", "has no column 'rating'; it has a, b, c"),
    ("missing.tsv", None, "no file at missing.tsv"),
    ("STS", None, "unknown suite 'STS'; nearest: sts"),
    ("sts:sts12", None, "unknown task 'sts12' in suite sts; nearest: STS12"),
    ("SimCSE", None, "simcse is a method: bench run simcse"),
]


@pytest.mark.parametrize(("option", "content", "message"), WRONG)
def test_a_mistake_in_a_file_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, content: str | None, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        name = option.rpartition("=")[2].split(":")
        file = name[1] if name[0] in ("classification", "clustering") else name[0]
        Path(file).write_text(content, encoding="utf-8")
    done = bench("run", "cls", "--suite", option, "--runs", tmp_path / "runs")
    whole = error_line(done) + done.stderr
    assert message in whole
    assert not (tmp_path / "runs").exists()


LEFT_OUT = [
    ("gold.csv", "sentence1,sentence2,gold,score", "gold.csv:sentence1,sentence2,gold"),
    ("label.csv", "sentence1,sentence2,score,Label", "label.csv:sentence1,sentence2,Label"),
    (
        "sick.csv",
        "sentence1,sentence2,label,relatedness_score",
        "sick.csv:sentence1,sentence2,label",
    ),
    ("third.csv", "sentence1,sentence2,score,sentence3", "third.csv:sentence1,sentence2,score"),
    ("classification:q.csv", "question,sentence,label", "q.csv:question,sentence,label"),
    ("classification:a.csv", "label,title,content", "a.csv:title,content,label"),
    ("clustering:a.csv", "label,title,content", "clustering:a.csv:title,label"),
    ("classification:b.csv", "text,label,label_text", "b.csv:text,label_text"),
]


@pytest.mark.parametrize(("option", "header", "spelling"), LEFT_OUT)
def test_a_column_that_may_be_meant_is_refused_with_the_spelling_that_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, header: str, spelling: str
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = ("sentence", "question", "title", "content", "text")
    names = header.split(",")
    rows = []
    for i in range(40):
        cells = [f"text {i}" if name.rstrip("123") in texts else str(i % 2) for name in names]
        rows.append(",".join(cells))
    Path(option.rpartition(":")[2]).write_text("\n".join([header, *rows]) + "\n")
    with pytest.raises(BenchError, match="would be left out beside") as caught:
        task_of_file(parse_own_file(option))
    hint = caught.value.hint or ""
    assert spelling in hint
    for text in hint.partition("--suite ")[2].split(", or --suite "):  # each can be read
        task_of_file(parse_own_file(text))


def test_columns_without_a_meaning_are_left_out(tmp_path: Path) -> None:
    rows = [row | {"id": i, "source": "news"} for i, row in enumerate(rated())]
    pairs = read_pairs(with_kind(parse_own_file(str(write(tmp_path / "pairs.csv", rows)))))
    assert len(pairs.gold) == len(rows)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_whole_number_is_one_label_however_it_is_written(tmp_path: Path, name: str) -> None:
    rows: Table = [{"text": f"t{i}", "label": float(i % 2) if i < 20 else i % 2} for i in range(40)]
    own = with_kind(parse_own_file(f"classification:{write(tmp_path / name, rows)}"))
    assert read_labelled(own).classes == ("0", "1")


@pytest.mark.parametrize("label", ["[0, 2]", [0, 2], {"joy": 1}])
def test_several_labels_of_a_text_are_refused(tmp_path: Path, label: object) -> None:
    rows: Table = [{"text": f"t{i}", "label": label} for i in range(40)]
    own = with_kind(parse_own_file(f"classification:{write(tmp_path / 'a.jsonl', rows)}"))
    with pytest.raises(BenchError, match="line 1 has several labels"):
        read_labelled(own)


def test_ratings_that_are_true_and_false_are_one_and_zero(tmp_path: Path) -> None:
    rows = [row | {"score": row["score"] > 2} for row in rated()]
    for name in ("a.csv", "a.jsonl", "a.parquet"):
        pairs = read_pairs(with_kind(parse_own_file(str(write(tmp_path / name, rows)))))
        assert pairs.gold.tolist() == [float(row["score"]) for row in rows]


def test_the_description_of_a_file_names_it_and_checks_the_scale(tmp_path: Path) -> None:
    file = write(tmp_path / "pairs.csv", rated())
    (tmp_path / "pairs.toml").write_text('name = "My pairs"\nscale = [0, 4]\nlicence = "CC0"\n')
    own = with_kind(parse_own_file(str(file)))
    assert own.name == "My pairs"
    with pytest.raises(BenchError, match="the rating 5, outside of the scale 0 to 4"):
        read_pairs(own)
    (tmp_path / "pairs.toml").write_text('title = "My pairs"\n')
    with pytest.raises(BenchError, match="pairs.toml: .*title"):
        parse_own_file(str(file))


@pytest.mark.slow
def test_own_files_are_run_compared_and_verified_without_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "pairs.tsv", rated())
    write(tmp_path / "texts.csv", labelled())
    done = bench(
        *("run", "cls", "last-avg", "--suite", "pairs.tsv", "--suite", "clustering:texts.csv"),
        *("--device", "cpu", "--runs", "runs"),
    )
    assert done.exit_code == 0, done.stderr
    items = ("compare", "--runs", "runs", "--items", "--suite", "pairs.tsv")
    shown = bench(*items)
    assert shown.exit_code == 0 and any(str(row["sentence1"]) in shown.stdout for row in rated())
    (tmp_path / "pairs.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t1\nc\td\t2\n")
    assert "pairs.tsv as it is now" in error_line(bench(*items))
    (tmp_path / "pairs.tsv").unlink()
    (tmp_path / "texts.csv").unlink()
    again = bench("verify", "--runs", "runs", "--retrain-free")
    assert again.exit_code == 0 and "where the file of pairs is" in again.stdout
    verified = bench("verify", "--runs", "runs")
    assert verified.exit_code == 0 and "nothing differs" in verified.stdout
    rows = list(
        csv.DictReader(
            bench("compare", "--runs", "runs", "--format", "csv", "--all").stdout.splitlines()
        )
    )
    assert {row["suite"] for row in rows} == {"own"}
    assert {row["task"] for row in rows} >= {"pairs", "texts-clusters"}
    records, damaged = RunsFolder("runs").records()
    assert len(records) == 2 and not damaged
    assert all(str(tmp_path) not in str(record.to_json()) for record in records)


@pytest.mark.slow
def test_a_changed_file_is_another_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = ("run", "cls", "--suite", "pairs.tsv", "--device", "cpu", "--runs", "runs")
    write(tmp_path / "pairs.tsv", rated())
    assert bench(*command).exit_code == 0
    write(tmp_path / "pairs.tsv", rated(36))
    assert bench(*command).exit_code == 0
    scores = json.loads((the_run(tmp_path / "runs") / "run.json").read_text())["scores"]
    assert len({score["protocol"] for score in scores}) == 2
    assert {score["n"] for score in scores} == {30, 36}
