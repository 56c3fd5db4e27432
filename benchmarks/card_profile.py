"""How busy a card is during a step: kernels, share of time, share of its measured peak."""

from __future__ import annotations

import time

import torch
from card_models import Place
from card_steps import (
    WARM_UP,
    Found,
    Training,
    free_memory,
    full_rows,
    operations_of_step,
    ready_method,
)

STEPS = 5
SHARE = 0.45
"""Share of the measured peak that is aimed at with 512 rows."""


def measured_peak(place: Place) -> float:
    """Return the operations a second of a large product of random matrices.

    In bf16, float32 on a CPU. Matrices of ones would take less power, and so run faster than any
    real product.
    """
    size = place.size(8192, 128)
    dtype = torch.bfloat16 if place.on_gpu else torch.float32
    a, b = (torch.randn(size, size, device=place.device).to(dtype) for _ in range(2))
    a @ b
    taken = []
    for _ in range(3):
        place.wait()
        began = time.perf_counter()
        for _ in range(10):
            a @ b
        place.wait()
        taken.append((time.perf_counter() - began) / 10)
    return 2 * size**3 / min(taken)


def profile(place: Place, rows: int) -> Found:
    """Count a step's kernels, and compare their time with the step's and with the peak."""
    batch = place.size(rows, 4)
    warm_up = place.size(WARM_UP, 1)
    timed = place.size(20, 1)
    method = ready_method(place, "simcse", "bert-base", batch)
    training = Training(method, full_rows((warm_up + timed + 2 * STEPS) * batch))
    training.steps(warm_up)
    seconds = training.seconds_per_step(place, timed)
    kernels, busy = kernels_of_steps(training, place)
    training.close()
    del training
    free_memory(place)
    peak = measured_peak(place)
    reached = operations_of_step("bert-base", place, batch) / seconds / peak
    detail = {
        "seconds": seconds,
        "kernels": kernels,
        "kernel_seconds": busy,
        "busy": busy / seconds,
        "share_of_peak": reached,
        "peak": peak,
    }
    value = (
        f"{1000 * seconds:.1f} ms a step, {kernels:.0f} kernels, busy {100 * busy / seconds:.0f} "
        f"%, {100 * reached:.0f} % of the measured {peak / 1e12:.3g} TFLOPS"
    )
    good = reached >= SHARE if place.on_gpu and rows == 512 else None
    return Found(value, good, f"{100 * SHARE:.0f} % of the peak" if rows == 512 else "", detail)


def kernels_of_steps(training: Training, place: Place) -> tuple[float, float]:
    """Return the kernels of a step, and their seconds; on a CPU its operations."""
    from torch.profiler import ProfilerActivity

    activity = ProfilerActivity.CUDA if place.on_gpu else ProfilerActivity.CPU
    kind = torch.autograd.DeviceType.CUDA if place.on_gpu else torch.autograd.DeviceType.CPU
    with torch.profiler.profile(activities=[activity], acc_events=True) as profiler:
        training.steps(STEPS)
        place.wait()
    count, microseconds = 0, 0.0
    for event in profiler.events() or ():
        if event.device_type != kind or event.name.startswith(("Memcpy", "Memset")):
            continue
        count += 1
        taken = event.self_device_time_total if place.on_gpu else event.self_cpu_time_total
        microseconds += taken
    return count / STEPS, microseconds / 1e6 / STEPS
