"""Joules through NVML, with a fake of the driver's library."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

import bench.base.energy
from bench.base.energy import EnergyMeter


class Driver:
    """Counts millijoules, as NVML does; ``answers`` are its return codes, 0 if none is given."""

    def __init__(self, readings: list[int], **answers: int) -> None:
        self.readings = readings
        self.answers = answers
        self.asked = b""

    def nvmlInit_v2(self) -> int:
        return self.answers.get("init", 0)

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes, card: Any) -> int:
        self.asked, card._obj.value = uuid, 0x7F00_0000_1234  # wider than an int
        return self.answers.get("handle", 0)

    def nvmlDeviceGetTotalEnergyConsumption(self, card: ctypes.c_void_p, count: Any) -> int:
        assert card.value == 0x7F00_0000_1234
        if self.readings:
            count._obj.value = self.readings.pop(0)
        return self.answers.get("energy", 0)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[Driver | None], None]:
    def put(driver: Driver | None) -> None:
        monkeypatch.setattr(bench.base.energy, "_library", lambda: driver)
        monkeypatch.setattr(bench.base.energy, "gpu_uuid", lambda device: "GPU-1")

    return put


def test_joules_between_two_looks(install: Callable[[Driver | None], None]) -> None:
    driver = Driver([5_000_000, 5_002_500, 5_002_500, 5_010_000])
    install(driver)
    meter = EnergyMeter("cuda")
    assert [meter.take(), meter.take(), meter.take()] == [2.5, 0.0, 7.5]
    assert driver.asked == b"GPU-1"


@pytest.mark.parametrize("failing", ["init", "handle", "energy"])
def test_a_driver_that_does_not_count_gives_nothing(
    install: Callable[[Driver | None], None], failing: str
) -> None:
    install(Driver([1, 2, 3], **{failing: 3}))
    assert EnergyMeter("cuda:1").take() is None


def test_no_driver_another_device_or_a_shared_card_give_nothing(
    install: Callable[[Driver | None], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(None)
    assert EnergyMeter("cuda").take() is None
    driver = Driver([1])
    install(driver)
    assert EnergyMeter("cpu").take() is None
    monkeypatch.setenv(bench.base.energy.SHARED_CARD, "1")
    assert EnergyMeter("cuda").take() is None
    assert driver.readings == [1]


def test_a_library_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.base.energy, "LIBRARIES", ("libthere-is-none.so.1",))
    assert bench.base.energy._library() is None
