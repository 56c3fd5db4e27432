"""The configuration of runs: the options of ``bench run``, the arguments of ``bench.train``, the
file of a worker, one [[run]] of a plan.

A plan is runs that answer a question, in a TOML file that ``bench run --plan FILE`` runs::

    question = "Does a lower temperature help SimCSE?"

    [common]                      # optional: of every run that does not say otherwise
    suites = ["check"]
    corpus = "builtin"

    [[run]]                       # the fields of RunConfig
    methods = ["simcse"]
    seeds = [1, 2, 3]
    set = { temperature = [0.03, 0.05] }
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import Meta

from bench.base.devices import Precision
from bench.base.errors import BenchError, UnknownName
from bench.base.files import write_or_fail
from bench.base.typed import Count, convert_typed
from bench.method.recipe_files import read_custom
from bench.run.seeds import parse_seeds
from bench.run.target import Target, parse_target

Seed = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0)]


def seconds_between_states() -> float:
    """Return $BENCH_SAVE_SECONDS, the training that a crash may lose; 60 if it is not set."""
    text = os.environ.get("BENCH_SAVE_SECONDS") or "60"
    try:
        return float(convert_typed(text, Seconds, strict=False))
    except ValueError as error:
        raise BenchError(f"BENCH_SAVE_SECONDS={text}: {error}", "BENCH_SAVE_SECONDS=60") from None


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The runs to do, and how.

    Several methods, backbones, seeds and values mean every combination.

    The first block determines results and with them fingerprints; the second changes no result by
    intent.
    """

    methods: tuple[str, ...] = ()  # "promcse", or with a variant "promcse+eh"
    backbones: tuple[str, ...] = ("builtin",)
    names: tuple[str, ...] = ()  # what tables call the backbones, in their order
    setting: str | None = None  # None: the one with a recipe for the backbone
    variant: str = ""  # of the methods that name none
    seeds: tuple[Seed, ...] = (42,)
    suites: tuple[str, ...] = ("sts",)
    # a text, or several that are trained on together; None: the recipe's
    corpus: str | tuple[str, ...] | None = None
    recipes: tuple[str, ...] = ()  # recipe files
    overrides: Mapping[str, str] = field(default_factory=dict)  # --set; "1,2,4" is a series
    budget: str | None = None  # "60steps", "10m", "2epochs"; None: as the recipe says
    precision: Precision = "auto"
    plugins: tuple[str, ...] = ()
    allow_pickle: bool = False

    device: str = "auto"
    on: str = "here"  # see parse_target
    chunk: Count | None = None  # rows of a batch that are held at once
    compile: bool = False  # torch compiles the encoder while training
    fresh: bool = False
    offline: bool = False
    wait_seconds: float = 0.0  # for another process that works on a run
    save_seconds: float = field(default_factory=seconds_between_states)
    data: str | None = None
    runs: str | None = None
    # the command that records name; "": this process's command line
    command: str = ""

    @property
    def target(self) -> Target:
        return parse_target(self.on)

    @property
    def ranks(self) -> int:
        """Processes that train a run together.

        Of torchrun it is only known once the config is settled.
        """
        return self.target.gpus or 1

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

    @classmethod
    def from_options(cls, options: Mapping[str, Any], plan: Path | None = None) -> RunConfig:
        """Return the config of options by name, as :meth:`options` returns them, a person writes
        them in a plan, or passes them as arguments.

        ``set``: recipe values, which may also be numbers and lists. ``plan``: the file that they
        come from; None for arguments. Raises UnknownName for an unknown key, and BenchError, which
        names the value as it was typed, for one of the wrong type or out of its range.
        """
        where = f"--plan {plan}: " if plan is not None else ""
        equals = " = " if plan is not None else "="
        values = dict(options)
        overrides = values.pop("set", {})
        if not isinstance(overrides, Mapping):
            raise BenchError(f"{where}set{equals}{overrides!r:.60}: expected recipe values")
        known = {"set", *FIELDS} - {"overrides"}
        unknown = options.keys() - known
        if unknown:
            raise UnknownName("key", min(unknown), known, f"of a run in {plan or 'this call'}")
        values["overrides"] = {key: as_typed(value) for key, value in overrides.items()}
        kinds = get_type_hints(cls, include_extras=True)
        converted: dict[str, Any] = {}
        for name, value in values.items():
            try:
                numbers = parse_seeds(value) if name == "seeds" else value
                converted[name] = convert_typed(numbers, kinds[name])
            except ValueError as error:
                raise BenchError(f"{where}{name}{equals}{value!r:.60}: {error}") from None
        return cls(**converted)

    def options(self) -> dict[str, Any]:
        """Return the fields that differ from the defaults, and those of ``SAID``, as numbers,
        texts, lists and tables.
        """
        default = RunConfig()
        options = {}
        for name in FIELDS:
            value = getattr(self, name)
            if name in SAID or value != getattr(default, name):
                key = "set" if name == "overrides" else name
                options[key] = msgspec.to_builtins(value)
        return options

    @property
    def budget_key(self) -> str:
        """The recipe value that ``budget`` gives."""
        return "epochs" if "epoch" in (self.budget or "") else "budget"


FIELDS = tuple(item.name for item in fields(RunConfig))
SAID = ("methods", "backbones", "seeds", "suites")
"""Fields that a plan says in any case; without a backbone a recipe file would decide."""


def split_variant(name: str) -> tuple[str, str]:
    """Return ("promcse", "eh") for "promcse+eh", and ("promcse", "") for "promcse"."""
    method, _, variant = name.partition("+")
    return method, variant


def combinations_of(overrides: Mapping[str, str]) -> list[dict[str, str]]:
    """Return every combination of the values of ``--set``; the last key changes first.

    {"a": "1,2", "b": "3"} -> a=1 b=3, a=2 b=3. A comma that belongs to a value is written ``\\,``;
    the name of a file or folder that exists is one value. Raises BenchError if there is nothing
    between two commas.
    """
    series = [_values_of(key, text) for key, text in overrides.items()]
    return [dict(zip(overrides, values, strict=True)) for values in product(*series)]


def _values_of(key: str, text: str) -> list[str]:
    if os.path.exists(os.path.expanduser(text)):
        return [text]
    values = [value.replace("\\,", ",") for value in re.split(r"(?<!\\),", text)]
    if len(values) > 1 and not all(map(str.strip, values)):
        raise BenchError(
            f"--set {key}={text}: a value is missing between two commas",
            f"--set {key}=A,B,C, or \\, for a comma of the value",
        )
    if len(values) == 1:
        return values
    return [value.strip() for value in values]


def as_typed(value: Any) -> str:
    """Return a recipe value as a user types it after ``--set KEY=``: a list is a series, and a
    comma in one of its values is escaped.
    """
    if isinstance(value, list):
        return ",".join(as_typed(item).replace(",", "\\,") for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


SHARED = (
    *("device", "on", "chunk", "compile"),
    *("fresh", "offline", "data", "runs", "plugins"),
)
"""Fields that belong to the command: the same in all runs of a plan."""


@dataclass(frozen=True)
class Plan:
    """Runs that answer a question.

    Raises BenchError if the runs disagree on a field of the whole command.
    """

    runs: tuple[RunConfig, ...]
    question: str = ""

    def __post_init__(self) -> None:
        for name in SHARED:
            if len({getattr(config, name) for config in self.runs}) > 1:
                raise BenchError(
                    f"all runs of a plan need the same value of {name}", "set it in [common]"
                )

    @classmethod
    def read(cls, file: Path) -> Plan:
        """Read a plan. Raises BenchError, naming the file, if it is none."""
        try:
            content = tomllib.loads(file.read_text(encoding="utf-8"))
            common = content.pop("common", {})
            tables = content.pop("run", [])
            question = str(content.pop("question", ""))
            if content or not tables:
                found = ", ".join(content)
                raise ValueError(f"expected [[run]], [common], question; found {found}")
            runs: list[RunConfig] = []
            for table in tables:
                # a table's values win over the common ones, and in `set` each key by itself
                values = {**common.get("set", {}), **table.get("set", {})}
                options = {**common, **table, "set": values}
                runs += with_recipes(RunConfig.from_options(options, file), options)
            return cls(tuple(runs), question)
        except OSError as error:
            raise BenchError(f"--plan {file}: {error.strerror or error}") from None
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise BenchError(
                f"--plan {file}: {error}", "bench run ... --dry-run --to FILE writes one"
            ) from None

    def write(self, file: Path) -> None:
        """Write the plan. Raises BenchError if it cannot be written."""
        lines = []
        if self.question:
            lines.append(f"question = {_toml(self.question)}")
        for config in self.runs:
            lines += ["", "[[run]]", *toml_lines(config.options())]
        write_or_fail(file, ("\n".join(lines).strip() + "\n").encode())

    def with_values(self, *, overrides: Mapping[str, str] = {}, **values: Any) -> Plan:
        """Return the plan with these fields in every run; recipe values are added to the runs'
        own.
        """
        runs = []
        for config in self.runs:
            merged = {**config.overrides, **overrides}
            runs.append(replace(config, overrides=merged, **values))
        return replace(self, runs=tuple(runs))


def toml_lines(values: Mapping[str, Any]) -> list[str]:
    """Return lines of TOML, which writes texts, numbers, truth values and lists as JSON does.

    None is left out.
    """
    return [f"{key} = {_toml(value)}" for key, value in values.items() if value is not None]


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(toml_lines(value))} }}"
    return json.dumps(value, ensure_ascii=False)


def with_recipes(config: RunConfig, typed: Container[str]) -> list[RunConfig]:
    """Return a config for each recipe file, and one for the methods that have none; the config
    alone if it has no recipe files.

    A file gives method and variant, and backbone, setting and corpus unless they are ``typed``.
    Raises BenchError for a file that is not a recipe.
    """
    configs = []
    named = dict(config.named)
    for file in config.recipes:
        recipe = read_custom(Path(file))
        variant = named.pop(recipe.method, config.variant) or recipe.variant
        method = f"{recipe.method}+{variant}" if variant else recipe.method
        values: dict[str, Any] = {}
        if recipe.backbone and "backbones" not in typed:
            values["backbones"] = (recipe.backbone,)
        if recipe.setting and "setting" not in typed:
            values["setting"] = recipe.setting
        if recipe.corpus and "corpus" not in typed:
            values["corpus"] = recipe.corpus
        configs.append(replace(config, methods=(method,), recipes=(file,), **values))
    others = tuple(name for name in config.methods if split_variant(name)[0] in named)
    if others or not configs:
        configs.append(replace(config, methods=others, recipes=()))
    return configs
