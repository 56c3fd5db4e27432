"""Tasks in other languages: what a plan says of them, and how they are called."""

from __future__ import annotations

import json
from pathlib import Path

from commands import bench, error_line

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
