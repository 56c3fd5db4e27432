"""What tests of promises share: folders of runs, and the table of promises that a run prints."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from in_a_row import End, in_a_row
from made import tiny_encoder, write_corpus, write_pairs, write_triplets
from started import bench
from suggest_cases import CASES
from wrong_files import write_wrong_files

HERE = Path(__file__).parent
RUNS = (("A", "simcse"), ("B", "promcse"), ("C", "cls"))
"""Names of runs in commands of suggest_cases.py, and their methods."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Hand the numbers of promises to reports; a test here starts processes, and is not quick."""
    for item in items:
        if HERE not in item.path.parents:
            continue
        item.add_marker("slow")
        for mark in item.iter_markers("promise"):
            item.user_properties.append(("promises", mark.args))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print each promise with the outcomes of its tests."""
    outcomes = defaultdict[int, list[tuple[str, str]]](list)
    for outcome in ("passed", "failed", "error", "xfailed", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            for name, numbers in getattr(report, "user_properties", []):
                if name == "promises":
                    for number in numbers:
                        test = report.nodeid.rpartition("::")[2]
                        outcomes[number].append((outcome, test))
    if not outcomes:
        return
    terminalreporter.section("promises")
    for number in sorted(outcomes):
        kept = [test for outcome, test in outcomes[number] if outcome == "passed"]
        others = [f"{outcome}: {test}" for outcome, test in outcomes[number] if outcome != "passed"]
        terminalreporter.line(f"{number:3}  {len(kept)} passed  {'; '.join(others)}")


@pytest.fixture(scope="session", autouse=True)
def _one_cache(shared_folder: Path) -> Iterator[None]:
    """Give the processes of all workers one cache, which is not the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(shared_folder / "cache"))
        yield


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all workers of this test run share."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if os.environ.get("PYTEST_XDIST_WORKER") else own) / "promises"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def made_once(shared_folder: Path) -> Callable[[str, Callable[[Path], None]], Path]:
    """Return a function that makes a folder unless a worker has made it.

    Tests must not change it; :func:`copied` gives them one of their own.
    """

    def make(name: str, write: Callable[[Path], None]) -> Path:
        folder = shared_folder / name
        with FileLock(shared_folder / f"{name}.lock"):
            if not folder.exists():
                aside = shared_folder / f"{name}.unfinished"
                shutil.rmtree(aside, ignore_errors=True)
                aside.mkdir()
                write(aside)
                aside.rename(folder)
        return folder

    return make


@pytest.fixture(scope="session")
def found_once(made_once: Any) -> Callable[[str, Callable[[Path], Any]], Any]:
    """Return a function that finds a JSON value by work in a folder, unless a worker has found it."""

    def find(name: str, work: Callable[[Path], Any]) -> Any:
        def write(folder: Path) -> None:
            (folder / "found.json").write_text(json.dumps(work(folder)), encoding="utf-8")

        return json.loads((made_once(name, write) / "found.json").read_text(encoding="utf-8"))

    return find


@pytest.fixture(scope="session")
def inputs(made_once: Any) -> Path:
    """Return a folder with corpus.txt, triplets.csv, pairs.tsv and the encoder ``tiny``."""

    def write(folder: Path) -> None:
        write_corpus(folder / "corpus.txt")
        write_triplets(folder / "triplets.csv")
        write_pairs(folder / "pairs.tsv")
        tiny_encoder(folder / "tiny")

    return made_once("inputs", write)


@pytest.fixture(scope="session")
def tiny(inputs: Path) -> Path:
    """Return the folder of a random BERT: 2 layers, 32 wide, in which everything is quick."""
    return inputs / "tiny"


@pytest.fixture(scope="session")
def ten_runs(made_once: Any, inputs: Path) -> Path:
    """Return a folder of ten runs on ``pairs.tsv``: two methods trained on four seeds, two not."""

    def write(folder: Path) -> None:
        words = ["run", "simcse", "promcse", "cls", "last-avg", "--seeds", "1-4"]
        words += ["--backbone", inputs / "tiny", "--corpus", inputs / "corpus.txt"]
        words += ["--suite", inputs / "pairs.tsv"]
        words += ["--budget", "12steps", "--set", "max_steps=12", "--set", "batch_size=16"]
        words += ["--set", "select_on=last", "--runs", folder, "--plain"]
        bench(*words, cwd=folder)

    return made_once("ten-runs", write)


@pytest.fixture(scope="session")
def wrong(made_once: Any, inputs: Path, ten_runs: Path) -> Path:
    """Return a folder of inputs, runs in ``kept``, and files that hold what nobody expects."""

    def write(folder: Path) -> None:
        shutil.copytree(inputs, folder, dirs_exist_ok=True)
        shutil.copytree(ten_runs, folder / "kept")
        write_wrong_files(folder)

    return made_once("wrong", write)


@pytest.fixture(scope="session")
def mistakes(found_once: Any, wrong: Path) -> list[End]:
    """Return how each mistake ended: those of suggest_cases.py, then MISTAKES."""
    from test_mistakes_of_commands import MISTAKES

    def make(folder: Path) -> list[Any]:
        place = shutil.copytree(wrong, folder / "place")
        names = {
            letter: sorted((place / "kept").glob(f"{method}-*"))[0].name for letter, method in RUNS
        }
        commands = []
        for case in [*CASES, *MISTAKES]:
            named = re.sub(r"\$([ABC])\b", lambda letter: names[letter[1]], case)
            commands.append(shlex.split(named))
        return [vars(end) for end in in_a_row(commands, place)]

    ends = found_once("mistakes", make)
    return [End(**end | {"words": tuple(end["words"])}) for end in ends]


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[Path], Path]:
    """Return a function that copies a shared folder, so that a test may change it."""

    def copy(folder: Path) -> Path:
        return shutil.copytree(folder, tmp_path / folder.name, symlinks=True)

    return copy


@pytest.fixture(scope="session")
def version(made_once: Any, ten_runs: Path, inputs: Path) -> Path:
    """Return a published version of the ten runs."""

    def write(folder: Path) -> None:
        bench("publish", "--runs", ten_runs, "--out", folder, "--note", "", cwd=folder)

    return made_once("boards", write) / "v1"
