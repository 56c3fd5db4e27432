"""``benchmarks/gpu.py`` on a CPU: every line of it runs, and every method equals itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu.py"


def printed(*words: str) -> str:
    command = [sys.executable, str(SCRIPT), "--device", "cpu", "--small", "--rounds", "1", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.nightly
@pytest.mark.slow(seconds=60)
def test_every_method_is_compared_with_the_cpu() -> None:
    out = printed("--only", "right")
    rows = [line for line in out.splitlines() if line.endswith("| equal |")]
    assert len(rows) > 100 and "differs" not in out
    assert any(line.startswith("| promcse+eh, supervised | 0.0e+00 |") for line in rows)


@pytest.mark.nightly
@pytest.mark.slow(seconds=30)
def test_both_sides_are_timed_and_the_peak_is_measured() -> None:
    out = printed("--only", "encoding,training")
    assert "| encoding 64 sentences |" in out
    for batch in (4, 8):
        assert f"| a step of {batch}, fp32 |" in out
        assert f"| a step of {batch}: share of the measured peak |" in out
