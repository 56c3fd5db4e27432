"""Every trained method learns something: after a few steps on real text it is above its own
untrained start on captions that people rated (contrastive tension on STS-B dev: on captions it
falls first).

The start is the same method, built and not trained: its score shows the worth of its backbone and
of its pooling.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from bench.data.corpora import open_corpus_file
from bench.data.sets import DataFolder
from bench.method import TorchMethod
from bench.method.config import RunConfig
from bench.method.context import SilentReporter
from bench.method.plugins import discover
from bench.method.recipes import merge_recipe
from bench.records import RunsFolder
from bench.run.execute import execute
from bench.run.plan import plan_configs
from bench.run.vectors import dev_score
from bench.run.weights import build_for_run
from bench.score.suites import LoadedTask
from bench.score.suites.sts import LoadedPairs

STEPS = {"max_steps": "12", "eval_steps": "12", "batch_size": "16", "max_seq_length": "16"}
STEPS |= {"select_on": "captions dev"}
# trains what [CLS] says, with all weights; 16 rows are too few for it
FAST = {"learning_rate": "5e-4", "batch_size": "24"}
OWN = {
    "simcse": FAST,
    "focal-infonce": FAST,
    "esimcse": FAST,
    "dclr": FAST | {"teacher": "builtin", "max_seq_length": "24"},
    # falls for a dozen steps: to 45 from 51, then 55 after 30
    "rankcse": {
        "teacher_1": "builtin",
        "gamma": "0.1",
        "learning_rate": "5e-4",
        "max_steps": "60",
        "eval_steps": "30",
        "batch_size": "32",
        "max_seq_length": "24",
    },
    "ct": {"select_on": "STS-B dev"},
    "sg-opt": {"max_steps": "24", "eval_steps": "24"},
    "promcse": {"batch_size": "24", "max_seq_length": "24"},
    "infocse": FAST,
    "crop-documents": FAST,
    # its decoder has to be of use first; over 58 after 100 steps, from 51.19
    "tsdae": {"max_steps": "100", "eval_steps": "100", "learning_rate": "1e-3"}
    | {"batch_size": "32", "max_seq_length": "32"},
}
OWN_SUPERVISED = {"guided-simcse": {"guide": "builtin"}}
# not seen above their start within 150 steps of 64 on this backbone: a test cannot train them long
# enough
# is-bert, after 150 steps of 32, best of three dev scores on captions, from 58.65: 58.37 at the
# authors' rate of 2e-6, 58.08 at 2e-5, 54.28 at 2e-4
# unsee (its predictor begins at random and is larger than the encoder), after 100 steps of 32, best
# of four, from 57.26: 56.75 at the authors' rate of 1e-4, 57.13 at 3e-5, with Barlow Twins 57.16 at
# 1e-4
TOO_SLOW = {"is-bert", "sbert", "unsee"}
# trained on labelled NLI or on a user's word vectors, and neither is at hand; (dcpcse,
# unsupervised) is promcse's
NOT_HERE = {("consert", "supervised"), ("infersent", "supervised"), ("dcpcse", "unsupervised")}
# they read a decoder's last token: they cannot be judged by what the built-in encoder learns there
FOR_DECODERS = {"angle-llama", "cse-sfp", "mntp", "pcc-tuning", "prompteol"}
REGISTRY = discover()
TRAINED = []
for name in REGISTRY:
    if name in TOO_SLOW | FOR_DECODERS:
        continue
    for setting in REGISTRY[name].cls.settings:
        if setting != "none" and (name, setting) not in NOT_HERE:
            TRAINED.append((name, setting))


def corpus(name: str, setting: str, shared: Path, folder: Path) -> str:
    """Sentences of the package, the rated pairs of STS-B train, or NLI triplets."""
    cls = REGISTRY[name].cls
    kind = cls.needs(setting, merge_recipe(cls, None, "", {}, trained=True))[-1]
    if kind in ("sentences", "graded"):
        return {"sentences": "builtin", "graded": "stsb-train"}[kind]
    source = open_corpus_file(shared / "data" / "train" / "nli_triplets.csv.xz")
    rows = itertools.islice(source.rows(), 1000)
    with open(folder / "triplets.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("sent0", "sent1", "hard_neg"), *rows])
    return str(folder / "triplets.csv")


def every_third(read: Callable[[], LoadedTask]) -> LoadedTask:
    """Keep every third pair of a dev set: both scores are computed on the same pairs."""
    task = read()
    assert isinstance(task, LoadedPairs)
    pairs = task.data
    columns = {k: v for k, v in vars(pairs).items() if isinstance(v, list | np.ndarray)}
    kept = {key: value[::3] for key, value in columns.items()}
    return replace(task, data=replace(pairs, **kept))


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "setting"), TRAINED)
def test_a_trained_method_rises_above_its_start(name, setting, shared, tmp_path):
    values = OWN.get(name, {}) if setting == "unsupervised" else OWN_SUPERVISED.get(name, {})
    request = RunConfig(
        methods=(name,),
        setting=setting,
        suites=("check",),
        corpus=corpus(name, setting, shared, tmp_path),
        overrides=STEPS | values,
    )
    (planned,) = plan_configs([request], REGISTRY, DataFolder(shared / "data"))
    run = replace(planned, tasks=(), task_data=())  # nothing is scored after training
    assert run.dev is not None
    run = replace(run, dev=replace(run.dev, read=partial(every_third, run.dev.read)))
    untrained = build_for_run(run, RunConfig(device="cpu"), SilentReporter(), tmp_path / "start")
    assert isinstance(untrained, TorchMethod)
    start = untrained.dev_score(partial(dev_score, run.dev))
    record, _ = execute(
        run, RunsFolder(tmp_path / "runs"), RunConfig(device="cpu"), SilentReporter()
    )
    assert record.training is not None and record.training.dev_score is not None
    print(f"{name} {setting}: {start:.2f} -> {record.training.dev_score:.2f}")
    assert record.training.dev_score > start + 0.3
