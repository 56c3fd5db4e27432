"""Manifests, their generator, and what ``bench data`` says of a folder."""

from __future__ import annotations

import json
import lzma
from importlib import resources

import pytest
from click.testing import CliRunner
from make_manifest import measure, update

from bench.base.errors import DataDamaged
from bench.cli.data import data
from bench.data.sets import DataFolder, cells, content_hash, data_set


def test_remaking_the_sts_manifest_changes_nothing(shared):
    package = resources.files("bench")
    stored = json.loads(
        (package / "data" / "sets" / "manifests" / "sts.json").read_text(encoding="utf-8")
    )
    again = json.loads(json.dumps(stored))
    assert update(again, shared / "data", shared, "sts.json") == []
    assert again == stored


def test_forms_that_are_not_the_same_text_are_refused(tmp_path):
    for form, text in (
        ("a", "One , two\tthree\n"),
        ("b", "one, TWO\tthree\n"),
        ("c", "one, two\tfour\n"),
    ):
        (tmp_path / form).mkdir()
        (tmp_path / form / "x.txt").write_text(text)
    file = {"path": "x.txt", "role": "pairs", "columns": 2}
    found = measure({form: tmp_path / form for form in "ab"}, file)
    assert found["rows"] == 1 and set(found["forms"]) == {"a", "b"}
    with pytest.raises(ValueError, match="not the same text"):
        measure({form: tmp_path / form for form in "ac"}, file)


def test_content_hash_sees_rows_and_cells_but_no_white_space_case_or_control():
    file = data_set("STS13").files[0]

    def of(text: str) -> str:
        return content_hash(cells(text, file))

    same = of("A b.\tC d\nE\tf\n")
    assert of("a  b .\tc d \r\ne\x12\tF\r\n") == same
    assert of("A b.\tC d\tsource note\nE\tf") == same
    for other in ("A b.C\td\nE\tf\n", "E\tf\nA b.\tC d\n", "A b.\tC d\nE\tf!\n", "A b.\tC d\n"):
        assert of(other) != same


def invoke(*arguments: str, columns: int = 80):
    env = {"BENCH_DATA": "", "COLUMNS": str(columns)}
    return CliRunner().invoke(data, list(arguments), env=env)


def test_list_and_check_of_the_real_folder(shared):
    result = invoke("list", "--data", str(shared / "data"), "--json")
    found = {one["name"]: one for one in map(json.loads, result.output.splitlines())}
    assert found["STS12"]["status"] == "found"
    assert found["STS12"]["found_forms"] == ["tokenised", "raw"]
    assert found["wiki_sentences"]["status"] == "found"
    assert found["wiki_sentences"]["items"] == {"train": 1_000_000}
    wide = invoke("list", "--data", str(shared / "data"))
    assert max(len(line) for line in wide.output.splitlines()) <= 80
    checked = invoke("check", "STS14", "--data", str(shared / "data"), "--json")
    assert checked.exit_code == 0
    assert json.loads(checked.output)["found_forms"] == ["tokenised", "raw"]


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


def test_a_packed_corpus_is_checked_by_what_is_inside(tmp_path):
    (tmp_path / "train").mkdir()
    path = tmp_path / "train" / "nli_triplets.csv.xz"
    path.write_bytes(lzma.compress(b"sent0,sent1,hard_neg\n"))
    state = DataFolder(tmp_path).check(data_set("nli_triplets"))
    assert state.status == "damaged" and "sha256" in state.problems[0]
    path.write_bytes(lzma.compress(b"x" * 100_000)[:-20])
    state = DataFolder(tmp_path).check(data_set("nli_triplets"))
    assert state.status == "damaged" and "cannot be unpacked" in state.problems[0]


@pytest.mark.parametrize("name", ["captions", "builtin"])
def test_data_of_the_package_is_found_without_a_folder(name):
    state = DataFolder(None).check(data_set(name))
    assert state.status == "found", (
        f"{state.problems}; after a change of the generator: python tools/make_manifest.py DIR"
    )
    assert DataFolder(None).look(data_set(name)).status == "found"
