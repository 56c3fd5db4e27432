"""Scored suites never decide what is trained: the dev set does not depend on a run's suites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.base.errors import DataMissing, UnknownName
from bench.data.sets import DataFolder
from bench.data.sets.sts_multi import read_sts_multi
from bench.method.config import RunConfig
from bench.method.plugins import discover
from bench.run.dev_sets import open_dev_task
from bench.run.plan import plan_configs
from bench.run.planned import PlannedRun


def planned(data: DataFolder, *suites: str, **values: Any) -> PlannedRun:
    config = {"methods": ("simcse",), "corpus": "builtin", "suites": suites, **values}
    (run,) = plan_configs([RunConfig(**config)], discover(), data)
    return run


def test_another_suite_is_scored_by_the_same_run(shared: Path) -> None:
    data = DataFolder(shared / "data")
    runs = [
        planned(data, *suites)
        for suites in (("check",), ("check", "geometry"), ("sts:STS12", "check"))
    ]
    assert len({run.run_id for run in runs}) == 1
    assert runs[0].recipe["select_on"] == "captions dev"


def test_without_stsb_the_dev_set_is_the_packages_and_with_it_the_recipes(
    shared: Path, tmp_path: Path, tiny: str
) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("".join(f"sentence number {i}\n" for i in range(40)))
    given = {"backbones": (tiny,), "corpus": str(corpus)}
    here = planned(DataFolder(None), "check", **given)
    assert (
        here.recipe["select_on"] == "captions dev"
        and "STS-B" in here.recipe.values_with_source()["select_on"].source
    )
    data = DataFolder(shared / "data")
    runs = [planned(data, *suites, **given) for suites in (("check",), ("sts",))]
    assert [run.recipe["select_on"] for run in runs] == ["STS-B dev"] * 2
    assert len({run.run_id for run in runs}) == 1


def test_a_method_that_selects_nothing_keeps_that() -> None:
    run = planned(DataFolder(None), "check", methods=("mirror-bert",))
    assert run.recipe["select_on"] == "last" and run.dev is None


def test_sts_b_dev_in_another_language(shared: Path) -> None:
    data = DataFolder(shared / "data")
    known = open_dev_task("STS-B-ja dev", data)
    assert known is not None and known.n == 1500
    pairs = read_sts_multi(data, "ja", split="dev")
    assert known.sha256 == pairs.sha256 != read_sts_multi(data, "ja").sha256
    with pytest.raises(UnknownName, match="STS-B-jp dev"):
        open_dev_task("STS-B-jp dev", data)
    with pytest.raises(DataMissing, match="selected on STS-B-de dev"):
        open_dev_task("STS-B-de dev", DataFolder(None, offline=True, store=None))
