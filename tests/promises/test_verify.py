"""``bench verify``: what it computes again, and what it sees of a version that somebody changed.

The ways of tampering are those of an independent check of v5 (issue 84), tried on a version of some
of the newest one's runs. "With the manifest": its sha256 follow the change, as a forger's would.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from scipy.stats import rankdata, spearmanr
from started import bench, python, record, run_folders

ROOT = Path(__file__).resolve().parents[2]
RUNS_OF_A_ROW, ROWS = 3, 3

# a line of JSON for each folder: the differences that verify found, or why it refused the folder
VERIFY_ALL = """
import json
import sys
import bench

for folder in sys.argv[1:]:
    try:
        reports = bench.verify_runs(folder)
        differences = [f"{found.kind} {found.what}: {found.why}" for found in reports.differences]
        assert bool(differences) != reports.agree
    except bench.BenchError as error:
        differences = [str(error)]
    print(json.dumps([folder, differences]))
"""


def follow(version: Path) -> None:
    """Write the manifest anew, with every file that is there."""
    path = version / "MANIFEST.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    files = sorted(one for one in version.rglob("*") if one.is_file() and one != path)
    manifest["files"] = {
        str(one.relative_to(version)): sha256(one.read_bytes()).hexdigest() for one in files
    }
    path.write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def rows_of(version: Path) -> list[dict[str, Any]]:
    """Return the rows of a version's first table: the first is not the baseline's."""
    tables = json.loads((version / "tables.json").read_text(encoding="utf-8"))["tables"]
    return list(tables[0]["table"]["rows"])


def one_run(version: Path, place: int = 0) -> Path:
    """Return the folder of a run of the first table's last row."""
    return version / "runs" / rows_of(version)[-1]["runs"][place]


def edit(run: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a run's record."""
    made = record(run)
    change(made)
    (run / "run.json").write_text(json.dumps(made), encoding="utf-8")


def edit_tables(version: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change tables.json."""
    path = version / "tables.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def edit_rows(version: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the rows of all tables."""

    def in_all(content: dict[str, Any]) -> None:
        for table in content["tables"]:
            for row in table["table"]["rows"]:
                change(row)

    edit_tables(version, in_all)


def edit_page(name: str, pattern: str, text: str) -> Callable[[Path], None]:
    """Return a change of the first place of a page that has a pattern."""

    def change(version: Path) -> None:
        path = version / name
        page, times = re.subn(pattern, text, path.read_text(encoding="utf-8"), count=1)
        assert times, f"{name} has no {pattern}"
        path.write_text(page, encoding="utf-8")

    return change


def score_and_average(version: Path) -> None:
    """A score is five points higher, and the average follows."""

    def change(made: dict[str, Any]) -> None:
        made["scores"][0]["value"] += 5
        follow_average(made)

    edit(one_run(version), change)


def follow_average(made: dict[str, Any]) -> None:
    """Write the mean of the tasks' rounded scores, rounded, as the papers print it."""
    (average,) = (one for one in made["scores"] if one["task"] == "Avg.")
    values = [round(one["value"], 2) for one in made["scores"] if one is not average]
    average["value"] = round(sum(values) / len(values), 2)


def average(version: Path) -> None:
    """The average alone."""

    def change(made: dict[str, Any]) -> None:
        (average,) = (one for one in made["scores"] if one["task"] == "Avg.")
        average["value"] += 5

    edit(one_run(version), change)


def table_average(version: Path) -> None:
    edit_rows(version, lambda row: row.update(mean=row["mean"] + 5))


def verdicts(version: Path) -> None:
    """Every row is better."""
    edit_rows(version, lambda row: (row["against"] or {}).update(verdict="better"))


def interval(version: Path) -> None:
    edit_rows(version, lambda row: (row["against"] or {}).update(ci_low=0.1))


def mark(version: Path) -> None:
    edit_rows(version, lambda row: row.update(may_be_best=not row["may_be_best"]))


def cell(version: Path) -> None:
    def change(row: dict[str, Any]) -> None:
        row["cells"]["STS12"]["mean"] += 1

    edit_rows(version, change)


def row_left_out(version: Path) -> None:
    edit_tables(version, lambda content: content["tables"][0]["table"]["rows"].pop())


def rule(version: Path) -> None:
    edit_tables(version, lambda content: content.pop("judged"))


def baseline(version: Path) -> None:
    edit_tables(version, lambda content: content["judged"].update(baseline="nobody"))


def table_finding(version: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        content["tables"][0]["table"]["finding"] = "PromCSE beats SimCSE."

    edit_tables(version, change)


def csv_verdicts(version: Path) -> None:
    for path in (version / "tables").glob("*-sts-*.csv"):
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(",(worse|inconclusive),", ",better,", text), encoding="utf-8")


def csv_missing(version: Path) -> None:
    for path in (version / "tables").glob("*-sts-*.csv"):
        path.unlink()


def recipe(key: str, value: Any) -> Callable[[Path], None]:
    def change(version: Path) -> None:
        edit(one_run(version), lambda made: made["recipe"][key].update(value=value))

    return change


def of_provenance(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    return lambda version: edit(one_run(version), lambda made: change(made["provenance"]))


def corpus(provenance: dict[str, Any]) -> None:
    provenance["corpus"]["sha256"] = "0" * 64


def data(provenance: dict[str, Any]) -> None:
    provenance["data"] |= {name: "0" * 64 for name in provenance["data"]}


def details(version: Path) -> None:
    """A mean over sub-datasets that the predictions do not give; ranks say it. Of another run the
    score of a sub-dataset."""

    def change(made: dict[str, Any]) -> None:
        subsets = made["scores"][0]["detail"]["subsets"]
        next(iter(subsets.values()))["spearman"] = 99.0

    edit(one_run(version), lambda made: made["scores"][0]["detail"].update(wmean=99.0))
    edit(one_run(version, 1), change)


HEADLINE = "PromCSE beats SimCSE on everything."
readme = edit_page("README.md", r"\*\*.*?\*\*", f"**{HEADLINE}**")
page = edit_page("index.html", "<h1>.*?</h1>", f"<h1>{HEADLINE}</h1>")


def headline(version: Path) -> None:
    """In both pages and in tables.json."""
    readme(version)
    page(version)
    edit_tables(version, lambda content: content.update(answer=HEADLINE))


def no_manifest(version: Path) -> None:
    headline(version)
    (version / "MANIFEST.json").unlink()


def contents(version: Path) -> None:
    """A record, predictions, tables and a page."""
    score_and_average(version)
    predictions(version)
    table_average(version)
    readme(version)


def files(version: Path) -> None:
    """One is added, one removed, and an entry of the manifest is taken out."""
    (version / "runs" / "more.txt").write_text("ours is best\n", encoding="utf-8")
    next((version / "methods").glob("*.html")).unlink()
    path = version / "MANIFEST.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    del manifest["files"]["README.md"]
    path.write_text(json.dumps(manifest), encoding="utf-8")


def one_seed_less(version: Path) -> None:
    """A seed is left out, while the tables list it."""
    gone = one_run(version, 2)
    rewrite(version, lambda rows: [row for row in rows if gone.name not in row["file"]])
    shutil.rmtree(gone)


def one_seed_more(version: Path) -> None:
    """A run is there that no table lists."""
    run = one_run(version)
    more = run.with_name(run.name[:-8] + "0" * 8)
    shutil.copytree(run, more)


def seed_not_listed(version: Path) -> None:
    """A seed is there, and the list of runs lacks it."""
    name = one_run(version, 2).name

    def change(content: dict[str, Any]) -> None:
        content["runs"] = [run for run in content["runs"] if run["run_id"] != name]
        for table in content["tables"]:
            for row in table["table"]["rows"]:
                row["runs"] = [run for run in row["runs"] if run != name]

    edit_tables(version, change)


def predictions(version: Path) -> None:
    """Two items change places."""
    name = one_run(version).name

    def swapped(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for row in rows:
            if name in row["file"] and row["array"] == "prediction":
                values = values_of(row).copy()
                low, high = int(values.argmin()), int(values.argmax())
                values[[low, high]] = values[[high, low]]
                row["data"] = values.tobytes()
        return rows

    rewrite(version, swapped)


def same_predictions(version: Path) -> None:
    """The first seed's predictions, scores and hashes stand as those of the third."""
    first, third = one_run(version, 0), one_run(version, 2)

    def copy(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        others = [row for row in rows if third.name not in row["file"]]
        of_first = [row for row in rows if first.name in row["file"]]
        copied = [{**row, "file": row["file"].replace(first.name, third.name)} for row in of_first]
        return [*others, *copied]

    rewrite(version, copy)
    edit(third, lambda made: made.update(scores=record(first)["scores"]))


def rewrite(version: Path, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """Change the rows of a version's one file of predictions; equal arrays are written out."""
    path = version / "predictions.parquet"
    table = parquet.read_table(path)
    rows = table.to_pylist()
    for row in rows:
        if row["same"] is not None:
            row["data"], row["same"] = rows[row["same"]]["data"], None
    made = pa.Table.from_pylist(change(rows), schema=table.schema)
    parquet.write_table(made, path)


def values_of(row: Mapping[str, Any]) -> np.ndarray:
    """Return the array of a row of the file of predictions."""
    if row["dtype"] == "U":
        return np.array(json.loads(row["data"]))
    return np.frombuffer(row["data"], f"<{row['dtype']}").reshape(row["shape"])


def blended(version: Path, run: Path | None = None) -> None:
    """The order of the first task's pairs is moved towards the gold one, and all of the record
    follows: score, details, average, hashes."""
    _invent(version, run or one_run(version), lambda rank, gold: rank + 0.5 * gold)


def gold(version: Path) -> None:
    """Gold values are the predictions' order, and all of the record follows."""
    _invent(version, one_run(version), lambda rank, gold: rank, as_gold=True)


def _invent(
    version: Path,
    run: Path,
    blend: Callable[[np.ndarray, np.ndarray], np.ndarray],
    as_gold: bool = False,
) -> None:
    made = record(run)
    score = made["scores"][0]
    file = f"{run.name}/predictions/{score['task']}.npz"
    found: dict[str, np.ndarray] = {}

    def change(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        mine = {row["array"]: row for row in rows if row["file"].endswith(file)}
        found.update({name: values_of(row) for name, row in mine.items()})
        values = blend(rankdata(found["prediction"]), rankdata(found["gold"]))
        ranks = np.unique(values, return_inverse=True)[1]
        found["prediction"] = ranks - (ranks.max() + 2) // 2
        mine["prediction"].update(data=found["prediction"].astype("<i2").tobytes(), dtype="i2")
        if as_gold:
            found["gold"] = found["prediction"].astype(float)
            mine["gold"].update(data=found["gold"].astype("<f8").tobytes(), dtype="f8")
        return rows

    rewrite(version, change)
    sides = found["prediction"], found["gold"]
    score["value"] = 100 * spearmanr(*sides).statistic
    each = []
    for name, facts in score["detail"]["subsets"].items():
        rows = found["subset"] == name
        facts["spearman"] = 100 * spearmanr(*(side[rows] for side in sides)).statistic
        each.append((facts["spearman"], facts["n"]))
    values, sizes = zip(*each, strict=True)
    score["detail"] |= {
        "mean": float(np.mean(values)),
        "wmean": float(np.average(values, weights=sizes)),
    }
    score |= {"reduced_sha256": hash_of(found), "predictions_sha256": "1" * 64}
    follow_average(made)
    (run / "run.json").write_text(json.dumps(made), encoding="utf-8")


def hash_of(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the hash of values, as the documentation of records has it."""
    digest = sha256()
    for name, values in sorted(arrays.items()):
        kind, data = "integers", b""
        if values.dtype.kind == "U":
            kind, data = "text", json.dumps(values.ravel().tolist()).encode()
        elif values.dtype.kind == "f":
            kind, data = "floats", values.astype("<f8").tobytes()
        else:
            data = values.astype("<i8").tobytes()
        digest.update(json.dumps([name, kind, list(values.shape)]).encode() + b"\n" + data)
    return digest.hexdigest()


def created(provenance: dict[str, Any]) -> None:
    provenance["created"] = "2026-01-01T00:00:00+00:00"


# name -> what is changed, if the manifest follows, and words of what is said
CHANGES: dict[str, tuple[Callable[[Path], None], bool, tuple[str, ...]]] = {
    "score and average": (score_and_average, True, ("its predictions give",)),
    "average": (average, True, ("Avg.",)),
    "predictions": (predictions, True, ("its predictions give",)),
    "gold, score, hashes": (gold, True, ("'gold'",)),
    "predictions, and the record follows": (blended, True, ("its scores give",)),
    "learning rate": (recipe("learning_rate", 1e-3), True, ("fingerprint",)),
    "hash of the training text": (of_provenance(corpus), True, ("fingerprint",)),
    "hash of the data": (of_provenance(data), True, ("data",)),
    "details": (details, True, ("wmean", "subsets")),
    "date": (of_provenance(created), True, ("created",)),
    "average in a table": (table_average, True, ("mean",)),
    "cell of a table": (cell, True, ("STS12",)),
    "verdicts in tables": (verdicts, True, ("verdict",)),
    "interval in tables": (interval, True, ("ci_low",)),
    "mark in tables": (mark, True, ("may_be_best",)),
    "finding of a table": (table_finding, True, ("finding",)),
    "row left out": (row_left_out, True, ("rows are recorded",)),
    "verdicts in CSV": (csv_verdicts, True, ("verdict",)),
    "CSV removed": (csv_missing, True, (".csv",)),
    "rule removed": (rule, True, ("judged",)),
    "another baseline": (baseline, True, ("nobody",)),
    "headline": (headline, True, ("answer", "README.md", "index.html")),
    "headline, no manifest": (no_manifest, False, ("MANIFEST.json",)),
    "contents, old manifest": (
        contents,
        False,
        ("run.json", "predictions.parquet", "tables.json", "README.md"),
    ),
    "files and their list": (files, False, ("more.txt", "missing", "not listed")),
    "a seed left out": (one_seed_less, True, ("lists it",)),
    "a run that is not listed": (one_seed_more, True, ("not list it",)),
    "a seed that is not listed": (seed_not_listed, True, ("not list it",)),
    "one seed's predictions as another's": (same_predictions, True, ("the same predictions",)),
}


def unseen(version: Path) -> None:
    """Change what no check sees, as the page says where verify is described; write predictions
    again as they were."""
    run = one_run(version)
    shutil.copy(one_run(version, 1) / "curve.jsonl", run / "curve.jsonl")
    plan = run / "plan.toml"
    # a question there would change the tables
    plan.write_text(plan.read_text(encoding="utf-8") + "# as planned\n", encoding="utf-8")

    def change(made: dict[str, Any]) -> None:
        for entry in made["recipe"].values():
            entry["source"] = "paper"
        made["provenance"]["command"] = "bench run --method simcse --seeds 1"
        made["provenance"]["git"] = {"commit": "0" * 40, "dirty": False}

    edit(run, change)
    edit_tables(version, lambda content: content.update(left_out=["x: failed"]))
    edit_page("README.md", r"\| \d\d\.\d\d", "| 99.99")(version)
    rewrite(version, lambda rows: rows)


@pytest.fixture(scope="module")
def some_of_newest(made_once: Any) -> Path:
    """Return a version of some of the newest one's runs, on the seven sets alone: three rows of a
    table, three seeds each, with their predictions."""

    def write(folder: Path) -> None:
        out = ROOT / "leaderboards"
        newest = max(out.glob("v[0-9]*"), key=lambda version: int(version.name[1:]))
        shutil.copy(newest / "predictions.parquet", folder)
        chosen = max(_choices(newest), key=lambda rows: sum(map(len, rows)))
        suites = set[str]()
        for run in (newest / "runs" / name for row in chosen for name in row):
            shutil.copytree(run, folder / "runs" / run.name)
            suites.update(one["suite"] for one in record(run)["scores"])
        words: list[str | Path] = [
            "publish",
            "--runs",
            folder / "runs",
            "--out",
            folder / "boards",
            "--note",
            "",
        ]
        for suite in sorted(suites - {"sts"}):
            words += ["--leave-out", suite]
        bench(*words, cwd=folder)

    return made_once("some-of-newest", write) / "boards" / "v1"


def _choices(newest: Path) -> list[list[list[str]]]:
    """Return for each table of the suite sts the runs of its baseline and of other rows."""
    choices = []
    for shown in json.loads((newest / "tables.json").read_text(encoding="utf-8"))["tables"]:
        table = shown["table"]
        if table["suite"] != "sts" or not table["baseline"]:
            continue
        # with fewer runs the first is of another text, and stands in a table of its own
        rows = [row for row in table["rows"] if len(row["runs"]) > RUNS_OF_A_ROW]
        rows.sort(key=lambda row: (row["method"] != table["baseline"], row["variant"]))
        choices.append([row["runs"][:RUNS_OF_A_ROW] for row in rows[:ROWS]])
    return choices


@pytest.fixture(scope="module")
def seen(found_once: Any, some_of_newest: Path) -> dict[str, list[str]]:
    """Return the differences that verify finds in a version after each change."""

    def find(folder: Path) -> dict[str, list[str]]:
        changes = {"untouched": (lambda _: None, False), "unseen": (unseen, True)}
        changes |= {name: (change, follows) for name, (change, follows, _) in CHANGES.items()}
        copies = {name: folder / str(place) / "v1" for place, name in enumerate(changes)}
        for name, (change, follows) in changes.items():
            shutil.copytree(some_of_newest, copies[name])
            change(copies[name])
            if follows:
                follow(copies[name])
        done = python(VERIFY_ALL, *copies.values(), cwd=folder)
        said = dict(map(json.loads, done.out.splitlines()))
        return {name: said[str(copy)] for name, copy in copies.items()}

    return dict(found_once("tampered", find))


@pytest.mark.promise(23)
def test_an_honest_version_agrees(seen: dict[str, list[str]]) -> None:
    assert seen["untouched"] == []


@pytest.mark.promise(23)
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_version_is_seen(change: str, seen: dict[str, list[str]]) -> None:
    for named in CHANGES[change][2]:
        assert [line for line in seen[change] if named in line], seen[change]


@pytest.mark.promise(23)
def test_what_nobody_can_see_is_not_claimed(
    seen: dict[str, list[str]], some_of_newest: Path, tmp_path: Path
) -> None:
    """Invented predictions that all else follows agree, as the page says."""
    assert seen["unseen"] == []
    shutil.copytree(some_of_newest, tmp_path / "v1")
    blended(tmp_path / "v1")
    out = tmp_path / "boards"
    bench("publish", "--runs", tmp_path / "v1" / "runs", "--out", out, "--note", "", cwd=tmp_path)
    done = bench("verify", out / "v1", cwd=tmp_path)
    assert "nothing differs" in done.out


@pytest.mark.promise(23)
def test_a_version_of_an_older_rule_is_not_judged_again(
    some_of_newest: Path, tmp_path: Path
) -> None:
    """Its scores are checked, and the commit is named that judges it."""
    version = shutil.copytree(some_of_newest, tmp_path / "v1")

    def change(content: dict[str, Any]) -> None:
        content["judged"]["rule"] = 1

    edit_tables(version, change)
    verdicts(version)
    follow(version)
    done = bench("verify", version, cwd=tmp_path)
    assert re.search("judged by rule 1.* commit [0-9a-f]{8,40} of bench judges it", done.out)
    assert "the verdicts were not judged again" in done.out
    edit(one_run(version), lambda made: made["scores"][0].update(value=99.0))
    follow(version)
    bench("verify", version, cwd=tmp_path, code=1)


@pytest.mark.promise(23)
def test_verify_ends_with_0_if_all_agrees_and_names_what_differs(
    version: Path, ten_runs: Path, copied: Callable[[Path], Path], tmp_path: Path
) -> None:
    """A version, a run, and a run whose score somebody changed by a hundredth."""
    done = bench("verify", version, cwd=tmp_path)
    names = [run.name for run in run_folders(ten_runs)]
    assert [name for name in names if name not in done.out] == []
    runs = copied(ten_runs)
    run = one_run_of(runs)
    bench("verify", run, cwd=tmp_path)
    honest = record(run)["scores"][0]["value"]
    edit(run, lambda made: made["scores"][0].update(value=honest + 0.01))
    done = bench("verify", run, cwd=tmp_path, code=1)
    assert f"{honest:.4f}" in done.out + done.err, "the value that the predictions give is not said"
    assert "pairs" in done.out + done.err


def one_run_of(runs: Path) -> Path:
    """Return the folder of a run of SimCSE."""
    return next(run for run in run_folders(runs) if run.name.startswith("simcse-"))


@pytest.mark.promise(23)
def test_nothing_to_verify_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = bench("verify", "empty", cwd=tmp_path, code=2)
    assert "empty" in done.err


@pytest.mark.promise(23)
def test_what_no_check_can_see_is_said_where_verify_is_described() -> None:
    """Invented predictions that all else follows, and the words of pages: no check can tell."""
    docs = Path(__file__).resolve().parents[2] / "docs" / "publish.md"
    section = docs.read_text(encoding="utf-8").partition("\n## Verify\n")[2].partition("\n## ")[0]
    assert "bench verify" in section
    said = re.findall("invented|made up|make .{1,20} up|cannot see", section)
    assert said, "the page does not say what verify cannot see"
