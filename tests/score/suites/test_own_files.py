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

from bench.base.errors import BenchError
from bench.data.own.items import read_labelled, read_pairs, with_kind
from bench.data.own.naming import parse_own_file
from bench.data.sets import DataFolder
from bench.records import RunsFolder
from bench.score.suites import split_suites
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


def test_only_the_test_split_of_pairs_is_scored(tmp_path: Path) -> None:
    rows = rated(40)
    for number, row in enumerate(rows):
        row["split"] = "test" if number % 2 else "train"
    pairs = read_pairs(with_kind(parse_own_file(str(write(tmp_path / "pairs.csv", rows)))))
    assert pairs.sentences1 == [row["sentence1"] for row in rows[1::2]]


def test_classes_are_in_one_order_even_if_one_is_called_nan(tmp_path: Path) -> None:
    names = [*map(str, range(12)), "nan"]
    rows: Table = [{"text": f"a {name}", "label": name} for name in names for _ in range(10)]
    file = write(tmp_path / "texts.csv", rows)
    assert read_labelled(parse_own_file(f"classification:{file}")).classes == tuple(names)


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
    assert split_suites(text) == parts


WRONG = [
    (
        "pairs.tsv",
        "sentence1\tsentence2\tscore\tsplit\na\tb\t1\ttrain\nc\td\t2\ttrain\n",
        "no row is of the split test",
    ),
    (
        "pairs.jsonl",
        '{"sentence1": "a", "sentence2": "b", "score": 1}\n{"sentence1": "a", "score": 2}\n',
        "line 2 has no 'sentence2'",
    ),
    (
        "pairs.jsonl",
        '{"sentence1": "a", "sentence2": "b", "score": 1}\n'
        '{"sentence1": "a", "sentence2": "b", "score": 2, "split": "train"}\n',
        "line 2 has 'split', but the first row has not",
    ),
    (
        "pairs.jsonl",
        f'{{"sentence1": "a", "sentence2": "b", "score": {"9" * 400}}}\n',
        "line 1 has the rating 9",
    ),
    ("my texts.csv:body,stars", "body,stars\na,1\n", "'classification:my texts.csv:body,stars'"),
    ("texts.csv:a,b,label", "a,b,label\nx,y,1\n", "--suite pairs:texts.csv:a,b,label, or --suite"),
    ("texts.csv:a", "a\nx\n", "texts.csv: a: expected two texts and a rating or a label, or"),
    ("~nobody-here/pairs.csv", None, "no file at ~nobody-here/pairs.csv"),
    (
        "classification:texts.csv",
        "text,label,split\n" + "a,1,train\n" * 12 + "b,2,test\n",
        "no text of the train split has the class '2'",
    ),
    ("clustering:texts.csv", "text,label\na,1\nb,2\n", "clustering needs"),
    ("pairs.tsv:a,b,rating", "a\tb\tc\nx\ty\t1\n", "has no column 'rating'; it has a, b, c"),
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


@pytest.mark.nightly
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
