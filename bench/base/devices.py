"""Which device and precision a run uses, and what this machine is (for the record and ``bench doctor``)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import resource
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.base.errors import BenchError

PACKAGES = (
    "torch",
    "transformers",
    "sentence-transformers",
    "mteb",
    "numpy",
    "scipy",
    "scikit-learn",
    "safetensors",
    "tokenizers",
)


def choose_device(asked: str) -> str:
    """``auto`` is cuda, else mps, else cpu. Raises BenchError for a device that is not here."""
    if not re.fullmatch(
        r"auto|cpu|(cuda|mps)(:[0-9]+)?", asked
    ):  # before torch is loaded, which takes seconds
        raise BenchError(
            f"--device {asked} is not available here", "--device auto, cpu, cuda, cuda:1 or mps"
        )
    import torch

    here = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if asked == "auto":
        return next(name for name in ("cuda", "mps", "cpu") if here[name])
    if not here.get(asked.partition(":")[0], False):
        raise BenchError(
            f"--device {asked} is not available here",
            f"--device {' or '.join(d for d, ok in here.items() if ok)}",
        )
    return asked


def choose_precision(asked: str, device: str) -> str:
    """``auto`` is bf16 autocast on a GPU that computes in it, and fp32 elsewhere: always on a CPU.

    Raises BenchError for a precision that the device does not have.
    """
    cpu = device.partition(":")[0] == "cpu"
    if asked == "fp16" and cpu:
        raise BenchError("--precision fp16 needs a GPU", "--precision bf16 or fp32")
    if asked == "tf32" and not device.startswith("cuda"):
        raise BenchError("--precision tf32 needs an NVIDIA GPU", "--precision fp32, which is exact")
    if asked != "auto":
        return asked
    if cpu:
        return "fp32"
    import torch

    return (
        "bf16"
        if device.startswith("cuda") and torch.cuda.is_bf16_supported(including_emulation=False)
        else "fp32"
    )


def cpu_info() -> str:
    try:
        return Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""


def keep_freed_memory() -> None:
    """Ask glibc to keep freed blocks instead of giving each large tensor back to the system: 10 to 20 % of a CPU step."""
    if sys.platform == "linux" and "MALLOC_MMAP_MAX_" not in os.environ:
        with contextlib.suppress(OSError, AttributeError):  # another C library: nothing to tune
            libc = ctypes.CDLL("libc.so.6")
            libc.mallopt(-4, 0)  # M_MMAP_MAX
            libc.mallopt(-1, 1 << 30)  # M_TRIM_THRESHOLD, an int


def device_name(device: str) -> str:
    if device.startswith("cuda"):
        import torch

        return torch.cuda.get_device_name(device)
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in cpu_info().splitlines()
            if line.startswith("model name")
        ),
        "",
    )
    return (
        f"{device}: {model or platform.processor() or platform.machine()}, {os.cpu_count()} cores"
    )


def reset_peak_memory(device: str) -> None:
    """From here on :func:`peak_memory_bytes` counts anew, where the system can do that."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.reset_peak_memory_stats(device)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_bytes(device: str) -> int:
    """The most memory that was in use: on the GPU where there is one, else :func:`host_memory_bytes`."""
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.max_memory_allocated(device))
    return host_memory_bytes()


def host_memory_bytes() -> int:
    """The most memory of the machine that was resident in this process."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) * (1 if sys.platform == "darwin" else 1024)


def packages() -> dict[str, str]:
    versions = {}
    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def platform_facts(device: str) -> dict[str, Any]:
    import torch

    facts = {
        "python": platform.python_version(),
        "system": platform.platform(),
        "device": device_name(device),
        "threads": torch.get_num_threads(),
    }
    if device.startswith("cuda"):
        facts |= {"cuda": torch.version.cuda, "gpus": torch.cuda.device_count()}
    return facts
