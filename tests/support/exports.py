"""Every method as an export: its values, how it is built, and the process that loads it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from models import built, sentences

from bench.export.vectors import SENTENCES
from bench.method import Method
from bench.method.plugins import discover

TEXTS = [*SENTENCES, *sentences(20, seed=3)]
REGISTRY = discover()


@dataclass(frozen=True)
class Case:
    """One method, built on a tiny random backbone."""

    name: str
    setting: str = "unsupervised"
    variant: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    backbone: str = "tiny"

    @property
    def id(self) -> str:
        own = {k: v for k, v in self.values.items() if k not in ("teacher", "vectors")}
        values = "-".join(f"{key}-{value}" for key, value in own.items()).replace(" ", "")
        return "+".join(filter(None, (self.name, self.variant, values, self.backbone)))


HEAD = {"head_at_test": True}
MLM_TRANSFORM = {"head": "mlm-transform", "debias_at_test": True}
ALIGNED = {"debias_at_test": True, "delta_positions": "aligned", "append_full_stop_at_test": False}
TEMPLATED = [
    Case("promptbert"),
    Case("promptbert", "supervised", values=HEAD | MLM_TRANSFORM),
    Case("promptbert", values=HEAD | ALIGNED),
    Case("cot-bert"),
    Case("conpvp"),
    Case("conpvp", "unsupervised", "manual", HEAD),
    Case("sncse"),
    Case("sncse", values=HEAD),
    Case("dcpcse", "unsupervised", "shallow"),
    Case("dcpcse", "supervised", "shallow", HEAD),
]
PROMPTED = [
    Case("promcse"),
    Case("promcse", "supervised", "eh", HEAD),
    Case("promcse", "unsupervised", "layer-shared"),
    Case("promcse", "unsupervised", "input-layer"),
    Case("promcse", values={"prompt": "hidden"}),
    Case("dcpcse"),
    Case("dcpcse", "unsupervised", "mlm", HEAD),
    Case("dcpcse", values={"prompt": "hidden"} | HEAD),
]
OWN_LAYERS = [
    Case("angle", "supervised"),
    Case("flow", "none"),
    Case("flow", "none", values={"permutation": "random", "levels": 2}),
]
PLAIN = [
    *(Case(name, "none") for name in ("cls", "last-avg", "first-last-avg", "embedding-last-avg")),
    Case("first-last-avg", "none", backbone="roberta"),
    Case("simcse"),
    Case("simcse", values={"pooling": "avg_top2"}),
    Case("focal-infonce"),
    Case("esimcse"),
    Case("diffcse"),
    Case("dclr", values={"teacher": "builtin"}),
    Case("sbert", "supervised"),
    Case("consert"),
    Case("ct"),
    Case("sg-opt"),
    Case("mirror-bert", backbone="roberta"),
    Case("mirror-bert", "unsupervised", "masked-mean"),
    Case("angle", "supervised", values={"pooling_at_test": "cls"}),
    Case("claif", "supervised"),
    Case("cosent", "supervised"),
    Case("crop-documents"),
    Case("guided-simcse", "supervised", values={"guide": "builtin"}),
    Case("infocse"),
    Case("matryoshka", "supervised"),
    Case("pcl"),
    Case("rankcse", values={"teacher_1": "builtin", "teacher_2": None}),
    Case("mntp"),
    Case("tsdae"),
    Case("unsee"),
    Case("pretrained", "none", values={"pooling": "mean", "max_length": 9}),
]
WITH_HEAD = [
    Case("simcse", "supervised", values=HEAD),
    Case("simcse", "supervised", values=HEAD, backbone="roberta"),
    Case("focal-infonce", values=HEAD),
    Case("pretrained", "none", values={"pooling": "mlp"}),
]
WHITENED = [
    Case("whitening", "none", values={"components": 11}),
    Case("whitening", "none", values={"pooling": "avg"}),
]
WORDED = [
    Case("prompteol", "none"),
    Case("prompteol", "supervised", "pretended-cot"),
    Case("cse-sfp"),
    Case("echo", "none"),
    Case("echo", "none", "last"),
    Case("embedfilter", "none"),
    Case("metaeol", "none", values={"tasks": "fact+paraphrase"}),
    Case("pcc-tuning", "supervised"),
    Case("angle-llama", "supervised"),
]
FOLDER = Case("pretrained", "none", values={"pooling": None, "max_length": 8}, backbone="st-folder")

STORED_PREFIX = Case("stored-prefix", "none", values={"pooling": "mlp"}, backbone="prefixed")

CASES = [
    *(*PLAIN, *WITH_HEAD, *WHITENED, *OWN_LAYERS, *PROMPTED, *TEMPLATED),
    *WORDED,
    *(FOLDER, STORED_PREFIX),
    *(Case(c.name, c.setting, c.variant, c.values, "roberta") for c in (*PROMPTED, *TEMPLATED)),
]


def make(case: Case, backbones: dict[str, str], folder: Path) -> Method:
    """Build the method and move its weights away from their start, so that a missing part shows."""
    cls, facts = REGISTRY[case.name].cls, {"setting": case.setting, "variant": case.variant}
    method = built(cls, backbones[case.backbone], folder, **facts, **case.values)
    torch.manual_seed(5)
    with torch.no_grad():
        for name, tensor in method.state_dict().items():
            if not name.startswith(("encoder.", "whole.")) and tensor.is_floating_point():
                tensor.add_(torch.randn_like(tensor) * 0.1)
    result: Method = method.eval()
    return result


def outside(folder: Path, place: Path, texts: Sequence[str] = TEXTS) -> dict[str, np.ndarray]:
    """Return the vectors of exports, from a process that cannot import this package."""
    place.mkdir(exist_ok=True)
    given, to = place / "sentences.json", place / "out.npz"
    given.write_text(json.dumps(list(texts)), encoding="utf-8")
    script = [sys.executable, "-P", str(Path(__file__).parent / "outside.py")]
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(place / "hf-home")}
    env |= {"PYTHONPATH": "", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    command = [*script, str(folder), str(given), str(to)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=place, env=env, timeout=1800)
    assert done.returncode == 0, done.stderr[-4000:]
    with np.load(to) as stored:
        return {name: stored[name] for name in stored.files}
