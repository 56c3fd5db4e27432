"""The energy of a GPU, from the card's own counter.

NVML's ``nvmlDeviceGetTotalEnergyConsumption`` counts millijoules since the driver was loaded, on
Volta and newer. It counts the whole card, for all processes that use it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable
from typing import Any

from bench.base.devices import gpu_uuid

LIBRARIES = ("libnvidia-ml.so.1", "nvml.dll")
SHARED_CARD = "BENCH_SHARED_CARD"
"""Set in the environment of runs that share a card: its counter does not say what one of them used.
"""


class EnergyMeter:
    """The joules of one GPU between two looks; None on other devices, and without a counter.

    meter = EnergyMeter("cuda")
    joules = meter.take()
    """

    def __init__(self, device: str) -> None:
        self._count = _counter(device)
        self._last = self._count()

    def take(self) -> float | None:
        """Return the joules since this was made, or since this was last called."""
        now = self._count()
        if now is None or self._last is None:
            return None
        used = now - self._last
        self._last = now
        return used


def _counter(device: str) -> Callable[[], float | None]:
    """Return a function that reads the joules since the driver was loaded."""
    if not device.startswith("cuda") or os.environ.get(SHARED_CARD):
        return lambda: None
    nvml = _library()
    if nvml is None or nvml.nvmlInit_v2() != 0:
        return lambda: None
    card = ctypes.c_void_p()
    if nvml.nvmlDeviceGetHandleByUUID(gpu_uuid(device).encode(), ctypes.byref(card)) != 0:
        return lambda: None

    def joules() -> float | None:
        millijoules = ctypes.c_ulonglong()
        if nvml.nvmlDeviceGetTotalEnergyConsumption(card, ctypes.byref(millijoules)) != 0:
            return None
        return millijoules.value / 1000

    return joules


def _library() -> Any:
    for name in LIBRARIES:
        with contextlib.suppress(OSError):
            return ctypes.CDLL(name)
    return None
