"""What a GPU's board has used, as its driver counts it (NVML). The library comes with the driver: nothing is installed for it.

``nvmlDeviceGetTotalEnergyConsumption`` counts millijoules since the driver was loaded, on Volta and newer boards. The whole
board is counted, whoever works on it.
"""

from __future__ import annotations

import ctypes
from typing import Any

LIBRARIES = ("libnvidia-ml.so.1", "nvml.dll")


class Meter:
    """Joules of one GPU between two looks. Everywhere else, and where the driver does not count, None."""

    def __init__(self, device: str) -> None:
        self._count = _counter(device)
        self._last = self._count() if self._count is not None else None

    def take(self) -> float | None:
        """Joules since this was made, or since the last time that it was asked."""
        now = self._count() if self._count is not None else None
        if now is None or self._last is None:
            return None
        used, self._last = now - self._last, now
        return used


def _counter(device: str) -> Any:
    """A function that reads joules since the driver was loaded, or None."""
    if not device.startswith("cuda"):
        return None
    nvml = _library()
    if nvml is None or nvml.nvmlInit_v2() != 0:
        return None
    board = ctypes.c_void_p()
    if nvml.nvmlDeviceGetHandleByUUID(_uuid(device).encode(), ctypes.byref(board)) != 0:
        return None

    def joules() -> float | None:
        millijoules = ctypes.c_ulonglong()
        if nvml.nvmlDeviceGetTotalEnergyConsumption(board, ctypes.byref(millijoules)) != 0:
            return None
        return millijoules.value / 1000

    return joules


def _library() -> Any:
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _uuid(device: str) -> str:
    """As NVML spells it: which board "cuda:0" is depends on CUDA_VISIBLE_DEVICES."""
    import torch

    uuid = str(torch.cuda.get_device_properties(device).uuid)
    return uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
