"""Cards that a plan can be made for without having them, and the speed and memory of devices that
are here.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from bench.base import devices
from bench.base.errors import BenchError


@dataclass(frozen=True)
class Card:
    """A GPU, from its vendor's data sheet."""

    name: str
    # memory
    gib: int
    # dense peak by precision, without sparsity, accumulated in float32
    tflops: Mapping[str, float]


SHARE = 0.20

"""Share of a card's published peak that a training step reaches: assumed, because no GPU was
measured.

One report to compare with: the authors of SimCSE trained their unsupervised BERT base, in fp16,
"for less than 1 hour" on one RTX 3090 (their repository, issue 135); this share gives half an hour.
"""

STEP_SECONDS = 0.015

"""Shortest training step on a GPU, however small the batch: the time to start its kernels.

Assumed.
"""

EFFICIENCY = {"fp32": 0.40, "tf32": 0.40, "bf16": 0.22, "fp16": 0.22}

"""Share of the measured speed of large matrix products that a training step reaches.

Measured with the built-in backbone on two CPU cores: at 0.35, runs estimated at 140 s and 493 s
took 227 s and 437 s. A GPU's share was never measured.
"""

CARDS = {
    # SXM; the data sheet prints twice that, with sparsity
    "H100": Card("H100", 80, {"fp32": 67, "tf32": 494, "bf16": 989, "fp16": 989}),
    "A100": Card("A100", 80, {"fp32": 19.5, "tf32": 156, "bf16": 312, "fp16": 312}),
    # GA102 white paper, appendix A
    "RTX3090": Card("RTX3090", 24, {"fp32": 35.6, "tf32": 35.6, "bf16": 71, "fp16": 71}),
}


def card_named(text: str) -> Card | None:
    """Return the card that ``--device TEXT`` names ("A100", "cuda:A100", "RTX 3090", "3090"), or
    None.
    """
    plain = re.sub("[^A-Z0-9]", "", text.removeprefix("cuda:").upper())
    return CARDS.get(plain) or CARDS.get(f"RTX{plain}")


def planned_device(text: str) -> str:
    """Return the device of a plan: one that is here, or "cuda:NAME" of a card that is not.

    "cuda" on a machine without a GPU means an A100. Raises BenchError for anything else.
    """
    card = card_named(text)
    if card is not None:
        return f"cuda:{card.name}"
    try:
        return devices.choose_device(text)
    except BenchError as error:
        if not re.fullmatch("cuda(:[0-9]+)?", text):
            raise BenchError(
                error.message, f"{error.hint}; a plan can also be for {', '.join(CARDS)}"
            ) from None
    return "cuda:A100"


def speed_of(device: str, precision: str) -> tuple[float, str]:
    """Return the floating point operations per second of a training step, and the source of that
    number.
    """
    card = card_named(device)
    if card is not None:
        return SHARE * card.tflops[precision] * 1e12, "time from its published speed"
    speed = EFFICIENCY[precision] * matrix_speed(precision, device)
    return speed, "time from arithmetic and measured matrix products"


@lru_cache
def matrix_speed(precision: str, device: str) -> float:
    """Measure the floating point operations per second of matrix products in a precision.

    The numbers are random: a product of ones takes less power, and so is faster than a real one. A
    GPU's products are queued before the wait, so that it is not idle between them. A CPU's stop
    after half a second, because some CPUs compute bf16 and fp16 a hundred times slower than
    float32.
    """
    import torch

    from bench.method.passes import float32_products

    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision, torch.float32)
    queued = device.startswith("cuda")
    size = 8192 if queued else 512
    most = 20 if queued else 100
    drawn = torch.Generator().manual_seed(0)  # not the generator that a run seeds
    a = torch.randn(size, size, generator=drawn).to(device, kind)
    with float32_products(tf32=precision == "tf32"):
        (a @ a)[0, 0].item()
        began = time.perf_counter()
        count = 0
        while count < most and (queued or time.perf_counter() - began < 0.5):
            product = a @ a
            count += 1
        product[0, 0].item()
    return count * 2 * size**3 / (time.perf_counter() - began)


def memory_here(device: str) -> int:
    """Return the bytes of memory of a device or a card; for a CPU and for Apple's GPU, the
    machine's.
    """
    card = card_named(device)
    if card is not None:
        return card.gib * 2**30
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.get_device_properties(device).total_memory)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
