"""``bench methods``, ``doctor``, the list of verbs and ``--seeds``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import bench
from made_runs import made_runs

from bench.cli import VERBS
from bench.run.seeds import parse_seeds


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_that_ends_with_an_example(verb: str) -> None:
    done = bench(verb, "--help")
    assert done.exit_code == 0 and "Example:" in done.stdout and f"bench {verb}" in done.stdout
    assert verb in bench("--help").stdout


def test_no_line_of_a_list_of_verbs_is_cut() -> None:
    for words in ((), ("data",)):
        listed = bench(*words, "--help", COLUMNS="80").stdout
        assert "..." not in listed.partition("Commands:")[2], listed


def test_bench_alone_says_what_to_do_next_and_it_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCH_RUNS", raising=False)
    steps = re.findall(r"^  bench (.+?)  ", bench().stdout, re.M)
    assert steps[:3] == ["demo", "doctor", "methods"]
    made_runs(tmp_path / "runs", {"simcse": 0.5, "promcse": 0.3}, seeds=(1,))
    assert len(steps) == 6 and [bench(*step.split()).exit_code for step in steps[3:]] == [0, 0, 0]


def test_the_doctor_loads_a_backbone(tiny: str) -> None:
    facts = json.loads(bench("doctor", tiny, "--json").stdout)
    assert (facts["family"], facts["layers"], facts["hidden size"]) == ("bert", 2, 32)
    assert (facts["reads"], facts["dropout"]) == ("both ways", 0.1)
    assert "none missing; ignored: cls" in facts["weights"]
    assert facts["tokens"] == "[CLS] a sentence . [SEP]"


def test_every_known_backbone_has_a_pinned_commit() -> None:
    from bench.backbones.hub import repository_names
    from bench.backbones.known_models import KNOWN, PINNED

    assert {repository_names(name)[0] for name in KNOWN if name != "builtin"} == set(PINNED)
    assert all(re.fullmatch("[0-9a-f]{40}", commit) for commit in PINNED.values())


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("42", (42,)), ("1-3", (1, 2, 3)), ("1,7-8", (1, 7, 8)), (" 3 , 3,2-3", (3, 2)), ("0", (0,))],
)
def test_seeds(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds
