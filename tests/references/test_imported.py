"""Published mteb result files as reference rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from bench.base.errors import BenchError, DataDamaged
from bench.cli.references import WithImport
from bench.references.imported import (
    ImportedResult,
    LeftOut,
    as_lines,
    merge,
    read_imported,
    read_mteb_file,
)

MODEL, REVISION = "sentence-transformers/some-model", "8b3219a92973c328a8e22fadcfa821b5dc75636a"


def sts(value: float = 0.72369, subset: str = "default", **more: Any) -> dict[str, Any]:
    return {
        "cosine_spearman": value,
        "cosine_pearson": 0.8,
        "main_score": value,
        "hf_subset": subset,
        "languages": ["eng-Latn"],
        **more,
    }


def content(
    task: str = "STS12", version: str = "2.12.7", **scores: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "dataset_revision": "a0d554a64d88156834ff5ae9920b964011b16384",
        "task_name": task,
        "mteb_version": version,
        "scores": scores or {"test": [sts()]},
        "evaluation_time": 3.1,
        "kg_co2_emissions": None,
    }


def write(folder: Path, made: dict[str, Any], name: str = "", *, meta: bool = True) -> Path:
    """As in the repository of published results: MODEL/REVISION/TASK.json, model_meta.json beside it."""
    place = folder / MODEL.replace("/", "__") / REVISION
    place.mkdir(parents=True, exist_ok=True)
    if meta:
        (place / "model_meta.json").write_text(json.dumps({"name": MODEL, "revision": REVISION}))
    file = place / f"{name or made.get('task_name') or made['mteb_dataset_name']}.json"
    file.write_text(json.dumps(made))
    return file


def number(file: Path, **options: Any) -> ImportedResult:
    found = read_mteb_file(file, **options)
    assert isinstance(found, ImportedResult), found
    return found


def test_a_file_of_mteb_2(tmp_path: Path) -> None:
    found = number(write(tmp_path, content()))
    scored = (found.task, found.metric, found.value, found.protocol)
    assert scored == ("STS12", "cosine_spearman", 72.369, "mteb/2")
    wanted = (*("mteb", "pretrained"), *(MODEL, None))
    assert (found.paper, found.method, found.backbone, found.std) == wanted
    assert found.source == f"model revision {REVISION}, data a0d554a64d88" and not found.own_result


def test_a_file_from_before_mteb_1_11(tmp_path: Path) -> None:
    cosine, euclidean = {"pearson": 0.6, "spearman": 0.5}, {"pearson": 0.4, "spearman": 0.3}
    test = {"cos_sim": cosine, "euclidean": euclidean, "evaluation_time": 2.1}
    old = {"mteb_dataset_name": "STS12", "mteb_version": "1.0.0", "dataset_revision": "a" * 40}
    found = number(write(tmp_path, old | {"test": test}))
    assert (found.value, found.metric, found.protocol) == (50.0, "cosine_spearman", "mteb/1")


def test_languages_are_averaged_as_mteb_averages_them_and_a_missing_one_is_no_number(
    tmp_path: Path,
) -> None:
    from mteb import get_task

    subsets = get_task("STS17").hf_subsets
    every = [sts(i / 20, subset) for i, subset in enumerate(subsets, 1)]
    mean = sum(i / 20 for i in range(1, len(subsets) + 1)) / len(subsets)
    assert number(write(tmp_path, content("STS17", test=every))).value == pytest.approx(
        100 * mean, abs=1e-6
    )
    left = read_mteb_file(write(tmp_path, content("STS17", test=every[:-1])))
    assert isinstance(left, LeftOut) and left.why.startswith("incomplete")


def test_whose_results_they_are(tmp_path: Path) -> None:
    by_folder = write(tmp_path / "a", content(), meta=False)
    assert number(by_folder).backbone == MODEL and REVISION in number(by_folder).source
    assert number(by_folder, model="owner/other").backbone == "owner/other"
    lonely = tmp_path / "STS12.json"
    lonely.write_text(json.dumps(content()))
    with pytest.raises(BenchError, match="nothing says which model") as caught:
        read_mteb_file(lonely)
    assert "--model" in str(caught.value.hint)
    assert number(lonely, model="owner/other").source.startswith("model revision unknown")


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"task_name": "STS12"}',
        json.dumps({**content(), "scores": {"test": [{}]}}),
    ],
)
def test_what_is_no_result_file(text: str, tmp_path: Path) -> None:
    file = tmp_path / "STS12.json"
    file.write_text(text)
    try:
        found: Any = read_mteb_file(file, "owner/model")
    except DataDamaged as error:
        found = error
        assert "not a result file of mteb" in error.message and "\n" not in error.message
    assert isinstance(found, DataDamaged | LeftOut)


def test_rows_are_kept_and_replaced(tmp_path: Path) -> None:
    one, two = (
        number(write(tmp_path / "a", content())),
        number(write(tmp_path / "b", content("STS13"))),
    )
    better = number(write(tmp_path / "c", content(test=[sts(0.9)])))
    assert [r.value for r in merge([one, two], [better])] == [90.0, two.value]
    file = tmp_path / "references.jsonl"
    assert read_imported(file) == []
    file.write_bytes(as_lines([one, two]))
    assert read_imported(file) == [one, two]
    file.write_text(file.read_text() + '{"schema": "bench.reference/1", "value": "many"}\n')
    with pytest.raises(DataDamaged, match="line 3 is no imported result"):
        read_imported(file)


@click.group()
def main() -> None:
    """Stands in for ``bench``."""


@main.command(cls=WithImport)
@click.argument("name", required=False)
def references(name: str | None) -> None:
    click.echo(f"listed {name}")


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(main, ["references", *map(str, arguments)])


def test_the_command(tmp_path: Path) -> None:
    files = [write(tmp_path / "results", content()), write(tmp_path / "results", content("STS13"))]
    write(tmp_path / "results", content("Nobodys", version="1.2.0"))
    runs = tmp_path / "runs"
    done = run("import", tmp_path / "results", "--runs", runs)
    assert done.exit_code == 0, done.output
    assert done.stdout == f"2 results of 1 model, 2 of them new; 2 in {runs / 'references.jsonl'}\n"
    assert done.stderr.startswith("left out: ") and "Nobodys.json" in done.stderr
    done = run("import", files[0], "--runs", runs)
    assert done.stdout.startswith("1 result of 1 model, 0 of them new; 2 in")
    assert [r.task for r in read_imported(runs / "references.jsonl")] == ["STS12", "STS13"]
    assert run("promcse:1").stdout == "listed promcse:1\n" and run().stdout == "listed None\n"


def test_a_damaged_file_leaves_everything_as_it_was(tmp_path: Path) -> None:
    good = write(tmp_path / "results", content())
    out = tmp_path / "kept.jsonl"
    assert run("import", good, "--to", out).exit_code == 0
    before = out.read_bytes()
    bad = write(tmp_path / "results", content("STS13"))
    bad.write_text("{")
    done = run("import", good, bad, "--to", out)
    assert isinstance(done.exception, DataDamaged) and out.read_bytes() == before
    assert isinstance(run("import", tmp_path / "no", "--to", out).exception, BenchError)
    assert out.read_bytes() == before
