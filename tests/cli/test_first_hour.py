"""Mistakes of the first hour: each is one clear line with what helps, and what helps is tried here."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from commands import bench, error_line, tree
from factories import record
from msgspec.structs import replace

from bench.base.errors import UnknownName
from bench.cli import main
from bench.runs import RunsFolder

MINE = """
from bench.method import TorchMethod

class Mine(TorchMethod):
    name = "mine"

    def embed(self, features):
        return self.hidden(features)[:, 0]
"""


def hint(done: Any) -> str:
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("try: ")]
    return str(line.removeprefix("try: "))


# --- recipe keys by other names ---


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "given", "meant"),
    [
        ("simcse", "lr=1e-5", "learning_rate=1e-5"),
        ("simcse", "bs=32", "batch_size=32"),
        ("simcse", "tau=0.1", "temperature=0.1"),
        ("simcse", "max_len=64", "max_seq_length=64"),
        ("simcse", "wd=0.01", "weight_decay=0.01"),
        ("simcse", "learningRate=1e-5", "learning_rate=1e-5"),
        ("simcse", "batch-size=8", "batch_size=8"),
    ],
)
def test_a_key_that_others_call_so_is_translated_and_the_hint_works(
    method: str, given: str, meant: str, tmp_path: Path
) -> None:
    command = (
        "run",
        "--method",
        method,
        "--suite",
        "check",
        "--corpus",
        "builtin",
        "--runs",
        tmp_path / "runs",
        "--dry-run",
    )
    done = bench(*command, "--set", given)
    assert (
        error_line(done)
        == f"error: unknown recipe key '{given.partition('=')[0]}' of {method}; here it is called {meant.partition('=')[0]}"
    )
    assert hint(done) == f"--set {meant}"
    if method == "simcse":
        key, _, value = meant.partition("=")
        again = bench(*command, "--set", hint(done).removeprefix("--set "), "--json")
        assert again.exit_code == 0, again.stderr
        assert str(json.loads(again.stdout)["recipe"][key]["value"]) in (
            value,
            str(float(value) if key != "pooler" else ""),
        )


def test_every_translation_leads_to_a_recipe_key_or_an_option() -> None:
    import click

    from bench.cli import main
    from bench.run.plugins import discover
    from bench.run.recipes import OTHER_NAMES, TRAINING

    registry = discover()
    known = set(TRAINING).union(*(registry[name].cls.defaults for name in registry))
    run = main.get_command(click.Context(main), "run")
    known |= {option for param in run.params for option in param.opts}
    assert known.issuperset(name.split()[0] for name in OTHER_NAMES.values())


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ("num_epochs", "epochs"),
        ("train_batch_size", "batch_size"),
        ("warmup", "warmup_steps"),
        ("seq_len", "max_seq_length"),
    ],
)
def test_another_spelling_that_is_no_translation_is_near(given: str, near: str) -> None:
    line = error_line(
        bench("run", "simcse", "--suite", "check", "--set", f"{given}=2", "--dry-run")
    )
    assert f"unknown recipe key '{given}'" in line and near in line.partition("nearest: ")[2]


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ("seed=3", "--seeds 3"),
        ("model=roberta-base", "--backbone roberta-base"),
        ("fp16=true", "--precision bf16"),
    ],
)
def test_what_is_an_option_here_is_said(given: str, option: str) -> None:
    done = bench("run", "--method", "simcse", "--set", given)
    assert "that is an option" in error_line(done) and hint(done) == option


def test_a_close_spelling_is_the_nearest_and_a_strange_one_leads_to_the_list() -> None:
    assert "nearest: temperature" in error_line(
        bench("run", "--method", "simcse", "--set", "temprature=1")
    )
    done = bench("run", "--method", "simcse", "--set", "zzz=1")
    assert "nearest" not in error_line(done), "nothing is near"
    assert (
        hint(done) == "bench methods simcse" and "temperature" in bench("methods", "simcse").stdout
    )


# --- corpora by the names that recipes use ---


def test_a_corpus_may_be_called_as_recipes_call_it(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "wiki1m_for_simcse.txt").write_text("one\ntwo\n")
    command = (
        "run",
        "--method",
        "simcse",
        "--suite",
        "check",
        "--data",
        tmp_path,
        "--dry-run",
        "--json",
        "--corpus",
        "wiki1m",
    )
    done = bench(*command)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["corpus"] == "wiki1m_for_simcse.txt"


def test_a_recipe_corpus_that_is_not_here_is_one_line_and_a_wrong_name_lists_the_names(
    tmp_path: Path,
) -> None:
    missing = bench(
        "run",
        "--method",
        "simcse",
        "--suite",
        "check",
        "--corpus",
        "wiki1m",
        "--offline",
        "--dry-run",
    )
    assert (
        error_line(missing)
        == "error: wiki1m: not on this machine, and --offline (or HF_HUB_OFFLINE) forbids fetching"
    )
    done = bench("run", "--method", "simcse", "--suite", "check", "--corpus", "wiki")
    assert error_line(done) == "error: no corpus at wiki"
    assert hint(done).endswith("or a name: builtin, target, wiki1m, nli, nli-labelled, stsb-10k")


def test_a_file_of_that_name_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("nli").write_text("x")
    assert "unknown format" in error_line(
        bench("run", "--method", "simcse", "--suite", "check", "--corpus", "nli", "--dry-run")
    )


# --- runs ---


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Finished runs, one that failed, and one of a plugin."""
    runs = RunsFolder(tmp_path_factory.mktemp("many"))
    for seed in range(14):
        runs.write(record("simcse", seed))
    runs.write(record("promcse", 3, variant="layer-shared", backbone="roberta-large"))
    runs.write(
        record(
            "dclr",
            1,
            status="failed",
            error="the loss became nan at step 2; the 64 rows of its batch are in a file",
            scores=(),
        )
    )
    for name, package in (("mine", "plugins/my_method.py"), ("theirs", "their-package")):
        one = record(name, 1)
        made_by = {
            "package": package,
            "version": "" if package.endswith(".py") else "1.2",
            "sha256": "0" * 64,
        }
        runs.write(replace(one, provenance=replace(one.provenance, plugin=made_by)))
    return runs.path


@pytest.mark.parametrize(
    "verb",
    [
        ("show",),
        ("compare",),
        ("verify",),
        ("export", "--to", "new"),
        ("encode", __file__, "--to", "v.npy"),
    ],
)
def test_an_unknown_run_has_three_neighbours_at_most(verb: tuple[str, ...], many: Path) -> None:
    done = bench(verb[0], "simsce-builtin", *verb[1:], "--runs", many)
    line = error_line(done)
    near = line.partition("nearest: ")[2].split(", ")
    assert len(near) == 3 and all(one.startswith("simcse-builtin-s") for one in near)
    assert (
        hint(done) == f"bench runs --runs {many} lists them"
        and bench("runs", "--runs", many).exit_code == 0
    )
    far = error_line(bench(verb[0], "zzzz", *verb[1:], "--runs", many))
    assert far.endswith("none of the 18 known is like it") and "simcse" not in far


def test_few_runs_are_all_named(tmp_path: Path) -> None:
    runs = RunsFolder(tmp_path)
    runs.write(record("simcse", 1))
    with pytest.raises(UnknownName, match="known: simcse-builtin-s1"):
        runs.find("zzzz")


@pytest.mark.parametrize("columns", [80, 100, 140])
def test_a_run_is_one_line_with_its_whole_id(many: Path, columns: int) -> None:
    lines = bench("runs", "--runs", many, COLUMNS=str(columns)).stdout.splitlines()
    ids = RunsFolder(many).ids()
    assert sorted(line.split()[0] for line in lines[1:]) == ids and len(lines) == len(ids) + 1
    assert max(map(len, lines)) <= columns
    (failed,) = [line for line in lines if line.startswith("dclr")]
    assert "failed" in failed and "the loss" in failed and re.search(r"\b2026-01-\d\d", failed)
    assert all("sts " in line for line in lines[1:] if "simcse" in line)
    shown = "finished" in lines[1]
    assert shown == (columns >= 100), "a wide terminal shows every status"


@pytest.mark.parametrize("columns", [40, 80])
def test_a_very_long_id_is_not_broken(tmp_path: Path, columns: int) -> None:
    runs = RunsFolder(tmp_path)
    long = replace(record("simcse", 1), run_id="a-backbone-with-a-name-" + "x" * 60)
    for one in (long, record("simcse", 2)):
        runs.write(one)
    lines = bench("runs", "--runs", tmp_path, COLUMNS=str(columns)).stdout.splitlines()
    assert long.run_id in [line.split()[0] for line in lines] and len(lines) == 3


@pytest.mark.slow
def test_a_run_of_a_plugin_says_which_and_the_hint_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE)
    made = bench("run", "--method", "mine", "--plugin", "mine.py", "--suite", "check", "--json")
    assert made.exit_code == 0, made.stderr
    (run_id,) = RunsFolder(tmp_path / "runs").ids()
    Path("text.txt").write_text("a line\n")
    before = tree(tmp_path)
    for verb in (
        ("export", run_id, "--to", "new"),
        ("encode", run_id, "text.txt", "--to", "v.npy"),
    ):
        done = bench(*verb)
        assert (
            error_line(done)
            == f"error: {run_id} was made with the method 'mine' of the plugin file mine.py"
        ), verb
        assert hint(done) == "--plugin mine.py"
    assert tree(tmp_path) == before
    told = bench("verify", run_id, "--retrain-free")
    assert "--plugin mine.py" in told.output and "nothing differs" in told.output
    assert (
        bench("encode", run_id, "text.txt", "--to", "v.npy", "--plugin", "mine.py").exit_code == 0
    )


def test_a_run_of_a_package_that_is_not_installed_names_it(many: Path) -> None:
    (run_id,) = [one for one in RunsFolder(many).ids() if one.startswith("theirs")]
    done = bench("export", run_id, "--to", "new", "--runs", many)
    assert (
        "the package their-package 1.2" in error_line(done)
        and hint(done) == "install their-package, or --plugin FILE"
    )


def test_a_locked_run_is_told_with_wait_where_the_verb_has_it(tiny: str, tmp_path: Path) -> None:
    command = ("run", "--method", "cls", "--backbone", tiny, "--suite", "check", "--runs", tmp_path)
    (plan,) = [
        json.loads(line) for line in bench(*command, "--dry-run", "--json").stdout.splitlines()
    ]
    with RunsFolder(tmp_path).lock(plan["run_id"]):
        done = bench(*command)
    assert "is locked by" in error_line(done) and hint(done).startswith("--wait ")
    assert bench(*command, "--wait").exit_code == 0
    import click

    from bench.cli.run_all import _can_wait

    for verb, has in (
        ("run", True),
        ("reproduce", False),
        ("demo", False),
    ):  # reproduce waits by itself
        command = main.get_command(click.Context(main), verb)
        assert command is not None
        with click.Context(command):
            assert _can_wait() is has, verb


# --- files, options and groups ---


def test_encode_names_the_file_and_no_other_verb(tmp_path: Path) -> None:
    done = bench("encode", "any-run", tmp_path / "no.txt", "--to", tmp_path / "v.npy")
    assert error_line(done) == f"error: no file {tmp_path / 'no.txt'}"
    assert "--corpus" not in hint(done) and "FILE" in hint(done)


@pytest.mark.parametrize(
    "arguments",
    [
        ("methods", "--check", "--help"),
        ("methods", "--check", "-h"),
        ("run", "--method", "--help"),
        ("data", "list", "--data", "--help"),
        ("references", "import", "--model", "--help"),
        ("export", "--to", "--help"),
        ("compare", "--html", "--help"),
    ],
)
def test_help_is_shown_wherever_it_stands(arguments: tuple[str, ...]) -> None:
    done = bench(*arguments)
    assert done.exit_code == 0 and done.stderr == ""
    assert done.stdout.startswith(f"Usage: main {arguments[0]}") and arguments[-2] in done.stdout


def test_after_two_hyphens_help_is_a_name() -> None:
    assert "unknown method '--help'" in error_line(bench("methods", "--", "--help"))


def test_a_bare_group_prints_its_help() -> None:
    done = bench("data")
    assert done.exit_code == 0 and done.stderr == ""
    assert done.stdout == bench("data", "--help").stdout and "Commands" in done.stdout


def test_more_processes_than_cores_are_refused_on_a_cpu(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from bench.run.executors import torchrun

    monkeypatch.setattr(torchrun, "cores_here", lambda: 2)
    command = (
        "run",
        "--method",
        "simcse",
        "--suite",
        "check",
        "--corpus",
        "builtin",
        "--device",
        "cpu",
        "--runs",
        tmp_path / "runs",
    )
    done = bench(*command, "--executor", "torchrun", "--gpus", "9")
    assert (
        error_line(done) == "error: --gpus 9 on the CPU: 9 processes are more than its 2 cores"
        and hint(done) == "--gpus 2"
    )
    assert torchrun.ranks_asked("torchrun", 2, "cpu") == 2 and not (tmp_path / "runs").exists()


# --- a screenful of a method, and whole words ---


@pytest.mark.parametrize(
    "option", ["--about", "--recipes", "--disagreements", "--numbers", "--all"]
)
def test_what_the_first_screen_leaves_out_is_an_option(option: str) -> None:
    first = bench("methods", "simcse", COLUMNS="80").stdout
    done = bench("methods", "simcse", option, COLUMNS="80")
    assert done.exit_code == 0 and option in first and done.stdout.strip()
    said = {
        "--about": "Two settings share one loss",
        "--recipes": "SimCSE repo README.md (hyperparameters)",
        "--disagreements": "evaluation interval",
        "--numbers": "promcse 1",
        "--all": "evaluation interval",
    }
    assert said[option] in " ".join(done.stdout.split()) and said[option] not in first
    assert f"bench methods NAME {option}" in hint(bench("methods", option))


VERBS = [
    "--help",
    "runs",
    "show RUN",
    "compare --statistics no",
    "compare --statistics no --baseline simcse",
    "methods",
    "methods simcse",
    "methods simcse --all",
    "suites",
    "suites sts",
    "backbones",
    "backbones builtin",
    "references",
    "references promcse:1",
    "data list",
    "data list STS12",
    "reproduce promcse:5 --rows unsupervised --backbone builtin --corpus builtin --max-steps 5 --dry-run --offline",
]


@pytest.mark.parametrize("verb", VERBS)
def test_no_word_is_broken_at_80_columns(verb: str, many: Path) -> None:
    """Every word of the narrow output stands in the wide one, but for what is counted or cut there with a sign."""
    run_id = next(one for one in RunsFolder(many).ids() if one.startswith("simcse"))
    arguments = verb.replace("RUN", run_id).split()
    narrow, wide = (
        bench(*arguments, COLUMNS=columns, BENCH_RUNS=str(many)).stdout for columns in ("80", "300")
    )
    assert narrow
    new = set(re.findall(r"[A-Za-z][\w./:-]*[\w]", narrow)) - set(
        re.findall(r"[A-Za-z][\w./:-]*[\w]", wide)
    )
    signed = {"failed", "finished", "wider", "terminal"}
    assert new - signed == set()
    over = [
        line for line in narrow.splitlines() if len(line) > 80 and not line.startswith("bench run ")
    ]
    assert [line for line in over if " " in line.strip()] == []


@pytest.mark.parametrize("name", ['"mi" + "ne"', "NAMES[0]"])
def test_a_method_whose_name_only_running_its_file_tells_is_found(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text("NAMES = ['mine']\n" + MINE.replace('"mine"', name))
    plan = ("--suite", "check", "--plugin", tmp_path / "mine.py", "--dry-run")
    assert bench("run", "--method", "mine", *plan).exit_code == 0
    assert "unknown method 'mien'; nearest: mine" in error_line(
        bench("run", "--method", "mien", *plan)
    )
