"""Joules through NVML, against a stand-in for the driver's library: there is no GPU where these tests run."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

import bench.base.devices
from bench.base.devices import Meter


class Driver:
    """Counts in millijoules, as NVML does; ``answers`` are its return codes, 0 where none is given."""

    def __init__(self, readings: list[int], **answers: int) -> None:
        self.readings, self.answers, self.asked = readings, answers, b""

    def nvmlInit_v2(self) -> int:
        return self.answers.get("init", 0)

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes, board: Any) -> int:
        self.asked, board._obj.value = uuid, 0x7F00_0000_1234  # wider than an int
        return self.answers.get("handle", 0)

    def nvmlDeviceGetTotalEnergyConsumption(self, board: ctypes.c_void_p, count: Any) -> int:
        assert board.value == 0x7F00_0000_1234
        if self.readings:
            count._obj.value = self.readings.pop(0)
        return self.answers.get("energy", 0)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(driver: Driver | None) -> Driver | None:
        monkeypatch.setattr(bench.base.devices, "_library", lambda: driver)
        monkeypatch.setattr(bench.base.devices, "_uuid", lambda device: "GPU-1")
        return driver

    return install


def test_joules_between_two_looks(driver: Any) -> None:
    made = driver(Driver([5_000_000, 5_002_500, 5_002_500, 5_010_000]))
    meter = Meter("cuda")
    assert [meter.take(), meter.take(), meter.take()] == [2.5, 0.0, 7.5]
    assert made.asked == b"GPU-1"


@pytest.mark.parametrize("failing", ["init", "handle", "energy"])
def test_a_driver_that_does_not_count_is_nothing_recorded(driver: Any, failing: str) -> None:
    driver(Driver([1, 2, 3], **{failing: 3}))
    assert Meter("cuda:1").take() is None


def test_no_driver_and_no_gpu_are_nothing_recorded(driver: Any) -> None:
    driver(None)
    assert Meter("cuda").take() is None
    made = driver(Driver([1]))
    assert Meter("cpu").take() is None and made.readings == [1]


def test_a_library_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.base.devices, "LIBRARIES", ("libthere-is-none.so.1",))
    assert bench.base.devices._library() is None
