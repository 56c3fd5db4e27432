"""``bench.load_run``: use the model of a finished run."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.base import devices
from bench.base.errors import BenchError
from bench.library.arguments import (
    PathLike,
    Plugins,
    as_path,
    check_argument,
    run_reference,
    use_plugins,
)
from bench.library.results import Result
from bench.library.terms import in_python_terms
from bench.method import Method
from bench.records.store import RunsFolder
from bench.run.finished import find_run
from bench.run.finished import load_finished_run as load_method
from bench.score.suites import check_vectors

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, repr=False)
class LoadedRun:
    """A finished run's model, ready to encode.

    Attributes:
        result: The run.
        method: Its method, with the weights of the run's checkpoint.
    """

    result: Result
    method: Method

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        """Encode sentences as for scoring.

        Args:
            sentences: n texts, at least one.

        Returns:
            (n, d) float32, row i for sentence i.

        Raises:
            BenchError: For anything but a list of texts.
            RunFailed: For vectors that hold NaN or infinity.
        """
        is_list = isinstance(sentences, Iterable) and not isinstance(sentences, str)
        texts = list(sentences) if is_list else []
        if not texts:
            raise BenchError("encode takes a list of sentences, at least one", 'encode(["..."])')
        for number, text in enumerate(texts, 1):
            if not isinstance(text, str):
                kind = type(text).__name__
                raise BenchError(
                    f"sentence {number} is {text!r:.60}, of type {kind}", "a list of texts"
                )
        return check_vectors(self.method.encode(texts), texts, self.result.run_id)

    def __repr__(self) -> str:
        return f"{self.result.run_id}, ready to encode"


@in_python_terms
def load_run(
    run: PathLike | Result,
    *,
    runs: PathLike | None = None,
    device: str = "auto",
    offline: bool = False,
    plugins: Plugins = (),
) -> LoadedRun:
    """Load the model of a finished run.

        model = bench.load_run("simcse-builtin-s42")
        vectors = model.encode(["A sentence.", "Another one."])  # (2, d) float32

    Args:
        run: An id, its beginning, a folder or a result.
        runs: The folder of the runs. None: $BENCH_RUNS, or ./runs.
        device: "auto", "cpu", "cuda:1" or "mps".
        offline: Open no connection.
        plugins: The Python file or the class of the run's method.

    Returns:
        The model; its ``encode`` takes a list of sentences.

    Raises:
        BenchError: If there is no such run, or if it has no model because it scored an object, or
            vectors.
    """
    check_argument("device", device, str)
    files = [Path(file) for file in use_plugins(plugins)]
    trained = find_run(run_reference(run), RunsFolder(as_path(runs)), files)
    for note in trained.notes:
        warnings.warn(note, stacklevel=3)
    return LoadedRun(
        Result(trained.record, trained.folder),
        load_method(trained, device=devices.choose_device(device), offline=offline),
    )
