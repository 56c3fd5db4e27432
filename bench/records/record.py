"""The run record: the run, its scores, its cost, its origin, and the choice of its checkpoint.

See ``docs/architecture.md``. ``read_record`` reads one, also if it is damaged or forged.

What was not recorded is None, never a guess. A record agrees with ``schema/run-4.schema.json`` (a
test holds them together); the first thing that does not fit is named by its path, such as
``scores[2].value``. A record of an older schema is brought up one step at a time by ``UPGRADES``; a
newer one is refused.
"""

from __future__ import annotations

import contextlib
import operator
import re
from collections.abc import Callable, Container, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct

from bench.base.errors import RecordDamaged, printable
from bench.base.paths import path_name
from bench.base.reading import RECORD_BYTES, read_plain_file

SCHEMA, VERSION = "bench.run", 4
AVERAGE = "Avg."  # as a task: a suite's own average
# the array by which stored predictions say that only what the score needs is left of them
REDUCED = "reduced"
SET, BUDGET = "--set", "--budget"
"""How the source of a recipe value that a user gave begins."""
STATUSES = ("finished", "failed", "interrupted")
SETTINGS = ("unsupervised", "supervised", "none")
# `$(?!\n)`: Python's `$` also matches before a last newline, other dialects' does not; so all agree
RUN_ID = r"^[A-Za-z0-9][A-Za-z0-9._+@=-]{0,199}$(?!\n)"
MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?$(?!\n)"
Name = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
# far beyond any score or cost, and small enough that sums and squares over runs stay finite
Amount = Annotated[float, Meta(ge=0, le=1e18)]
Value = Annotated[float, Meta(ge=-1e9, le=1e9)]
Facts = Mapping[str, Any]  # any JSON object, with numbers up to ``LARGEST_NUMBER``
# bound of free numbers in a record: any seed or count of 64 bits, and nothing that arithmetic could
# make infinite
LARGEST_NUMBER = 2.0**64
# version n -> function that turns the JSON object of version n into one of version n + 1
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
    # 2 adds optional fields: hashes of predictions and checkpoint, inputs of the fingerprint
    1: dict,
    2: dict,  # 3 too: tokens, memory of the host, how it was executed
    3: lambda content: content | {"provenance": _without_null(content.get("provenance"))},
}


class Score(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """One number on one task. ``value`` has the papers' scale: correlation and accuracy x 100."""

    suite: Name
    # "STS12"; "Avg." is the suite's own average
    task: Name
    # "senteval-all/1": two numbers compare only under one protocol
    protocol: Name
    metric: Name
    value: Value
    # items scored
    n: Count
    # over the repetitions inside one run (folds, k-means seeds)
    std: Amount | None = None
    # "tokenised", "raw", "other-1a2b3c4d"; None if a task has only one form
    text: Name | None = None
    detail: Facts = {}
    # hash of the stored predictions' values (``bench.base.hashes``); None: none, or not recorded
    predictions_sha256: Name | None = None
    # hash of their reduced form, if a version stores only what scores need; None: not reduced
    reduced_sha256: Name | None = None

    @property
    def key(self) -> ScoreKey:
        """The cell that the score belongs to."""
        return ScoreKey(self.suite, self.task, self.protocol, self.text)

    def sha256_of(self, arrays: Container[str]) -> str | None:
        """The recorded hash of its predictions' values, of the form that is stored, whole or
        reduced; None if none is recorded.
        """
        if REDUCED in arrays:
            return self.reduced_sha256 or (
                None if self.predictions_sha256 is None else "no hash of them"
            )
        return self.predictions_sha256


class EncodingCost(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cost of encoding, as ``bench speed`` of earlier versions measured it.

    Two such costs compare only if all but their first two fields are equal.
    """

    # median of several passes
    sentences_per_second: Amount
    # the most that was in use: on the GPU if there is one, else resident in the process
    memory_bytes: Count
    device: str
    threads: Count
    precision: str
    # the encoded text in words, with the beginning of its sha256
    text: str
    torch: str
    bench_version: str


class Cost(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cost of a run; seconds are wall-clock."""

    trainable_parameters: Count | None = None
    # part of the method ("prompt", "head", "lm_head", "encoder") -> its parameters
    trainable_parts: Mapping[str, Count] | None = None
    total_parameters: Count | None = None
    checkpoint_bytes: Count | None = None
    # without dev evaluation
    train_seconds: Amount | None = None
    dev_seconds: Amount | None = None
    train_sentences_per_second: Amount | None = None
    train_tokens_per_second: Amount | None = None
    encode_sentences_per_second: Amount | None = None
    eval_seconds: Amount | None = None
    # on the GPU if there is one, else as the next
    peak_memory_bytes: Count | None = None
    # resident in the process
    host_memory_bytes: Count | None = None
    # of the GPU while training, dev scores included; none if several runs share the GPU
    energy_joules: Amount | None = None
    device: str | None = None
    # None: not measured
    encoding: EncodingCost | None = None


class Training(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The choice of the checkpoint.

    ``dev_score`` belongs to ``best_step``; None: the last step was kept.
    """

    steps: Count
    best_step: Count | None = None
    dev_task: str | None = None
    dev_score: Value | None = None
    # pairs of the set that chose it
    dev_pairs: Count | None = None
    # those that are test pairs of the suite sts; None: not known, or nothing to know
    dev_test_pairs: Count | None = None
    # rows of the corpus seen, a row in two epochs counted twice
    sentences: Count | None = None
    # tokens of these rows, with special ones, without padding
    tokens: Count | None = None


def name_in_suites(suite: str, task: str, protocol: str, text: str | None) -> str:
    """Name a score by other code than the rest of its suite, in ``provenance.execution.suites``:
    "sts STS12 senteval-all/1 raw".
    """
    return " ".join([suite, task, protocol, text or ""]).strip()


class ScoreKey(NamedTuple):
    """The cell of a table that a score belongs to: two numbers compare only if all four fields
    are equal.
    """

    suite: str
    task: str
    protocol: str
    # None if the task has only one form
    text: str | None


class RecipeValue(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """One hyperparameter with its source; ``note`` keeps what another source says."""

    value: Any
    source: str
    note: str | None = None


class Code(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A plugin's code: of a method, or of a suite.

    ``package`` is its distribution, or the file that it was loaded from.
    """

    package: str | None = None
    version: str | None = None
    sha256: str | None = None


class Checkout(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The git checkout with the method's code.

    ``dirty``: the working tree differs; None: git did not answer in time.
    """

    commit: str | None = None
    dirty: bool | None = None


class CorpusUsed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The training text.

    ``overlap``: its sentences that test sets have as well, see ``bench.data.overlap``; ``warning``:
    what was not as it was expected when it was first fetched.
    """

    name: str | None = None
    sha256: str | None = None
    columns: tuple[str, ...] = ()
    warning: str = ""
    url: str | None = None
    overlap: Facts = {}


class BackboneUsed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The backbone.

    ``title``: its name in tables, if that differs; ``model``: facts about a finished encoder.
    """

    name: str | None = None
    revision: str | None = None
    title: str = ""
    model: Facts = {}


class HowExecuted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a run was executed. Nothing here is part of its fingerprint."""

    # processes that trained together; several numbers, one after the other
    ranks: Count | tuple[Count, ...] | None = None
    # rows of a batch whose activations were held at once
    chunk: Count | None = None
    compiled: bool | None = None
    # suite, or a score by other code than the rest of its suite -> the code that scored it
    suites: Mapping[str, Code] = {}
    # keys with values from a file of --recipe
    recipe_file: tuple[str, ...] = ()
    # the search that found them
    search: Facts = {}
    engine: str | None = None
    job: str | None = None
    node: str | None = None
    attempts: Count | None = None


class Provenance(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The origin of a run; ``created`` is ISO 8601.

    A field of an object that was not recorded has its default.
    """

    created: Annotated[str, Meta(pattern=MOMENT)]
    command: str | None = None
    bench_version: str | None = None
    git: Checkout = Checkout()
    plugin: Code = Code()
    packages: Mapping[str, str | None] = {}
    platform: Facts = {}
    # task -> sha256
    data: Mapping[str, str | None] = {}
    # without a name: nothing was trained
    corpus: CorpusUsed = CorpusUsed()
    backbone: BackboneUsed = BackboneUsed()
    # inputs of the fingerprint without a field of their own (``bench.run.planned.determinants``)
    determines: Facts | None = None
    execution: HowExecuted = HowExecuted()


PRETRAINED = "pretrained"
"""The method that builds a finished encoder out of a folder or a model of the hub."""
EVALUATED = ("object", "vectors", "server")
"""Methods that stand for a model from outside; they are in no list, for their models come with them
and not from a backbone.
"""


class RunRecord(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="schema",
    tag=f"{SCHEMA}/{VERSION}",
):
    """One run: method x variant x setting x backbone x seed, trained and scored.

    Fields are in the order in which a reader wants them.
    """

    run_id: Annotated[str, Meta(pattern=RUN_ID)]
    # sha256 of everything that determines the result
    fingerprint: Name
    status: Annotated[str, Meta(pattern=rf"^({'|'.join(STATUSES)})$(?!\n)")]
    error: str | None = None
    method: Name
    # "": as the paper has it
    variant: str = ""
    setting: Annotated[str, Meta(pattern=rf"^({'|'.join(SETTINGS)})$(?!\n)")]
    backbone: Name
    # None: no seed changes the result
    seed: Count | None
    recipe: Mapping[str, RecipeValue]
    scores: tuple[Score, ...]
    cost: Cost
    # None: nothing was trained
    training: Training | None = None
    # file below checkpoint/ -> sha256; None: not recorded
    checkpoint: Facts | None = None
    provenance: Provenance

    @property
    def method_name(self) -> str:
        """With the variant: "promcse+eh"."""
        return f"{self.method}+{self.variant}" if self.variant else self.method

    @property
    def model_name(self) -> str:
        """The name of an evaluated object, vectors or server; "" for the run of a method, also of a
        plugin with such a name.
        """
        return (
            self.backbone_name
            if self.method in EVALUATED and self.provenance.plugin.package == "bench"
            else ""
        )

    @property
    def evaluated_as(self) -> str:
        """The name of any finished encoder that was evaluated, also of one from a folder or the
        hub; "" for all others.
        """
        return self.backbone_name if self.method == PRETRAINED else self.model_name

    @property
    def label(self) -> str:
        """Its name in tables: the method with the variant, or the name of an evaluated model."""
        return self.model_name or self.method_name

    @property
    def backbone_name(self) -> str:
        """The backbone's name in tables: the name that was chosen for it or that its model card
        gives, else its own.
        """
        return public_name(str(self.provenance.backbone.title or self.backbone))

    def score(
        self, suite: str, task: str, protocol: str | None = None, text: str | None = None
    ) -> Score | None:
        """The first score of a task; ``protocol`` and ``text`` narrow it."""
        return next(
            (
                score
                for score in self.scores
                if (score.suite, score.task) == (suite, task)
                and protocol in (None, score.protocol)
                and text in (None, score.text)
            ),
            None,
        )

    def to_json(self) -> dict[str, Any]:
        """The JSON object; NumPy's numbers and arrays become plain ones."""
        content = msgspec.to_builtins(self, enc_hook=_plain, str_keys=True)
        return content | {"scores": list(content["scores"])}

    @classmethod
    def from_json(cls, content: Any) -> RunRecord:
        """The record in a parsed JSON object.

        Raises RecordDamaged, naming the path of the first field that does not fit.
        """
        try:
            return msgspec.convert(upgrade(content), cls)._checked()
        except msgspec.ValidationError as error:
            raise RecordDamaged(_message(str(error))) from None
        except OverflowError as error:  # msgspec 0.19, of an integer that no float holds
            raise RecordDamaged(f"a number is too large: {error}") from None

    @classmethod
    def decode(cls, data: bytes) -> RunRecord:
        """The record in JSON.

        Raises RecordDamaged, naming the path of the first field that does not fit.
        """
        # an older schema, or damaged, if this fails UnicodeDecodeError: of a key or a schema's
        # name, which msgspec does not turn into its own error
        with contextlib.suppress(
            msgspec.DecodeError, OverflowError, RecursionError, UnicodeDecodeError
        ):
            return _DECODER.decode(data)._checked()
        try:
            return cls.from_json(msgspec.json.decode(data))
        except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
            raise RecordDamaged(f"not JSON: {error}") from None

    def _checked(self) -> RunRecord:
        first: dict[tuple[Any, ...], int] = {}
        for i, score in enumerate(self.scores):
            if first.setdefault(score.key, i) != i:
                raise RecordDamaged(
                    f"scores[{i}]: the same cell as scores[{first[score.key]}]: "
                    f"{' '.join(map(str, score.key))}"
                )
        for path, value in (
            *((f"scores[{i}].detail", score.detail) for i, score in enumerate(self.scores)),
            *((f"recipe.{key}", value.value) for key, value in self.recipe.items()),
            *((path, operator.attrgetter(path)(self)) for path in FREE),
        ):
            problem = _problem_of(value)
            if problem:
                raise RecordDamaged(f"{path}: {problem}")
        _check_determines(self.provenance.determines)
        return self


FREE = (
    "checkpoint",
    "provenance.platform",
    "provenance.determines",
    "provenance.backbone.model",
    "provenance.execution.search",
    "provenance.corpus.overlap",
)
"""Fields that may hold any JSON, as the details of scores and the values of recipes do."""
DEEPEST = 64
"""Objects and lists inside each other in a free field; real ones have four."""


def _problem_of(value: Any) -> str:
    """Describe the fault of a free JSON value; "" if every number fits into sums and squares, and
    nothing is nested too deep.
    """
    level = [value]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is dict:
                below.extend(item.values())
            elif kind is list:
                below.extend(item)
            elif (kind is float or kind is int) and not -LARGEST_NUMBER <= item <= LARGEST_NUMBER:
                return f"a number beyond {LARGEST_NUMBER:.3g}, more than 64 bits, or not finite"
        if not below:
            return ""
        level = below
    return f"more than {DEEPEST} objects or lists inside each other"


CORPUS_PARTS = "corpus_parts"
"""The values of --corpus in ``provenance.determines``, with the hash of each text in the place of
its name, if the training text is made of several, or of columns that were chosen.
``provenance.corpus.sha256`` covers all of it.
"""


def _check_determines(determines: Facts | None) -> None:
    """Raises RecordDamaged for a part of the fingerprint's inputs that has another type.

    Parts that this version does not know may be anything.
    """
    if determines is None:
        return
    where = "provenance.determines"
    places = determines.get("places", {})
    if not isinstance(places, Mapping):
        raise RecordDamaged(f"{where}.places: expected an object of hashes")
    for key, content in places.items():
        if not isinstance(content, str | None):
            raise RecordDamaged(f"{where}.places.{printable(key)[:40]}: expected a text or null")
    for name in ("precision", "dev", "plugin"):
        if not isinstance(determines.get(name), str | None):
            raise RecordDamaged(f"{where}.{name}: expected a text")
    ranks = determines.get("ranks")
    if ranks is not None and not (type(ranks) is int and 1 <= ranks < 1 << 31):
        raise RecordDamaged(f"{where}.ranks: expected a number of processes")


def is_given_by_user(source: str) -> bool:
    """Say if a recipe value with this source was given on the command line."""
    return source.startswith((SET, BUDGET))


def public_name(backbone: str) -> str:
    """Return the short name of a backbone: a name of the hub as it is, or the last part of a local
    folder that says something.
    """
    # a hub name has at most one slash; a folder is given absolutely, from here, or through several
    absolute = backbone.startswith(("/", ".", "~", "\\")) or re.match(r"[A-Za-z]:[\\/]", backbone)
    if not absolute and backbone.count("/") <= 1:
        return backbone
    return path_name(backbone)


_DECODER = msgspec.json.Decoder(RunRecord)


def upgrade(content: Any) -> dict[str, Any]:
    """Bring the JSON object of any older schema to this one.

    Raises RecordDamaged for anything else, and for a newer schema.
    """
    if not isinstance(content, dict):
        raise RecordDamaged("the record is not a JSON object")
    name = content.get("schema")
    if not (match := re.fullmatch(re.escape(SCHEMA) + "/(0|[1-9][0-9]{0,5})", str(name))):
        raise RecordDamaged(f"schema: expected '{SCHEMA}/{VERSION}', found {str(name)[:40]!r}")
    if (version := int(match[1])) > VERSION:
        raise RecordDamaged(
            f"schema: written as {SCHEMA}/{version} by a newer bench; this one reads up to "
            f"{SCHEMA}/{VERSION}",
            "read it with the bench that wrote it, or a newer one",
        )
    for older in range(version, VERSION):
        if older not in UPGRADES:
            raise RecordDamaged(f"schema: bench cannot read {SCHEMA}/{older}")
        content = {**UPGRADES[older](content), "schema": f"{SCHEMA}/{older + 1}"}
    return content


def _without_null(provenance: Any) -> Any:
    """Upgrade to version 4: the objects below ``provenance`` have typed fields, and null, which
    meant "not recorded", is left out.
    """
    return (
        {key: value for key, value in provenance.items() if value is not None}
        if isinstance(provenance, dict)
        else provenance
    )


def _message(error: str) -> str:
    """msgspec's sentence, "Expected `float`, got `str` - at `$.scores[2].value`", with the place
    first.
    """
    reason, _, path = error.partition(" - at `$")
    reason = reason.replace("`", "'").replace("Object", "the object")
    return f"{path.rstrip('`').lstrip('.') or 'the record'}: {reason[0].lower()}{reason[1:]}"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise ValueError(f"{type(value).__name__} cannot be stored as JSON")


def read_record(path: Path) -> RunRecord:
    """The record in one file. Raises RecordDamaged, naming the file and the field."""
    try:
        return RunRecord.decode(read_plain_file(path, RECORD_BYTES))
    except RecordDamaged as error:
        reason, hint = error.message, error.hint
    except OSError as error:
        reason, hint = str(error.strerror), None
    # the message may quote a damaged file: nothing in it may move the cursor
    raise RecordDamaged(printable(f"{path}: {reason}"), hint)
