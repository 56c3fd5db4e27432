"""A small run, finished once for all tests here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from commands import SMALL, bench
from models import sentences


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    path.write_text("\n".join(sentences(60, seed=8)) + "\n")
    return path


@pytest.fixture(scope="session")
def command(tiny: str, corpus: Path) -> tuple[Any, ...]:
    words = f"run --method simcse --backbone {tiny} --suite check --corpus {corpus} --device cpu"
    return (*words.split(), *SMALL)


@pytest.fixture(scope="session")
def finished(
    command: tuple[Any, ...], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Result]:
    """Return a runs folder with one finished run, and the result of the command."""
    runs = tmp_path_factory.mktemp("finished")
    return runs, bench(*command, "--runs", runs)
