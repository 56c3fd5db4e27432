"""mypy over the package, as a test: it takes one core while the other tests go on."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow(seconds=20)
def test_the_types_hold() -> None:
    """Of what is unchanged since the last time, mypy has the types in .mypy_cache."""
    pytest.importorskip("mypy")
    done = subprocess.run([sys.executable, "-m", "mypy"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no issues found" in done.stdout


@pytest.mark.nightly
@pytest.mark.slow(seconds=120)
def test_the_types_of_the_installed_package_hold(tmp_path: Path) -> None:
    """With the methods, which mypy sees as ``bench.methods`` in the wheel alone; from a folder
    without a clone.
    """
    pytest.importorskip("mypy")
    pytest.importorskip("hatchling")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    (tmp_path / "empty").mkdir()
    config = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *config, "-p", "bench"],
        capture_output=True,
        text=True,
        cwd=tmp_path / "empty",
        env={**os.environ, "MYPYPATH": str(tmp_path / "installed")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no issues found" in done.stdout
