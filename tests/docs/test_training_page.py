"""docs/training.md, Tune every method alike: the recipe file that it shows is one."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from commands import bench

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
SECTION = PAGE.split("\n## Tune every method alike\n")[1]
SHELL = [
    shlex.split(line, comments=True)[1:]
    for line in re.search(r"^```sh\n(.*?)^```$", SECTION, flags=re.M | re.S)[1].splitlines()
]  # type: ignore[index]
TOML = re.findall(r"^```toml\n(.*?)^```$", SECTION, flags=re.M | re.S)


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_recipe_on_the_page_is_one_that_bench_run_takes(own_folder: Path) -> None:
    (own_folder / "simcse.toml").write_text(TOML[1])
    run = next(words for words in SHELL if words[0] == "run")
    words = ["simcse.toml" if word.endswith("/simcse.toml") else word for word in run]
    done = bench(*words, "--suite", "check", "--dry-run")
    assert done.exit_code == 0 and done.stdout.startswith("Plan: 5 runs of simcse, "), done.output
    given = tomllib.loads(TOML[1])["values"]
    for key, one in given.items():
        assert re.search(
            rf"^ *{key} +{re.escape(str(one['value']))} +{re.escape(one['source'][:40])}",
            done.stdout.replace('"', ""),
            re.M,
        ), key
