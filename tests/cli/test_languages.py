"""Tasks in other languages: how they are called."""

from __future__ import annotations

import json
from pathlib import Path

from commands import bench, error_line


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
