"""``bench methods``, ``backbones``, ``doctor``, the list of verbs and ``--seeds``: what they print, and what they say when they cannot."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from factories import record
from made_runs import made_runs

from bench.base.errors import BenchError
from bench.cli import VERBS, main
from bench.cli.method_card import PARTS, describe, show
from bench.cli.run import parse_overrides, parse_seeds
from bench.run.plugins import discover
from bench.run.recipes import HELP, TRAINING
from bench.runs import RunsFolder
from bench.score.suites import suite_names

PLUGIN = """
from bench.method import TorchMethod

class Mine(TorchMethod):
    \"\"\"What mine is about.\"\"\"
    name = "mine"
    summary = "one line about mine"
    variants = {"loud": {}}

    def embed(self, features):
        return self.hidden(features)[:, 0]
"""


def bench(*arguments: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(
        main, [str(one) for one in arguments], catch_exceptions=False
    )


def error_line(done: Result) -> str:
    assert done.exit_code == 2 and done.stdout == ""
    lines = done.stderr.splitlines()
    assert [line.partition(":")[0] for line in lines] in (["error"], ["error", "try"]), done.stderr
    return lines[0]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_that_ends_with_an_example(verb: str) -> None:
    done = bench(verb, "--help")
    assert done.exit_code == 0 and "Example:" in done.stdout and f"bench {verb}" in done.stdout
    assert verb in bench("--help").stdout


def test_an_unknown_verb_comes_with_the_nearest() -> None:
    assert error_line(bench("runn")) == "error: unknown command 'runn'; nearest: run, runs"
    assert "--no-such" in error_line(bench("methods", "--no-such"))


def test_the_methods_are_listed() -> None:
    done = bench("methods")
    assert done.exit_code == 0 and done.stderr == ""
    listed: dict[str, str] = {}
    for line in done.stdout.splitlines():
        if not line.startswith(" "):
            settings = line.removeprefix("nothing is trained (setting ").removesuffix(")")
        elif line[2] != " ":
            listed[line.split()[0]] = settings
    assert listed == {
        plugin.name: ", ".join(plugin.cls.settings) for plugin in discover().plugins.values()
    }
    rows = json.loads(bench("methods", "--json").stdout)
    assert [row["name"] for row in rows] == list(discover())
    simcse = discover()["simcse"].cls
    (row,) = (row for row in rows if row["name"] == "simcse")
    assert row == {
        "name": "simcse",
        "settings": ["unsupervised", "supervised"],
        "variants": list(simcse.variants),
        "package": "sentence-bench",
        "summary": simcse.summary,
    }
    assert f"[variants: {', '.join(simcse.variants)}]" in done.stdout


def test_everything_about_one_method() -> None:
    done = bench("methods", "simcse", "--all")
    assert done.exit_code == 0 and done.stderr == ""
    for text in (
        "arXiv 2104.08821",
        "settings  unsupervised, supervised",
        "h = head(CLS of the last layer) while training.",
        "trains    ",
        "recipes, unsupervised",
        "SimCSE repo README.md (hyperparameters)",
        "SimCSE paper appendix A: 250",
        "alpha is exp",
        "weight of the own hard negative",
        "a factor alpha",
        "alpha = exp(hard_negative_weight)",
        "promcse 1",
        "76.25",
    ):
        assert text in done.stdout, text
    facts = json.loads(bench("methods", "simcse", "--json").stdout)
    assert facts["keys"]["temperature"]["default"] == 0.05 and all(
        v["source"] for v in facts["keys"].values()
    )
    assert {(r["setting"], r["backbone"]) for r in facts["recipes"]} >= {
        ("unsupervised", "builtin"),
        ("supervised", "roberta-large"),
    }
    for recipe in facts["recipes"]:  # whole, as a run would have it
        assert set(recipe["own"]) <= set(recipe["values"]) and set(recipe["values"]) == set(
            facts["keys"]
        )
        assert all(value["source"] for value in recipe["values"].values())
    assert {r["task"] for r in facts["references"]} >= {"Avg.", "STS12", "MR", "AgNews"}
    assert {d["topic"] for d in facts["disagreements"]} >= {"evaluation interval"}


def test_backbones_are_the_columns_of_the_recipe_table() -> None:
    lines = bench("methods", "simcse", "--recipes").stdout.splitlines()
    start = lines.index("recipes, unsupervised")
    assert [line.split() for line in lines[start + 1 : start + 4]] == [
        ["bert", "bert", "roberta", "roberta", "builtin"],
        ["base", "large", "base", "large"],
        ["uncased", "uncased"],
    ]
    rows = {line[:16].strip(): line[16:].split() for line in lines[start + 4 : start + 10]}
    assert rows["batch_size"] == ["64", "64", "512", "512", "64"]
    assert rows["learning_rate"][:4] == ["3e-5", "1e-5", "1e-5", "3e-5"]
    assert rows["paper's Avg."] == ["76.25", "78.41", "76.57", "78.90"]
    assert "epochs" not in rows  # the same in all: said once, below the table


def test_one_backbone_shows_every_value_with_its_source() -> None:
    done = bench("methods", "simcse", "--backbone", "roberta-large")
    assert done.exit_code == 0 and done.stdout.startswith("simcse on roberta-large, unsupervised")
    assert re.search(
        r"^  learning_rate +3e-5 +SimCSE repo README.md \(hyperparameters\)$", done.stdout, re.M
    )
    assert re.search(
        r"^  eval_steps +125 +SimCSE repo run_sup_example.sh; SimCSE paper appendix A: 250$",
        done.stdout,
        re.M,
    )
    assert re.search(
        r"^  optimizer +AdamW .*; transformers 4.2.1 training defaults$", done.stdout, re.M
    )
    assert "evaluation interval" not in done.stdout
    assert error_line(bench("methods", "simcse", "--backbone", "bert-base")).startswith(
        "error: unknown backbone 'bert-base'"
    )


def test_what_the_shared_keys_mean() -> None:
    done = bench("methods", "--keys")
    assert done.exit_code == 0
    for key in TRAINING:
        assert re.search(rf"^  {key} .*{re.escape(HELP[key][:20])}", done.stdout, re.M), key


@pytest.mark.slow
@pytest.mark.parametrize("name", list(discover()))
def test_a_card_fits_the_terminal(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only equations, which stand as they are in the method's docstring, may be wider."""
    facts = describe(discover()[name])
    equations = {line.rstrip() for line in facts["about"].splitlines() if line.startswith(" ")}
    for columns in (60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        show(facts)
        first = capsys.readouterr().out.splitlines()
        assert len(first) <= 40 or columns < 80, "a screenful"
        show(facts, parts=list(PARTS))
        for backbone in {r["backbone"]: None for r in facts["recipes"]}:
            show(facts, backbone)
        lines = first + capsys.readouterr().out.splitlines()
        assert [line for line in lines if len(line) > columns and line not in equations] == []


@pytest.mark.slow
def test_a_plugin_is_listed_shown_and_checked(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(PLUGIN)
    assert "one line about mine" in bench("methods", "--plugin", file).stdout
    shown = bench("methods", "mine", "--plugin", file, "--all").stdout
    assert "What mine is about." in shown and "loud" in shown and str(file) in shown
    done = bench("methods", "--check", file)
    assert done.exit_code == 0, done.output
    assert (
        done.stdout.splitlines()[0] == "mine"
        and done.stdout.splitlines()[-1] == "the contract is kept"
    )
    assert sum(line.startswith("  ok ") for line in done.stdout.splitlines()) == 8
    report = json.loads(bench("methods", "--check", file, "--json").stdout)
    assert report["method"] == "mine" and all(finding["passed"] for finding in report["findings"])


@pytest.mark.slow
def test_a_plugin_that_breaks_the_contract_fails_its_check(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(PLUGIN.replace("[:, 0]", ".mean(1)"))
    done = bench("methods", "--check", file)
    assert done.exit_code == 1 and done.stdout.splitlines()[-1] == "1 failed"
    assert re.search(
        r"FAILED +none +encode ignores batch size and padding +one sentence at a time differs by",
        done.stdout,
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("methods", "simsce"), "unknown method 'simsce'; nearest: simcse"),
        (("methods", "--check", "simsce"), "unknown method 'simsce'"),
        (("methods", "--check", "/nothing.py"), "/nothing.py: no such file"),
        (("methods", "--plugin", "/nothing.py"), "/nothing.py: no such file"),
        (
            ("methods", "--check", "cls", "--set", "pooling=cls"),
            "unknown recipe key 'pooling' of cls",
        ),
        (("methods", "--check", "cls", "--set", "x"), "KEY=VALUE"),
        (("methods", "--check", "pretrained"), "does not say how to pool"),
        (("backbones", "/nothing"), "no such folder"),
        (("backbones", "a b"), "unknown backbone 'a b'"),
        (("doctor", "--runs", "/etc/passwd"), "/etc/passwd"),
        (("methods", "a", "b"), "b"),
    ],
)
def test_what_is_not_there(arguments: tuple[str, ...], said: str) -> None:
    assert said in error_line(bench(*arguments))


def test_the_backbones_are_listed_and_shown(tiny: str) -> None:
    done = bench("backbones")
    assert (
        done.exit_code == 0
        and re.search(r"^builtin +here +", done.stdout, re.M)
        and "roberta-large" in done.stdout
    )
    assert {row["name"]: row["state"] for row in json.loads(bench("backbones", "--json").stdout)}[
        "builtin"
    ] == "here"
    shown = bench("backbones", "builtin").stdout
    assert re.search(r"^hidden size +256 *$", shown, re.M) and "held-out MLM" in shown
    facts = json.loads(bench("backbones", tiny, "--json").stdout)
    assert (facts["family"], facts["layers"], facts["hidden size"], facts["files"]) == (
        "bert",
        2,
        32,
        tiny,
    )
    assert "not on this machine" in bench("backbones", "someone/some-model").stdout


def doctor(*arguments: str | Path) -> dict[str, Any]:
    done = bench("doctor", *arguments, "--json")
    assert done.exit_code == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def test_the_doctor_says_what_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    facts = doctor("--runs", tmp_path / "runs")
    assert facts["packages"]["torch"].partition("+")[0] == torch.__version__.partition("+")[0]
    assert facts["extras"]["publish"] is True
    assert (
        "simcse" in facts["methods"] and facts["records"] == 0 and not (tmp_path / "runs").exists()
    )
    states = {one["suite"]: one for one in facts["data"]["suites"]}
    assert (
        states["check"]["tokenised"] == "found"
        and states["check"]["missing"] == []
        and states["check"]["carried"]
    )
    assert (
        states["sts"]["tokenised"] == states["sts"]["raw"] == "missing"
        and states["sts"]["missing"][0] == "STS12"
    )
    assert states["transfer"]["raw"] == "one form" and set(states) == set(suite_names()) - {"mteb"}


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_doctor_fits_the_terminal_and_says_what_is_next(
    tmp_path: Path, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without data one line says so, and the first command needs none; every line fits, and no word is cut."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    done = CliRunner(env={"COLUMNS": columns}).invoke(
        main, ["doctor", "--runs", str(tmp_path / "runs")], catch_exceptions=False
    )
    lines = done.stdout.splitlines()
    assert done.exit_code == 0 and max(len(line) for line in lines if "/" not in line) <= int(
        columns
    )  # a path is never cut
    assert (
        sum(line.startswith("data ") for line in lines) == 1
        and done.stdout.count("no folder was given") == 1
    )
    assert re.search(r"^methods +26; bench methods lists them$", done.stdout, re.M)
    assert lines[-1] == "next: bench demo (no data and no network needed)"


def test_the_doctor_says_what_of_a_folder_is_missing_or_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    assert (
        error_line(bench("doctor", "--data", tmp_path / "nosuch"))
        == f"error: --data {tmp_path / 'nosuch'}: no such folder"
    )
    facts = doctor("--data", tmp_path)
    assert facts["data"]["none"].startswith(f"none of the sets is in {tmp_path}") and facts[
        "next"
    ].startswith("bench demo")
    sts12 = tmp_path / "senteval" / "STS" / "STS12-en-test"
    sts12.mkdir(parents=True)
    (sts12 / "STS.input.MSRpar.txt").write_text("one\ttwo\n")
    facts = doctor("--data", tmp_path, "--runs", tmp_path / "runs")
    (sts,) = [one for one in facts["data"]["suites"] if one["suite"] == "sts"]
    assert sts["missing"][0] in ("STS12", "STS12 (damaged)") and sts["problems"]["STS12"]


@pytest.mark.slow
def test_the_doctor_finds_the_data(shared: Path, tmp_path: Path) -> None:
    facts = doctor("--data", shared / "data", "--runs", tmp_path / "runs")
    (sts,) = [one for one in facts["data"]["suites"] if one["suite"] == "sts"]
    assert (sts["tokenised"], sts["raw"], sts["missing"], facts["data"]["none"]) == (
        "found",
        "found",
        [],
        None,
    )
    command = f"bench run --method cls,last-avg --backbone builtin --suite sts --data {shared / 'data'} --runs {tmp_path / 'runs'}"
    assert facts["next"] == command
    shown = bench("doctor", "--data", shared / "data", "--runs", tmp_path / "runs").stdout
    assert re.search(r"^sts +found +found$", shown, re.M) and re.search(
        r"^cxc +found +one form$", shown, re.M
    )
    assert bench(*command.split()[1:], "--dry-run").exit_code == 0, "the next command is one"


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("42", (42,)), ("1-3", (1, 2, 3)), ("1,7-8", (1, 7, 8)), (" 3 , 3,2-3", (3, 2)), ("0", (0,))],
)
def test_seeds(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "3-1", "1.5", "1-2-3", "1-2000", ","])
def test_seeds_that_are_none(text: str) -> None:
    with pytest.raises(BenchError, match="expected numbers or ranges"):
        parse_seeds(text)


def test_overrides() -> None:
    assert parse_overrides(["a=1", "b = x=y ", "c="], None) == {"a": "1", "b": "x=y", "c": ""}
    assert parse_overrides(["max_steps=3"], 7) == {"max_steps": "7"}


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize(
    "words",
    [
        [
            "bench",
            "run",
            "--set",
            "select_on=STS-B dev",
            "--set",
            "template='[X]' is [MASK]",
            "--runs",
            "a folder/" + "long/" * 30,
        ],
        ["bench", "run", *(f"--set key{i}={i}" for i in range(40))],
        ["bench"],
    ],
)
def test_a_printed_command_can_be_copied(
    width: int,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A shell reads the same words, and no line but that of one long word is wider than the terminal."""
    from bench.cli.columns import print_command

    monkeypatch.setenv("COLUMNS", str(width))
    for label in ("", "next: "):
        print_command(shlex.join(words), label)
        shown = capsys.readouterr().out
        read = subprocess.run(
            ["sh", "-c", f"printf '%s\\n' {shown.removeprefix(label)}"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert read.stdout.splitlines() == words
        assert all(
            len(line) <= width or len(line.split()) <= 3 or "a folder" in line or "template" in line
            for line in shown.splitlines()
        )


def test_bench_alone_says_three_things_to_do_next_and_they_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCH_RUNS", raising=False)

    def next_steps() -> list[str]:
        done = CliRunner().invoke(main, [])
        assert done.exit_code == 0 and max(map(len, done.stdout.splitlines())) <= 80
        return re.findall(r"^  bench (.+?)  ", done.stdout, re.M)

    first = next_steps()
    assert first == ["demo", "doctor", "methods"]
    assert [CliRunner().invoke(main, [step, "--help"]).exit_code for step in first] == [0, 0, 0]
    made_runs(tmp_path / "runs", {"simcse": 0.5, "promcse": 0.3}, seeds=(1,))
    later = next_steps()
    assert len(later) == 3 and not set(later) & set(first)
    for step in later:
        done = CliRunner().invoke(main, step.split())
        assert done.exit_code == 0, (step, done.output)
    assert (tmp_path / "leaderboards" / "preview" / "index.html").is_file()


def test_a_long_list_of_runs_ends_with_how_many_more_there_are(tmp_path: Path) -> None:
    store = RunsFolder(tmp_path)
    for seed in range(35):
        store.write(record("simcse", seed))
    shown = CliRunner().invoke(main, ["runs", "--runs", str(tmp_path)]).stdout.splitlines()
    assert len(shown) == 32 and shown[-1].startswith("and 5 older: bench runs --all")
    assert (
        len(
            CliRunner().invoke(main, ["runs", "--runs", str(tmp_path), "--all"]).stdout.splitlines()
        )
        == 36
    )
    assert (
        len(
            CliRunner()
            .invoke(main, ["runs", "--runs", str(tmp_path), "--json"])
            .stdout.splitlines()
        )
        == 35
    )
