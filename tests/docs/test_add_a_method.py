"""docs/add-a-method.md keeps its promises: its code and commands, as a reader would use them."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result
from commands import argv
from commands import bench as command_line
from pages import code_blocks

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "add-a-method.md"
Bench = Callable[..., Result]


@pytest.fixture
def written(tmp_path: Path, short_check: None, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Return ``bench`` in the folder of a reader who copied method and recipe from the page."""
    dcl, code = code_blocks(PAGE, "python")
    (tmp_path / "dcl.py").write_text(dcl, encoding="utf-8")
    (tmp_path / "my_method.py").write_text(code, encoding="utf-8")
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "cut-off.toml").write_text(
        "\n".join(code_blocks(PAGE, "toml")[:2]), encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return command_line


def loaded(file: Path) -> Any:
    from bench.method.plugins import discover

    return discover([file])["dcl"].cls


def test_simcse_with_another_loss_is_a_class_of_twelve_lines_and_the_loss_is_that_of_its_paper(
    written: Bench, tmp_path: Path
) -> None:
    """The paper's sum, in a plain loop: over the others of the row, without the pair itself."""
    import torch

    lines = code_blocks(PAGE, "python")[0].partition("class DCL")[2].splitlines()
    assert len([line for line in lines if line.strip()]) <= 12
    generator = torch.Generator().manual_seed(3)
    first, second = (torch.randn(5, 4, generator=generator) for _ in range(2))
    method = loaded(tmp_path / "dcl.py")()
    method.recipe = SimpleNamespace(temperature=0.1)
    expected = 0.0
    for i in range(5):
        cosines = [
            float(first[i] @ second[j] / (first[i].norm() * second[j].norm())) for j in range(5)
        ]
        expected += -cosines[i] / 0.1 + math.log(
            sum(math.exp(cosines[j] / 0.1) for j in range(5) if j != i)
        )
    assert float(method.loss((first, second), None).total) == pytest.approx(expected / 5, abs=1e-4)


@pytest.mark.slow
def test_the_commands_of_another_loss_check_train_and_compare_it(
    written: Bench, tmp_path: Path, tiny: str
) -> None:
    check, run, compare = [
        shlex.split(line)[1:] for line in code_blocks(PAGE, "sh")[0].splitlines()
    ]
    done = written(*check)
    assert done.exit_code == 0 and "FAILED" not in done.stdout, done.stdout + done.stderr
    done = written(
        *run, "--backbone", tiny, "--set", "max_steps=2", "--set", "select_on=last", "--plain"
    )
    assert done.exit_code == 0, done.stderr
    records = [json.loads(file.read_text()) for file in (tmp_path / "runs").glob("*/run.json")]
    assert sorted((one["method"], one["seed"]) for one in records) == [
        (name, seed) for name in ("dcl", "simcse") for seed in (1, 2, 3)
    ]
    done = written(*compare)
    assert done.exit_code == 0 and "vs SimCSE [" in done.stdout, done.stdout + done.stderr
    assert re.search(r"^SimCSE .* baseline", done.stdout, re.M)


@pytest.mark.slow
def test_the_example_keeps_the_contract_trains_and_is_scored(
    written: Bench, tmp_path: Path, tiny: str
) -> None:
    done = written("check", "my_method.py")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "the contract is kept" in done.stdout and "FAILED" not in done.stdout
    assert done.stdout.count("ok  ") >= 9
    what = "run --plugin my_method.py --method cut-off+symmetric --suite check"
    more = f"--corpus builtin --set eval_steps=3 --set max_steps=6 --plain --backbone {tiny}"
    command = [*argv(f"{what} {more}"), "--set", "select_on=captions dev"]
    done = written(*command)
    assert done.exit_code == 0, done.stdout + done.stderr
    (file,) = (tmp_path / "runs").glob("*/run.json")
    record = json.loads(file.read_text())
    found = [record[key] for key in ("method", "variant", "status")]
    assert found == ["cut-off", "symmetric", "finished"]
    assert record["training"]["steps"] == 6 and record["training"]["best_step"] in (3, 6)
    recipe = {key: (one["value"], one["source"]) for key, one in record["recipe"].items()}
    assert recipe["lost"] == (0.2, "our search, dev score")
    assert recipe["temperature"] == (0.05, "SimCSE, run_unsup_example.sh")
    assert recipe["symmetric"][1] == "variant symmetric"
    curve = [json.loads(line) for line in (file.parent / "curve.jsonl").read_text().splitlines()]
    assert {"loss", "forth", "back"} <= set().union(*curve)
    again = written(*command)
    assert again.exit_code == 0 and "nothing repeated" in again.stdout + again.stderr


def install(
    site: Path, package: str, code: str, entry_points: str, recipes: Mapping[str, str] = {}
) -> None:
    """Write the files that pip would have put into site-packages."""
    folder = site / package
    (folder / "recipes").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "method.py").write_text(code, encoding="utf-8")
    for name, text in recipes.items():
        (folder / "recipes" / name).write_text(text, encoding="utf-8")
    about = site / f"{package}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {package.replace('_', '-')}\nVersion: 1.0\n"
    )
    (about / "entry_points.txt").write_text(entry_points)


def test_the_package_of_the_page_registers_its_method_and_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    code, toml = code_blocks(PAGE, "python")[1], code_blocks(PAGE, "toml")
    table = re.search(r'^cut-off = "(.*?)"', toml[2], flags=re.M)
    assert table and '[project.entry-points."bench.methods"]' in toml[2]
    without = command_line("methods", "cut-off")
    assert without.exit_code == 2 and "unknown method 'cut-off'" in without.stderr
    points = f"[bench.methods]\ncut-off = {table[1]}\n"
    install(site, "cut_off_embeddings", code, points, {"cut-off.toml": toml[0] + toml[1]})
    monkeypatch.syspath_prepend(site)
    listed = command_line("methods", "cut-off")
    assert listed.exit_code == 0, listed.output
    said = " ".join(listed.stdout.split())
    assert "package cut-off-embeddings 1.0" in said and "bert-base-uncased +symmetric" in said
