"""The built-in captions, and the score of an object on them."""

from __future__ import annotations

import json

import pytest
from bags import bag
from commands import bench as command
from evaluated import CHECK

import bench


@pytest.fixture(scope="session")
def plain_score(tmp_path_factory: pytest.TempPathFactory) -> float:
    return float(
        bench.evaluate(bag, runs=tmp_path_factory.mktemp("plain"), **CHECK)["captions"].value
    )


@pytest.fixture(scope="session")
def captions(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    file = tmp_path_factory.mktemp("listed") / "s.jsonl"
    done = command("evaluate", "--list-sentences", file, "--suite", "check")
    found = [json.loads(line)["sentence"] for line in file.read_text(encoding="utf-8").splitlines()]
    assert done.exit_code == 0 and f"{len(found):,} sentences" in done.stdout
    assert len(set(found)) == len(found)
    return found
