"""``bench.evaluate`` with prompts: a prefix, a template, and a prompt for each task."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bags import bag
from evaluated import CHECK, captions_by_hand

import bench
from bench.base.errors import UnknownName


@pytest.mark.usefixtures("short_check")
def test_a_prefix_and_a_template_surround_every_sentence_and_are_recorded(
    tmp_path: Path,
) -> None:
    got: list[str] = []

    def keep(some: list[str]) -> np.ndarray:
        got.extend(some)
        return bag(some)

    before = bench.evaluate(keep, prefix="query: ", runs=tmp_path, **CHECK)
    assert all(one.startswith("query: ") for one in got[100:])
    assert before.model["prompt"] == before.record.recipe["prompt"].value == "query: "
    got.clear()
    around = bench.evaluate(keep, prefix='This sentence : "[X]" means', runs=tmp_path, **CHECK)
    assert all(one.startswith('This sentence : "') and one.endswith('" means') for one in got[100:])
    value = captions_by_hand(lambda some: bag([f'This sentence : "{one}" means' for one in some]))
    assert around["captions"].value == pytest.approx(value, abs=1e-4)
    assert before.run_id != around.run_id


@pytest.mark.usefixtures("short_check")
def test_a_task_has_its_own_prompt_in_the_place_of_the_others(tmp_path: Path) -> None:
    prompts = {"captions": "caption : "}
    own = bench.evaluate(bag, prefix="query: ", prompts=prompts, runs=tmp_path, **CHECK)
    value = captions_by_hand(lambda some: bag([f"caption : {one}" for one in some]))
    assert own["captions"].value == pytest.approx(value, abs=1e-4)
    of_suite = bench.evaluate(bag, prompts={"check": "caption : "}, runs=tmp_path, **CHECK)
    assert of_suite["captions"].value == own["captions"].value
    with pytest.raises(UnknownName, match="unknown task 'STS12'"):
        bench.evaluate(bag, prompts={"STS12": "x"}, runs=tmp_path, **CHECK)


@pytest.mark.slow
def test_two_tasks_with_two_prompts_have_two_vectors_of_one_sentence(
    tmp_path: Path, shared: Path
) -> None:
    sts = {
        "suites": ["sts:STS12,STS-B"],
        "data": shared / "data",
        "runs": tmp_path,
        "progress": False,
    }
    both = bench.evaluate(bag, prefix="a : ", prompts={"STS-B": "b : "}, **sts)
    plain = bench.evaluate(bag, prefix="b : ", **sts)
    assert both["STS-B"].value == plain["STS-B"].value, "it shares sentences with other years"
    assert both["STS12"].value != plain["STS12"].value
