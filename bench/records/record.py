"""The run record: the run, its scores, its cost, its origin, and the choice of its checkpoint.

See ``docs/architecture.md``. ``read_record`` reads one, also if it is damaged or forged.

What was not recorded is None, never a guess. A record agrees with ``schema/run-5.schema.json`` (a
test holds them together); the first thing that does not fit is named by its path, such as
``scores[2].value``. A record of another schema is refused, and never replaced: the version that
wrote it reads it.
"""

from __future__ import annotations

import contextlib
import operator
import re
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct

from bench.base.errors import OtherSchema, RecordDamaged, printable
from bench.base.paths import path_name
from bench.base.reading import RECORD_BYTES, read_plain_file
from bench.base.text import with_variant
from bench.records.free_values import check_determines, check_free_value

SCHEMA = "bench.run/5"
FORMER_READER = "c8654158"
"""The commit of bench that reads the records of schemas 1 to 4."""
AVERAGE = "Avg."
"""The name of a suite's own average, in the place of a task."""
REDUCED = "reduced"
"""The array that marks predictions that were reduced to what the score needs."""
BESIDE, THRESHOLDS = "beside", "thresholds"
"""Keys of a score's detail: what its task measures besides the metric, by name; and the values of
predictions at which it was measured, which ranks do not have."""
DIMENSIONS, VECTOR_PRECISION = "dimensions", "vector_precision"
SMALLER = {DIMENSIONS, VECTOR_PRECISION}
"""Recipe values that make the vectors of a ready-made encoder smaller."""
SET, BUDGET = "--set", "--budget"
"""How the source of a recipe value that a user gave begins."""
CORPUS_PARTS = "corpus_parts"
"""The values of --corpus in ``provenance.determines``, with the hash of each text in the place of
its name, if the training text is made of several, or of columns that were chosen.
``provenance.corpus.sha256`` covers all of it.
"""
STATUSES = ("finished", "failed", "interrupted")
SETTINGS = ("unsupervised", "supervised", "none")
# `$(?!\n)`: Python's `$` also matches before a last newline, other dialects' does not; so all agree
RUN_ID = r"^[A-Za-z0-9][A-Za-z0-9._+@=-]{0,199}$(?!\n)"
MOMENT = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
    r"(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?$(?!\n)"
)
Name = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
# far beyond any score or cost, and small enough that sums and squares over runs stay finite
Amount = Annotated[float, Meta(ge=0, le=1e18)]
Value = Annotated[float, Meta(ge=-1e9, le=1e9)]
Facts = Mapping[str, Any]  # any JSON object, with numbers up to ``LARGEST_NUMBER``


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
    detail: Facts = {}
    # hash of the stored predictions' values (``bench.base.hashes``); None: none, or not recorded
    predictions_sha256: Name | None = None
    # hash of their reduced form, if a version stores only what scores need; None: not reduced
    reduced_sha256: Name | None = None

    @property
    def key(self) -> ScoreKey:
        """The cell that the score belongs to."""
        return ScoreKey(self.suite, self.task, self.protocol)

    @property
    def beside(self) -> dict[str, float]:
        """Further measurements of the task, by name."""
        found: dict[str, float] = {}
        for key in (BESIDE, THRESHOLDS):
            numbers = self.detail.get(key)
            if isinstance(numbers, Mapping):
                found |= {
                    name: one for name, one in numbers.items() if isinstance(one, int | float)
                }
        return found

    def sha256_of(self, arrays: Container[str]) -> str | None:
        """Return the recorded hash of its stored predictions; None if none is recorded.

        ``arrays``: the names of the stored arrays, which say if the predictions were reduced.
        """
        if REDUCED not in arrays:
            return self.predictions_sha256
        if self.reduced_sha256:
            return self.reduced_sha256
        if self.predictions_sha256 is None:
            return None
        # only the complete predictions have a hash: no hash of the reduced ones equals this
        return "no hash of them"


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
    # on the GPU if there is one, else resident in the process
    peak_memory_bytes: Count | None = None
    # resident in the process
    host_memory_bytes: Count | None = None
    device: str | None = None


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


class ScoreKey(NamedTuple):
    """The cell of a table that a score belongs to: two numbers compare only if all three fields
    are equal.
    """

    suite: str
    task: str
    protocol: str


class RecipeValue(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """One hyperparameter with its source; ``note`` keeps what another source says."""

    value: Any
    source: str
    note: str | None = None


class Code(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The code of a plugin, which is a method or a suite.

    ``package`` is its distribution, or the file that it was loaded from.
    """

    package: str | None = None
    version: str | None = None
    # of a plugin's files; None: the code is this package's
    sha256: str | None = None
    # of a method's class: raised when its numbers change
    code_version: Annotated[int, Meta(ge=1)] | None = None

    @property
    def identity(self) -> str:
        """The words that tell whether two runs of a method have one code."""
        sha256 = f", sha256 {self.sha256}" if self.sha256 else ""
        return f"version {self.code_version}{sha256}"


class Checkout(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The git checkout with the method's code.

    ``dirty``: the working tree differs; None: git did not answer in time.
    """

    commit: str | None = None
    dirty: bool | None = None


class CorpusUsed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The training text.

    ``overlap``: its sentences that test sets have as well, see ``bench.data.overlap``. ``warning``:
    how its content differed from the announced one when it was first fetched. ``url``: the address
    of the first fetch, with commit and sha256.
    """

    name: str | None = None
    sha256: str | None = None
    columns: tuple[str, ...] = ()
    warning: str = ""
    url: str | None = None
    overlap: Facts = {}


class BackboneUsed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The backbone.

    ``title``: its name in tables, if that differs; ``model``: facts about a ready-made encoder.
    """

    name: str | None = None
    revision: str | None = None
    title: str = ""
    model: Facts = {}


class HowExecuted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a run was executed. Nothing here is part of its fingerprint."""

    # processes that trained together; several numbers, one after the other
    ranks: Count | tuple[Count, ...] | None = None
    # number of rows of a batch that had their activations in memory at once
    chunk: Count | None = None
    compiled: bool | None = None
    # the precision of vectors, if the weights are not float32: "float32 on weights in bf16"
    scored_in: str | None = None
    # suite of a plugin -> the code that scored it; a suite of bench has its protocols' names
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
"""The method that builds a ready-made encoder out of a folder or a model of the hub."""
EVALUATED = ("object", "vectors")
"""Methods that score a model from outside. No list has them, because their models come with them
and not from a backbone.
"""
FREE = (
    "checkpoint",
    "provenance.platform",
    "provenance.determines",
    "provenance.backbone.model",
    "provenance.execution.search",
    "provenance.corpus.overlap",
)
"""Fields that may hold any JSON, as the details of scores and the values of recipes do."""
_FREE_FIELDS = [(path, operator.attrgetter(path)) for path in FREE]


class RunRecord(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="schema",
    tag=SCHEMA,
):
    """One run: method x variant x setting x backbone x seed, trained and scored.

    Fields are in a reader's order of interest.
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
        """The method with its variant: "promcse+eh"."""
        return with_variant(self.method, self.variant)

    @property
    def model_name(self) -> str:
        """The name of an evaluated object or of vectors; "" for the run of a method, also if
        a plugin has such a name.
        """
        if self.method in EVALUATED and self.provenance.plugin.package == "bench":
            return self.backbone_name
        return ""

    @property
    def evaluated_as(self) -> str:
        """The name of an evaluated ready-made encoder, also from a folder or the hub; "" for all
        other runs.
        """
        if self.method == PRETRAINED:
            return self.backbone_name
        return self.model_name

    @property
    def label(self) -> str:
        """The name in tables: the method with its variant, or the name of an evaluated model."""
        return self.model_name or self.method_name

    @property
    def backbone_name(self) -> str:
        """The backbone's name in tables: the name that was chosen for it or that its model card
        gives, else its own.
        """
        return public_name(str(self.provenance.backbone.title or self.backbone))

    def score(self, suite: str, task: str, protocol: str | None = None) -> Score | None:
        """Return the first score of a task; None if there is none.

        ``protocol``: only a score under this protocol.
        """
        for score in self.scores:
            if (score.suite, score.task) == (suite, task) and protocol in (None, score.protocol):
                return score
        return None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object; NumPy's numbers and arrays become plain ones."""
        content = msgspec.to_builtins(self, enc_hook=_plain, str_keys=True)
        return content | {"scores": list(content["scores"])}

    @classmethod
    def from_json(cls, content: Any) -> RunRecord:
        """Return the record in a parsed JSON object.

        Raises RecordDamaged, naming the path of the first field that does not fit.
        """
        try:
            return msgspec.convert(_checked_schema(content), cls)._checked()
        except msgspec.ValidationError as error:
            raise RecordDamaged(_message(str(error))) from None
        except OverflowError as error:  # msgspec 0.19, of an integer that no float holds
            raise RecordDamaged(f"a number is too large: {error}") from None

    @classmethod
    def decode(cls, data: bytes) -> RunRecord:
        """Return the record in JSON.

        Raises RecordDamaged, naming the path of the first field that does not fit.
        """
        # this fails for a record of another schema and for a damaged one; msgspec raises
        # UnicodeDecodeError for bad bytes in a key or in the schema's name
        with contextlib.suppress(
            msgspec.DecodeError, OverflowError, RecursionError, UnicodeDecodeError
        ):
            return _DECODER.decode(data)._checked()
        try:
            return cls.from_json(msgspec.json.decode(data))
        except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
            raise RecordDamaged(f"not JSON: {error}") from None

    def _checked(self) -> RunRecord:
        """Return the record itself. Raises RecordDamaged if its fields do not fit together."""
        first: dict[tuple[Any, ...], int] = {}
        for i, score in enumerate(self.scores):
            if first.setdefault(score.key, i) != i:
                raise RecordDamaged(
                    f"scores[{i}]: the same cell as scores[{first[score.key]}]: "
                    f"{' '.join(map(str, score.key))}"
                )
        for i, score in enumerate(self.scores):
            if score.detail:
                check_free_value(f"scores[{i}].detail", score.detail)
        for key, entry in self.recipe.items():
            check_free_value(f"recipe.{key}", entry.value)
        for path, read in _FREE_FIELDS:
            value = read(self)
            if value:
                check_free_value(path, value)
        check_determines(self.provenance.determines)
        return self


def _checked_schema(content: Any) -> dict[str, Any]:
    """Return the JSON object of a record. Raises OtherSchema, with the commit or the version that
    reads it, and RecordDamaged for anything else.
    """
    if not isinstance(content, dict):
        raise RecordDamaged("the record is not a JSON object")
    named = str(content.get("schema"))
    number = re.fullmatch(r"bench\.run/([1-9][0-9]{0,5})", named)
    if number is None:
        raise RecordDamaged(f"schema: expected '{SCHEMA}', found {named[:40]!r}")
    if named == SCHEMA:
        return content
    if int(number[1]) < int(SCHEMA.partition("/")[2]):
        wrote = f"commit {FORMER_READER} of bench"
    else:
        made = content.get("provenance")
        version = made.get("bench_version") if isinstance(made, dict) else None
        wrote = f"bench {printable(str(version))[:60]}" if version else "the bench that wrote it"
    raise OtherSchema(f"schema: {named}, and this bench reads {SCHEMA}", f"{wrote} reads it")


def is_given_by_user(source: str) -> bool:
    """Say if a recipe value with this source was given on the command line."""
    return source.startswith((SET, BUDGET))


def public_name(backbone: str) -> str:
    """Return the short name of a backbone: a hub name unchanged, or the last meaningful part of a
    local folder's path.
    """
    # a hub name has at most one slash; a folder is given absolutely, from here, or through several
    absolute = backbone.startswith(("/", ".", "~", "\\")) or re.match(r"[A-Za-z]:[\\/]", backbone)
    if not absolute and backbone.count("/") <= 1:
        return backbone
    return path_name(backbone)


_DECODER = msgspec.json.Decoder(RunRecord)


def _message(error: str) -> str:
    """Put the place first in msgspec's sentence.

    "Expected `float`, got `str` - at `$.scores[2].value`" becomes "scores[2].value: expected ...".
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


def read_record(path: Path | str, folder: Path | None = None) -> RunRecord:
    """Return the record in one file. Raises RecordDamaged, naming the file and the field.

    ``folder``: the file's own, if it is known.
    """
    try:
        return RunRecord.decode(read_plain_file(path, RECORD_BYTES, folder))
    except RecordDamaged as error:
        # the message may quote a damaged file: nothing in it may move the cursor
        raise type(error)(printable(f"{path}: {error.message}"), error.hint) from None
    except OSError as error:
        raise RecordDamaged(printable(f"{path}: {error.strerror}")) from None
