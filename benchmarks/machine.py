"""The line that says on what a benchmark ran."""

from __future__ import annotations

from datetime import date
from importlib.metadata import version


def describe_machine() -> str:
    """Date, processor, cores this process may use, and the versions that matter."""
    import os

    from bench.devices import device_name

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "sentence-transformers"))
    return f"{date.today()}; {device_name('cpu')}, {cores} usable; {packages}"
