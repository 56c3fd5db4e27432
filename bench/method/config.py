"""The options of runs: each is declared here, once, for the command line, for Python and for plans.

:mod:`bench.run.options` reads what a person gave; a run takes its options from its RunConfig.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import Meta, Struct

from bench.base.devices import Precision
from bench.base.errors import BenchError
from bench.base.typed import Count, convert_typed

WHAT = "What is run"
HOW = "How it is run"
FOLDERS = "Folders"

Seed = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0)]


@dataclass(frozen=True)
class Option:
    """The name of a RunConfig field on the command line, and its help."""

    name: str
    group: str
    help: str
    metavar: str | None = None
    default: str = ""  # what None means
    variable: str | None = None  # of the environment, with the same meaning


def seconds_between_states() -> float:
    """Return $BENCH_SAVE_SECONDS, the training that a crash may lose; 60 if it is not set."""
    text = os.environ.get("BENCH_SAVE_SECONDS") or "60"
    try:
        return float(convert_typed(text, Seconds, strict=False))
    except ValueError as error:
        raise BenchError(f"BENCH_SAVE_SECONDS={text}: {error}", "BENCH_SAVE_SECONDS=60") from None


class RunConfig(Struct, frozen=True, kw_only=True):
    """The runs to do, and how: the options of ``bench run``, keywords of ``bench.train``, and the
    keys of a [[run]] of a plan.

    Several methods, backbones, seeds and values mean every combination.

    The first block determines results and with them fingerprints; the second changes no result by
    intent. What has no Option comes from elsewhere, as its comment says.
    """

    methods: Annotated[
        tuple[str, ...],  # "promcse", or with a variant "promcse+eh"
        Option("--method", WHAT, "The same as METHOD."),
    ] = ()
    backbones: Annotated[
        tuple[str, ...],
        Option(
            "--backbone",
            WHAT,
            "Hub names, folders, or builtin, separated by commas; NAME=FOLDER sets its name in "
            "tables.",
        ),
    ] = ("builtin",)
    names: tuple[str, ...] = ()  # --backbone NAME=FOLDER: what tables call them, in their order
    setting: Annotated[
        str | None,
        Option(
            "--setting",
            WHAT,
            "unsupervised, supervised or none.",
            default="the paper's setting for this backbone",
        ),
    ] = None
    variant: str = ""  # of the methods that name none; on the command line METHOD+VARIANT
    seeds: Annotated[
        tuple[Seed, ...],
        Option("--seeds", WHAT, "42, 1-5, or 1,3,7-9."),
    ] = (42,)
    suites: Annotated[
        tuple[str, ...],
        Option(
            "--suite",
            WHAT,
            "Suites, separated by commas, or all; SUITE:TASK for one task; SUITE:PROTOCOL, as "
            "sts:senteval-all-raw/1, for another protocol; a file of yours (pairs.tsv, "
            "classification:texts.csv). May be repeated.",
            metavar="SUITE",
        ),
    ] = ("sts",)
    corpus: Annotated[
        str | tuple[str, ...] | None,  # a text, or several that are trained on together
        Option(
            "--corpus",
            WHAT,
            "Training text: a file, with the columns to read, or a folder of save_to_disk; a name "
            "that recipes use (builtin, wiki1m, nli, nli-labelled, stsb-train, syncse-partial, "
            "syncse-scratch, target); hub:OWNER/NAME:COLUMN; or sha256:HASH of a text that is "
            "here. May be repeated: trained on together.",
            metavar="FILE[:COLUMN,COLUMN]",
            default="the recipe's",
        ),
    ] = None
    recipes: Annotated[
        tuple[str, ...],
        Option("--recipe", WHAT, "The same as RECIPE.toml.", metavar="FILE"),
    ] = ()
    overrides: Annotated[
        Mapping[str, str],
        Option(
            "--set",
            WHAT,
            "Change a recipe value; KEY=A,B,C makes a run for each. compile=true compiles the "
            "encoder. May be repeated.",
            metavar="KEY=VALUE",
        ),
    ] = msgspec.field(name="set", default_factory=dict)
    budget: Annotated[
        str | None,
        Option(
            "--budget",
            WHAT,
            "How long to train: 60steps, 2epochs, 10m, 2h, 1e6sentences, 3e7tokens, 2gpu-h.",
            default="as the recipe says",
        ),
    ] = None
    precision: Annotated[
        Precision,
        Option("--precision", HOW, "Precision of training; scores are always float32."),
    ] = "auto"
    plugins: Annotated[
        tuple[str, ...],
        Option("--plugin", WHAT, "The same as FILE.py.", metavar="FILE.py"),
    ] = ()
    allow_pickle: Annotated[
        bool,
        Option(
            "--allow-pickle",
            HOW,
            "Accept backbones whose weights are a pickle; only its tensors are read.",
        ),
    ] = False

    device: Annotated[
        str,
        Option("--device", HOW, "auto, cpu, cuda, cuda:1, mps."),
    ] = "auto"
    on: Annotated[
        str,
        Option(
            "--on",
            HOW,
            "Where: torchrun:N (N processes share every batch), local:N (N runs at once), "
            "slurm:gpus=1,partition=gpu,time=4:00:00, or commands (print a command for each run).",
            metavar="TARGET",
        ),
    ] = "here"
    chunk: Annotated[
        Count | None,
        Option(
            "--chunk",
            HOW,
            "Rows of a batch in memory at a time, with the same gradient.",
            metavar="N",
        ),
    ] = None
    compile: bool = False  # --set compile=true: torch compiles the encoder while training
    fresh: Annotated[
        bool,
        Option("--fresh", HOW, "Repeat finished runs."),
    ] = False
    offline: Annotated[
        bool,
        Option("--offline", HOW, "Open no network connection; anything missing is an error."),
    ] = False
    wait_seconds: float = 0.0  # --wait: for another process that works on a run
    save_seconds: float = msgspec.field(default_factory=seconds_between_states)
    data: Annotated[
        str | None,
        Option(
            "--data",
            FOLDERS,
            "Evaluation data: senteval/, senteval-moses/, train/, ...",
            variable="BENCH_DATA",
        ),
    ] = None
    runs: Annotated[
        str | None,
        Option(
            "--runs",
            FOLDERS,
            "Where runs are stored.",
            default="./runs",
            variable="BENCH_RUNS",
        ),
    ] = None
    command: str = ""  # the command that records name; "": this process's command line

    @property
    def named(self) -> list[tuple[str, str]]:
        """Every method with its variant, "" for none."""
        named = []
        for name in self.methods:
            method, variant = split_variant(name)
            named.append((method, variant or self.variant))
        return named

    @property
    def recipe_values(self) -> dict[str, str]:
        """The recipe values of ``overrides`` and ``budget``, as text: "2epochs" is ``epochs``,
        another unit ``budget``. A value may be a series.
        """
        if self.budget is None:
            return dict(self.overrides)
        return {**self.overrides, self.budget_key: re.sub(r"\s*epochs?\b", "", self.budget)}

    @property
    def budget_key(self) -> str:
        """The recipe value that ``budget`` gives."""
        return "epochs" if "epoch" in (self.budget or "") else "budget"


KINDS: Mapping[str, Any] = get_type_hints(RunConfig, include_extras=True)
"""Field -> its type."""


def _option_of(kind: Any) -> Option | None:
    marks = getattr(kind, "__metadata__", ())
    return next((mark for mark in marks if isinstance(mark, Option)), None)


OPTIONS: Mapping[str, Option] = {
    name: option for name, kind in KINDS.items() if (option := _option_of(kind)) is not None
}
"""Field -> its option, for those that have one."""


def split_variant(name: str) -> tuple[str, str]:
    """Return ("promcse", "eh") for "promcse+eh", and ("promcse", "") for "promcse"."""
    method, _, variant = name.partition("+")
    return method, variant
