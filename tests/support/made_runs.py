"""Runs folders for tests of what is published: any number of methods, seeds and suites, every score computed from its predictions.

    made_runs(folder)                                            three trained methods, three seeds, sts
    made_runs(folder, {"simcse": 0.5, "mine": 0.4}, seeds=(1, 2), suites=("sts", "geometry"))
    made_run(folder, "simcse", 1, noise=0.5, recipe={"temperature": 0.1}, created="2026-02-01T00:00:00+00:00")
    hostile_run(folder)                                          markup in every text that a plugin or a stranger can choose

All of it is a function of the arguments. `bench verify` agrees with everything except the gold values, which are not the real sets';
with ``suites=("check",)`` it agrees with those, too. To look at such a folder: ``python tests/support/made_runs.py FOLDER``.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from factories import SUBSETS, record
from generated import generated
from msgspec import convert, to_builtins
from msgspec.structs import replace

from bench.base.hashes import values_sha256
from bench.records import Cost, Provenance, RunRecord, RunsFolder, Score
from bench.records.fingerprint import record_fingerprint
from bench.records.names import data_key
from bench.records.selection import known_sets
from bench.score.suites import average, rescore, suite

Arrays = dict[str, np.ndarray]

METHODS = {"simcse": 0.8, "promcse": 0.45, "promptbert": 0.44}
"""Method to noise: how far its cosines stray from the gold values. Less is better."""
ITEMS = 150
HOSTILE = """<script>window.hit=1</script><img src=x onerror="window.hit=1">"'`&{{7*7}}${7*7}</td></script><!-- \u202e"""
"""What a name, a description or an error text may hold. A page that runs or marks up any of it sets ``window.hit``."""
FOLDS = {"MR": 10, "CR": 10, "SUBJ": 10, "MPQA": 10}
DETERMINES = {"precision": "fp32", "dev": None, "places": {"teacher": None}}


def draw(*key: object) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(key).encode("utf-8", "surrogatepass")))


# --- predictions, a function per kind of task: (method, seed, noise, task, items) -> what its suite keeps ---


def similarity(method: str, seed: int | None, noise: float, task: str, n: int) -> Arrays:
    """Cosines that follow the gold values; most of what they stray by is the method's own, some the seed's."""
    gold = np.round(draw(task).uniform(0, 5, n), 1)
    stray = 1.4 * draw(method, task).normal(size=n) + 0.15 * draw(method, task, seed).normal(size=n)
    parts = np.array(SUBSETS.get(task, (task,)))
    return {
        "prediction": np.clip(0.2 + gold / 10 + noise * stray / 6, -1, 1),
        "gold": gold,
        "subset": parts[np.arange(n) * len(parts) // n],
    }


def captions(method: str, seed: int | None, noise: float, task: str, n: int) -> Arrays:
    rows = np.arange(n)
    pairs = similarity(method, seed, noise, task, n)
    return pairs | {"image": rows // 4, "caption1": rows // 2, "caption2": n + rows}


def classes(method: str, seed: int | None, noise: float, task: str, n: int) -> Arrays:
    """Predicted classes, wrong for a share of the items that grows with the noise."""
    count, folds = (6 if task.startswith("TREC") else 2), FOLDS.get(task, 1)
    gold = draw(task).integers(0, count, n)
    wrong = (
        draw(method, task, "item").uniform(size=n) + 0.1 * draw(method, task, seed).normal(size=n)
        < 0.4 * noise
    )
    return {
        "prediction": np.where(wrong, (gold + 1) % count, gold),
        "gold": gold,
        "subset": np.full(n, task),
        "fold": np.arange(n) % folds,
    }


def repeated(
    method: str, seed: int | None, noise: float, task: str, n: int, times: int = 10
) -> Arrays:
    """As ``classes``, several times: draws of few-shot, or starts of k-means."""
    each = [
        classes(method, (seed, i), noise + 0.1 * (i % 3), task, n)["prediction"]
        for i in range(times)
    ]  # type: ignore[arg-type]
    first = classes(method, seed, noise, task, n)
    return {
        "prediction": np.stack(each, axis=1),
        "gold": first["gold"],
        "subset": first["subset"],
        "drawn": np.zeros((times, 32), int),
    }


def clusters(method: str, seed: int | None, noise: float, task: str, n: int) -> Arrays:
    made = repeated(
        method, seed, noise, task, n, times=3
    )  # ten in the protocol; agreement of clusters takes its time
    del made["drawn"]
    return made | {
        "prediction": made["prediction"].astype(np.int16),
        "inertia": np.linspace(90, 100, 3),
    }


def lie(method: str, seed: int | None, noise: float, task: str, n: int) -> Arrays:
    """Of geometry: squared distances and cosines of pairs, or each sentence's potential."""
    pairs = similarity(method, seed, noise, "STS-B", n)
    cosine = pairs.pop("prediction")
    if task == "uniformity":
        return {
            "prediction": np.exp(-2 * (1.2 + noise * cosine)) * n,
            "subset": pairs["subset"],
            "mean_cosine": cosine / 4,
            "singular_values": np.linspace(9, 1, 16) ** (1 + noise),
        }
    fewer = {
        f"without_{k}_cosine": cosine + 0.002 * k * draw(k).normal(size=n)
        for k in (4, 8, 16, 32, 64)
    }
    return pairs | {"prediction": 2 - 2 * cosine, "cosine": cosine} | fewer


MAKERS: dict[str, Callable[[str, int | None, float, str, int], Arrays]] = {
    "sts": similarity,
    "cxc": captions,
    "transfer": classes,
    "fewshot": repeated,
    "clustering": clusters,
    "geometry": lie,
}
FORMS = {"sts": "tokenised", "cxc": "tokenised", "geometry": "tokenised", "clustering": "sccl"}


def scored(
    name: str, method: str, seed: int | None, noise: float, n: int, text: str | None
) -> list[tuple[Score, Arrays]]:
    """Every task of a suite: its score, and the arrays from which it follows."""
    if name == "check":
        return [_check(method, seed)]
    found: list[tuple[Score, Arrays]] = []
    form = FORMS.get(name) if text is None or name != "sts" else text
    for task in suite(name).tasks:
        arrays = MAKERS[name](method, seed, noise, task.name, n)
        again = rescore((name, task.name, task.protocol, form), arrays)
        assert again is not None
        reduced = task.reduced(arrays)
        score = Score(
            **{
                "suite": name,
                "task": task.name,
                "protocol": task.protocol,
                "metric": task.metric.name,
            },
            **{"value": again.value, "n": again.n, "std": again.std, "text": form},
            detail=dict(again.detail),
            predictions_sha256=values_sha256(arrays),
            reduced_sha256=None if reduced is None else values_sha256(reduced),
        )
        found.append((score, arrays))
    return found


def _check(method: str, seed: int | None) -> tuple[Score, Arrays]:
    """The generated pairs of an earlier bench, whose gold values this one knows."""
    result = generated().score(
        lambda sentences: np.stack(
            [draw(method, seed, one).normal(size=8).astype(np.float32) for one in sentences]
        )
    )
    return Score(
        **{name: getattr(result, name) for name in Score.__struct_fields__}
    ), result.predictions


# --- records ---


def made_run(
    runs: Path,
    method: str = "simcse",
    seed: int | None = 1,
    *,
    noise: float = 0.5,
    suites: Sequence[str] = ("sts",),
    n: int = ITEMS,
    text: str | None = None,
    created: str | None = None,
    device: str = "cpu: made",
    provenance: Mapping[str, Any] | None = None,
    keep_predictions: bool = True,
    **changes: Any,
) -> RunRecord:
    """A finished run, written with its predictions and its curve. ``changes``: variant, setting, backbone, recipe (some keys and their
    values), status, error, cost, training ... of the record; ``provenance``: some fields of it.
    """
    setting = changes.pop("setting", "unsupervised" if seed is not None else "none")
    parts = {k: changes.pop(k) for k in ("variant", "backbone", "recipe") if k in changes}
    basis = record(method, seed, setting=setting, scores=(), **parts)
    name = f"{method} {basis.variant}"
    said = [one for own in suites for one in scored(own, name, seed, noise, n, text)]
    scores = [score for score, _ in said]
    for own in suites:
        mean = average([one for one in scores if one.suite == own])
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
    made = named(replace(basis, provenance=origin))
    made = replace(made, **changes)
    store = RunsFolder(runs)
    if keep_predictions:
        for score, arrays in said:
            store.write_predictions(made.run_id, score.task, score.text, arrays, score.suite)
    store.write(made)
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


def named(made: RunRecord) -> RunRecord:
    """With the fingerprint of what it is, and the id that ends in it."""
    of = record_fingerprint(made)
    assert of is not None
    stem = made.run_id.rsplit("-s", 1)[0].lstrip("_")[:100]
    return replace(
        made,
        fingerprint=of,
        run_id=f"{stem}-{'any' if made.seed is None else f's{made.seed}'}-{of[:8]}",
    )


def key(score: Score) -> str:
    return data_key(score.task, score.text, score.suite)


def data_sha256(score: Score) -> str:
    """Of the real set where bench knows it, so that a record passes for one."""
    forms = known_sets()["data"].get(f"{score.suite}/{score.task}", {})
    return forms.get(score.text or "any", f"{zlib.crc32(score.task.encode()):08x}" * 8)


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


# --- folders ---


def made_runs(
    runs: Path,
    methods: Mapping[str, float] | None = None,
    seeds: Sequence[int] = (1, 2, 3),
    suites: Sequence[str] = ("sts",),
    **changes: Any,
) -> list[RunRecord]:
    """A run of each method with each seed; ``changes`` are those of ``made_run``."""
    wanted = METHODS if methods is None else methods
    return [
        made_run(runs, method, seed, noise=noise, suites=suites, **changes)
        for method, noise in wanted.items()
        for seed in seeds
    ]


def whole_folder(runs: Path, seeds: Sequence[int] = (1, 2, 3)) -> list[RunRecord]:
    """What a board has to be able to show: two settings, two backbones, all suites, an ablation, another machine, a run that failed."""
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
        made_run(runs, "promptbert", 4, noise=0.46, text="raw"),
        failed_run(runs),
    ]


def failed_run(
    runs: Path, method: str = "consert", seed: int = 1, status: str = "failed"
) -> RunRecord:
    """A run that has no scores, and says why."""
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
    """A finished run whose every free text holds markup, script, and characters that turn the direction of writing."""
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
    worse = named(replace(made, recipe=values, training=training))
    assert worse.run_id == made.run_id  # sources are no part of what determines a run
    RunsFolder(runs).write(worse)
    return worse


def hostile_scores(runs: Path, seed: int = 1) -> RunRecord:
    """A run with a task, a protocol and a metric that no suite of ours has, all of them markup."""
    made = made_run(runs, "strange", seed)
    texts = dict.fromkeys(("suite", "task", "protocol", "metric", "text"), HOSTILE)
    odd = Score(**texts, value=50.0, n=10)  # type: ignore[arg-type]
    odd = replace(odd, detail={"subsets": {HOSTILE: HOSTILE}})
    worse = replace(made, scores=(*made.scores, odd))
    RunsFolder(runs).write(worse)
    return worse


def damaged_run(runs: Path, name: str = "broken-builtin-s1-00000000") -> Path:
    """A folder whose record cannot be read."""
    folder = RunsFolder(runs).folder(name)
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(
        '{"schema": "bench.run/2", "run_id": "' + HOSTILE[:8], encoding="utf-8"
    )
    return folder


if __name__ == "__main__":
    print(f"{len(whole_folder(Path(sys.argv[1])))} runs")
