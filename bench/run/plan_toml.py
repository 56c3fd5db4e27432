"""Plans: runs that answer a question, in a TOML file that ``bench run --plan FILE`` runs::

[question]                    # optional: bench.records.question; a text alone is read as well
text = "Does a lower temperature help SimCSE?"

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
import tomllib
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace as replace_config

from bench.base.errors import BenchError, UnknownName
from bench.base.files import as_utf8, write_or_fail
from bench.base.text import with_variant
from bench.method.config import KINDS, OPTIONS, RunConfig, split_variant
from bench.method.recipe_files import read_custom
from bench.records.question import Question
from bench.run.options import read_fields
from bench.run.terms import rename_options

KEYS = {"set" if name == "overrides" else name: name for name in KINDS}
"""Key of a [[run]] -> its field."""
SAID = ("methods", "backbones", "seeds", "suites")
"""Keys that a plan says in any case; without a backbone a recipe file would decide."""
SHARED = (
    *("device", "on", "chunk", "compile"),
    *("fresh", "offline", "data", "runs", "plugins"),
)
"""Fields that belong to the command: the same in all runs of a plan."""


@contextmanager
def in_terms_of_plan(file: Path | None, given: Container[str] = ()) -> Iterator[None]:
    """Let an error name the file of a plan, and its keys instead of options.

    ``given``: fields and recipe values ("set.KEY") that the command gives. None: there is no file.
    """
    keys = {option.name: name for name, option in OPTIONS.items() if name not in given}

    def words_for(option: str, value: str) -> str | None:
        if option == "--set":
            return None if f"set.{value.partition('=')[0]}" in given else "set."
        if option not in keys:
            return None
        return f"{keys[option]} = " if value else keys[option]

    try:
        yield
    except BenchError as error:
        if file is not None:
            said = rename_options(error.message, words_for)
            # else it begins with what the command gives, or with this file already
            error.message = said if said.startswith("--") else f"--plan {file}: {said}"
        raise


@dataclass(frozen=True)
class Plan:
    """Runs that answer a question.

    Raises BenchError if the runs disagree on a field of the whole command.
    """

    runs: tuple[RunConfig, ...]
    question: Question = Question()
    # the file that it was read from
    file: Path | None = field(default=None, compare=False)
    # fields and recipe values ("set.KEY") that do not come from the file
    given: frozenset[str] = field(default=frozenset(), compare=False)

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
            question = Question.of_plan(content.pop("question", ""))
            if content or not tables:
                found = ", ".join(content)
                raise ValueError(f"expected [[run]], [common], [question]; found {found}")
            runs: list[RunConfig] = []
            with in_terms_of_plan(file):
                for table in tables:
                    # a table's values win over the common ones, and in `set` each key by itself
                    values = {**common.get("set", {}), **table.get("set", {})}
                    keys = {**common, **table, "set": values}
                    runs += with_recipes(config_of(keys), keys)
                _check_suites(question, runs)
                return cls(tuple(runs), question, file)
        except OSError as error:
            raise BenchError(f"--plan {file}: {error.strerror or error}") from None
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise BenchError(
                f"--plan {file}: {error}", "bench run ... --dry-run --to FILE writes one"
            ) from None

    def write(self, file: Path) -> None:
        """Write the plan. Raises BenchError if it cannot be written, or a text is not UTF-8."""
        lines = []
        if self.question.compares:
            lines += ["[question]", *toml_lines(self.question.table())]
        elif self.question.text:
            lines.append(f"question = {_toml(self.question.text)}")
        for config in self.runs:
            lines += ["", "[[run]]", *toml_lines(table_of(config))]
        write_or_fail(file, as_utf8("\n".join(lines).strip() + "\n"))

    def with_values(self, *, overrides: Mapping[str, str] = {}, **values: Any) -> Plan:
        """Return the plan with these fields in every run; recipe values are added to the runs'
        own.
        """
        runs = []
        for config in self.runs:
            merged = {**config.overrides, **overrides}
            runs.append(replace_config(config, overrides=merged, **values))
        return replace(self, runs=tuple(runs))

    def of_methods(self, wanted: Sequence[str]) -> Plan:
        """Return the plan with the runs of these methods, see :func:`of_methods`.

        Raises UnknownName if the plan has no run of one of them.
        """
        planned = dict.fromkeys(name for config in self.runs for name in config.methods)
        for name in wanted:
            if not any(_is_wanted(method, [name]) for method in planned):
                raise UnknownName("method", name, planned, f"of --plan {self.file}")
        runs = [of_methods(config, wanted) for config in self.runs]
        return replace(self, runs=tuple(config for config in runs if config.methods))

    def with_given(self, fields: Mapping[str, Any]) -> Plan:
        """Return the plan with the fields that a command gives besides its file."""
        keys = [f"set.{key}" for key in fields.get("overrides", {})]
        return replace(self.with_values(**fields), given=frozenset([*fields, *keys]))

    def terms(self) -> AbstractContextManager[None]:
        """Let errors name the plan's file and keys, see :func:`in_terms_of_plan`."""
        return in_terms_of_plan(self.file, self.given)


def _check_suites(question: Question, runs: Sequence[RunConfig]) -> None:
    """Raise BenchError for a suite of the question that no run is scored on."""
    scored = [suite for config in runs for suite in config.suites]
    known = dict.fromkeys(suite.partition(":")[0] for suite in scored)
    known |= dict.fromkeys(suite.partition(":")[2] for suite in scored)
    for suite in question.suites:
        if suite not in known:
            raise UnknownName("suite", suite, filter(None, known), "of [question]")


def config_of(table: Mapping[str, Any]) -> RunConfig:
    """Return the config of a [[run]].

    Raises UnknownName for an unknown key, and BenchError, which names the key, for a value of the
    wrong type or out of its range.
    """
    unknown = table.keys() - KEYS.keys()
    if unknown:
        raise UnknownName("key", min(unknown), KEYS, "of a run")
    given = {KEYS[key]: value for key, value in table.items()}
    return RunConfig(**read_fields(given, as_key))


def as_key(name: str, value: Any) -> str:
    """Return a field with its value as a plan has it."""
    return f"{name} = {value!r:.60}"


def table_of(config: RunConfig) -> dict[str, Any]:
    """Return the keys of a [[run]]: those that differ from the defaults, and ``SAID``."""
    default = to_builtins(RunConfig())
    values = to_builtins(config)
    return {key: value for key, value in values.items() if key in SAID or value != default[key]}


def toml_lines(values: Mapping[str, Any]) -> list[str]:
    """Return lines of TOML, which writes texts, numbers, truth values and lists as JSON does.

    None is left out.
    """
    return [f"{key} = {_toml(value)}" for key, value in values.items() if value is not None]


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(toml_lines(value))} }}"
    return json.dumps(value, ensure_ascii=False)


def of_methods(config: RunConfig, wanted: Sequence[str]) -> RunConfig:
    """Return a config with those of its methods that are wanted: METHOD with all its variants, or
    METHOD+VARIANT. All are if ``wanted`` is empty.
    """
    methods = [name for name in config.methods if not wanted or _is_wanted(name, wanted)]
    return replace_config(config, methods=tuple(methods))


def _is_wanted(name: str, wanted: Sequence[str]) -> bool:
    return name in wanted or split_variant(name)[0] in wanted


def with_recipes(config: RunConfig, given: Container[str]) -> list[RunConfig]:
    """Return a config for each recipe file, and one for the methods that have none; the config
    alone if it has no recipe files.

    A file gives method and variant, and backbone, setting and corpus unless they are ``given``. If
    its method is named with other variants, its values are those of each of them. Raises BenchError
    for a file that is not a recipe.
    """
    configs = []
    with_file = set()
    for file in config.recipes:
        recipe = read_custom(Path(file))
        with_file.add(recipe.method)
        named = [variant for method, variant in config.named if method == recipe.method]
        methods = []
        for variant in named or [config.variant]:
            methods.append(with_variant(recipe.method, variant or recipe.variant))
        values: dict[str, Any] = {"methods": tuple(dict.fromkeys(methods))}
        if recipe.backbone and "backbones" not in given:
            values["backbones"] = (recipe.backbone,)
        if recipe.setting and "setting" not in given:
            values["setting"] = recipe.setting
        if recipe.corpus and "corpus" not in given:
            values["corpus"] = recipe.corpus
        configs.append(replace_config(config, recipes=(file,), **values))
    others = tuple(name for name in config.methods if split_variant(name)[0] not in with_file)
    if others or not configs:
        configs.append(replace_config(config, methods=others, recipes=()))
    return configs
