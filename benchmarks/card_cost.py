"""Seconds and joules of a paper's recipe on a card, with its dev scores and checkpoints."""

from __future__ import annotations

import time
from dataclasses import replace

from card_models import Place, sentences
from card_steps import LENGTH, Found, default_precision, free_memory, ready_method, tokenised

RECIPE_STEPS = 15_625
"""Steps of unsupervised SimCSE on BERT-base: a million sentences in batches of 64, once."""
DEV_SENTENCES = 2_552
"""Distinct sentences of STS-B dev, which chooses the checkpoint."""


def paper_recipe(place: Place) -> Found:
    """Train a part of SimCSE's recipe with the real loop, and scale it to the whole recipe.

    Every 125 steps it encodes as many sentences as STS-B dev has. Each dev score is better than the
    last one, so that each writes a checkpoint: a real training writes fewer.
    """
    from bench.base.energy import EnergyMeter
    from bench.training.loop import train_method

    batch, every = place.size(64, 4), place.size(125, 2)
    steps = place.size(375, 4)
    method = ready_method(
        place,
        "simcse",
        "bert-base",
        batch,
        max_steps=steps,
        eval_steps=every,
        select_on="STS-B dev",
    )
    dev = sentences(place.size(DEV_SENTENCES, 8))
    scored = []

    def dev_score(one: object) -> float:
        one.encode(dev)  # type: ignore[attr-defined]
        scored.append(len(scored))
        return float(len(scored))

    method.context = replace(
        method.context,
        dev_score=dev_score,
        save_seconds=60.0,
        folder=place.scratch / "recipe",
        precision=default_precision(place),
    )
    corpus = tokenised(method, sentences(steps * batch))
    meter = EnergyMeter(place.device)
    place.wait()
    began = time.perf_counter()
    report = train_method(method, corpus, method.context)
    place.wait()
    seconds, joules = time.perf_counter() - began, meter.take()
    free_memory(place)
    whole = RECIPE_STEPS / steps
    detail = {
        "steps": steps,
        "seconds": seconds,
        "train_seconds": report.train_seconds,
        "dev_seconds": report.dev_seconds,
        "checkpoints": len(scored),
        "joules": joules,
        "whole_seconds": whole * seconds,
        "whole_joules": None if joules is None else whole * joules,
        "length": LENGTH,
    }
    energy = "no counter of joules here"
    if joules is not None:
        energy = f"{whole * joules / 1000:.0f} kJ ({joules / seconds:.0f} W)"
    value = (
        f"{whole * seconds / 60:.1f} minutes and {energy} for {RECIPE_STEPS:,} steps, from {steps} "
        f"steps with {len(scored)} dev scores in {seconds:.1f} s"
    )
    return Found(value, None, "", detail)
