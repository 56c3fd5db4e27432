"""Searches in a version: every trial is published with the runs that use the values it found."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from commands import bench
from made_runs import HOSTILE, made_run

from bench.base.files import write_or_fail
from bench.board.publish.build import publish_version
from bench.board.verify import runs_below
from bench.records.searches import Search, Searched, Study, Trial, read_search

pytestmark = pytest.mark.usefixtures("without_figures")

DEV = {"simcse": (55.5, 51.0, 57.0, 56.0), "promcse": (48.0, 50.5, 44.0, None)}
"""Dev scores of the recipe as it is and of three trials; None: it failed."""


def made_search(
    runs: Path, name: str = "search-1a2b3c4d", select_on: str = "captions dev"
) -> Search:
    """A search of two methods, three trials each, in its folder."""
    of = Searched(
        setting="unsupervised",
        variant="",
        plugin="",
        backbone="builtin",
        revision="",
        corpus="",
        dev="",
        recipe={},
        space={"learning_rate": {"low": 1e-5, "high": 1e-3, "scale": "log"}},
    )
    study = Study(
        name=name,
        methods=dict.fromkeys(DEV, of),
        trials=3,
        seeds=(901,),
        sampler="random",
        budget="100steps",
        select_on=select_on,
        dev_pairs=1125,
        overlap="captions dev shares nothing",
        precision="fp32",
        suites=(),
        fixed=(),
        created="",
        command="bench search --method simcse,promcse",
    )
    trials = {
        method: tuple(
            Trial(
                method=method,
                number=i,
                values={} if i == 0 else {"learning_rate": 10.0 ** -(i + 2)},
                state="failed" if dev is None else "finished",
                dev=() if dev is None else (dev,),
            )
            for i, dev in enumerate(scores)
        )
        for method, scores in DEV.items()
    }
    search = Search(study=study, trials=trials)
    write_or_fail(runs / name / "search.json", search.encode())
    return search


def search_entry(name: str = "search-1a2b3c4d", **changes: object) -> dict[str, object]:
    """Return the entry about its search in the record of a tuned run."""
    search = {"name": name, "trials": 3, "seeds": [901], "select_on": "captions dev"}
    return {"execution": {"search": search | changes}}


def tuned_runs(runs: Path, **changes: object) -> None:
    for method, noise in (("simcse", 0.6), ("promcse", 0.5)):
        entry = search_entry(**changes)
        for seed in (1, 2):
            made_run(runs, method, seed, noise=noise, suites=("check",), provenance=entry)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    made_search(tmp_path / "runs")
    tuned_runs(tmp_path / "runs")
    return tmp_path / "runs"


def test_every_trial_is_in_the_version_and_on_a_page(runs: Path, tmp_path: Path) -> None:
    folder = publish_version(runs=runs, out=tmp_path / "boards").folder
    assert folder is not None
    file = folder / "searches" / "search-1a2b3c4d.json"
    found = read_search(file)
    assert (
        found is not None
        and {method: tuple(trial.score for trial in own) for method, own in found.trials.items()}
        == DEV
    )
    for method, scores in DEV.items():
        page = (folder / "methods" / f"{method}.html").read_text()
        assert "3 random trials of each method" in page and "for 100 steps with seed 901" in page
        assert all(f">{one:.2f}<" in page for one in scores if one is not None)
        assert page.count(">failed<") == scores.count(None) and page.count(">best<") == 1
        assert 'href="../searches/search-1a2b3c4d.json"' in page
    main, readme = (folder / "index.html").read_text(), (folder / "README.md").read_text()
    assert "(searches/search-1a2b3c4d.json)" in readme
    assert "simcse, promcse; 3 random trials of each method and its recipe as it is" in " ".join(
        main.split()
    )
    assert bench("publish", "--check", "--out", tmp_path / "boards").exit_code == 0
    file.write_bytes(file.read_bytes().replace(b"57.0", b"67.0"))
    assert bench("publish", "--check", "--out", tmp_path / "boards").exit_code != 0
    assert len(runs_below(folder)) == 4, "what is verified are runs"


def test_the_next_version_keeps_a_search_whose_folder_is_gone(runs: Path, tmp_path: Path) -> None:
    first = publish_version(runs=runs, out=tmp_path / "boards").folder
    assert first is not None
    shutil.rmtree(runs / "search-1a2b3c4d")
    made_run(runs, "sncse", 1)
    second = publish_version(runs=runs, out=tmp_path / "boards").folder
    assert second is not None and second.name == "v2"
    name = Path("searches") / "search-1a2b3c4d.json"
    assert (second / name).read_bytes() == (first / name).read_bytes()


@pytest.mark.parametrize(
    "changes",
    [
        {"seeds": [902]},
        {"name": "../runs"},
        {"name": HOSTILE},
    ],
)
def test_a_search_that_is_not_there_or_is_another_one_is_said(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    made_search(tmp_path / "runs")
    tuned_runs(tmp_path / "runs", **changes)
    folder = publish_version(runs=tmp_path / "runs", out=tmp_path / "boards").folder
    assert folder is not None and not (folder / "searches").exists()
    page = (folder / "index.html").read_text()
    assert (
        "this search is not published, although runs here use values that it found" in page
        and "<script>window.hit" not in page
    )
