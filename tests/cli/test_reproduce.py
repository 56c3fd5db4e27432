"""``bench reproduce``: the plan without running anything, and a small table run for real on a tiny model."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import bench, error_line, tree
from models import sentences

from bench.base.errors import BenchError
from bench.board.repeat import seed_words
from bench.cli.reproduce import parse_corpora
from bench.cli.run import parse_seeds
from bench.references import rows

EXAMPLE = (
    "reproduce",
    "promcse:1",
    "--rows",
    "unsupervised",
    "--backbone",
    "bert-base-uncased",
    "--seeds",
    "1-5",
    "--dry-run",
)


def test_the_plan_of_a_table(tmp_path: Path) -> None:
    """Runs with recipes, what is missing and what gets it, hours: and nothing is written."""
    done = bench(*EXAMPLE, "--runs", tmp_path / "runs", "--offline", COLUMNS="80")
    said, flat = done.stdout, " ".join(done.stdout.split())
    assert done.exit_code == 0 and not (tmp_path / "runs").exists()
    assert (
        "12 printed rows; 12 of them mean 48 runs here" in flat
    )  # three of them have nothing random
    assert "seeds 1-5: 9 of 12 runs" in flat and "no seed, nothing is random: 3 of 12 runs" in flat
    assert "batch_size 256, learning_rate 0.03, epochs 1" in flat
    assert "corpus wiki1m_for_simcse.txt: --corpus wiki1m=FILE (needed by 4 of 12 runs)" in flat
    assert "data STS12: bench data list STS12 (needed by 12 of 12 runs)" in flat
    assert "weights bert-base-uncased: not here, and nothing may be fetched" in flat
    assert flat.count("the authors trained in fp16 autocast: so does this on an NVIDIA GPU") == 6
    assert "GPU hours" in flat and "0 of 12 can run here" in flat
    assert max(map(len, said.splitlines())) <= 80


def test_the_plan_as_json() -> None:
    lines = [
        json.loads(line)
        for line in bench("reproduce", "promcse:2", "--dry-run", "--json").stdout.splitlines()
    ]
    by_label = {row["label"]: one for one in lines for row in one["rows"]}
    assert by_label["ALIGN-BERT-base"]["why_not"].startswith("no such method here")
    promcse = by_label["sup-PromCSE-BERT-base + EH"]
    assert promcse["recipe"]["eh_margin"]["value"] == 0.2 and promcse["rows"][0]["printed"] == {
        "CxC-STS": 74.0
    }
    assert promcse["gpu_hours_per_seed"] > 0 and "--variant eh" in promcse["command"]
    assert {need["kind"] for need in promcse["needs"]} == {"data", "corpus", "weights"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("promcse",), "promcse has the parts 1, 2, 3, 4, 5, 6, 7, figure1"),
        (("promcse:1", "--rows", "bertt"), "--rows bertt: no row of promcse:1 has it"),
        (("promcse:3", "--margin", "nan", "--dry-run"), "--margin nan is no number of points"),
        (("promcse:3", "--corpus", "wiki=x.txt", "--dry-run"), "unknown corpus 'wiki'"),
        (("promcse:3", "--set", "batchsize=3", "--dry-run"), "unknown recipe key 'batchsize'"),
        (
            ("promcse:3", "--set", "temperature=0.05,0.1", "--dry-run"),
            "with one value for each key",
        ),
        (("all", "--rows", "own"), "all is every row of every table"),
        (("promcse:figure2", "--rows", "own", "--dry-run"), "figure 2 of promcse has no rows"),
        (
            ("conpvp:figure4", "--backbone", "bert-base-uncased", "--dry-run"),
            "figure 4 of conpvp is of roberta-large",
        ),
        (("promcse:3", "--suite", "stss", "--dry-run"), "unknown suite 'stss'"),
        (
            ("conpvp:figure1",),
            "figure 1 of conpvp cannot be run again: a drawing, no numbers",
        ),
        (("promcse:3", "--offline"), "nothing of this can be run here"),
    ],
)
def test_mistakes_are_one_line(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = (
        bench("reproduce", *words, "--runs", tmp_path / "runs", "--device", "cpu")
        if "--offline" in words
        else bench("reproduce", *words)
    )
    assert done.exit_code == 2 and said in done.stderr and "Traceback" not in done.output
    if "--offline" not in words:
        assert said in error_line(done)


@pytest.fixture
def nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, and servers that nobody answers for."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BENCH_DATA", raising=False)
    for name in ("HF_ENDPOINT", "BENCH_MIRROR"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")


def test_the_plan_has_what_is_fetched_first(nothing_here: None, no_network: list[object]) -> None:
    """Where bench run would fetch, the plan counts a run as one that can be done; and asks nobody."""
    done = bench("reproduce", "focal-infonce:5", "--dry-run", HF_HUB_OFFLINE="0")
    flat = " ".join(done.stdout.split())
    assert (
        "8 of 8 can run here, 8 of them after what they need is fetched" in flat
        and "MISSING" not in flat
    )
    table = flat.partition("this is fetched first")[2]
    assert all(
        name in table for name in ("STS12", "SICK-R", "wiki1m", "bert-base-uncased", "roberta-base")
    )
    lines = bench(
        "reproduce", "promcse:1", "--dry-run", "--json", HF_HUB_OFFLINE="0"
    ).stdout.splitlines()
    needs = [need for line in lines for need in json.loads(line)["needs"]]
    assert all(need["here"] or need["fetched"] for need in needs)
    assert {
        "glove-840b",
        "nli_labelled.csv",
        "stsbenchmark_train_10k_sents_random_sampled.txt",
    } <= {need["name"] for need in needs if need["fetched"]}
    offline = bench("reproduce", "focal-infonce:5", "--dry-run", HF_HUB_OFFLINE="1").stdout
    assert "0 of 8 can run here" in offline and no_network == []


def test_the_plan_takes_the_number_of_seeds_that_the_print_is_of() -> None:
    lines = bench("reproduce", "dcpcse:1", "--dry-run").stdout.splitlines()
    assert any(
        "seeds 42-51: 8 of 24 runs" in line and "mean of 10 runs" in line for line in lines[:4]
    )
    plan = [
        json.loads(line)
        for line in bench("reproduce", "conpvp:4", "--dry-run", "--json").stdout.splitlines()
    ]
    assert all(
        one["seeds"] == [42, 43, 44, 45] and one["command"].endswith("--seeds 42-45")
        for one in plan
    )
    assert {row["runs"] for one in plan for row in one["rows"]} == {"mean of 4 seeds"}
    (one,) = bench(
        "reproduce", "conpvp:4", "--rows", "simcse", "--seeds", "7", "--dry-run", "--json"
    ).stdout.splitlines()
    assert json.loads(one)["seeds"] == [7]


@pytest.mark.slow
def test_without_a_network_what_is_missing_is_left_out(
    nothing_here: None, tiny: str, tmp_path: Path
) -> None:
    done = bench(
        "reproduce",
        "promcse:5",
        "--rows",
        "first-last,unsup-simcse",
        "--backbone",
        tiny,
        "--suite",
        "check",
        "--device",
        "cpu",
        "--runs",
        tmp_path / "runs",
        HF_HUB_OFFLINE="0",
    )
    assert done.exit_code == 1, done.output
    assert (
        "no network: 127.0.0.1 cannot be reached" in done.stderr
        and "left out: simcse" in done.stderr
    )
    assert [
        json.loads(path.read_text())["method"] for path in (tmp_path / "runs").glob("*/run.json")
    ] == ["embedding-last-avg"]


@pytest.mark.slow
def test_a_table_run_for_real_and_again(shared: Path, tiny: str, tmp_path: Path) -> None:
    """Two rows of PromCSE's table 5 on a tiny model: verdicts as text and JSON, and the second time nothing is done."""
    text = tmp_path / "text.txt"
    text.write_text("\n".join(sentences(40, seed=3)) + "\n", encoding="utf-8")
    command = (
        "reproduce",
        "promcse:5",
        "--rows",
        "first-last,unsup-simcse",
        "--backbone",
        tiny,
        "--corpus",
        text,
        "--max-steps",
        "2",
        "--set",
        "select_on=last",
        "--set",
        "batch_size=4",
        "--device",
        "cpu",
        "--data",
        shared / "data",
        "--runs",
        tmp_path / "runs",
    )
    done = bench(*command)
    assert done.exit_code == 0, done.output
    assert (
        "not comparable" in done.stdout
        and "-1.304" in done.stdout
        and "stands in for bert-base-uncased" in done.stdout
    )
    before = tree(tmp_path / "runs")
    again = bench(*command, "--json")
    cells = [json.loads(line) for line in again.stdout.splitlines()]
    assert [(one["printed"]["task"], one["verdict"]) for one in cells] == [
        ("alignment", "not comparable"),
        ("uniformity", "not comparable"),
    ] * 2
    assert all(
        one["mean"] is not None
        and one["difference"] == round(round(one["mean"], 3) - one["printed"]["value"], 3)
        for one in cells
    )
    assert tree(tmp_path / "runs") == before
    assert again.stderr.count("nothing repeated") == 2


@pytest.mark.slow
def test_what_stands_on_a_run_that_is_not_there_is_left_out(
    shared: Path, tiny: str, tmp_path: Path
) -> None:
    """SBERT has no corpus here: it and what stands on it are told, the rest is done, and the exit code says so."""
    command = (
        "reproduce",
        "promcse:1",
        "--rows",
        "sbert-base-flow,bert-base (first-last avg.)",
        "--backbone",
        tiny,
        "--device",
        "cpu",
        "--data",
        shared / "data",
        "--runs",
        tmp_path / "runs",
    )
    done = bench(*command)
    assert done.exit_code == 1
    assert "left out: sbert, supervised" in done.stderr and "nli_labelled.csv" in done.stderr
    assert "it stands on sbert" in done.stderr and "of which no run is finished" in done.stderr
    assert "16 printed cells" in done.stdout and "8 not scored" in done.stdout


def in_hub_cache(cache: Path, hub: str, folder: str | Path) -> None:
    """A model folder as the hub's client would have fetched it, its weights a pickle, as authors released theirs."""
    import torch
    from safetensors.torch import load_file

    root = cache / f"models--{hub.replace('/', '--')}"
    snapshot = Path(
        shutil.copytree(
            folder, root / "snapshots" / ("c" * 40), ignore=shutil.ignore_patterns("*.safetensors")
        )
    )
    torch.save(load_file(Path(folder) / "model.safetensors"), snapshot / "pytorch_model.bin")
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text("c" * 40)


@pytest.mark.slow
def test_released_checkpoints_are_scored_and_nothing_is_trained(
    shared: Path, tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A made PromCSE checkpoint in the place of the authors': its row is scored behind its prefix; the other two are not here."""
    from released import promcse_checkpoint

    hub = "YuxinJiang/unsup-promcse-bert-base-uncased"
    folder, _ = promcse_checkpoint(tiny, tmp_path / "released", length=16)
    in_hub_cache(tmp_path / "hub", hub, folder)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    command = (
        "reproduce",
        "promcse:1",
        "--released",
        "--rows",
        "promcse",
        "--device",
        "cpu",
        "--offline",
        "--data",
        shared / "data",
        "--runs",
        tmp_path / "runs",
    )
    refused = bench(*command, BENCH_CACHE=str(tmp_path / "cache"))
    assert refused.exit_code == 2 and "is not on this machine" in refused.stderr, refused.output
    done = bench(*command, "--allow-pickle", "--json", BENCH_CACHE=str(tmp_path / "cache"))
    assert done.exit_code == 1 and "left out: stored-prefix pooling=mlp" in done.stderr, done.output
    cells = [json.loads(line) for line in done.stdout.splitlines()]
    ours = [cell for cell in cells if cell["mean"] is not None]
    assert [cell["printed"]["printed"] for cell in ours][-1] == "78.49" and len(ours) == 8
    (record,) = [
        json.loads(file.read_text(encoding="utf-8"))
        for file in (tmp_path / "runs").glob("*/run.json")
    ]
    assert (record["method"], record["setting"], record["training"]) == (
        "stored-prefix",
        "none",
        None,
    )
    scored = bench(
        "evaluate",
        hub,
        "--suite",
        "sts",
        "--data",
        shared / "data",
        "--runs",
        tmp_path / "runs",
        "--device",
        "cpu",
        "--offline",
        BENCH_CACHE=str(tmp_path / "cache"),
    )
    assert scored.exit_code == 0 and "nothing repeated" in scored.stderr, (
        "bench evaluate makes the same run"
    )
    compared = bench("compare", "--with-paper", "--runs", tmp_path / "runs")
    assert "78.49" in compared.stdout, compared.output


def test_the_plan_names_the_checkpoints(tmp_path: Path) -> None:
    lines = [
        json.loads(line)
        for line in bench(
            "reproduce", "promcse:1", "--released", "--dry-run", "--json"
        ).stdout.splitlines()
    ]
    by_hub = {line["checkpoint"]: line for line in lines if line["checkpoint"]}
    large = by_hub["YuxinJiang/sup-promcse-roberta-large"]
    assert (
        "--method stored-prefix --backbone YuxinJiang/sup-promcse-roberta-large" in large["command"]
        and "pooling=mlp" in large["command"]
    )
    assert large["rows"][0]["printed"]["Avg."] == 84.76 and large["gpu_hours_per_seed"] is None
    assert any(
        line["why_not"] and line["rows"][0]["label"] == "PromCSE-RoBERTa-large + EH"
        for line in lines
    )


def test_corpora_by_name() -> None:
    assert parse_corpora(("nli=a.csv", "b.txt")) == {"nli": "a.csv", "": "b.txt"}
    assert parse_corpora(("/some/dir=x/b.txt",)) == {"": "/some/dir=x/b.txt"}
    with pytest.raises(BenchError, match="a second file for nli"):
        parse_corpora(("nli=a.csv", "nli=b.csv"))


@pytest.mark.parametrize("text", ["42", "1-5", "1,3,7-9"])
def test_seeds_are_said_as_they_are_given(text: str) -> None:
    assert seed_words(parse_seeds(text)) == text


def test_every_table_and_figure_is_listed_with_yes_or_no() -> None:
    lines = [json.loads(line) for line in bench("reproduce", "--json").stdout.splitlines()]
    assert len(lines) == 56 and all(
        bool(one["command"]) is one["again"] is not bool(one["why"]) for one in lines
    )
    said = " ".join(bench("reproduce", COLUMNS="80").stdout.split())
    assert "promcse figure 2" in said and "bench reproduce promcse:figure2" in said


def test_a_figure_is_a_series_of_runs() -> None:
    lines = [
        json.loads(line)
        for line in bench("reproduce", "promcse:figure2", "--dry-run", "--json").stdout.splitlines()
    ]
    assert [one["recipe"]["prompt_length"]["value"] for one in lines] == [
        1,
        2,
        4,
        6,
        8,
        10,
        12,
        14,
        16,
    ]
    assert all(
        one["suites"] == ["sts", "cxc"] and "not known here" in one["notes"][-1] for one in lines
    )


def test_a_figure_of_a_formula_is_drawn_at_once(tmp_path: Path) -> None:
    """By default in the runs folder, where no run appears; the page has the drawing."""
    done = bench("reproduce", "focal-infonce:figure1", "--runs", tmp_path)
    assert done.exit_code == 0, done.output
    (page,) = tmp_path.iterdir()
    assert page.name == "reproduced-focal-infonce-figure1.html" and str(page) in "".join(
        done.stdout.split()
    )
    assert "data:image/svg+xml" in page.read_text(encoding="utf-8")
    other = bench(
        "reproduce", "focal-infonce:figure1", "--html", tmp_path / "none" / "page.html", "--dry-run"
    )
    assert other.exit_code == 0 and not (tmp_path / "none").exists()


def test_conpvps_templates_are_printed() -> None:
    """The 16 of its table 1 and the 17 of its authors' code, from the module that trains with them."""
    from methods.conpvp import NEGATIVE, POSITIVE

    said = bench("reproduce", "conpvp:1", COLUMNS="200").stdout
    lines = [
        line.split(maxsplit=1)[1]
        for line in said.splitlines()
        if "{s}" in line and line.split()[0].isdecimal()
    ]
    assert lines == [
        text
        for source in ("paper", "repo")
        for lists in (POSITIVE, NEGATIVE)
        for text in lists[source]
    ]
    assert len(lines) == 33
    own = json.loads(bench("methods", "conpvp", "--json").stdout)["templates"]
    assert own["paper"] == {
        "positive": list(POSITIVE["paper"]),
        "negative": list(NEGATIVE["paper"]),
    }
    assert json.loads(bench("methods", "simcse", "--json").stdout)["templates"] == {}
    assert "no list of templates" in bench("methods", "simcse", "--templates").stdout


def test_points_of_one_line_and_source_are_told_together() -> None:
    from bench.cli.reproduced import points_words
    from bench.references import PrintedPoint

    picture, text = "the picture", "the paper's text"
    points = [
        PrintedPoint("Avg.", "m", 1, 76.5, picture),
        PrintedPoint("Avg.", "m", 2, 77.56, picture),
        PrintedPoint("CxC-STS", "m", 1, 70.5, text),
    ]
    assert points_words(points) == (
        "Printed points that a source gives: Avg. at m 1: 76.5, 2: 77.56 (the picture); CxC-STS at m 1: 70.5 (the paper's text)."
    )
    assert points_words([]).startswith("None of the picture's points")


def test_what_looks_equal_on_the_page_has_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours is taken to the digits that are shown: 0.0004 and -0.0002 of a metric of three decimals are both 0.000."""
    from bench.cli import reproduced
    from bench.references import results
    from bench.run.reproduce import execute, verdicts

    row = next(row for row in rows(results(paper="promcse")) if row.first.metric == "alignment")
    run = SimpleNamespace(method="simcse", name="simcse", identity=(1,), why_not="")
    values = reproduced._Values(
        {(1,): SimpleNamespace(error=None)}, {row: run}, None, SimpleNamespace(text="tokenised"), ()
    )  # type: ignore[arg-type, dict-item]
    monkeypatch.setattr(execute, "records", lambda job, store: [("record", None)])
    found = []
    for value in (0.0004, -0.0002):
        monkeypatch.setattr(
            verdicts,
            "score_of",
            lambda record, cell, text, value=value: SimpleNamespace(value=value),
        )
        found.append(values(row.first, row)[0])
    assert found == [0.0, 0.0] and [f"{value:.3f}" for value in found if value is not None] == [
        "0.000",
        "0.000",
    ]


@pytest.mark.slow
def test_everything_small_ends_in_a_page_and_is_done_once(tiny: str, tmp_path: Path) -> None:
    """A table and a figure on a tiny model: orders, the curve, and that it is no evidence."""
    text = tmp_path / "text.txt"
    text.write_text("\n".join(sentences(40, seed=3)) + "\n", encoding="utf-8")
    page, words = (
        tmp_path / "page.html",
        (
            "--backbone",
            tiny,
            "--corpus",
            text,
            "--budget",
            "1steps",
            "--set",
            "batch_size=4",
            "--suite",
            "check",
            "--set",
            "select_on=last",
            "--device",
            "cpu",
            "--runs",
            tmp_path / "runs",
        ),
    )
    done = bench("reproduce", "conpvp:4", *words, "--html", page)
    assert done.exit_code == 0, done.output
    said = " ".join(page.read_text(encoding="utf-8").split())
    assert (
        "This is no evidence about the papers. The backbone is" in said
        and "recipes were changed (batch_size 4" in said
    )
    assert (
        "the suite check was scored in the place" in said
        and "pairs of rows stand as in the paper; rank correlation" in said
    )
    before = tree(tmp_path / "runs")
    assert (
        bench("reproduce", "conpvp:4", *words, "--html", page).stderr.count("nothing repeated") == 6
    )
    assert tree(tmp_path / "runs") == before
    drawn = bench("reproduce", "promcse:figure2", *words)
    assert drawn.exit_code == 0, drawn.output
    said = (tmp_path / "runs" / "reproduced-promcse-figure2.html").read_text(encoding="utf-8")
    assert (
        "data:image/svg+xml" in said
        and "promcse: prompt_length" in said
        and "the paper's text: 0.25 above" in said.replace("&#39;", "'")
    )


@pytest.mark.slow
def test_a_run_of_another_process_is_left_and_waited_for(tiny: str, tmp_path: Path) -> None:
    """The first run is held by somebody until the second one is done: it comes last, and the command ends well."""
    import threading
    import time

    from bench.runs import RunsFolder

    text, runs = tmp_path / "text.txt", tmp_path / "runs"
    text.write_text("\n".join(sentences(40, seed=3)) + "\n", encoding="utf-8")
    words = (
        "conpvp:4",
        "--rows",
        "SimCSE,w/o",
        "--backbone",
        tiny,
        "--corpus",
        text,
        "--budget",
        "1steps",
        "--set",
        "batch_size=4",
        "--suite",
        "check",
        "--set",
        "select_on=last",
        "--device",
        "cpu",
        "--runs",
        runs,
    )
    plan = [
        json.loads(line)
        for line in bench("reproduce", *words, "--dry-run", "--json").stdout.splitlines()
    ]
    assert len(plan) > 1
    done = bench("reproduce", *words)  # once, to learn the names
    assert done.exit_code == 0, done.output
    first, second = dict.fromkeys(re.findall(r"^(\S+) \([12] of", done.stderr, re.M))
    for name in (first, second):
        shutil.rmtree(runs / name)
    store, held = RunsFolder(runs), threading.Event()

    def hold() -> None:
        with store.lock(first):
            held.set()
            while (
                not (runs / second / "run.json").exists() or store.read(second).status != "finished"
            ):
                time.sleep(0.05)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(60)
    again = bench("reproduce", *words)
    holder.join(60)
    assert again.exit_code == 0, again.output
    assert "another process works on it: the others first" in again.stderr
    ends = [
        line.split(" ")[0].rstrip(":") for line in again.stderr.splitlines() if " done: " in line
    ]
    assert ends == [second, first], again.stderr
