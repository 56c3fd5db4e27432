"""Runs folders for tests of what is published: any number of methods, seeds and suites.

    made_runs(folder)                                     three trained methods, three seeds, sts
    made_runs(folder, {"simcse": 0.5, "mine": 0.4}, seeds=(1, 2), suites=("sts", "geometry"))
    made_run(folder, "simcse", 1, noise=0.5, recipe={"temperature": 0.1})
    hostile_run(folder)                                   markup in every text that others choose

All of it is a function of the arguments, and every score is computed from its predictions.
`bench verify` agrees with everything except the gold values, which are not the real sets'; with
``suites=("check",)`` it agrees with those, too. To look at such a folder:
``python tests/support/made_runs.py FOLDER``.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from factories import DETERMINES, record, with_fingerprint, write_run
from made_predictions import draw, scored
from msgspec import convert, to_builtins
from msgspec.structs import replace

from bench.records import Cost, Provenance, RunRecord, RunsFolder, Score
from bench.records.names import data_key
from bench.records.selection import known_sets
from bench.score.suites import average

METHODS = {"simcse": 0.8, "promcse": 0.45, "promptbert": 0.44}
"""Method to noise: how far its cosines stray from the gold values. Less is better."""
ITEMS = 150
HOSTILE = (
    '<script>window.hit=1</script><img src=x onerror="window.hit=1">'
    "\"'`&{{7*7}}${7*7}</td></script><!-- \u202e"
)
"""A name, a description or an error text of a stranger. A page that marks it up sets window.hit."""


def made_run(
    runs: Path,
    method: str = "simcse",
    seed: int | None = 1,
    *,
    noise: float = 0.5,
    suites: Sequence[str] = ("sts",),
    n: int = ITEMS,
    created: str | None = None,
    device: str = "cpu: made",
    provenance: Mapping[str, Any] | None = None,
    keep_predictions: bool = True,
    **changes: Any,
) -> RunRecord:
    """Write a finished run with its predictions and its curve.

    ``changes`` are fields of the record: variant, setting, backbone, recipe (some keys and their
    values), status, error, cost, training ...; ``provenance`` has some fields of it.
    """
    setting = changes.pop("setting", "unsupervised" if seed is not None else "none")
    parts = {k: changes.pop(k) for k in ("variant", "backbone", "recipe") if k in changes}
    basis = record(method, seed, setting=setting, scores=(), **parts)
    name = f"{method} {basis.variant}"
    said = [one for own in suites for one in scored(own, name, seed, noise, n)]
    scores = [score for score, _ in said]
    for own in suites:
        mean = average([one for one in scores if one.suite == own.partition(":")[0]])
        scores += [] if mean is None else [mean]
    basis = replace(basis, scores=tuple(scores), cost=cost(basis, device))
    revision = hashlib.sha256(basis.backbone.encode("utf-8", "surrogatepass")).hexdigest()
    command = f"bench run --method {method} --backbone {basis.backbone}"
    known = {
        **to_builtins(basis.provenance),
        "command": command + (f" --seeds {seed}" if seed is not None else ""),
        "created": created or basis.provenance.created,
        "determines": DETERMINES,
        "backbone": {"name": basis.backbone, "revision": revision},
        "data": {key(one): data_sha256(one) for one in scores if one.task != "Avg."},
    }
    origin = convert({**known, **(provenance or {})}, Provenance)
    made = with_fingerprint(replace(basis, provenance=origin))
    made = replace(made, **changes)
    store = RunsFolder(runs)
    write_run(store, made, said if keep_predictions else ())
    if made.training is not None:
        (store.folder(made.run_id) / "curve.jsonl").write_text(
            curve(method, seed, noise), encoding="utf-8"
        )
    return made


def cost(basis: RunRecord, device: str) -> Cost:
    if basis.setting == "none":
        return replace(
            basis.cost,
            device=device,
            trainable_parameters=0,
            train_seconds=None,
            train_sentences_per_second=None,
        )
    seconds = {"simcse": 800, "promcse": 700}.get(basis.method, 900)
    return replace(basis.cost, device=device, train_seconds=seconds + 10.0 * (basis.seed or 0))


def key(score: Score) -> str:
    return data_key(score.task, score.protocol, score.suite)


def data_sha256(score: Score) -> str:
    """Return the hash of the real set if bench knows it, so that a record passes for one."""
    name = f"{score.suite}/{data_key(score.task, score.protocol)}"
    return known_sets()["data"].get(name, f"{zlib.crc32(score.task.encode()):08x}" * 8)


def curve(
    method: str, seed: int | None, noise: float, steps: Sequence[int] = range(25, 1001, 25)
) -> str:
    stray = draw(method, seed, "curve")
    lines = []
    for step in steps:
        entry = {
            "step": step,
            "loss": 2 / (1 + step / 100) + 0.02 * stray.normal(),
            "learning_rate": 3e-5 * (1 - step / 1000),
            "sentences_per_second": 1200.0,
        }
        if step % 125 == 0:
            entry["dev_score"] = 90 - 50 * noise - 20 * np.exp(-step / 300) + 0.2 * stray.normal()
        lines.append(json.dumps(entry))
    return "\n".join(lines) + "\n"


def made_runs(
    runs: Path,
    methods: Mapping[str, float] | None = None,
    seeds: Sequence[int] = (1, 2, 3),
    suites: Sequence[str] = ("sts",),
    **changes: Any,
) -> list[RunRecord]:
    """Write a run of each method with each seed; ``changes`` go to ``made_run``."""
    wanted = METHODS if methods is None else methods
    return [
        made_run(runs, method, seed, noise=noise, suites=suites, **changes)
        for method, noise in wanted.items()
        for seed in seeds
    ]


def whole_folder(runs: Path, seeds: Sequence[int] = (1, 2, 3)) -> list[RunRecord]:
    """Write runs of every kind that a board shows: settings, backbones, suites, an ablation, a
    failure.
    """
    every = ("sts", "transfer", "fewshot", "clustering", "geometry")
    elsewhere = {"backbone": "bert-base-uncased", "device": "cuda: made"}
    return [
        made_run(runs, "cls", None, noise=1.6, suites=every),
        made_run(runs, "first-last-avg", None, noise=1.1),
        *made_runs(runs, seeds=seeds, suites=every),
        *made_runs(runs, {"simcse": 0.6, "promcse": 0.35}, seeds=seeds, setting="supervised"),
        *made_runs(runs, {"simcse": 0.7, "promcse": 0.41}, seeds=seeds, **elsewhere),
        *(
            made_run(runs, "promcse", 1, noise=0.45 + abs(t - 0.05), recipe={"temperature": t})
            for t in (0.02, 0.1, 0.2)
        ),
        made_run(runs, "promptbert", 4, noise=0.46, suites=("sts:senteval-all-raw/1",)),
        failed_run(runs),
    ]


def failed_run(
    runs: Path, method: str = "consert", seed: int = 1, status: str = "failed"
) -> RunRecord:
    """Write a run that has no scores, and says why."""
    error = "the loss is not finite at step 12" if status == "failed" else None
    return made_run(
        runs,
        method,
        seed,
        suites=(),
        status=status,
        error=error,
        training=None,
        cost=Cost(device="cpu: made"),
    )


def hostile_run(runs: Path, method: str = HOSTILE, seed: int = 1, **changes: Any) -> RunRecord:
    """Write a finished run with markup, script and turned writing in every free text."""
    bad = HOSTILE
    origin = {
        **{"command": f"bench run {bad}", "bench_version": bad},
        **{"git": {"commit": bad, "dirty": True}, "packages": {bad: bad, "torch": bad}},
        **{"plugin": dict.fromkeys(("package", "version", "sha256"), bad)},
        **{"platform": {bad: bad, "cpu": bad}},
        **{"corpus": {"name": bad, "sha256": bad, "url": "javascript:alert(1)"}},
    }
    texts = {"variant": bad, "device": bad, "backbone": f"javascript:alert(1)//{bad}"}
    recipe = {bad: bad, "temperature": bad}
    made = made_run(runs, method, seed, recipe=recipe, provenance=origin, **texts, **changes)
    values = {name: replace(one, source=bad, note=bad) for name, one in made.recipe.items()}
    training = made.training and replace(made.training, dev_task=bad)
    worse = with_fingerprint(replace(made, recipe=values, training=training))
    assert worse.run_id == made.run_id  # sources are no part of what determines a run
    RunsFolder(runs).write(worse)
    return worse


def hostile_scores(runs: Path, seed: int = 1) -> RunRecord:
    """Write a run with a task, a protocol and a metric that no suite has, all of them markup."""
    made = made_run(runs, "strange", seed)
    texts = dict.fromkeys(("suite", "task", "protocol", "metric"), HOSTILE)
    odd = Score(**texts, value=50.0, n=10)  # type: ignore[arg-type]
    odd = replace(odd, detail={"subsets": {HOSTILE: HOSTILE}})
    worse = replace(made, scores=(*made.scores, odd))
    RunsFolder(runs).write(worse)
    return worse


def damaged_run(runs: Path, name: str = "broken-builtin-s1-00000000") -> Path:
    """Write a folder with a record that cannot be read."""
    folder = RunsFolder(runs).folder(name)
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(
        '{"schema": "bench.run/5", "run_id": "' + HOSTILE[:8], encoding="utf-8"
    )
    return folder


if __name__ == "__main__":
    print(f"{len(whole_folder(Path(sys.argv[1])))} runs")
