"""What runs are made with: the options of ``bench run``, the arguments of ``bench.train``, what a worker is handed, one [[run]] of a plan."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import product
from typing import Annotated, Any, Literal

import msgspec

from bench.base.errors import BenchError, UnknownName

TARGETS = ("here", "torchrun", "slurm", "ray", "commands")
ENGINES = ("slurm", "ray")
ELSEWHERE = (*ENGINES, "commands")
ON_EXAMPLE = "--on torchrun:4, --on slurm:partition=gpu,gpus=1,time=4:00:00, --on ray:cpus=4, or --on commands"


Count = Annotated[int, msgspec.Meta(ge=1)]
RESOURCES = ("gpus", "cpus", "memory", "parallel", "retries")
KEYS: Mapping[str, tuple[str, ...]] = {
    "here": (),
    "torchrun": ("gpus",),
    "slurm": RESOURCES,
    "ray": RESOURCES,
    "commands": (*RESOURCES, "file"),
}


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where runs go: the value of ``--on``, in parts."""

    name: str = "here"
    gpus: Count | None = None  # of each run; of torchrun: processes
    cpus: Count | None = None
    memory: str | None = None  # as typed: "16G"
    parallel: Count | None = None  # runs at once
    retries: Annotated[int, msgspec.Meta(ge=0)] = 3  # of a run whose worker was killed
    file: str | None = None  # into which commands are written; None: standard output
    options: tuple[tuple[str, str], ...] = ()  # of sbatch

    @property
    def elsewhere(self) -> bool:
        """Do workers do the runs, on other machines or later?"""
        return self.name in ELSEWHERE


def parse_target(text: str) -> Target:
    """``"slurm:partition=gpu,gpus=1"`` as a :class:`Target`. Raises BenchError for what cannot be."""
    name, _, rest = text.partition(":")
    if name not in TARGETS:
        raise UnknownName("target", name, TARGETS, "of --on", ON_EXAMPLE)
    pairs = parse_pairs(f"gpus={rest}" if name == "torchrun" and rest.isdigit() else rest, text)
    known = {key: value for key, value in pairs if key in KEYS[name]}
    options = tuple((key, value) for key, value in pairs if key not in KEYS[name])
    if options and name != "slurm":
        raise BenchError(f"--on {text}: {name} has no option {options[0][0]}", ON_EXAMPLE)
    try:
        return msgspec.convert({"name": name, "options": options, **known}, Target, strict=False)
    except msgspec.ValidationError as error:
        raise BenchError(f"--on {text}: {error}", ON_EXAMPLE) from None


def parse_pairs(text: str, whole: str) -> list[tuple[str, str]]:
    """ "partition=gpu,time=4:00:00" as pairs; what has no "=" belongs to the value before it ("nodelist=a,b")."""
    pairs: list[tuple[str, str]] = []
    for part in text.split(",") if text else []:
        key, equals, value = part.partition("=")
        if equals and key.strip().replace("-", "").isalnum():
            pairs.append((key.strip().lstrip("-"), value))
        elif pairs:
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]},{part}")
        else:
            raise BenchError(f"--on {whole}: expected KEY=VALUE after the colon", ON_EXAMPLE)
    return pairs


def seconds_between_states() -> float:
    """$BENCH_SAVE_SECONDS: how much training a crash may lose. 60 where it is not set."""
    text = os.environ.get("BENCH_SAVE_SECONDS") or "60"
    try:
        return float(text)
    except ValueError:
        raise BenchError(f"BENCH_SAVE_SECONDS={text}: expected a number of seconds") from None


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Which runs, and how they are done. Several methods, backbones, seeds and values stand for every combination.

    The first block determines results and with them fingerprints; the second changes no result by intent.
    """

    methods: tuple[str, ...] = ()  # "promcse", or with a variant "promcse+eh"
    backbones: tuple[str, ...] = ("builtin",)
    names: tuple[str, ...] = ()  # what tables call the backbones, in their order
    setting: str | None = None  # None: the one with a recipe for the backbone
    variant: str = ""  # of the methods that name none
    seeds: tuple[int, ...] = (42,)
    suites: tuple[str, ...] = ("sts",)
    text: str = "tokenised"  # or several, with commas
    corpus: str | None = None  # None: the recipe's
    recipes: tuple[str, ...] = ()  # recipe files
    overrides: Mapping[str, str] = field(default_factory=dict)  # --set; "1,2,4" is a series
    budget: str | None = None  # "60steps", "10m", "2epochs"; None: as the recipe says
    precision: str = "auto"
    plugins: tuple[str, ...] = ()
    allow_pickle: bool = False

    device: str = "auto"
    on: str = "here"  # see parse_target
    chunk: int | Literal["auto"] | None = None  # rows of a batch that are held at once
    compile: bool = False  # torch compiles the encoder while training
    fresh: bool = False
    offline: bool = False
    wait_seconds: float = 0.0  # for another process that works on a run
    save_seconds: float = field(default_factory=seconds_between_states)
    data: str | None = None
    runs: str | None = None
    command: str = ""  # what a record says made it; "": this process's command line

    @property
    def target(self) -> Target:
        return parse_target(self.on)

    @property
    def ranks(self) -> int:
        """Processes that train a run together. Of torchrun it is only known once the config is settled."""
        return self.target.gpus or 1

    @property
    def named(self) -> list[tuple[str, str]]:
        """Every method with its variant, "" for none."""
        return [
            (method, variant or self.variant)
            for method, variant in map(split_variant, self.methods)
        ]

    @property
    def values(self) -> dict[str, str]:
        """The recipe values of ``overrides`` and ``budget``, as text. A value may be a series."""
        return {**self.overrides, **budget_values(self.budget)}


FIELDS = tuple(item.name for item in fields(RunConfig))


def split_variant(name: str) -> tuple[str, str]:
    """ "promcse+eh" -> ("promcse", "eh"); "promcse" -> ("promcse", "")."""
    method, _, variant = name.partition("+")
    return method, variant


def budget_values(budget: str | None) -> dict[str, str]:
    """The recipe value of a budget: "2epochs" is ``epochs``, any other unit is ``budget``."""
    key = "epochs" if "epoch" in (budget or "") else "budget"
    return {key: re.sub(r"\s*epochs?\b", "", budget)} if budget is not None else {}


def series(overrides: Mapping[str, str]) -> list[dict[str, str]]:
    """Every combination of the values of ``--set``, the last key moving first: {"a": "1,2", "b": "3"} -> a=1 b=3, a=2 b=3.

    A comma that belongs to a value is written ``\\,``; what is there as a file or folder is one value. Raises BenchError where
    between two commas nothing stands.
    """
    each = [_values_of(key, text) for key, text in overrides.items()]
    return [dict(zip(overrides, values, strict=True)) for values in product(*each)]


def _values_of(key: str, text: str) -> list[str]:
    if os.path.exists(os.path.expanduser(text)):
        return [text]
    values = [value.replace("\\,", ",") for value in re.split(r"(?<!\\),", text)]
    if len(values) == 1:
        return values
    if not all(map(str.strip, values)):
        raise BenchError(
            f"--set {key}={text}: a value is missing between two commas",
            f"--set {key}=A,B,C, or \\, for a comma of the value",
        )
    return [value.strip() for value in values]


# --- as tables of a TOML file ---


def to_table(config: RunConfig) -> dict[str, Any]:
    """What differs from the defaults, as numbers, texts, lists and tables."""
    default = RunConfig()
    table = {
        name: msgspec.to_builtins(getattr(config, name))
        for name in FIELDS
        if getattr(config, name) != getattr(default, name)
    }
    if config.recipes:  # else a recipe file would decide
        table["backbones"] = list(config.backbones)
    return {"set" if name == "overrides" else name: value for name, value in table.items()}


def from_table(table: Mapping[str, Any]) -> RunConfig:
    """The config of a table as :func:`to_table` writes it, or a person: ``set`` takes numbers and lists, too.

    Raises UnknownName for a key that there is not, and ValueError for a value of another kind.
    """
    values, overrides = {**table}, table.get("set", {})
    if not isinstance(overrides, Mapping):
        raise ValueError("`set` is not a table of recipe values")
    known = {"set", *FIELDS} - {"overrides"}
    if unknown := values.keys() - known:
        raise UnknownName("key", min(unknown), known, "of a run")
    values["overrides"] = {key: _typed(value) for key, value in overrides.items()}
    return msgspec.convert(values, RunConfig)


def _typed(value: Any) -> str:
    """A recipe value as one types it: a list is a series."""
    if isinstance(value, list):
        return ",".join(_typed(item).replace(",", "\\,") for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)
