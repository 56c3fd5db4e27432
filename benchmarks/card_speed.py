"""Seconds of a training step, ours and sentence-transformers' at its best, A B A B on one card.

Both sides get the same sentences of 32 tokens, the same batch and bf16. The peer makes its batches
in worker processes and compiles its model; ours counts the tokenisation of all that it reads.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from card_models import Place, base_folder
from card_steps import (
    LENGTH,
    WARM_UP,
    Found,
    Training,
    default_precision,
    free_memory,
    full_sentences,
    ready_method,
    tokenised,
)

ROUNDS = 2
GOALS = {64: 3.0, 512: 1.6}
"""The peer's seconds by ours that are aimed at, by rows of a batch."""
NEEDED = ("sentence_transformers", "datasets", "accelerate")


class PeerMissing(Exception):
    """sentence-transformers' trainer cannot run here; the text says what it needs."""


def check_peer() -> None:
    """Raise PeerMissing if a package that the peer's trainer needs is not here.

    Without ``datasets`` sentence-transformers has no trainer; another peer is no substitute.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise PeerMissing(
            f"sentence-transformers' trainer needs {', '.join(missing)}, which "
            f"{'is' if len(missing) == 1 else 'are'} not installed"
        )


def workers_here() -> int:
    """Return how many processes make the peer's batches: four, or as many as there are cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(4, (cores or 1) - 1))


@dataclass
class Stretch:
    """Steps of one side that are clocked together, after ``WARM_UP`` that are not."""

    steps: int
    warm_up: int
    seconds: list[float] = field(default_factory=list)
    """Seconds of a step, a number for each round."""


def speed(place: Place, rows: int, *, compiled: bool = False) -> Found:
    """Time steps of both sides at a batch of ``rows``; ``compiled``: ours with compile=true, too.

    The peer's trainer runs once. Whenever a stretch of it ends, ours runs one, so that the clock of
    the card and its temperature are the same for both.
    """
    check_peer()
    free_memory(place)
    batch = place.size(rows, 4)
    steps, warm_up = place.size(30, 2), place.size(WARM_UP, 1)
    texts = full_sentences(ROUNDS * (steps + warm_up) * batch)
    method = ready_method(place, "simcse", "bert-base", batch)
    method.context = replace(method.context, compiled=compiled)
    began = time.perf_counter()
    corpus = tokenised(method, texts)
    tokenising = (time.perf_counter() - began) / (len(texts) / batch)
    ours = Training(method, corpus)
    ours.steps(place.size(3 * WARM_UP, 1))
    own, peer = Stretch(steps, warm_up), Stretch(steps, warm_up)

    def run_ours() -> None:
        ours.steps(warm_up)
        own.seconds.append(ours.seconds_per_step(place, steps) + tokenising)

    try:
        train_peer(place, batch, texts, peer, run_ours)
    finally:
        ours.close()
    mine, theirs = statistics.median(own.seconds), statistics.median(peer.seconds)
    ratio = theirs / mine
    how = ", compiled" if compiled else ""
    value = (
        f"{1000 * mine:.1f} ms a step{how} ({1000 * tokenising:.1f} of them tokenising), "
        f"sentence-transformers {1000 * theirs:.1f}: {ratio:.2f} x"
    )
    detail = {
        "bench": own.seconds,
        "peer": peer.seconds,
        "tokenising": tokenising,
        "rows": batch,
        "length": LENGTH,
        "precision": default_precision(place),
        "workers": workers_here(),
        "ratio": ratio,
    }
    good = ratio >= GOALS[rows] if place.on_gpu else None
    return Found(value, good, f"{GOALS[rows]:g} x", detail)


def train_peer(place: Place, batch: int, texts: list[str], peer: Stretch, run_ours: Any) -> None:
    """Run sentence-transformers' trainer; ``run_ours`` is called after each stretch of it."""
    from training_sides import Setup, sentence_transformers

    total = ROUNDS * (peer.steps + peer.warm_up)
    setup = Setup(
        folder=base_folder(place),
        sentences=texts,
        steps=total,
        batch=batch,
        length=LENGTH,
        chunk=batch,
        device=place.device,
        precision=default_precision(place),
        workers=workers_here(),
        compiled=place.on_gpu,
    )
    # its trainer prints its own times
    with redirect_stdout(sys.stderr):
        sentence_transformers(setup, callback=stretch_callback(place, peer, run_ours))


def stretch_callback(place: Place, peer: Stretch, run_ours: Any) -> Any:
    """Return a callback of transformers' trainer that clocks its steps and pauses it.

    The warm-up after a pause uses up what the peer's workers have made during it.
    """
    from transformers import TrainerCallback

    class Stretches(TrainerCallback):
        """Clocks stretches of steps."""

        began = 0.0

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            """Start the clock after a warm-up, stop it after a stretch."""
            done = state.global_step % (peer.steps + peer.warm_up)
            if done == peer.warm_up:
                place.wait()
                self.began = time.perf_counter()
            if done == 0:
                place.wait()
                peer.seconds.append((time.perf_counter() - self.began) / peer.steps)
                run_ours()

    return Stretches()


def encoding(place: Place) -> Found:
    """Time encoding of distinct sentences in float32, ours and the peer's best batch, A B A B."""
    check_peer()
    from card_models import random_backbone, sentences
    from card_right import copied_untrained
    from sentence_transformers import SentenceTransformer

    texts = sentences(place.size(20_000, 40))
    ours = copied_untrained(place, random_backbone("bert-base", place))
    peer = SentenceTransformer(base_folder(place), device=place.device)
    peer.max_seq_length = 512
    sizes = (128, 512) if place.on_gpu else (16,)
    own: list[float] = []
    theirs: dict[int, list[float]] = {size: [] for size in sizes}
    ours.encode(texts[: len(texts) // 10])
    peer.encode(texts[: len(texts) // 10], batch_size=sizes[0])
    for _ in range(ROUNDS):
        began = time.perf_counter()
        ours.encode(texts)
        own.append(time.perf_counter() - began)
        for size in sizes:
            began = time.perf_counter()
            peer.encode(texts, batch_size=size)
            theirs[size].append(time.perf_counter() - began)
    mine = len(texts) / statistics.median(own)
    best = max(len(texts) / statistics.median(taken) for taken in theirs.values())
    value = f"{mine:,.0f} sentences/s, sentence-transformers {best:,.0f}: {mine / best:.2f} x"
    good = mine >= 1.2 * best if place.on_gpu else None
    return Found(value, good, "1.2 x", {"bench": own, "peer": theirs, "sentences": len(texts)})
