"""``bench methods``, ``doctor``, the list of verbs and ``--seeds``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from commands import bench, error_line
from made_runs import made_runs

from bench.cli import VERBS
from bench.cli.methods import year_of
from bench.method.plugins import discover
from bench.method.recipes import variants_of
from bench.run.conformance.methods import SENTENCES
from bench.run.seeds import parse_seeds
from bench.score.suites import suite_names

PLUGIN = """
from bench.method import TorchMethod

class Mine(TorchMethod):
    name = "mine"

    def embed(self, features):
        return self.hidden(features)[:, 0]
"""


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_that_ends_with_an_example(verb: str) -> None:
    done = bench(verb, "--help")
    assert done.exit_code == 0 and "Example:" in done.stdout and f"bench {verb}" in done.stdout
    assert verb in bench("--help").stdout


def test_an_unknown_verb_is_one_line_with_the_nearest() -> None:
    done = bench("runn")
    assert done.exit_code == 2
    assert done.stderr == "error: unknown command 'runn'; nearest: run, runs\ntry: bench --help\n"


def test_bench_alone_says_what_to_do_next_and_it_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCH_RUNS", raising=False)
    steps = re.findall(r"^  bench (.+?)  ", bench().stdout, re.M)
    assert steps[:3] == ["demo", "doctor", "methods"]
    made_runs(tmp_path / "runs", {"simcse": 0.5, "promcse": 0.3}, seeds=(1,))
    assert len(steps) == 6 and [bench(*step.split()).exit_code for step in steps[3:]] == [0, 0, 0]


def test_the_methods_are_listed() -> None:
    rows = {row["name"]: row for row in json.loads(bench("methods", "--json").stdout)}
    simcse = discover()["simcse"].cls
    assert list(rows) == list(discover()) and rows["simcse"] == {
        "name": "simcse",
        "year": "2021",
        "family": "contrastive",
        "settings": ["unsupervised", "supervised"],
        "variants": list(variants_of(simcse)),
        "code_version": 1,
        "package": "sentence-bench",
        "summary": simcse.summary,
    }
    for width in ("80", "120"):
        shown = bench("methods", COLUMNS=width).stdout
        families = {row["family"] or "other" for row in rows.values()}
        assert all(f"\n\n{family}\n" in shown for family in families)
        for name, row in rows.items():  # one line each, with its settings and its summary
            (line,) = re.findall(rf"^ {name} .*", shown, re.M)
            letters = {word[0] for word in row["settings"] if word != "none"} or {"-"}
            assert letters <= set(line.removesuffix(row["summary"]).split())
            assert line.endswith(row["summary"]) and len(line) <= int(width)
            if row["year"]:
                assert (f" {row['year']} " in line) == (width == "120")


@pytest.mark.parametrize(
    ("paper", "year"),
    [
        ("Su et al.: Whitening, arXiv 2103.15316", "2021"),
        ("PromCSE, Findings of EMNLP 2022, arXiv 2203.06875v1", "2022"),
        ("2024 sentences, arXiv 2010.01234, EMNLP", "2024"),
        ("", ""),
    ],
)
def test_a_methods_year_is_its_papers(paper: str, year: str) -> None:
    assert year_of(paper) == year


def test_everything_about_one_method(snapshot: object) -> None:
    shown = bench("methods", "simcse", COLUMNS="80").stdout
    assert re.sub(r"sentence-bench .*", "sentence-bench", shown) == snapshot
    facts = json.loads(bench("methods", "simcse", "--json").stdout)
    assert facts["keys"]["temperature"]["default"] == 0.05
    assert all(value["source"] for value in facts["keys"].values())
    for recipe in facts["recipes"]:  # whole, as a run would have it
        assert set(recipe["own"]) <= set(recipe["values"]) == set(facts["keys"])
        assert all(value["source"] for value in recipe["values"].values())


@pytest.mark.slow
def test_a_plugin_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.py"
    file.write_text(PLUGIN)
    done = bench("check", file, "--json")
    report = json.loads(done.stdout)
    assert done.exit_code == 0 and report["name"] == "mine"
    assert all(finding["outcome"] == "agrees" for finding in report["findings"])
    file.write_text(PLUGIN.replace("[:, 0]", ".mean(1)"))
    monkeypatch.setattr(  # another process was started above
        "bench.run.conformance.methods.encode_elsewhere",
        lambda case: case.build().encode(SENTENCES),
    )
    done = bench("check", file)
    assert done.exit_code == 1 and done.stdout.splitlines()[-1] == "1 failed"
    assert re.search(r"FAILED +none +encode ignores batch size and padding", done.stdout)


def test_mistakes(snapshot: object) -> None:
    mistakes = (
        *("methods simsce", "check simsce", "check /nothing.py", "methods a b"),
        *("methods --plugin /nothing.py", "check cls --set pooling=cls"),
        *("check cls --set x", "methods --all"),
        *("doctor --backbone /nothing", "doctor --fetch"),
        *("doctor --backbone a*b", "doctor --runs /etc/passwd", "doctor --data /nothing"),
    )
    assert {text: error_line(bench(*text.split())) for text in mistakes} == snapshot


def test_the_doctor_loads_a_backbone(tiny: str) -> None:
    facts = json.loads(bench("doctor", "--backbone", tiny, "--json").stdout)
    assert (facts["family"], facts["layers"], facts["hidden size"]) == ("bert", 2, 32)
    assert (facts["MLM head"], facts["deep prompt"], facts["dropout"]) == ("yes", "yes", 0.1)
    assert "none missing; ignored: cls" in facts["weights"]
    assert facts["tokens"] == "[CLS] a sentence . [SEP]"


def test_the_doctor_describes_a_decoder(tmp_path: Path) -> None:
    from every_family import DECODERS

    folder = DECODERS["llama"](tmp_path / "llama")
    facts = json.loads(bench("doctor", folder, "--json").stdout)
    wanted = {
        "before a text": "<s>",
        "after a text": "nothing",
        "position ids": "rotary, from 0",
        "local attention": "none",
        "dropout keys": "attention_dropout",
        "MLM head": "no",
        "LM head": "lm_head.weight",
        "prompt room": "191 tokens for a prompt and its sentence",
        "entry": "Llama",
    }
    assert {key: facts[key] for key in wanted} == wanted
    assert facts["reads"].startswith("earlier tokens only (causal)")
    assert facts["padding"].startswith(
        "id 0, for its tokenizer names none; its makers pad on the l"
    )
    assert "reads" in bench("doctor", folder).stdout
    both = bench("doctor", folder, "--backbone", folder)
    assert "both name a model" in error_line(both)


def test_every_known_backbone_has_a_pinned_commit() -> None:
    from bench.backbones.hub import repository_names
    from bench.backbones.known_models import KNOWN, PINNED

    assert {repository_names(name)[0] for name in KNOWN if name != "builtin"} == set(PINNED)
    assert all(re.fullmatch("[0-9a-f]{40}", commit) for commit in PINNED.values())


def doctor(*arguments: str | Path) -> dict[str, Any]:
    done = bench("doctor", *arguments, "--json")
    assert done.exit_code == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


@pytest.fixture
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_the_doctor_says_what_is_here(no_cache: Path) -> None:
    import torch

    facts = doctor("--runs", no_cache / "runs")
    assert facts["packages"]["torch"].partition("+")[0] == torch.__version__.partition("+")[0]
    assert facts["extras"]["publish"] is True and "simcse" in facts["methods"]
    assert facts["records"] == 0 and not (no_cache / "runs").exists()
    states = {one["suite"]: one for one in facts["data"]}
    assert set(states) == set(suite_names()) - {"mteb", "check", "transfer-quick", "own"}
    assert states["sts"]["missing"][0] == "STS12" and states["sts"]["tasks"] == 7


def test_the_doctor_prints_a_line_for_each_state(
    no_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six lines at 80 columns: what is here, what is missing with its command, what is next."""
    monkeypatch.chdir(no_cache)
    facts = doctor()
    facts["extras"] = {"publish": False, "search": False, "lora": True}
    facts["left out"] = ["mine.py: SyntaxError"]
    facts["data"] = [
        {"suite": "sts", "tasks": 7, "missing": []},
        {"suite": "cxc", "tasks": 2, "missing": ["CxC-SITS"]},
        {"suite": "transfer", "tasks": 7, "missing": ["MR"] * 7},
    ]
    monkeypatch.setattr("bench.cli.doctor.diagnose_machine", lambda data, runs: facts)
    lines = bench("doctor", COLUMNS="80").stdout.splitlines()
    states = [line.split()[0] for line in lines if line and not line.startswith((" ", "bench "))]
    assert states == ["ok", "ok", "ok", "ok", "missing", "FAILED", "optional", "Next:"]
    text = "\n".join(lines)
    assert (
        f"{len(discover().plugins)} methods, 0 runs in ./runs, " in text
        and "evaluation data: sts (7 tasks)\n" in text
    )
    assert "cxc (has 1 of 2), transfer\n           bench data fetch cxc --data DIR   (" in text
    assert "publish (figures) and search (Optuna)" in text and "'.[publish,search]'" in text
    assert max(map(len, lines)) <= 80


def test_the_doctor_says_what_of_a_folder_is_missing(no_cache: Path) -> None:
    facts = doctor("--data", no_cache, "--runs", no_cache / "runs")
    assert facts["next"].startswith("bench demo")
    assert all(len(one["missing"]) == one["tasks"] for one in facts["data"])


@pytest.mark.slow
def test_the_doctor_finds_the_data(shared: Path, tmp_path: Path) -> None:
    folders = ("--data", str(shared / "data"), "--runs", str(tmp_path / "runs"))
    facts = doctor(*folders)
    (sts,) = [one for one in facts["data"] if one["suite"] == "sts"]
    assert sts["missing"] == []
    shown = bench("doctor", *folders).stdout
    assert re.search(r"^ok +evaluation data: sts \(7 tasks\)", shown, re.M)
    begins = "bench run --method cls,last-avg --backbone builtin --suite sts "
    assert facts["next"] == begins + " ".join(folders)
    assert bench(*facts["next"].split()[1:], "--dry-run").exit_code == 0, "the next command is one"


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("42", (42,)), ("1-3", (1, 2, 3)), ("1,7-8", (1, 7, 8)), (" 3 , 3,2-3", (3, 2)), ("0", (0,))],
)
def test_seeds(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "3-1", "1.5", "1-2-3", "1-2000", ","])
def test_seeds_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="expected whole numbers"):
        parse_seeds(text)
