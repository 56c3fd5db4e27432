"""Manifests, their generator, and what ``bench data`` says of a folder."""

from __future__ import annotations

import json
from importlib import resources

import pytest
from click.testing import CliRunner
from make_manifest import update

from bench.base.errors import DataDamaged
from bench.cli.data import data
from bench.data.sets import DataFolder, data_set


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["sts", "sts-multi", "transfer", "clustering", "cxc"])
def test_remaking_a_manifest_changes_nothing(shared, kind):
    file = resources.files("bench.data.sets") / "manifests" / f"{kind}.json"
    stored = json.loads(file.read_text(encoding="utf-8"))
    again = json.loads(json.dumps(stored))
    left = update(again, shared / "data", shared, file.name)
    assert left == (["CxC-STS-official"] if kind == "cxc" else [])
    assert again == stored


def invoke(*arguments: str, columns: int = 80):
    env = {"BENCH_DATA": "", "COLUMNS": str(columns)}
    return CliRunner().invoke(data, list(arguments), env=env)


def test_check_names_what_is_damaged_and_list_says_that_it_is_not_known(shared, tmp_path):
    whole = shared / "data" / "senteval" / "downstream" / "STS" / "STS13-en-test"
    target = tmp_path / "downstream" / "STS" / "STS13-en-test"
    target.mkdir(parents=True)
    for path in whole.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    cut = target / "STS.input.OnWN.txt"
    cut.write_bytes(cut.read_bytes()[:-300])
    assert DataFolder(tmp_path).look(data_set("STS13")).forms == ()
    result = invoke("check", "--data", str(tmp_path), columns=400)  # no name of a file is folded
    assert isinstance(result.exception, DataDamaged) and "STS13" in result.exception.message
    assert "STS.input.OnWN.txt" in result.output


@pytest.mark.parametrize("name", ["captions", "builtin"])
def test_data_of_the_package_is_found_without_a_folder(name):
    state = DataFolder(None).check(data_set(name))
    assert state.status == "found", (
        f"{state.problems}; after a change of the generator: python tools/make_manifest.py DIR"
    )
    assert DataFolder(None).look(data_set(name)).status == "found"
