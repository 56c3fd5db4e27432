"""Fixtures that several rooms share."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hub import hub, no_network  # noqa: F401 - fixtures

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test opens a connection
# as tox has it: a run of one thread and one of two differ in the last digits
os.environ.setdefault("OMP_NUM_THREADS", "1")
# on a busy machine an example may take seconds: no test fails for its speed
hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark nightly tests as slow, and put the tests in the order in which they run.

    Of a matrix, the first of every so many cases runs daily; the others are nightly.

    Engines come first: their tests wait, one after the other, while other workers compute. Then
    come quick tests, then slow ones, the longest first: no worker is left alone with it at the end.
    """

    def order(item: pytest.Item) -> tuple[bool, bool, float]:
        slow = item.get_closest_marker("slow")
        return (
            item.get_closest_marker("engine") is None,
            slow is not None,
            -slow.kwargs.get("seconds", 0.0) if slow else 0.0,
        )

    cases = Counter[str]()
    for item in items:
        matrix = item.get_closest_marker("matrix")
        if matrix is not None:
            test = item.nodeid.partition("[")[0]
            if cases[test] % matrix.kwargs["every"] != 0:
                item.add_marker("nightly")
            cases[test] += 1
        if item.get_closest_marker("nightly") and not item.get_closest_marker("slow"):
            item.add_marker("slow")
    items.sort(key=order)


@pytest.hookimpl(wrapper=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> Generator[None, int, int]:
    """Add one worker if engines are tested: they wait for most of their time.

    Otherwise it only costs a start and fixtures of its own, for it takes turns with the others.
    """
    markexpr = config.option.markexpr
    left_out = any(f"not {kind}" in markexpr for kind in ("engine", "slow", "nightly"))
    return (yield) + (not left_out)


def pytest_collection_finish() -> None:
    """Keep what collected tests hold out of the garbage collector: it stays until the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of evaluation data and vectors: $BENCH_SHARED or ../shared."""
    folder = Path(os.environ.get("BENCH_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    if not (folder / "data").is_dir():
        pytest.skip(f"no evaluation data: {folder} does not exist (set BENCH_SHARED)")
    return folder


@pytest.fixture(scope="session")
def reference(shared: Path) -> dict[str, Any]:
    """Read values that others computed with the authors' own code: vectors_a.json."""
    return json.loads((shared / "reference" / "vectors_a.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder of a random BERT: 2 layers, 32 wide, the built-in vocabulary."""
    from bench.run.conformance.methods import tiny_backbone

    return tiny_backbone(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def tiny_roberta(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder of a random RoBERTa: 2 layers, 32 wide, a byte-level BPE vocabulary."""
    import models

    return models.tiny_roberta(tmp_path_factory.mktemp("models") / "tiny-roberta")


@pytest.fixture(scope="session")
def reference_b(shared: Path) -> dict[str, Any]:
    """Read the reference values for the methods of part B: vectors_b.json."""
    return json.loads((shared / "reference" / "vectors_b.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def reference_c(shared: Path) -> dict[str, Any]:
    """Read the reference values for the methods of part C: vectors_c.json."""
    return json.loads((shared / "reference" / "vectors_c.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def bf16() -> None:
    """Skip a test that computes in bfloat16 if this processor cannot.

    Some processors announce its matrices (AMX) and end the process at the first product of 64 rows,
    so a child process tries one first.
    """
    code = (
        "import torch; a = torch.ones(128, 64, dtype=torch.bfloat16, requires_grad=True); "
        "(a @ a.T).sum().backward()"
    )
    if subprocess.run([sys.executable, "-c", code], capture_output=True).returncode:
        pytest.skip("this processor does not survive a product in bfloat16")


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give tests a cache, data and a folder that are not the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("cwd"))
        patch.setenv("BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        for name in ("BENCH_DATA", "BENCH_RUNS", "BENCH_SAVE_SECONDS"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def _fifth_of_check(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Write the data of ``check`` with the pairs of each fifth image, 831 of its 4,742 pairs."""
    import lzma
    import shutil

    from bench.data.sets import DataFolder
    from bench.score.suites import check

    folder, file = tmp_path_factory.mktemp("fifth") / "check", "check-test.tsv.xz"
    shutil.copytree(check.CHECK_DATA, folder)
    pairs: Any = check.CHECK_TASK.load(DataFolder(None))
    first, second = pairs.data.caption1.tolist(), pairs.data.caption2.tolist()
    image = dict(zip(first, pairs.data.image.tolist(), strict=True))
    head, *rows = lzma.decompress((folder / file).read_bytes()).decode().splitlines()
    kept = [
        row
        for row, a, b in zip(rows, first, second, strict=True)
        if image[a] % 5 == image[b] % 5 == 0
    ]
    (folder / file).write_bytes(lzma.compress("\n".join([head, *kept, ""]).encode()))
    return folder, len(kept)


@pytest.fixture
def short_check(_fifth_of_check: tuple[Path, int]) -> Iterator[None]:
    """Cut the suite ``check`` to a fifth of its images."""
    from bench.score.suites import check

    folder, count = _fifth_of_check
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "CHECK_DATA", folder)
        patch.setitem(vars(check.CHECK_TASK), "n", count)
        yield
