"""This machine: device and precision of a run, memory, and packages."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import resource
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from bench.base.errors import BenchError, one_line

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


def choose_device(requested: str) -> str:
    """Return the device: ``auto`` is cuda, else mps, else cpu.

    One sum is computed on a GPU, so that a driver or card that does not work with this torch is
    noticed before anything is fetched. With ``auto``, an unusable GPU prints a two-line warning and
    the CPU is used. Raises BenchError for a device that is not here, or a GPU that torch cannot
    use.
    """
    # checked before torch is loaded, which takes seconds
    if not re.fullmatch(r"auto|cpu|(cuda|mps)(:[0-9]+)?", requested):
        raise BenchError(
            f"--device {requested} is not available here", "--device auto, cpu, cuda, cuda:1 or mps"
        )
    import torch

    kind = requested.partition(":")[0]
    has_mps = torch.backends.mps.is_available()
    if kind == "cpu" or (kind == "mps" and has_mps):
        return requested
    absent = BenchError(
        f"--device {requested} is not available here",
        f"--device {'mps or cpu' if has_mps else 'cpu'}",
    )
    if kind == "mps":
        raise absent
    if torch.cuda.is_available():
        device = "cuda" if kind == "auto" else requested
        problem = _problem_of_use(device)
        if problem is None:
            return device
    else:
        problem = _problem_of_torch()
    if kind == "cuda":
        raise problem or absent
    if problem is not None:
        sys.stderr.write(
            f"warning: {problem.message}; this command uses the CPU\ntry: {problem.hint}\n"
        )
        return "cpu"
    return "mps" if has_mps else "cpu"


def _problem_of_use(device: str) -> BenchError | None:
    """Return the reason why a GPU that torch sees cannot compute; None if it can."""
    import torch

    index = int(device.partition(":")[2] or 0)
    count = torch.cuda.device_count()
    if index >= count:
        return BenchError(
            f"--device {device}: the last GPU here is cuda:{count - 1}",
            f"--device cuda:{count - 1}",
        )
    try:
        torch.ones(1, device=device).add_(1).item()
        return None
    except RuntimeError as error:  # no kernels for this card, or a card that another process holds
        major, minor = torch.cuda.get_device_capability(device)
        return BenchError(
            f"{torch.cuda.get_device_name(device)} (compute capability {major}.{minor}) does not "
            "work with torch "
            f"{torch.__version__}: {one_line(error, 100)}",
            f"{_build_of_cuda_12()}, for cards from 5.0 to 9.0; or --device cpu",
        )


def _build_of_cuda_12() -> str:
    """Return the command that installs this torch for drivers of CUDA 12.

    That build has kernels for Maxwell, Pascal and Volta.
    """
    import torch

    return (
        f"pip install torch=={torch.__version__.partition('+')[0]} "
        "--index-url https://download.pytorch.org/whl/cu126"
    )


def _problem_of_torch() -> BenchError | None:
    """Return the reason why torch sees no GPU although the driver has one.

    It is None if the driver has no GPU, or if the user hid it.
    """
    if os.environ.get("CUDA_VISIBLE_DEVICES", "all") in ("", "-1"):
        return None
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        listed = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
        name, _, driver = listed.stdout.splitlines()[0].rpartition(", ")
    except (OSError, subprocess.SubprocessError, IndexError):
        return None
    import torch

    if torch.version.cuda is None:
        return BenchError(
            f"{name} is here, and torch {torch.__version__} was built without CUDA",
            f"pip install torch=={torch.__version__.partition('+')[0]} from PyPI, or --device cpu",
        )
    needed = 580 if int(torch.version.cuda.partition(".")[0]) >= 13 else 525
    return BenchError(
        f"{name} is here with driver {driver}, and torch {torch.__version__} cannot use it: CUDA "
        f"{torch.version.cuda} needs driver {needed}",
        f"update the driver, or {_build_of_cuda_12()}, or --device cpu",
    )


Precision = Literal["auto", "fp32", "tf32", "bf16", "fp16"]


def choose_precision(requested: Precision, device: str) -> Precision:
    """Return the precision for a device.

    ``auto`` is bf16 autocast on a GPU with bf16, fp16 autocast on a GPU with only fast fp16
    (compute capability 7.0 and 7.5), and fp32 everywhere else, always on a CPU. Raises BenchError
    for a precision that the device does not support.
    """
    if requested == "fp16" and device.partition(":")[0] == "cpu":
        raise BenchError("--precision fp16 needs a GPU", "--precision bf16 or fp32")
    if requested == "tf32" and not device.startswith("cuda"):
        raise BenchError("--precision tf32 needs an NVIDIA GPU", "--precision fp32, which is exact")
    if not device.startswith("cuda"):
        return "fp32" if requested == "auto" else requested
    import torch

    has_bf16 = torch.cuda.is_bf16_supported(including_emulation=False)
    if requested == "bf16" and not has_bf16:  # torch would emulate it, slowly
        raise BenchError(
            f"--precision bf16: {torch.cuda.get_device_name(device)} does not support it",
            "--precision fp16 or fp32",
        )
    if requested != "auto":
        return requested
    if has_bf16:
        return "bf16"
    has_fp16 = torch.cuda.get_device_capability(device) >= (7, 0)
    return "fp16" if has_fp16 else "fp32"


def keep_freed_memory() -> None:
    """Ask glibc to keep freed blocks instead of returning each large tensor to the system.

    This saves 10 to 20 % of a training step on the CPU.
    """
    if sys.platform == "linux" and "MALLOC_MMAP_MAX_" not in os.environ:
        with contextlib.suppress(OSError, AttributeError):  # another C library: nothing to tune
            libc = ctypes.CDLL("libc.so.6")
            libc.mallopt(-4, 0)  # M_MMAP_MAX
            libc.mallopt(-1, 1 << 30)  # M_TRIM_THRESHOLD, an int


def device_name(device: str) -> str:
    """Return the name of the GPU, or the CPU's model and number of cores."""
    if device.startswith("cuda"):
        import torch

        return torch.cuda.get_device_name(device)
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        named = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
        if named:
            model = named[1].strip()
    return f"{device}: {model}, {os.cpu_count()} cores"


def device_line(device: str, precision: str) -> str:
    """Return the first line of a run: "device NVIDIA H100 80GB HBM3, precision bf16"."""
    return f"device {device_name(device)}, precision {precision}"


def reset_peak_memory(device: str) -> None:
    """Restart the count of :func:`peak_memory_bytes`, if the system can do that."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.init()  # else "Invalid device argument" for cuda:1
        torch.cuda.reset_peak_memory_stats(device)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_bytes(device: str) -> int:
    """Return the peak memory in use on the GPU, or :func:`host_memory_bytes` without a GPU."""
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.max_memory_allocated(device))
    return host_memory_bytes()


def host_memory_bytes() -> int:
    """Return the peak resident memory of this process."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
    peak = int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    if sys.platform == "darwin":
        return peak
    return 1024 * peak  # kilobytes


def packages() -> dict[str, str]:
    """Return the installed versions of the packages that results depend on."""
    versions = {}
    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def platform_facts(device: str) -> dict[str, Any]:
    """Return the facts about this machine that a record keeps."""
    import torch

    facts: dict[str, Any] = {
        "python": platform.python_version(),
        "system": platform.platform(),
        "device": device_name(device),
        "threads": torch.get_num_threads(),
    }
    if device.startswith("cuda"):
        facts["cuda"] = torch.version.cuda
        facts["gpus"] = torch.cuda.device_count()
    return facts
