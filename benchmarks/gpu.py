"""Is a GPU's work right, and how fast is it? Tables as Markdown.

    python benchmarks/gpu.py [--device cuda] [--only right,encoding,training] [--method simcse]
                             [--rounds 3] [--small]

* right: every method, setting and variant on a tiny random BERT without dropout, in float32: the
  loss of a batch, its gradient and the vectors of eight sentences, beside the CPU's. A method that
  draws at random in a batch is compared by its vectors alone.
* encoding: distinct sentences per second on BERT-base's shape in float32, SentenceTransformer's
  ``encode`` and ours.
* training: milliseconds of a step of unsupervised SimCSE on that shape at batch 64 and 512,
  sentence-transformers' trainer and ours, in bf16 on a GPU, and the share of the measured peak that
  ours reaches: 6 operations for each weight of the layers and each token, against a product of
  large random matrices.

``--small`` takes a small shape and few steps: a rehearsal on a CPU, whose figures say nothing.
Exit code 1 if a method differs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import torch  # noqa: E402
from golden import NEEDS  # noqa: E402
from machine import describe_machine  # noqa: E402
from msgspec import structs  # noqa: E402
from training import random_base, read_sentences, weights_of_layers  # noqa: E402
from training_sides import SIDES, Setup  # noqa: E402

LOSS, GRADIENT, VECTORS = 1e-4, 1e-3, 1e-4
"""Largest difference from the CPU: a share of the loss, of the gradient's length, of the longest
vector."""
LENGTH = 32
"""Tokens of a sentence at most."""


@dataclass(frozen=True)
class Difference:
    """How far a device's numbers are from the CPU's; None: not comparable."""

    loss: float | None
    gradient: float | None
    vectors: float

    @property
    def is_small(self) -> bool:
        """True if each is within its bound."""
        if self.vectors > VECTORS:
            return False
        if self.loss is None or self.gradient is None:
            return True
        return self.loss <= LOSS and self.gradient <= GRADIENT


def cases(folder: Path, only: str | None) -> Iterator[tuple[str, Any]]:
    """Yield the name and the case of every method, setting and variant that can be built here."""
    from bench.base.errors import BenchError
    from bench.method.plugins import discover
    from bench.run.conformance.methods import Case, tiny_backbone

    backbone = tiny_backbone(folder / "tiny")
    registry = discover()
    for name in [only] if only else registry:
        plugin = registry[name]
        for setting, variant in product(plugin.cls.settings, ("", *plugin.cls.variants)):
            values = dict(NEEDS.get(name, {"pooling": "cls"} if name == "pretrained" else {}))
            if setting != "none":
                values["dropout"] = "0"
            case = Case(plugin, setting, backbone, values, folder / name, variant)
            full_name = f"{name}+{variant}" if variant else name
            try:
                method = case.build()
                if setting != "none":
                    case.batch(method)
            except BenchError as error:
                print(f"not built: {full_name}, {setting}: {error.message}", file=sys.stderr)
                continue
            yield f"{full_name}, {setting}", case


def built_on(case: Any, device: str) -> Any:
    """Build a case's method with the weights of seed 1, on a device."""
    method = case.build()
    method.context = replace(
        method.context, config=structs.replace(method.context.config, device=device)
    )
    if isinstance(method, torch.nn.Module):
        method.to(device)
    return method


def loss_and_gradient(case: Any, device: str, seed: int) -> tuple[float, torch.Tensor]:
    """Return the loss of a batch and its gradient as one row on the CPU."""
    from bench.training.batches import changed

    method = built_on(case, device)
    method.train()
    batch = changed(case.batch(method), lambda value: value.to(device))
    torch.manual_seed(seed)
    total = method(batch).total
    total.backward()
    trained = [p for p in method.parameters() if p.requires_grad]
    parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
    return float(total.detach()), torch.cat([part.detach().cpu().flatten() for part in parts])


def compare_with_cpu(case: Any, device: str) -> Difference:
    """Compare a method's numbers on a device with those on the CPU."""
    from bench.method.passes import float32_products
    from bench.run.conformance.methods import SENTENCES

    with float32_products(tf32=False):
        ours, theirs = (built_on(case, place).encode(SENTENCES) for place in (device, "cpu"))
        vectors = float(abs(ours - theirs).max() / abs(theirs).max())
        if case.setting == "none":
            return Difference(None, None, vectors)
        loss, gradient = loss_and_gradient(case, "cpu", seed=1)
        another_draw, _ = loss_and_gradient(case, "cpu", seed=2)
        if another_draw != loss:
            return Difference(None, None, vectors)
        found, found_gradient = loss_and_gradient(case, device, seed=1)
    off = float((found_gradient - gradient).norm() / gradient.norm())
    return Difference(abs(found - loss) / max(abs(loss), 1e-6), off, vectors)


def right(device: str, only: str | None) -> bool:
    """Print the differences of every method from the CPU; returns True if all are small."""
    print("| method, setting | loss | gradient | vectors | |")
    print("|---|--:|--:|--:|---|")
    all_small = True
    with tempfile.TemporaryDirectory() as folder:
        for name, case in cases(Path(folder), only):
            found = compare_with_cpu(case, device)
            shown = ("-" if x is None else f"{x:.1e}" for x in (found.loss, found.gradient))
            word = "equal" if found.is_small else "**differs**"
            print(f"| {name} | {' | '.join(shown)} | {found.vectors:.1e} | {word} |", flush=True)
            all_small = all_small and found.is_small
    print(f"\nBounds: {LOSS:g} of the loss, {GRADIENT:g} of the gradient, {VECTORS:g} of a vector.")
    return all_small


def seconds_of(work: Callable[[], Any], device: str) -> float:
    """Return the seconds that work takes, until the device has done it."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - began


def print_ratios(what: str, theirs: list[float], ours: list[float], unit: str) -> None:
    """Print one row: both sides' median, and the median and range of the ratios of all rounds."""
    ratios = [a / b for a, b in zip(theirs, ours, strict=True)]
    middle = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    sides = f"{statistics.median(theirs):.4g} {unit} | {statistics.median(ours):.4g} {unit}"
    print(f"| {what} | {sides} | {middle} |", flush=True)


def encoding(device: str, backbone: str, count: int, rounds: int) -> None:
    """Time both sides on the same distinct sentences, which take turns."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    import bench

    encoder = Transformer(backbone, max_seq_length=LENGTH)
    pooling = Pooling(encoder.get_embedding_dimension(), "cls")
    peer = SentenceTransformer(modules=[encoder, pooling], device=device)
    sentences = read_sentences("builtin", count)
    with tempfile.TemporaryDirectory() as runs:
        scored = bench.train("cls", backbone, suites="check", runs=runs, device=device)
        ours = bench.load_run(scored[0], device=device)
        sides: tuple[Callable[[], Any], ...] = (
            lambda: peer.encode(sentences, batch_size=128, convert_to_numpy=True),
            lambda: ours.encode(sentences),
        )
        for side in sides:  # kernels are chosen, memory is taken
            side()
        taken = [[seconds_of(side, device) for side in sides] for _ in range(rounds)]
    theirs, mine = zip(*taken, strict=True)
    print_ratios(f"encoding {count} sentences", list(theirs), list(mine), "s")


def training(device: str, backbone: str, batch: int, steps: int, rounds: int) -> None:
    """Time a step of both sides, which take turns, and ours against the measured peak."""
    half = "bf16" if device.startswith("cuda") else "fp32"
    sentences = read_sentences("builtin", steps * batch)
    setup = Setup(backbone, sentences, steps, batch, LENGTH, batch, device, half)
    theirs, mine, tokens = [], [], 0
    for _ in range(rounds):
        theirs.append(SIDES["sentence-transformers"](setup).seconds_per_step(steps))
        clock = SIDES["bench"](setup)
        mine.append(clock.seconds_per_step(steps))
        tokens = clock.tokens or 0
    milliseconds = ([1000 * one for one in side] for side in (theirs, mine))
    print_ratios(f"a step of {batch}, {half}", *milliseconds, "ms")
    operations = 6 * weights_of_layers(backbone) * 2 * tokens / steps / statistics.median(mine)
    peak = measured_peak(device, half)
    share = f"{100 * operations / peak:.0f} % of {peak / 1e12:.3g} TFLOPS"
    print(f"| a step of {batch}: share of the measured peak | | {share} | |", flush=True)


def measured_peak(device: str, precision: str) -> float:
    """Return the operations per second of a large product of random matrices.

    Matrices of ones would take less power, and so run faster than any real product.
    """
    size = 8192 if device.startswith("cuda") else 512
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    a @ b
    taken = [seconds_of(lambda: [a @ b for _ in range(10)], device) / 10 for _ in range(3)]
    return 2 * size**3 / min(taken)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", default="right,encoding,training")
    parser.add_argument("--method", help="with right: this method alone")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()

    from bench.backbones import builtin_folder, silence_transformers

    silence_transformers()
    parts = options.only.split(",")
    backbone = str(builtin_folder()) if options.small else random_base()
    print(f"{describe_machine()}; on {options.device}\n")
    all_right = right(options.device, options.method) if "right" in parts else True
    if parts != ["right"]:
        print("\n| | sentence-transformers | bench | ratio |\n|---|--:|--:|--:|")
    if "encoding" in parts:
        encoding(options.device, backbone, 64 if options.small else 5000, options.rounds)
    if "training" in parts:
        for batch in (4, 8) if options.small else (64, 512):
            steps = 4 if options.small else 30
            # the text of the package has 10,000 sentences
            training(options.device, backbone, batch, min(steps, 10_000 // batch), options.rounds)
    if not all_right:
        raise SystemExit("a method differs from the CPU")


if __name__ == "__main__":
    main()
