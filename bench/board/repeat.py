"""The commands that pages print: composed by bench from the checked fields of records, never the
words of a record.

A record may be anybody's. A method, a name or a value that is not of the form that its option takes
makes the row "not repeatable from here", and so does a model that only its owner has. The command
as its author typed it is in ``run.json`` alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bench.base.text import seed_ranges
from bench.board.command_words import (
    KEY,
    METHOD_NAME,
    NOT_REPEATABLE,
    PLAIN_NAME,
    RUN,
    SUITE_NAME,
    NotRepeatable,
    checked_mapping,
    checked_precision,
    checked_word,
    compose,
    corpus_part_word,
    corpus_word,
    value_word,
    without_folder,
)
from bench.records.record import (
    AVERAGE,
    CORPUS_PARTS,
    SET,
    SETTINGS,
    RecipeValue,
    RunRecord,
    Score,
    is_given_by_user,
    public_name,
)
from bench.records.value_sources import is_tuned
from bench.run.recipe_defaults import ENCODER_VALUES, ON_REQUEST, TRAINING

ANOTHER = "NAME"
"""Stands for another method in the command that makes a row of it."""
MOST_RANKS = 4096
_PROTOCOL = re.compile(r"[a-z0-9-]+-raw/[0-9]+")
_FILE = re.compile(r"\w[\w .+-]*\.py")


def repeat(records: Sequence[RunRecord]) -> str:
    """Compose the command that repeats these runs, which differ only in the seed, with the same
    suites.

    NOT_REPEATABLE if there is none.

    Plugin files, model folders and training texts, which bench cannot fetch, are given by name; the
    record has their sha256.
    """
    first = records[0]
    if first.model_name:  # an object, vectors, a server: only their owner has them
        return NOT_REPEATABLE
    try:
        return compose(["bench", "run", *_run_words(records)])
    except NotRepeatable:
        return NOT_REPEATABLE


def new_row(rows: Sequence[Sequence[RunRecord]], like: Sequence[RunRecord]) -> str:
    """Compose the command that makes a row of another method, NAME, for the table of these rows.

    NOT_REPEATABLE if there is none.

    It has the seeds, the backbone, the training text and the precision of the row ``like``, and of
    the recipe what does not belong to a method: the budget and other values of the training that
    most rows share. ``rows``: the runs of each, by seed.
    """
    try:
        return compose(["bench", *_new_row_words(rows, like)])
    except NotRepeatable:
        return NOT_REPEATABLE


def _run_words(records: Sequence[RunRecord]) -> list[str]:
    first = records[0]
    determines = checked_mapping(first.provenance.determines)
    if first.setting not in SETTINGS:
        raise NotRepeatable
    words = ["--method", checked_word(first.method_name, METHOD_NAME), "--setting", first.setting]
    words += ["--backbone", checked_word(_backbone(first), PLAIN_NAME)]
    seeds = seed_ranges(record.seed for record in records)
    if seeds:
        words += ["--seeds", seeds]
    corpora = _corpora(first)
    for corpus in corpora:
        words += ["--corpus", corpus]
    if corpora:
        words += ["--precision", checked_precision(determines.get("precision"))]
    for value in _values(first, checked_mapping(determines.get("places"))):
        words += [SET, value]
    ranks = determines.get("ranks")
    if ranks:
        words += ["--on", f"torchrun:{_ranks(ranks)}"]
    words += _suites(records)
    for file in _plugins(first):
        words += ["--plugin", checked_word(file, _FILE)]
    return words


def _new_row_words(rows: Sequence[Sequence[RunRecord]], like: Sequence[RunRecord]) -> list[str]:
    first = like[0]
    shared = _suites_of_most(rows)
    scored = [
        replace(run, scores=tuple(score for score in run.scores if score.suite in shared))
        for run in like
    ]
    suites = _suites(scored)
    for file in _suite_files(scored[0]):
        suites += ["--plugin", checked_word(file, _FILE)]
    if first.evaluated_as:
        return ["evaluate", "MODEL", *suites]
    words = ["run", "--method", ANOTHER, "--setting", first.setting]
    words += ["--backbone", checked_word(_backbone(first), PLAIN_NAME)]
    seeds = seed_ranges(record.seed for record in like)
    if seeds:
        words += ["--seeds", seeds]
    corpora = _corpora(first)
    if first.training is None or not corpora:
        return [*words, *suites]
    precision = checked_precision(checked_mapping(first.provenance.determines).get("precision"))
    for corpus in corpora:
        words += ["--corpus", corpus]
    words += ["--precision", precision]
    for key, text in _values_of_most(rows).items():
        words += ["--budget", text] if key == "budget" else [SET, f"{key}={text}"]
    return [*words, *suites]


def _suites_of_most(rows: Sequence[Sequence[RunRecord]]) -> set[str]:
    """Return the suites that score more than half of the rows."""
    counts: Counter[str] = Counter()
    for runs in rows:
        counts.update({score.suite for score in runs[0].scores})
    return {suite for suite, count in counts.items() if 2 * count > len(rows)}


def _values_of_most(rows: Sequence[Sequence[RunRecord]]) -> dict[str, str]:
    """Return key -> text of the training's values that more than half of the trained rows were
    given.

    Values that a search chose are not among them.
    """
    trained = [runs[0] for runs in rows if runs[0].training is not None]
    counts: Counter[tuple[str, str]] = Counter()
    for record in trained:
        for key, entry in _given_values(record):
            if key in (*TRAINING, *ON_REQUEST, *ENCODER_VALUES) and not is_tuned(entry):
                counts[key, value_word(entry.value)] += 1
    return {key: text for (key, text), count in counts.items() if 2 * count > len(trained)}


def _ranks(value: object) -> int:
    if type(value) is not int or not 1 <= value <= MOST_RANKS:
        raise NotRepeatable
    return value


def _suites(records: Sequence[RunRecord]) -> list[str]:
    """Return the option --suite: for mteb with its tasks, for raw texts with the protocol.

    A user's own files are left out: they are not here.
    """
    scores: list[Score] = []
    for record in records:
        scores += [score for score in record.scores if score.suite != "own"]
    if not scores and any(record.scores for record in records):
        raise NotRepeatable
    tasks = [score.task for score in scores if score.suite == "mteb" and score.task != AVERAGE]
    names: list[str] = []
    for score in scores:
        name = score.suite
        if name == "mteb" and tasks:
            name = f"mteb:{','.join(dict.fromkeys(tasks))}"
        elif _PROTOCOL.fullmatch(score.protocol):
            name = f"{name}:{score.protocol}"
        if name not in names:
            names.append(checked_word(name, SUITE_NAME))
    return ["--suite", ",".join(names)]


def _corpora(record: RunRecord) -> list[str]:
    """Return the values of --corpus, one for each text; none if nothing was trained.

    Raises NotRepeatable.
    """
    name, sha256 = record.provenance.corpus.name, record.provenance.corpus.sha256
    if not name:
        return []
    parts = checked_mapping(record.provenance.determines).get(CORPUS_PARTS)
    if parts is None:
        return [corpus_word(name, sha256)]
    if not isinstance(parts, list | tuple) or not parts:
        raise NotRepeatable
    return [corpus_part_word(part) for part in parts]


def _values(record: RunRecord, contents: Mapping[str, Any]) -> list[str]:
    """Return values that a command set, or a recipe file: "learning_rate=3e-5".

    ``contents``: key -> hash or commit of the file or model that a value names.
    """
    values = []
    for key, entry in _given_values(record):
        value = entry.value
        if isinstance(value, str) and isinstance(contents.get(key), str):
            value = _place(value, contents[key])
        values.append(f"{checked_word(key, KEY)}={value_word(value)}")
    return values


def _given_values(record: RunRecord) -> Iterator[tuple[str, RecipeValue]]:
    """Yield the recipe values that a command, a recipe file or the suite gave, by key."""
    of_file = record.provenance.execution.recipe_file
    checked = {score.suite for score in record.scores} == {"check"}
    for key, entry in record.recipe.items():
        decided_by_suite = checked and key == "select_on"  # which the suite check decides otherwise
        if is_given_by_user(entry.source) or key in of_file or decided_by_suite:
            yield key, entry


def _place(place: str, content: str) -> str:
    """Name a file, a folder or a model without its author's folders; a hub model with its
    commit."""
    name = without_folder(place)
    of_hub = name == place and len(content) == 40 and RUN.search(place) is None
    if of_hub and "@" not in name:
        return f"{name}@{content}"
    return name


def _backbone(record: RunRecord) -> str:
    """Return the value of --backbone; a hub model with its commit."""
    name, revision = public_name(record.backbone), record.provenance.backbone.revision or ""
    return f"{name}@{revision}" if len(revision) == 40 and "@" not in name else name


def _plugins(record: RunRecord) -> list[str]:
    """Return the file names for --plugin: of the method and of suites that are not part of
    bench."""
    of_method = Path(record.provenance.plugin.package or "").name
    names = [of_method] if of_method.endswith(".py") else []
    return list(dict.fromkeys([*names, *_suite_files(record)]))


def _suite_files(record: RunRecord) -> list[str]:
    """Return the names of the files that define suites of the record's scores."""
    scored = {score.suite for score in record.scores}
    names = []
    for suite, code in record.provenance.execution.suites.items():
        name = Path(code.package or "").name
        if suite.partition(" ")[0] in scored and name.endswith(".py"):
            names.append(name)
    return list(dict.fromkeys(names))
