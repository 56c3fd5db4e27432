"""Other languages from the command line: scored, compared, verified, published, exported."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from commands import bench, error_line

from bench.records import RunsFolder

NOTE = "the built-in backbone knows only English"


def test_the_builtin_backbone_says_that_it_knows_english_alone(shared: Path, tiny: str) -> None:
    data = ("--data", str(shared / "data"), "--offline", "--dry-run")
    suites = ("--suite", "sts-multi:es-es,en-en,zh,en")
    done = bench("run", "cls", "--backbone", "builtin", *suites, *data)
    assert done.exit_code == 0, done.stderr
    flat = " ".join(done.output.split())
    assert f"{NOTE}; 2 tasks of this run are in other languages (es and zh)" in flat
    for words in (
        ("--backbone", "builtin", "--suite", "sts-multi:en-en,en"),
        ("--backbone", "builtin", "--suite", "sts:STS16"),
        ("--backbone", tiny, *suites),
    ):
        assert NOTE not in bench("run", "cls", *words, *data).output


def test_the_line_is_there_before_the_data_is(tmp_path: Path) -> None:
    done = bench(
        *("run", "cls", "--backbone", "builtin", "--suite", "sts-multi:tr-en,de"),
        *("--dry-run", "--all"),
        BENCH_CACHE=str(tmp_path),
        HF_HUB_OFFLINE="0",
    )
    flat = " ".join(done.output.split())
    assert f"{NOTE}; 2 tasks of this run are in other languages (tr and de)" in flat
    assert flat.count("github.com eduardofv/sts_eval") == 1  # one place for both archives


def test_a_task_is_called_by_its_languages(shared: Path) -> None:
    data = ("--data", str(shared / "data"), "--offline", "--dry-run")
    wrong = bench("run", "cls", "--backbone", "builtin", "--suite", "sts-multi:de-de", *data)
    assert "de-de" in error_line(wrong)
    alone = bench("run", "cls", "--backbone", "builtin", "--suite", "de", *data)
    assert "de is a task of the suite sts-multi" in error_line(alone)
    facts = json.loads(bench("suites", "sts-multi", "--json").stdout)
    assert facts["average"] is None and list(facts["averages"]) == [
        "sts17-tracks/1",
        "stsb-languages/1",
    ]
    assert "the ten translations" in " ".join(bench("suites", "sts-multi").stdout.split())


@pytest.mark.nightly
@pytest.mark.slow
def test_from_a_training_text_in_another_language_to_a_version(
    shared: Path, tiny: str, tmp_path: Path
) -> None:
    """The commands of docs/suites.md: a method that is trained on German text, next to others."""
    corpus = tmp_path / "saetze.txt"
    with (shared / "data/sts-multi/stsb/stsb-de-dev.csv").open(
        encoding="utf-8", newline=""
    ) as file:
        sentences = [row[0] for row in csv.reader(file)][:96]
    corpus.write_text("\n".join(sentences) + "\n", encoding="utf-8")
    runs = tmp_path / "runs"
    tasks = "ar-ar,ar-en,es-es,es-en,es-en-WMT,en-en,tr-en,de"
    common = ["--suite", f"sts-multi:{tasks}", "--data", str(shared / "data"), "--offline"]
    common += ["--device", "cpu", "--runs", str(runs), "--backbone", tiny]
    trained = ["--corpus", str(corpus), "--seeds", "1,2", "--set", "batch_size=16"]
    trained += ["--set", "select_on=STS-B-de dev"]
    for words in (["simcse", *trained], ["cls", "last-avg"]):
        done = bench("run", *words, *common)
        assert done.exit_code == 0, done.output
    flat = " ".join(done.output.split())
    assert "Avg. of sts17-tracks/1 is the mean of the seven tracks of STS 2017" in flat
    plain = bench("compare", "--runs", str(runs)).stdout
    assert "Avg. is the mean of the seven tracks of STS 2017" in " ".join(plain.split())
    for column in (*tasks.split(","), "simcse", "last-avg", "±"):
        assert column in plain
    checked = bench("verify", str(runs))
    assert checked.exit_code == 0, checked.output
    store = RunsFolder(runs)
    simcse = next(name for name in store.ids() if name.startswith("simcse"))
    record = store.read(simcse)
    assert {score.task: score.n for score in record.scores}["tr-en"] == 250
    assert record.training is not None and record.training.dev_task == "STS-B-de dev"
    assert (record.training.dev_pairs, record.training.dev_test_pairs) == (1500, None)
    published = bench("publish", "--runs", str(runs), "--out", str(tmp_path / "boards"))
    assert published.exit_code == 0, published.output
    page = (tmp_path / "boards" / "v1" / "README.md").read_text(encoding="utf-8")
    assert "seven tracks of STS 2017" in page and "es-en-WMT" in page
    to = tmp_path / "exported"
    exported = bench("export", simcse, "--to", str(to), "--format", "mteb", "--runs", str(runs))
    assert exported.exit_code == 0, exported.output
    names = {path.name for path in to.rglob("results/**/*.json")}
    assert names >= {"bench-STS17-tr-en.json", "bench-STS17-es-en-WMT.json", "bench-STS-B-de.json"}
