"""Does this processor compute in bfloat16, and faster than in float32? Asked of a child process, and remembered.

A processor may announce bfloat16 matrices (AMX) and yet raise SIGILL on the first product of 64 rows, and a processor that computes in
bfloat16 may do so slower than in float32. Neither can be read off its flags. So a child does what a training does, in both, and this
process looks at how the child ended. The answer is kept in the cache, for this processor, kernel, torch and number of threads.

This file is also the child's program: ``python bf16.py THREADS`` prints the seconds of a step as JSON.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.base.files import CacheEntry

COMMAND = (sys.executable, "-P", __file__)  # -P: the folder of this file is no place to import from
SECONDS = 180.0  # the child is given; it needs about five
FASTER = 1.05  # times as fast as float32: less is noise, which must not decide what a run is
CLOSE = 0.05  # largest distance of the states in bfloat16 from those in float32, as a share: rounding
LIMIT = ("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")  # keeps torch's matrix library from AMX
VARIABLES = (LIMIT[0], "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS")  # by which users choose instructions


@dataclass(frozen=True)
class Answer:
    """How the child ended ("" is well), the seconds of a step of training, and the file that keeps the answer (None: nowhere)."""

    ended: str
    bf16: float | None = None
    fp32: float | None = None
    kept: Path | None = None

    @property
    def works(self) -> bool:
        return not self.ended

    @property
    def faster(self) -> bool:
        return self.works and self.bf16 is not None and self.fp32 is not None and self.bf16 * FASTER < self.fp32

    def __str__(self) -> str:
        """ "bf16 on this processor ended by SIGILL (Illegal instruction)", or how long a step takes in each."""
        if not self.works or self.bf16 is None or self.fp32 is None:
            return f"bf16 on this processor {self.ended}"
        milliseconds = f"a step takes {1000 * self.bf16:.0f} ms, in fp32 {1000 * self.fp32:.0f} ms"
        return f"bf16 is {'' if self.faster else 'not '}faster on this processor ({milliseconds})"

    @property
    def where(self) -> str:
        return f"probed once, kept in {self.kept}" if self.kept else "probed each time: the cache cannot be written"


def read_answer(cpuinfo: str, threads: int) -> Answer | None:
    """The kept answer; None where there is none, or it is damaged. ``cpuinfo``: the text of ``/proc/cpuinfo``."""
    return _kept(_entry(cpuinfo, threads, os.environ))


def ask(cpuinfo: str, threads: int, environment: Mapping[str, str] = os.environ) -> Answer:
    """The kept answer, else the child's."""
    from bench.base.files import lock

    entry = _entry(cpuinfo, threads, environment)
    if (answer := _kept(entry)) is not None:
        return answer
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # of several processes one asks
            entry.file.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock(entry.file.with_suffix(".lock")))
        if (answer := _kept(entry)) is not None:
            return answer
        answer = probe(threads, environment)
        if entry.write({"ended": answer.ended, "bf16": answer.bf16, "fp32": answer.fp32}):
            return replace(answer, kept=entry.file)
    return answer


def describe(cpuinfo: str, threads: int, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """What an answer holds for."""
    from importlib.metadata import version

    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    flags = fields.get("flags", fields.get("Features", "")).split()
    return {
        "processor": fields.get("model name") or platform.processor() or platform.machine(),
        "flags": sorted(flag for flag in flags if flag.startswith(("amx", "avx", "bf16", "sve", "i8mm"))),
        "kernel": platform.release(),
        "torch": version("torch"),
        "threads": threads,
        "environment": {key: environment[key] for key in VARIABLES if key in environment},
    }


def _entry(cpuinfo: str, threads: int, environment: Mapping[str, str]) -> CacheEntry:
    from bench.base.files import CacheEntry

    about = describe(cpuinfo, threads, environment)
    return CacheEntry("bf16", json.dumps(about, sort_keys=True), about)


def _kept(entry: CacheEntry) -> Answer | None:
    try:
        return _answer(entry.read(), entry.file)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _answer(content: Any, kept: Path | None = None) -> Answer:
    """Raises ValueError, KeyError or TypeError for what is none."""
    ended, times = content.get("ended", ""), (content["bf16"], content["fp32"])
    if not isinstance(ended, str) or (not ended and not all(math.isfinite(seconds) and seconds > 0 for seconds in times)):
        raise ValueError("no answer")
    return Answer(ended, kept=kept) if ended else Answer("", float(times[0]), float(times[1]), kept)


def probe(threads: int, environment: Mapping[str, str] = os.environ) -> Answer:
    """Start the child and see how it ends."""
    from bench.base.crash import signal_name

    try:
        done = subprocess.run(
            [*COMMAND, str(threads)],
            capture_output=True,
            text=True,
            errors="replace",
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return Answer(f"did not end within {SECONDS:.0f} s")
    except OSError as error:
        return Answer(f"could not be tried: {error}")
    if done.returncode < 0:
        return Answer(f"ended by {signal_name(-done.returncode)}")
    try:
        if done.returncode:
            raise ValueError
        return _answer(json.loads(done.stdout.splitlines()[-1]))
    except (ValueError, LookupError, TypeError, AttributeError):
        said = done.stderr.strip().splitlines()
        return Answer(f"failed with exit code {done.returncode}" + (f": {said[-1][:200]}" if said else ""))


def what_helps(cpuinfo: str, threads: int) -> str:
    """The options that are known to help where bf16 does not end well: fp32, and keeping from AMX where that was tried, too."""
    if "amx_bf16" in cpuinfo and LIMIT[0] not in os.environ and ask(cpuinfo, threads, {**os.environ, LIMIT[0]: LIMIT[1]}).works:
        return f"--precision fp32; or {LIMIT[0]}={LIMIT[1]} before the command, with which bf16 was tried and works here"
    return "--precision fp32"


def measure(threads: int, repeats: int = 3) -> dict[str, float]:
    """Seconds of a forward and backward pass of a layer of the built-in backbone's width on 64 sentences of 32 tokens, the
    fastest of ``repeats``, in each precision; after the other kinds of products that a training has were done once in bfloat16.

    Raises ArithmeticError where the two precisions are further apart than rounding explains.
    """
    import torch
    from torch import Tensor
    from torch.nn import functional as F

    torch.set_num_threads(threads)
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape: int, trained: bool = True) -> Tensor:
        return (torch.randn(shape, generator=generator) / math.sqrt(shape[-1])).requires_grad_(trained)

    def layer(H: int) -> list[Tensor]:
        return [drawn(3 * H, H), drawn(H, H), drawn(4 * H, H), drawn(H, 4 * H), drawn(8192, H), drawn(H, H, 3)]

    def step(x_NTH: Tensor, weights: list[Tensor], kind: torch.dtype | None, own: bool = True) -> Tensor:
        """Attention (as bench computes it in that precision: bf16 by ``own`` products, else torch's fused one), the two linear
        layers, a vocabulary, a convolution, and the gradients of all. Returns the states."""
        N, T, H = x_NTH.shape
        qkv, out, up, down, words, window = weights
        with torch.autocast("cpu", kind, enabled=kind is not None):
            q, k, v = F.linear(x_NTH, qkv).view(N, T, 3, 4, H // 4).permute(2, 0, 3, 1, 4)
            fused = not own or kind is None
            mixed = F.scaled_dot_product_attention(q, k, v) if fused else (q @ k.mT / math.sqrt(H // 4)).softmax(-1) @ v
            x_NTH = F.layer_norm(x_NTH + F.linear(mixed.transpose(1, 2).reshape(N, T, H), out), (H,))
            states = F.layer_norm(x_NTH + F.linear(F.gelu(F.linear(x_NTH, up)), down), (H,))
            guess = F.cross_entropy(F.linear(states[:, 0], words), torch.zeros(N, dtype=torch.int64))
            near = F.conv1d(states[:64].mT, window).float().square().mean()
        (guess + near + (states.float()[:, 0] @ states.float()[:, 0].mT).logsumexp(-1).mean()).backward()
        for weight in weights:
            weight.grad = None
        return states.detach().float()

    low, seconds = torch.bfloat16, dict[str, float]()
    square = torch.ones(1024, 1024, dtype=low)
    square @ square  # as a dry run multiplies
    for N, H, own in ((2, 768, True), (4, 768, False), (64, 256, False)):
        step(drawn(N, 32, H, trained=False), layer(H), low, own)
    x_NTH, weights = drawn(64, 32, 256, trained=False), layer(256)
    exact, rounded = step(x_NTH, weights, None), step(x_NTH, weights, low)
    apart = ((exact - rounded).norm() / exact.norm()).item()
    if not apart < CLOSE:
        raise ArithmeticError(f"bf16 and fp32 are {apart:.3g} apart, {CLOSE} is what rounding explains")
    for _ in range(repeats):
        for name, kind in (("bf16", low), ("fp32", None)):
            began = time.perf_counter()
            step(x_NTH, weights, kind)
            seconds[name] = min(seconds.get(name, math.inf), time.perf_counter() - began)
        if seconds["bf16"] > 2 * seconds["fp32"]:  # no chance: a processor without bfloat16 takes ten times as long
            break
    return seconds


if __name__ == "__main__":
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a trap is an answer: no file is left behind
    print(json.dumps(measure(int(sys.argv[1]))))
