"""Training text: every format gives the same training, and nothing in it is lost or made up."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hub import StandInHub
from made import sentences
from started import python, record, run_folders

ROWS = 24
NEGATIVES = ("negative_1", "negative_2")

MADE = """
import json, sys
import bench

def scored(name, corpus, values, method="simcse"):
    try:
        runs = bench.train(method, corpus=corpus, runs=f"runs/{name}", **common | values)
    except bench.BenchError as error:
        print(json.dumps([name, {"error": str(error)}]))
    else:
        print(json.dumps([name, {"score": runs.frame()["value"].iloc[0]}]))

common = {"backbone": sys.argv[1], "suites": sys.argv[2], "select_on": "last", "batch_size": 8}
common |= {"budget": "1epochs", "learning_rate": 1e-3, "progress": False, "seeds": 1}
pairs = {"setting": "supervised"}
"""


def trained(
    script: str, cwd: Path, inputs: Path, env: dict[str, str] | None = None
) -> dict[str, dict[str, Any]]:
    """Run a script that calls ``scored``; return score and record of each run, or its error."""
    done = python(MADE + script, inputs / "tiny", inputs / "pairs.tsv", cwd=cwd, env=env)
    found = dict(json.loads(line) for line in done.out.splitlines() if line.startswith("["))
    for name, one in found.items():
        runs = run_folders(cwd / "runs" / name)
        assert len(runs) == ("score" in one), name  # what is refused leaves no run
        if runs:
            one["record"] = record(runs[0])
    return found


def quadruples() -> list[dict[str, str]]:
    """Return rows of texts with what formats must keep: commas, quotes, letters beyond ASCII."""
    texts = sentences(4 * ROWS, seed=11)
    texts[5], texts[9] = 'the old man\'s book, a "letter"', "the café in the straße"
    columns = ("sent0", "sent1", *NEGATIVES)
    return [dict(zip(columns, texts[4 * i : 4 * i + 4], strict=True)) for i in range(ROWS)]


def as_csv(rows: list[dict[str, str]], names: tuple[str, ...] | None = None) -> str:
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(names or tuple(rows[0]))
    table.writerows(row.values() for row in rows)
    return written.getvalue()


def as_json_lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_bytes(text.encode())


SAME = """
import csv, lzma
from pathlib import Path
import datasets, pandas, pyarrow, pyarrow.parquet

rows = list(csv.DictReader(open("rows.csv", encoding="utf-8", newline="")))
Path("rows.csv.xz").write_bytes(lzma.compress(Path("rows.csv").read_bytes()))
pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), "rows.parquet")
datasets.disable_progress_bars()
dataset = datasets.Dataset.from_list(rows)
dataset.save_to_disk("saved")
several = {
    "csv": "rows.csv", "xz": "rows.csv.xz", "tsv": "rows.tsv", "json lines": "rows.jsonl",
    "a list in json lines": "list.jsonl", "parquet": "rows.parquet", "saved": "saved",
    "data set": dataset, "frame": pandas.DataFrame(rows), "dictionaries": rows,
    "columns": {key: [row[key] for row in rows] for key in rows[0]},
}
for name, corpus in several.items():
    scored(name, corpus, pairs)
scored("one negative", "rows.csv:sent0,sent1,negative_1", pairs)
scored("named", "other.csv:question,answer,wrong", pairs)
scored("list", [tuple(row.values())[:3] for row in rows], pairs)
lines = [row["sent0"] for row in rows]
scored("text", "lines.txt", {})
scored("text as a list", lines, {})
scored("a column of a table", "other.csv:question", {})
scored("a series", pandas.Series(lines), {})
scored("consert", "rows.csv", pairs, "consert")
"""


@pytest.fixture(scope="module")
def formats(found_once: Any, inputs: Path) -> dict[str, dict[str, Any]]:
    """Return one training for each format of the same rows."""
    return dict(found_once("formats", lambda folder: trained_in_every_format(folder, inputs)))


def trained_in_every_format(folder: Path, inputs: Path) -> dict[str, dict[str, Any]]:
    rows = quadruples()
    lists = [
        {"sent0": row["sent0"], "sent1": row["sent1"], "negatives": [row[key] for key in NEGATIVES]}
        for row in rows
    ]
    tabs = ["\t".join(cells) for cells in (rows[0], *(row.values() for row in rows))]
    other = ("question", "answer", "wrong", "remark")
    files = {
        "rows.csv": as_csv(rows),
        "rows.tsv": "\n".join(tabs) + "\n",
        "rows.jsonl": as_json_lines(rows),
        "list.jsonl": as_json_lines(lists),
        "other.csv": as_csv(rows, other),
        "lines.txt": "\n".join(row["sent0"] for row in rows) + "\r\n",
    }
    write(folder, files)
    return trained(SAME, folder, inputs)


def group(formats: dict[str, dict[str, Any]], *names: str) -> set[tuple[float, int]]:
    """Return the different (score, rows trained on) of some trainings."""
    assert not [formats[name]["error"] for name in names if "error" in formats[name]]
    return {
        (round(one["score"], 6), one["record"]["training"]["sentences"])
        for one in (formats[name] for name in names)
    }


SEVERAL = ("csv", "xz", "tsv", "json lines", "a list in json lines", "parquet", "saved")
SEVERAL_HELD = ("data set", "frame", "dictionaries", "columns")
ONE = ("one negative", "named", "list")
LINES = ("text", "text as a list", "a column of a table", "a series")


@pytest.mark.promise(7)
def test_the_same_rows_give_the_same_training_in_every_format(
    formats: dict[str, dict[str, Any]],
) -> None:
    """Quotes, commas and accents included; the score has all digits that a training gives."""
    (several,) = group(formats, *SEVERAL, *SEVERAL_HELD)
    (one,) = group(formats, *ONE)  # columns named, and in a list, by their places
    (lines,) = group(formats, *LINES)
    assert several[1] == one[1] == lines[1] == ROWS
    assert len({several, one, lines}) == 3  # each column counts


@pytest.mark.promise(7, 28)
def test_rows_that_a_program_holds_are_one_run_in_whatever_they_come(
    formats: dict[str, dict[str, Any]],
) -> None:
    ids = {name: formats[name]["record"]["run_id"] for name in SEVERAL_HELD}
    assert len(set(ids.values())) == 1, ids


KEPT = """
import json
for name, (corpus, values) in json.load(open("asked.json")).items():
    scored(name, corpus, values)
for name, corpus in {
    "None in a list": [*LINES, None],
    "a row with more": [("a man", "a dog"), ("a man", "a dog", "a cat")],
    "NaN in a frame": __import__("pandas").DataFrame({"text": [*LINES, float("nan")]}),
    "a set": set(LINES),
    "the hub": "hub:nobody/texts:text",
}.items():
    scored(name, corpus, {})
"""
TEXT = sentences(16, seed=21)
PAIRS = [
    {"sent0": first, "sent1": second, "third": third}
    for first, second, third in zip(
        TEXT, sentences(16, seed=22), sentences(16, seed=23), strict=True
    )
]


def renamed(name: str) -> list[dict[str, str]]:
    return [{"sent0": one["sent0"], "sent1": one["sent1"], name: one["third"]} for one in PAIRS]


TRIPLETS = as_csv(renamed("hard_neg")).splitlines()
AFTER_FOUR = {
    "a cell too few.csv": "a man,a dog",
    "a cell too many.csv": "a man,a dog,a cat,a car",
    "a blank row.csv": "",
}
LATER = [
    one if i > 2 else {"sent0": one["sent0"], "sent1": one["sent1"]}
    for i, one in enumerate(renamed("hard_neg"))
]
REFUSED = {
    "carriage returns.txt": ("\r".join(TEXT) + "\r", ("line 1", "carriage return")),
    "carriage returns.csv": ("\r".join(["sentence", *TEXT]) + "\r", ("carriage return",)),
    "a cell too few.csv": ("", ("line 5", "2 cells", "3")),
    "a cell too many.csv": ("", ("line 5", "4 cells", "3")),
    "a blank row.csv": ("", ("line 5",)),
    "a blank row.jsonl": (as_json_lines([{"text": "a"}]) + "\n", ("line 2",)),
    "unknown.csv": (as_csv(renamed("notes")), ("notes", "sent0")),
    "known by half.csv": (as_csv(renamed("scores")), ("scores",)),
    "known by half.jsonl": (as_json_lines(renamed("positive_2")), ("positive_2", "ignored")),
    "twice.csv": (as_csv(renamed("sentence1")), ("sent0", "sentence1")),
    "only later.jsonl": (as_json_lines(LATER), ("line 4", "hard_neg")),
    "a negative less.jsonl": (
        as_json_lines(
            [
                {"sent0": "a man", "sent1": "a dog", "negatives": ["a cat", "a car"]},
                {"sent0": "a boy", "sent1": "a girl", "negatives": ["a cat"]},
            ]
        ),
        ("line 2",),
    ),
    "an open quote.csv": ('sentence\na man\n"a dog\na cat\n', ("line 3",)),
    "latin.txt": ("", ("line 2", "UTF-8")),
    "empty.txt": ("", ("empty",)),
}
"""A file -> its content and what its error must name."""
COUNTED = {
    "no last line end.txt": ("\n".join(TEXT), len(TEXT)),
    "two blank lines.txt": ("\n".join([*TEXT[:9], "", "", *TEXT[9:]]) + "\n", len(TEXT) + 2),
    "byte order mark.csv": ("\ufeff" + "\r\n".join(["sentence", *TEXT]) + "\r\n", len(TEXT)),
    "a line end in a cell.csv": ('sentence\na man\n"a dog\nand a cat"\n"""a girl"""\n', 3),
    "a quote is a letter.tsv": ('sentence\na man\n"a dog\na cat\n', 3),
}
"""A file -> its content and the rows that it has."""


@pytest.fixture(scope="module")
def read(found_once: Any, inputs: Path) -> dict[str, dict[str, Any]]:
    """Return what became of each file, and of each object of a program."""
    return dict(found_once("read", lambda folder: trained_or_refused(folder, inputs)))


def trained_or_refused(folder: Path, inputs: Path) -> dict[str, dict[str, Any]]:
    write(folder, {name: text for name, (text, _) in {**REFUSED, **COUNTED}.items()})
    for name, row in AFTER_FOUR.items():
        write(folder, {name: "\n".join([*TRIPLETS[:4], row, *TRIPLETS[4:]]) + "\n"})
    (folder / "latin.txt").write_bytes("a man\nthe café\n".encode("latin-1"))
    paired = ("sent0", "anchor", "negatives")

    def values(text: str) -> dict[str, Any]:
        first = text.partition("\n")[0]
        return {"setting": "supervised"} if any(name in first for name in paired) else {}

    asked = {
        name: (name, values((folder / name).read_bytes().decode("latin-1")))
        for name in (*REFUSED, *COUNTED)
    }
    (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    return trained(f"LINES = {TEXT!r}\n{KEPT}", folder, inputs)


@pytest.mark.promise(7, 29)
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_row_by_row_is_refused_with_its_place(
    name: str, read: dict[str, dict[str, Any]]
) -> None:
    """No column of a known meaning is ignored, and no row is lost."""
    said = read[name].get("error", "")
    assert name in said and "\n" not in said, read[name].get("record")
    assert not [word for word in REFUSED[name][1] if word not in said], said


@pytest.mark.promise(7)
def test_every_row_of_a_text_is_trained_on_and_no_other(read: dict[str, dict[str, Any]]) -> None:
    """A blank line is a row: row i of a text is its line i."""
    assert not [read[name]["error"] for name in COUNTED if "error" in read[name]]
    rows = {name: read[name]["record"]["training"]["sentences"] for name in COUNTED}
    assert rows == {name: wanted for name, (_, wanted) in COUNTED.items()}


@pytest.mark.promise(7, 28)
def test_rows_of_a_program_that_are_no_texts_are_named(read: dict[str, dict[str, Any]]) -> None:
    assert "row 17" in read["None in a list"]["error"]
    assert "row 2" in read["a row with more"]["error"]
    assert "17" in read["NaN in a frame"]["error"] and "NaN" in read["NaN in a frame"]["error"]


@pytest.mark.promise(7, 28)
def test_a_set_has_no_order_and_is_refused(read: dict[str, dict[str, Any]]) -> None:
    assert "error" in read["a set"], "a set of sentences was trained on"


@pytest.mark.promise(7)
def test_a_method_that_takes_no_second_negative_refuses_a_text_that_has_it(
    formats: dict[str, dict[str, Any]],
) -> None:
    said = formats["consert"]["error"]
    assert "consert" in said and "rows.csv" in said and "hard_neg_2" in said


FROM_THE_HUB = """
scored("hub", "hub:someone/texts:text", {})
scored("file", "same.txt", {})
"""


@pytest.mark.promise(7)
@pytest.mark.nightly
def test_a_data_set_of_the_hub_trains_as_the_same_rows_in_a_file(
    inputs: Path, tmp_path: Path
) -> None:
    """Its training split, at a commit that the record keeps; the test split is left out."""
    texts = sentences(32, seed=31)
    write(tmp_path, {"same.txt": "\n".join(texts) + "\n"})
    files = {
        "README.md": "---\nlicense: cc0-1.0\n---\n",
        "train.jsonl": as_json_lines([{"text": one, "id": i} for i, one in enumerate(texts)]),
        "test.jsonl": as_json_lines([{"text": "not this one", "id": 0}]),
    }
    with StandInHub() as hub:
        content = {name: text.encode() for name, text in files.items()}
        revision = hub.add("dataset", "someone/texts", content)
        env = hub.environment(tmp_path / "home")
        found = trained(FROM_THE_HUB, tmp_path, inputs, env)
    fetched, same = found["hub"], found["file"]
    assert fetched["record"]["training"]["sentences"] == len(texts)
    assert fetched["score"] == same["score"]
    assert revision[:12] in json.dumps(fetched["record"]["provenance"])


@pytest.mark.promise(7, 29)
def test_offline_a_data_set_of_the_hub_is_missing_in_a_line(
    read: dict[str, dict[str, Any]],
) -> None:
    said = read["the hub"]["error"]
    assert "hub:nobody/texts:text" in said and "offline" in said.lower() and "\n" not in said
