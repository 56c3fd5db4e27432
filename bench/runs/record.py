"""The run record: what one run was, what it scored, what it cost, and where it came from (``docs/run-record.md``).

What was not recorded is None, never a guess. ``RunRecord.from_json`` checks a record by hand, without a schema library, and
agrees with ``schema/run-3.schema.json`` (a test holds them together); the first thing that does not fit is named by its
path, such as ``scores[2].value``. A record of an older schema is brought up one step at a time by ``UPGRADES``; a newer one
is refused.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

from bench.base.errors import RecordDamaged

# --- checks of one JSON value each: ``(value, path) -> what the dataclass holds``. They raise RecordDamaged, naming the path ---

_BIGGEST = sys.float_info.max
Check = Callable[[Any, str], Any]


def kind(value: Any) -> str:
    if isinstance(value, str):
        return f"text {value[:40]!r}"
    names = {dict: "an object", list: "a list", type(None): "null"}
    return names.get(type(value)) or f"{type(value).__name__} {str(value)[:40]}"


def wrong(path: str, expected: str, value: Any) -> RecordDamaged:
    return RecordDamaged(f"{path}: expected {expected}, found {kind(value)}")


def text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise wrong(path, "text", value)
    return value


def name(value: Any, path: str) -> str:
    if not isinstance(value, str) or not value:
        raise wrong(path, "a name", value)
    return value


def pattern(expression: re.Pattern[str], what: str) -> Check:
    def check(value: Any, path: str) -> str:
        if not isinstance(value, str) or not expression.search(value):
            raise wrong(path, what, value)
        return value

    return check


def one_of(names: tuple[str, ...]) -> Check:
    def check(value: Any, path: str) -> str:
        if not isinstance(value, str) or value not in names:
            raise wrong(path, " or ".join(names), value)
        return value

    return check


def number(value: Any, path: str) -> float:
    # one comparison refuses NaN, infinities and integers too long for a float
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_BIGGEST <= value <= _BIGGEST:
        raise wrong(path, "a finite number", value)
    return float(value)


def natural(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1 or not 0 <= value <= 2**63 - 1:
        raise wrong(path, "a whole number from 0 on", value)
    return int(value)


def at_least_zero(value: Any, path: str) -> float:
    found = number(value, path)
    if found < 0:
        raise wrong(path, "a number from 0 on", value)
    return found


def free(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong(path, "an object", value)
    return value


def anything(value: Any, path: str) -> Any:
    return value


def maybe(check: Check) -> Check:
    return lambda value, path: None if value is None else check(value, path)


def each(names: str, check: Check) -> dict[str, Check]:
    """The same check for several fields, named in one line."""
    return dict.fromkeys(names.split(), check)


SCHEMA, VERSION = "bench.run", 3
STATUSES = ("finished", "failed", "interrupted")
SETTINGS = ("unsupervised", "supervised", "none")
# `$(?!\n)`: Python's `$` also matches before a last newline, other dialects' does not; so all agree
RUN_ID = r"^[A-Za-z0-9][A-Za-z0-9._+@=-]{0,199}$(?!\n)"
MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?$(?!\n)"
_RUN_ID, _MOMENT = re.compile(RUN_ID), re.compile(MOMENT)

# version n -> function that turns the JSON object of version n into one of version n + 1
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
    1: lambda content: (
        content
    ),  # 2 has more fields, all optional: hashes of predictions and checkpoint, what the fingerprint is of
    2: lambda content: content,  # 3 too: tokens, memory of the host, how it was executed
}


@dataclass(frozen=True, kw_only=True)
class Score:
    """One number on one task. ``value`` has the papers' scale: correlation and accuracy x 100."""

    suite: str
    task: str  # "STS12"; "Avg." is the suite's own average
    protocol: str  # "senteval-all/1": two numbers compare only under one protocol
    metric: str
    value: float
    n: int  # items scored
    std: float | None = None  # over whatever the task repeats inside one run (folds, k-means seeds)
    text: str | None = None  # "tokenised", "raw", "other-1a2b3c4d"; None where a task has only one form
    detail: Mapping[str, Any] = field(default_factory=dict)
    predictions_sha256: str | None = (
        None  # of the stored predictions' values (``bench.base.hashes``); None: there are none, or not recorded
    )

    @property
    def key(self) -> tuple[str, str, str, str | None]:
        """What makes two scores the same cell: (suite, task, protocol, text)."""
        return self.suite, self.task, self.protocol, self.text


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a run took; seconds are wall-clock."""

    trainable_parameters: int | None = None
    total_parameters: int | None = None
    checkpoint_bytes: int | None = None
    train_seconds: float | None = None  # without dev evaluation
    dev_seconds: float | None = None
    train_sentences_per_second: float | None = None
    train_tokens_per_second: float | None = None
    encode_sentences_per_second: float | None = None
    eval_seconds: float | None = None
    peak_memory_bytes: int | None = None  # on the GPU where there is one, else as the next
    host_memory_bytes: int | None = None  # resident
    energy_joules: float | None = None  # of the GPU while training, dev scores included
    device: str | None = None


@dataclass(frozen=True, kw_only=True)
class Training:
    """How the checkpoint was chosen. ``dev_score`` is that of ``best_step``; None: the last step was kept."""

    steps: int
    best_step: int | None = None
    dev_task: str | None = None
    dev_score: float | None = None
    dev_pairs: int | None = None  # on which it was chosen
    dev_test_pairs: int | None = None  # of these, test pairs of the suite sts; None: not known, or nothing to know
    sentences: int | None = None  # rows of the corpus seen, a row in two epochs counted twice
    tokens: int | None = None  # of these rows, special ones included, padding not


@dataclass(frozen=True, kw_only=True)
class RecipeValue:
    """One hyperparameter with its source; ``note`` keeps what another source says."""

    value: Any
    source: str
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a run comes from; ``created`` is ISO 8601, the rest is free inside each object."""

    created: str
    command: str | None = None
    bench_version: str | None = None
    git: Mapping[str, Any] | None = None
    plugin: Mapping[str, Any] | None = None
    packages: Mapping[str, Any] = field(default_factory=dict)
    platform: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)  # task -> sha256
    corpus: Mapping[str, Any] | None = None
    backbone: Mapping[str, Any] | None = None
    determines: Mapping[str, Any] | None = (
        None  # what the fingerprint is of, beyond the rest of the record (``bench.run.fingerprint``)
    )
    execution: Mapping[str, Any] | None = None  # how it was executed: no part of what the run is


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """One run: method x variant x setting x backbone x seed, trained and scored."""

    run_id: str
    fingerprint: str  # sha256 of what determines the result
    status: str  # one of STATUSES
    method: str
    setting: str  # one of SETTINGS
    backbone: str
    seed: int | None  # None: no seed changes the result
    provenance: Provenance
    variant: str = ""  # "" = as the paper has it
    error: str | None = None
    recipe: Mapping[str, RecipeValue] = field(default_factory=dict)
    scores: tuple[Score, ...] = ()
    cost: Cost = field(default_factory=Cost)
    training: Training | None = None  # None: nothing was trained
    checkpoint: Mapping[str, Any] | None = None  # file below checkpoint/ -> sha256; None: not recorded

    def score(self, suite: str, task: str, protocol: str | None = None, text: str | None = None) -> Score | None:
        """The first score of a task; ``protocol`` and ``text`` narrow it."""
        for score in self.scores:
            if score.suite == suite and score.task == task and protocol in (None, score.protocol) and text in (None, score.text):
                return score
        return None

    def to_json(self) -> dict[str, Any]:
        """The JSON object, in the order in which a reader wants it."""
        return {
            "schema": f"{SCHEMA}/{VERSION}", "run_id": self.run_id, "fingerprint": self.fingerprint,
            "status": self.status, "error": self.error,
            "method": self.method, "variant": self.variant, "setting": self.setting, "backbone": self.backbone, "seed": self.seed,
            "recipe": {key: _plain(value) for key, value in self.recipe.items()},
            "scores": [_plain(score) for score in self.scores],
            "cost": _plain(self.cost),
            "training": None if self.training is None else _plain(self.training),
            "checkpoint": None if self.checkpoint is None else dict(self.checkpoint),
            "provenance": _plain(self.provenance),
        }  # fmt: skip

    @classmethod
    def from_json(cls, content: Any) -> RunRecord:
        """The record in a parsed JSON object. Raises RecordDamaged, naming the path of the first field that does not fit."""
        content = dict(upgrade(content))
        del content["schema"]
        given = _object(content, "", _RUN, cls)
        scores: dict[tuple[Any, ...], int] = {}
        for i, score in enumerate(given["scores"]):
            first = scores.setdefault(score.key, i)
            if first != i:
                raise RecordDamaged(f"scores[{i}]: the same cell as scores[{first}]: {' '.join(str(part) for part in score.key)}")
        return cls(**given)


def upgrade(content: Any) -> dict[str, Any]:
    """Bring the JSON object of any older schema to this one. Raises RecordDamaged where it is none, or newer."""
    if not isinstance(content, dict):
        raise RecordDamaged(f"expected a JSON object, found {kind(content)}")
    name = content.get("schema")
    found = re.fullmatch(re.escape(SCHEMA) + "/(0|[1-9][0-9]{0,5})", name) if isinstance(name, str) else None
    if not found:
        raise RecordDamaged(f"schema: expected '{SCHEMA}/{VERSION}', found {kind(name)}")
    version = int(found[1])
    if version > VERSION:
        raise RecordDamaged(f"schema: written as {SCHEMA}/{version} by a newer bench; this one reads up to {SCHEMA}/{VERSION}",
                            "read it with the bench that wrote it, or a newer one")  # fmt: skip
    while version < VERSION:
        if version not in UPGRADES:
            raise RecordDamaged(f"schema: nobody knows how to read {SCHEMA}/{version}")
        content = {**UPGRADES[version](content), "schema": f"{SCHEMA}/{version + 1}"}
        version += 1
    return content


def _made(cls: type, table: Mapping[str, Check]) -> Check:
    names = {field.name for field in fields(cls)}

    def made(value: Any, path: str) -> Any:
        given = _object(value, path, table, cls)
        if given.keys() != names:
            return cls(**given)
        one: Any = object.__new__(cls)  # all fields are there: a frozen class sets each of them by a call
        one.__dict__.update(given)
        return one

    return made


def _recipe(value: Any, path: str) -> dict[str, RecipeValue]:
    made = _made(RecipeValue, _RECIPE_VALUE)
    found = {}
    for key, one in free(value, path).items():
        plain = (
            isinstance(one, dict) and one.keys() == _RECIPE_VALUE.keys() and isinstance(one["value"], str | int | float | None)
        )
        text_or_none = plain and isinstance(one["source"], str) and isinstance(one["note"], str | None)
        found[key] = _same_value(type(one["value"]).__name__, **one) if text_or_none else made(one, f"{path}.{key}")
    return found


@lru_cache(maxsize=4096)
def _same_value(kind: str, value: Any, source: str, note: str | None) -> RecipeValue:
    """Thousands of records have the same few hundred values. ``kind`` keeps 1, 1.0 and True apart."""
    return RecipeValue(value=value, source=source, note=note)


def _scores(value: Any, path: str) -> tuple[Score, ...]:
    if not isinstance(value, list):
        raise wrong(path, "a list", value)
    made = _made(Score, _SCORE)
    return tuple(made(one, f"{path}[{i}]") for i, one in enumerate(value))


def _object(value: Any, path: str, table: Mapping[str, Check], cls: type) -> dict[str, Any]:
    """Check each field of one object; a field that the dataclass gives no default must be there, an unknown one must not."""
    if not isinstance(value, dict):
        raise wrong(path or "the record", "an object", value)
    prefix = f"{path}." if path else ""
    if not value.keys() <= table.keys():
        raise RecordDamaged(f"{prefix}{next(key for key in value if key not in table)}: no such field in {SCHEMA}/{VERSION}")
    if not value.keys() >= _REQUIRED[cls].keys():
        raise RecordDamaged(f"{prefix}{next(key for key in _REQUIRED[cls] if key not in value)}: missing")
    return {key: check(value[key], prefix + key) for key, check in table.items() if key in value}


_count, _amount, _note, _object_or_none = (maybe(check) for check in (natural, at_least_zero, text, free))
_SCORE: dict[str, Check] = {
    **each("suite task protocol metric", name), "value": number, "n": natural, "std": _amount,
    "text": maybe(name), "detail": free, "predictions_sha256": maybe(name),
}  # fmt: skip
_COST: dict[str, Check] = {
    **each("trainable_parameters total_parameters checkpoint_bytes peak_memory_bytes host_memory_bytes", _count),
    **each("train_seconds dev_seconds train_sentences_per_second train_tokens_per_second", _amount),
    **each("encode_sentences_per_second eval_seconds energy_joules", _amount), "device": _note,
}  # fmt: skip
_TRAINING: dict[str, Check] = {
    "steps": natural, **each("best_step sentences tokens dev_pairs dev_test_pairs", _count), "dev_task": _note,
    "dev_score": maybe(number),
}  # fmt: skip
_RECIPE_VALUE: dict[str, Check] = {"value": anything, "source": text, "note": _note}
_PROVENANCE: dict[str, Check] = {
    "created": pattern(_MOMENT, "a moment such as 2026-01-31T12:00:00+00:00"),
    **each("command bench_version", _note), **each("git plugin corpus backbone determines execution", _object_or_none),
    **each("packages platform data", free),
}  # fmt: skip
_RUN: dict[str, Check] = {
    "run_id": pattern(_RUN_ID, "a run id (letters, digits and . _ + @ = -)"), "fingerprint": name,
    "status": one_of(STATUSES), "error": _note, "method": name, "variant": text,
    "setting": one_of(SETTINGS), "backbone": name, "seed": _count, "recipe": _recipe, "scores": _scores,
    "cost": _made(Cost, _COST), "training": maybe(_made(Training, _TRAINING)), "checkpoint": _object_or_none,
    "provenance": _made(Provenance, _PROVENANCE),
}  # fmt: skip
# `recipe`, `scores` and `cost` have defaults for whoever builds a record in code; a file without them is truncated
_REQUIRED: dict[type, dict[str, None]] = {cls: dict.fromkeys(names) for cls, names in {
    Score: ("suite", "task", "protocol", "metric", "value", "n"),
    Cost: (),
    Training: ("steps",),
    RecipeValue: ("value", "source"),
    Provenance: ("created",),
    RunRecord: ("run_id", "fingerprint", "status", "method", "setting", "backbone", "seed", "recipe", "scores", "cost",
                "provenance"),
}.items()}  # fmt: skip


def _plain(value: Any) -> dict[str, Any]:
    return {f.name: dict(v) if isinstance(v := getattr(value, f.name), Mapping) else v for f in fields(value)}
