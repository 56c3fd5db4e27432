"""A published version to look at, made once for all tests of a process: runs of several methods,
and some that wish us ill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import bench
from made_runs import HOSTILE, damaged_run, hostile_run, hostile_scores, made_runs, whole_folder

from bench.board.publish import build
from bench.board.publish.build import Outcome

SUB_PATH = "some/where else"
"""Where the site lies on its host, with a space, for links must be quoted."""


def publish(runs: Path, out: Path, *more: str) -> Path:
    """Publish the runs; return the folder of the one version."""
    done = bench("publish", "--runs", runs, "--out", out, *more)
    assert done.exit_code == 0, done.output
    (version,) = out.glob("v[0-9]*")
    return version


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the folder of v1: two settings, two backbones, five suites, ablations."""
    root = tmp_path_factory.mktemp("host")
    whole_folder(root / "runs")
    plan = root / SUB_PATH / "leaderboards" / "plans" / "v1.md"
    plan.parent.mkdir(parents=True)
    plan.write_text("# Plan\n\nEverything, once.\n", encoding="utf-8")
    yield publish(
        root / "runs",
        root / SUB_PATH / "leaderboards",
        "--note",
        "Made by a test: no evidence of anything.",
    )


@pytest.fixture(scope="session")
def hostile_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the folder of a v1 with markup, script and strange characters in every text."""
    root = tmp_path_factory.mktemp("hostile")
    for seed in (1, 2):
        hostile_run(root / "runs", seed=seed, suites=("sts", "geometry"))
    hostile_scores(root / "runs")
    damaged_run(root / "runs")
    yield publish(root / "runs", root / "leaderboards", "--note", HOSTILE)


Publish = Callable[..., Outcome]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    made_runs(tmp_path / "runs", {"simcse": 0.8, "promcse": 0.45}, seeds=(1, 2), suites=("check",))
    return tmp_path / "runs"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "leaderboards"


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw none, which takes most of the time."""
    monkeypatch.setattr(build, "board_figures", lambda *_: ())


@pytest.fixture
def quick(runs: Path, out: Path, without_figures: None) -> Publish:
    """Publish without figures."""

    def make(**asked: Any) -> Outcome:
        folders: dict[str, Any] = {"runs": runs, "out": out}
        for name in ("runs", "out", "submissions"):
            if name in asked:
                folders[name] = asked.pop(name)
        return build.publish_version(options=build.PublishOptions(**asked), **folders)

    return make
