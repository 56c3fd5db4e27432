"""The line about the machine that a benchmark ran on."""

from __future__ import annotations

from datetime import date
from importlib.metadata import PackageNotFoundError, version


def describe_machine() -> str:
    """Name the date, the processor, the cores for this process, and the versions of libraries."""
    import os

    from bench.base.devices import device_name

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{date.today()}; {device_name('cpu')}, {cores} usable; {', '.join(versions())}"


def versions() -> list[str]:
    found = []
    for name in ("torch", "transformers", "sentence-transformers"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return found
