"""Is what a GPU computes right? Everything here runs twice, on the CPU in float32 and on the device, and is compared.

Trainings draw their random numbers on the CPU on both sides (:class:`DrawnOnCpu`), so that both have the same dropout masks; the
CPU gets a GPU's padding and computes without grouping rows by length. What is left is rounding, and ``BOUNDS`` says how much of it
is taken. The bounds are some four times what was seen when the rounding was imitated on a CPU (tests/benchmarks/test_gpu.py does
that again): float32 against float64, and in the other formats the inputs of every matrix product rounded to 10, 7 and 10 bits.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np
import torch
from gpu_models import (
    Case,
    Outcome,
    Place,
    Rows,
    built,
    carried_text,
    cases_of,
    copied,
    corpus_of,
    feed_of,
    sentences,
)
from torch import Tensor
from torch.overrides import TorchFunctionMode

STEPS, BATCH = 20, 8
BOUNDS = {"fp32": (2e-5, 1e-4), "tf32": (0.005, 0.1), "bf16": (0.05, 0.4), "fp16": (0.015, 0.2)}
"""Largest difference of a loss, as a share of the largest loss; and of all steps' gradients, as a share of their length."""
SCALES = (
    4096.0,
    256.0,
    16.0,
)  # of fp16's loss at the start: the usual 65,536 skips steps until it has fallen; the CPU skips none
CLOSE = 2e-5  # a float32 vector: largest difference, as a share of the vector's largest number


class DrawnOnCpu(TorchFunctionMode):
    """While open, random numbers come from the CPU's generator, wherever they are wanted: dropout's masks, too."""

    DRAWS = {torch.rand, torch.randn, torch.randint, torch.randperm}
    LIKE = {torch.rand_like: torch.rand, torch.randn_like: torch.randn}
    FILLS = {
        Tensor.normal_,
        Tensor.uniform_,
        Tensor.bernoulli_,
        Tensor.random_,
        Tensor.exponential_,
    }

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if function is torch.nn.functional.dropout:
            return self._dropout(*args, **kwargs)
        if function in self.DRAWS:
            device = kwargs.pop("device", None)
            return function(*args, **kwargs).to(device or "cpu")
        if function in self.LIKE:
            drawn = self.LIKE[function](args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype)
            return drawn.to(kwargs.get("device") or args[0].device)
        if function in self.FILLS and args[0].device.type != "cpu":
            with torch.no_grad():
                return args[0].copy_(
                    function(torch.empty(args[0].shape, dtype=args[0].dtype), *args[1:], **kwargs)
                )
        if function in (torch.bernoulli, torch.multinomial) and args[0].device.type != "cpu":
            return function(args[0].cpu(), *args[1:], **kwargs).to(args[0].device)
        return function(*args, **kwargs)

    @staticmethod
    def _dropout(
        given: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        if not training or p == 0:
            return given
        kept = (torch.rand(given.shape) >= p).to(given.device, given.dtype)
        return given * kept / (1 - p)


@dataclass(frozen=True)
class Steps:
    """A training's losses (S,) and the gradient of each step, in float32 on the CPU."""

    losses: list[float]
    gradients: list[Tensor]


def trained(method: Any, corpus: Rows, steps: int, scale: float = SCALES[0]) -> Steps:
    """Steps of the real training: its loop's trainer, its precision, its optimiser. Gradients are taken as the optimiser gets them.

    ``scale`` is fp16's at the start."""
    from bench.method.passes import float32_products
    from bench.training import trainer as module

    losses, gradients = [], []
    real = module.backward

    def recording(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        losses.append(float(found["loss"]))
        return found

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(module, "backward", recording))
        stack.enter_context(
            mock.patch("bench.method.torch_method.group_by_length", lambda mask: [])
        )
        stack.enter_context(float32_products(tf32=method.context.precision == "tf32"))
        stack.enter_context(DrawnOnCpu())
        if type(method).fitted == "steps":
            method.fit(corpus, method.context)
        trainer = module.Trainer(method, corpus, method.context)  # type: ignore[arg-type]
        if method.context.precision == "fp16":
            trainer.scaler = torch.amp.GradScaler(trainer.device.type, init_scale=scale)

        def keep(*_: Any) -> None:
            gradients.append(torch.cat([_flat(p) for p in trainer.trained]))

        trainer.optimizer.register_step_pre_hook(keep)
        feed = feed_of(method, corpus, alike=True)
        for _ in range(steps):
            trainer.step(feed)
        feed.close()  # type: ignore[attr-defined]
    return Steps(losses, gradients)


def _flat(p: Tensor) -> Tensor:
    return (torch.zeros_like(p) if p.grad is None else p.grad).detach().float().cpu().flatten()


def apart(one: Steps, other: Steps) -> tuple[float, float]:
    """(of losses, of gradients) the difference over all steps, as ``BOUNDS`` has it; infinity for what is no number.

    Raises ValueError if every loss of the first is 0: then there is nothing to compare.
    """
    if not np.any(one.losses):
        raise ValueError(
            "every loss is exactly 0, so that nothing is compared: give the case other values"
        )
    losses = float(
        np.abs(np.array(one.losses) - np.array(other.losses)).max() / np.abs(one.losses).max()
    )
    lengths = [
        (float((a - b).norm()), float(a.norm()))
        for a, b in zip(one.gradients, other.gradients, strict=True)
    ]
    off, length = (float(np.square(side).sum()) ** 0.5 for side in zip(*lengths, strict=True))
    gradients = off / length if length else float("inf")
    return losses if np.isfinite(losses) else float("inf"), gradients if np.isfinite(
        gradients
    ) else float("inf")


# the measurements


def method(place: Place, entry: str) -> Outcome:
    """Every setting and variant of a method: 20 steps in every precision, and vectors, against the CPU in float32."""
    lines, detail, worst = [], {}, dict.fromkeys(place.precisions, (0.0, 0.0))
    cases = cases_of(entry)
    far = 0.0
    for case in cases:
        try:
            found = one_case(place, case)
        except Exception as error:
            if is_poison(error):
                raise
            lines.append(f"{case}: {one_line(error)}")
            continue
        detail[str(case)] = found
        far = max(far, found["vectors"])
        if not found["vectors"] <= CLOSE:
            lines.append(f"{case}: vectors differ by {found['vectors']:.1e}, allowed {CLOSE:.0e}")
        for precision, two in found["steps"].items():
            worst[precision] = tuple(max(pair) for pair in zip(worst[precision], two, strict=True))  # type: ignore[assignment]
            for what, seen, bound in zip(
                ("losses", "gradients"), two, BOUNDS[precision], strict=True
            ):
                if not seen <= bound:
                    lines.append(
                        f"{case}: {what} in {precision} differ by {seen:.2g}, allowed {bound:g}"
                    )
    shown = "; ".join(
        f"{p} {a:.1e}, {b:.1e}"
        for p, (a, b) in worst.items()
        if any(case.in_the_loop for case in cases)
    )
    value = f"{len(cases)} of its settings and variants{f': losses, gradients in {shown}' if shown else ''}; vectors {far:.1e}"
    return Outcome(
        "; ".join(lines) or value, not lines, "within the bounds of each precision", detail
    )


def one_case(place: Place, case: Case) -> dict[str, Any]:
    """How far the device is from the CPU: largest difference of vectors, and (losses, gradients) of each precision."""
    from bench.training.loop import train_method

    ready = built(
        case,
        place,
        **({"batch_size": BATCH, "max_steps": STEPS, "max_grad_norm": 0.0} if case.trained else {}),
    )
    texts = sentences(place.size(64, 8))
    here, there = copied(ready, place, "cpu"), copied(ready, place, place.device)
    if case.trained and not case.in_the_loop:  # fitted in one pass
        corpus = corpus_of(case, ready, place.size(512, 96))
        for one in (here, there):
            train_method(one, corpus, one.context)
    vectors, seen = here.encode(texts), there.encode(texts)
    found: dict[str, Any] = {
        "vectors": float(np.abs(vectors - seen).max() / np.abs(vectors).max()),
        "steps": {},
    }
    if not case.in_the_loop:
        return found
    corpus, steps = corpus_of(case, ready, BATCH * 6), place.size(STEPS, 3)
    reference = trained(here, corpus, steps)
    for precision in place.precisions:
        for scale in SCALES if precision == "fp16" else SCALES[:1]:
            two = apart(
                reference,
                trained(copied(ready, place, place.device, precision), corpus, steps, scale),
            )
            if np.isfinite(two).all():
                break
        found["steps"][precision] = list(two)
    return found


def embeddings(place: Place) -> Outcome:
    """Vectors of the built-in backbone and of BERT-base's shape: CPU against device, float32."""
    from gpu_models import methods_of, random_backbone

    from bench.backbones import load, resolve

    untrained = {cls.name: cls for cls in methods_of("untrained")}["cls"]
    texts, found = sentences(place.size(1000, 40)), {}
    backbones = {
        "built-in": load(resolve("builtin")),
        "BERT-base": random_backbone("bert-base", replace(place, device="cpu")),
    }
    for name, backbone in backbones.items():
        ready = built(Case(untrained, "none", ""), place, backbone)
        here, there = (
            copied(ready, place, device).encode(texts) for device in ("cpu", place.device)
        )
        found[name] = float(np.abs(here - there).max() / np.abs(here).max())
    value = ", ".join(f"{name} {one:.1e}" for name, one in found.items())
    return Outcome(
        f"largest difference {value}",
        max(found.values()) <= CLOSE,
        f"{CLOSE:.0e} of the largest number",
        found,
    )


def resumed(place: Place) -> Outcome:
    """20 steps in one piece and in two, under torch's deterministic settings: the same bytes, with real dropout on the device."""
    from gpu_models import methods_of

    from bench.base.errors import Interrupted
    from bench.training.loop import train_method

    steps, problems, done = place.size(STEPS, 4), [], []
    torch.use_deterministic_algorithms(True, warn_only=True)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for entry, setting in (
            ("simcse", "unsupervised"),
            ("esimcse", "unsupervised"),
            ("promcse", "supervised"),
        ):
            case = Case(methods_of(entry)[0], setting, "")
            ready = built(case, place, batch_size=BATCH, max_steps=steps, select_on="last")
            corpus = corpus_of(case, ready, BATCH * 6)
            for precision in place.precisions:
                whole, first = (copied(ready, place, place.device, precision) for _ in range(2))
                train_method(whole, corpus, whole.context)
                asked = iter([False] * (steps // 2) + [True])
                first.context = replace(first.context, should_stop=lambda asked=asked: next(asked))
                try:
                    train_method(first, corpus, first.context)
                    problems.append(f"{case} in {precision} did not stop")
                except Interrupted:
                    pass
                second = copied(ready, place, place.device, precision)
                second.context = replace(second.context, folder=first.context.folder)
                train_method(second, corpus, second.context)
                one, two = whole.training_state(), second.training_state()
                different = [name for name in one if not torch.equal(one[name], two[name])]
                if different:
                    problems.append(
                        f"{case} in {precision}: {len(different)} of {len(one)} tensors differ, {different[0]} first"
                    )
                done.append(f"{case} {precision}")
    torch.use_deterministic_algorithms(False)
    without = sorted(
        {str(one.message).split(" ")[0] for one in said if "deterministic" in str(one.message)}
    )
    note = f"; without a deterministic form: {', '.join(without)}" if without else ""
    return Outcome(
        ("; ".join(problems) or f"{len(done)} trainings, the same bytes") + note,
        not problems,
        "bit for bit",
        {"done": done},
    )


def chunked(place: Place) -> Outcome:
    """--chunk: rows three at a time, with the device's own dropout, against the same slices with all activations kept."""
    from gpu_models import entry_points, methods_of

    from bench.method import passes
    from bench.training import gradient

    problems, worst, count = [], 0.0, 0
    for entry in entry_points():
        for cls in methods_of(entry):
            case = Case(cls, cls.settings[0], "")
            if not case.in_the_loop or not cls.is_split():
                continue
            ready = built(case, place, batch_size=BATCH)
            corpus = corpus_of(case, ready, 2 * BATCH)
            found = []
            for patches in (
                [],
                [mock.patch.object(passes, "checkpoint", lambda f, *x, use_reentrant: f(*x))],
            ):
                one = copied(ready, place, place.device).train()
                batch = next(feed := feed_of(one, corpus))
                feed.close()  # type: ignore[attr-defined]
                torch.manual_seed(3)
                with ExitStack() as stack:
                    for patch in patches:
                        stack.enter_context(patch)
                    loss = gradient.backward(one, batch, chunk=3)["loss"]
                found.append(
                    (
                        float(loss),
                        torch.cat([_flat(p) for p in one.parameters() if p.requires_grad]),
                    )
                )
            (loss, slices), (wanted, kept) = found
            if not kept.any():
                problems.append(f"{case}: no gradient, so that nothing is compared")
                continue
            off = float((slices - kept).norm() / kept.norm())
            worst, count = max(worst, off), count + 1
            if not (abs(loss - wanted) <= 1e-4 * abs(wanted) and off <= BOUNDS["fp32"][1]):
                problems.append(
                    f"{case}: loss {loss:.6f} instead of {wanted:.6f}, gradient off by {off:.1e}"
                )
    return Outcome(
        "; ".join(problems) or f"{count} methods, gradient {worst:.1e}",
        not problems,
        f"{BOUNDS['fp32'][1]:g}",
        {},
    )


def auto_batch(place: Place) -> Outcome:
    """--chunk auto: a batch that does not fit is halved until it does, and the weights move as they do with --chunk."""
    from gpu_models import methods_of

    from bench.backbones import load, resolve
    from bench.training.loop import train_method

    notes: list[str] = []
    case = Case(methods_of("simcse")[0], "unsupervised", "")
    ready = built(
        case,
        place,
        load(resolve("builtin"), dropout=0.0),
        batch_size=place.size(4096, 32),
        max_steps=2,
        select_on="last",
    )
    corpus = corpus_of(case, ready, 2 * ready.recipe.batch_size)
    precision = "bf16" if place.on_gpu else "fp32"
    auto = copied(ready, place, place.device, precision, auto_batch=True)
    auto.context = replace(auto.context, reporter=_Notes(notes))
    with little_memory(auto, place):
        report = train_method(auto, corpus, auto.context)
    chunk = report.execution.get("chunk")
    plain = copied(ready, place, place.device, precision, chunk=chunk)
    train_method(plain, corpus, plain.context)
    start, one, two = (
        torch.cat([p.detach().float().cpu().flatten() for p in method.parameters()])
        for method in (ready, auto, plain)
    )
    off = float((one - two).norm() / (two - start).norm())
    halved = [note for note in notes if "does not fit" in note]
    good = (
        bool(halved)
        and chunk is not None
        and chunk < ready.recipe.batch_size
        and off <= BOUNDS[precision][1]
    )
    value = f"{ready.recipe.batch_size} rows became {chunk} at a time after {len(halved)} tries; updates {off:.1e} from --chunk {chunk}"
    return Outcome(value, good, f"fits; updates to {BOUNDS[precision][1]:g}", {"notes": notes})


@dataclass
class _Notes:
    """A reporter that keeps what it is told."""

    lines: list[str]

    def phase(self, name: str, total: int | None = None) -> None: ...

    def advance(self, done: int, **fields: Any) -> None: ...

    def note(self, text: str) -> None:
        self.lines.append(text)


@contextmanager
def little_memory(method: Any, place: Place) -> Iterator[None]:
    """While open, the whole batch does not fit: a GPU's allocator is given 2 GB, a CPU's encoder refuses more than 32 rows."""
    if place.on_gpu:
        whole = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(
            min(1.0, (torch.cuda.memory_allocated() + 2e9) / whole)
        )
        try:
            yield
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        return

    def refuse(module: Any, args: Any, kwargs: Any) -> None:
        if torch.is_grad_enabled() and len(kwargs["input_ids"]) > 32:
            raise torch.OutOfMemoryError("out of memory: an imitation")

    hook = method.encoder.register_forward_pre_hook(refuse, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()


def labelled(
    count: int, classes: int, dim: int, apart: float, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """(N, D) float32 vectors and their classes: round clouds whose centres are ``apart`` standard deviations from one another."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=count)
    centres = rng.normal(size=(classes, dim)) * apart / np.sqrt(2 * dim)
    return (centres[labels] + rng.normal(size=(count, dim))).astype(np.float32), labels


def classifiers(place: Place) -> Outcome:
    """The classifiers of the transfer suite: every fit on the device against the CPU, two classes and six, and how much faster."""
    from bench.score.metrics.probe import SENTEVAL, FitJob
    from bench.score.metrics.probe_batched import fit_batched

    problems, seconds, apart_most = [], {"cpu": 0.0, place.device: 0.0}, 0.0
    settings = replace(SENTEVAL, max_epochs=place.size(40, 8))
    count, dim = place.size(5000, 200), place.size(768, 16)
    for classes in (2, 6):
        x_ND, labels = labelled(count, classes, dim, 3.0)
        fold = np.arange(count) % 5
        jobs = [
            FitJob(np.flatnonzero(fold != k), np.flatnonzero(fold == k), SENTEVAL.penalties)
            for k in range(5)
        ]
        found = []
        for device in ("cpu", place.device):
            began = time.perf_counter()
            found.append(
                [
                    fit
                    for fits in fit_batched(x_ND, labels, classes, jobs, settings, device=device)
                    for fit in fits
                ]
            )
            seconds[device] += time.perf_counter() - began
        for here, there in zip(*found, strict=True):
            off = abs(here.dev_accuracy - there.dev_accuracy)
            apart_most = max(apart_most, off)
            if off > 0.005:
                problems.append(
                    f"{classes} classes: dev accuracy {there.dev_accuracy:.4f} instead of {here.dev_accuracy:.4f}"
                )
        exact = (
            [
                fit_batched(
                    x_ND[:500].astype(np.float64),
                    labels[:500],
                    classes,
                    [FitJob(np.arange(400), np.arange(400, len(x_ND[:500])), (1e-4,))],
                    replace(settings, max_epochs=4),
                    device=device,
                )[0][0]
                for device in ("cpu", place.device)
            ]
            if count >= 500
            else []
        )
        if exact and np.abs(exact[0].weight_CD - exact[1].weight_CD).max() > 1e-9:
            problems.append(
                f"{classes} classes: weights in float64 differ by {np.abs(exact[0].weight_CD - exact[1].weight_CD).max():.1e}"
            )
    value = f"40 fits, dev accuracies at most {100 * apart_most:.2f} points apart; CPU {seconds['cpu']:.1f} s, device {seconds[place.device]:.1f} s"
    return Outcome(
        "; ".join(problems[:3]) or value,
        not problems,
        "0.5 points in float32, weights to 1e-9 in float64",
        {"seconds": seconds},
    )


def scored(place: Place) -> Outcome:
    """K-means and the 1,000 draws of CxC, which run on the CPU whatever the model ran on: of vectors from the device and from the CPU."""
    from gpu_models import methods_of

    from bench.backbones import load, resolve
    from bench.score.metrics.clustering import matched_accuracy
    from bench.score.metrics.correlation import paired_cosine
    from bench.score.metrics.kmeans import kmeans
    from bench.score.metrics.sampled import draws_with_replacement, sampled_spearman

    untrained = {cls.name: cls for cls in methods_of("untrained")}["first-last-avg"]
    count = min(place.size(2000, 120), len(carried_text()))
    count -= count % 2
    texts = sentences(count)
    ready = built(Case(untrained, "none", ""), place, load(resolve("builtin")))
    sides = [copied(ready, place, device).encode(texts) for device in ("cpu", place.device)]
    clusters = [kmeans(side, 10, (0, 1), starts=5) for side in sides]
    same = min(matched_accuracy(a.labels_N, b.labels_N) for a, b in zip(*clusters, strict=True))
    inertia = max(abs(a.inertia - b.inertia) / a.inertia for a, b in zip(*clusters, strict=True))
    gold = np.random.default_rng(0).random(count // 2)
    query = np.arange(count // 2) // 5
    draws = [
        sampled_spearman(
            paired_cosine(side[::2], side[1::2]), gold, draws_with_replacement(query)
        ).mean()
        for side in sides
    ]
    off = abs(draws[0] - draws[1])
    good = same >= 98 and inertia <= 1e-3 and off <= 0.01
    return Outcome(
        f"k-means: {same:.1f} % of the labels, inertia to {inertia:.0e}; CxC {off:.1e} points apart",
        good,
        "98 %, 1e-3, 0.01 points",
        {},
    )


def is_poison(error: BaseException) -> bool:
    """Whether the GPU is of no more use to this process."""
    text = f"{type(error).__name__}: {error}"
    return not isinstance(error, torch.OutOfMemoryError) and any(
        sign in text for sign in ("CUDA error", "AcceleratorError", "cuDNN error", "CUBLAS_STATUS")
    )


def one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
