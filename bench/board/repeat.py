"""The commands that pages print: composed by bench from the checked fields of records, never the words of a record.

A record may be anybody's. A method, a name or a value that is not of the form that its option takes makes the row "not repeatable from
here", and so does a model that only its owner has. The command as its author typed it stands in ``run.json`` alone.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bench.base.text import one_value, seed_ranges
from bench.data.corpora.naming import BY_HASH, HUB, parse_corpus
from bench.data.sets import MADE_HERE, RECIPE_CORPORA, data_sets
from bench.records.names import OWN_DATA
from bench.records.record import (
    AVERAGE,
    CORPUS_PARTS,
    SET,
    SETTINGS,
    RecipeValue,
    RunRecord,
    is_given_by_user,
    public_name,
)
from bench.records.searches import Search, Searched
from bench.records.value_sources import is_tuned
from bench.run.recipe_defaults import ON_REQUEST, TRAINING

NOT_REPEATABLE = "not repeatable from here"
ANOTHER = "NAME"
"""Stands for another method in the command that makes a row of it."""
RUN = re.compile(
    r"([A-Za-z0-9][\w.+@=-]*-(?:s\d+|any)-[0-9a-f]{8})(?:[/\\]checkpoint)?[/\\]?$", re.ASCII
)
"""The id of a run at the end of a path."""
PRECISIONS = ("auto", "fp32", "tf32", "bf16", "fp16")
MOST_RANKS = 4096
MOST_WORDS, LONGEST_WORD = 200, 500

_METHOD = re.compile(r"[a-z0-9-]+(\+[\w.-]+)?", re.ASCII)
_NAME = re.compile(r"\w[\w .@+=/-]*")
_CORPUS = re.compile(rf"builtin|hub:[\w./@:,#=-]+|{BY_HASH}[0-9a-f]{{64}}", re.ASCII)
_COLUMN = re.compile(r"\w[\w .()+-]*=(?:sentence|label|score|negatives|sent[01]|hard_neg(?:_\d+)?)")
_SUITE = re.compile(r"[a-z0-9][a-z0-9-]*(:[\w.,@-]+)?", re.ASCII)
_FORM = re.compile(r"tokenised|raw|other-[0-9a-f]+")
_FILE = re.compile(r"\w[\w .+-]*\.py")
_KEY = re.compile(r"[A-Za-z]\w*", re.ASCII)
_BUDGET = re.compile(r"[\w.-]+", re.ASCII)
_UNSAFE = re.compile(r"[;|&$`\\<>]")
"""What a value may not hold, although it is quoted: not every shell reads quotes alike."""
_TOKEN = re.compile(r"</?(?:mask|s|pad|unk)>")
"""RoBERTa's tokens, which stand in prompts."""


class _NotRepeatable(Exception):
    """A field has not the form that its option takes."""


def repeat(records: Sequence[RunRecord]) -> str:
    """The command that repeats these runs, which differ only in the seed, and scores them on the same suites; NOT_REPEATABLE if there is none.

    Plugin files, model folders and training texts, which bench cannot fetch, are given by name; the record has their sha256.
    """
    first = records[0]
    if first.model_name:  # an object, vectors, a server: only their owner has them
        return NOT_REPEATABLE
    try:
        return _composed(["bench", "run", *_run_words(records)])
    except _NotRepeatable:
        return NOT_REPEATABLE


def new_row(rows: Sequence[Sequence[RunRecord]], like: Sequence[RunRecord]) -> str:
    """The command that makes a row of another method, NAME, for the table of these rows; NOT_REPEATABLE if there is none.

    It has the seeds, the backbone, the training text and the precision of the row ``like``, and of the recipe what does not belong to a
    method: the budget and other values of the training that most rows were given alike. ``rows``: the runs of each, by seed.
    """
    try:
        return _composed(["bench", *_new_row_words(rows, like)])
    except _NotRepeatable:
        return NOT_REPEATABLE


def repeat_search(search: Search) -> str:
    """The command that makes a search again; NOT_REPEATABLE if there is none."""
    try:
        return _composed(["bench", "search", *_search_words(search)])
    except _NotRepeatable:
        return NOT_REPEATABLE


def _composed(words: Sequence[str]) -> str:
    if len(words) > MOST_WORDS or any(len(word) > LONGEST_WORD for word in words):
        raise _NotRepeatable
    return shlex.join(words)


def _checked(value: object, pattern: re.Pattern[str]) -> str:
    """The value, if it is a text of this form that can be seen."""
    if not isinstance(value, str) or not value.isprintable() or not pattern.fullmatch(value):
        raise _NotRepeatable
    return value


def _run_words(records: Sequence[RunRecord]) -> list[str]:
    first = records[0]
    determines = _mapping(first.provenance.determines)
    if first.setting not in SETTINGS:
        raise _NotRepeatable
    words = ["--method", _checked(first.method_name, _METHOD), "--setting", first.setting]
    words += ["--backbone", _checked(_backbone(first), _NAME)]
    if seeds := seed_ranges(record.seed for record in records):
        words += ["--seeds", seeds]
    if first.provenance.corpus.name:
        for corpus in _corpora(first, determines.get(CORPUS_PARTS)):
            words += ["--corpus", corpus]
        words += ["--precision", _precision(determines.get("precision"))]
    for value in _values(first, _mapping(determines.get("places"))):
        words += [SET, value]
    if ranks := determines.get("ranks"):
        words += ["--on", f"torchrun:{_ranks(ranks)}"]
    words += _suites(records)
    for file in _plugins(first):
        words += ["--plugin", _checked(file, _FILE)]
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
        suites += ["--plugin", _checked(file, _FILE)]
    if first.evaluated_as:
        return ["evaluate", "MODEL", *suites]
    words = ["run", "--method", ANOTHER, "--setting", first.setting]
    words += ["--backbone", _checked(_backbone(first), _NAME)]
    if seeds := seed_ranges(record.seed for record in like):
        words += ["--seeds", seeds]
    corpus = _corpus(first)
    if first.training is None or not corpus:
        return [*words, *suites]
    precision = _precision(_mapping(first.provenance.determines).get("precision"))
    words += ["--corpus", corpus, "--precision", precision]
    for key, text in _values_of_most(rows).items():
        words += ["--budget", text] if key == "budget" else [SET, f"{key}={text}"]
    return [*words, *suites]


def _suites_of_most(rows: Sequence[Sequence[RunRecord]]) -> set[str]:
    """The suites on which more than half of the rows are scored."""
    counts = Counter(suite for runs in rows for suite in {score.suite for score in runs[0].scores})
    return {suite for suite, count in counts.items() if 2 * count > len(rows)}


def _values_of_most(rows: Sequence[Sequence[RunRecord]]) -> dict[str, str]:
    """The values of the training that more than half of the trained rows were given alike, no search having chosen them: key -> text."""
    trained = [runs[0] for runs in rows if runs[0].training is not None]
    counts: Counter[tuple[str, str]] = Counter()
    for record in trained:
        for key, entry in _given_values(record):
            if key in (*TRAINING, *ON_REQUEST) and not is_tuned(entry):
                counts[key, _value(entry.value)] += 1
    return {key: text for (key, text), count in counts.items() if 2 * count > len(trained)}


def _mapping(value: object) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _NotRepeatable
    return value


def _precision(value: object) -> str:
    if value is None:
        return "auto"
    if not isinstance(value, str) or value not in PRECISIONS:
        raise _NotRepeatable
    return value


def _ranks(value: object) -> int:
    if type(value) is not int or not 1 <= value <= MOST_RANKS:
        raise _NotRepeatable
    return value


def _suites(records: Sequence[RunRecord]) -> list[str]:
    """The options --suite (for mteb with its tasks) and --text (if it is not the default); a user's own files are not here."""
    scores = [score for record in records for score in record.scores if score.suite != OWN_DATA]
    if not scores and any(record.scores for record in records):
        raise _NotRepeatable
    tasks = [score.task for score in scores if score.suite == "mteb" and score.task != AVERAGE]
    names: list[str] = []
    forms: list[str] = []
    for score in scores:
        name = score.suite
        if name == "mteb" and tasks:
            name = f"mteb:{','.join(dict.fromkeys(tasks))}"
        if name not in names:
            names.append(_checked(name, _SUITE))
        if score.text and score.text not in forms and _FORM.fullmatch(score.text):
            forms.append(score.text)
    words = ["--suite", ",".join(names)]
    if forms not in ([], ["tokenised"]):
        words += ["--text", ",".join(forms)]
    return words


def _corpora(record: RunRecord, parts: object) -> list[str]:
    """The values of --corpus, one for each text. ``parts``: those that the record has, if its text is composed; None: one text as it is."""
    if parts is None:
        return [_corpus(record.provenance.corpus.name, record.provenance.corpus.sha256)]
    if not isinstance(parts, list | tuple) or not parts:
        raise _NotRepeatable
    return [_part_of_corpus(part) for part in parts]


def _corpus(name: str | None, sha256: str | None) -> str:
    """A value of --corpus: a name that bench can find or fetch, else the hash of the text."""
    if name in MADE_HERE:
        return str(name)
    if name is not None and (name == "builtin" or name.startswith(HUB)):
        return _checked(name, _CORPUS)
    hashes = {
        (data_set.files[0].name, form.sha256)
        for data_set in data_sets().values()
        if data_set.kind == "corpus"
        for form in data_set.files[0].forms.values()
    }
    for word, file in RECIPE_CORPORA.items():
        if (file, sha256) in hashes:
            return word
    return _checked(f"{BY_HASH}{sha256}", _CORPUS)


def _part_of_corpus(argument: object) -> str:
    """One of several values of --corpus, with the columns that it may have."""
    if not isinstance(argument, str):
        raise _NotRepeatable
    if argument in MADE_HERE or _CORPUS.fullmatch(argument):
        return argument
    corpus = parse_corpus(argument)
    columns = [_checked(column, _COLUMN) for column in corpus.columns]
    return f"{_checked(corpus.source, _CORPUS)}:{','.join(columns)}"


def _values(record: RunRecord, contents: Mapping[str, Any]) -> list[str]:
    """Recipe values that a command set, or a recipe file: "learning_rate=3e-5". ``contents``: key -> hash or commit of what a value names."""
    values = []
    for key, entry in _given_values(record):
        value = entry.value
        if isinstance(value, str) and isinstance(contents.get(key), str):
            value = _place(value, contents[key])
        values.append(f"{_checked(key, _KEY)}={_value(value)}")
    return values


def _given_values(record: RunRecord) -> Iterator[tuple[str, RecipeValue]]:
    """The recipe values that a command, a recipe file or the suite gave, by key."""
    of_file = record.provenance.execution.recipe_file
    checked = {score.suite for score in record.scores} == {"check"}
    for key, entry in record.recipe.items():
        decided_by_suite = checked and key == "select_on"  # which the suite check decides otherwise
        if is_given_by_user(entry.source) or key in of_file or decided_by_suite:
            yield key, entry


def _value(value: object) -> str:
    """What --set takes behind the equals sign."""
    if value is None:
        return "none"
    text = one_value(value) if isinstance(value, str) else json.dumps(value)
    if not text.isprintable() or _UNSAFE.search(_TOKEN.sub("", text.replace("\\,", ","))):
        raise _NotRepeatable
    return text


def _place(place: str, content: str) -> str:
    """A file, a folder or a model that a recipe names, without its author's folders; a hub model with its commit."""
    name = _without_folder(place)
    of_hub = name == place and len(content) == 40 and RUN.search(place) is None
    if of_hub and "@" not in name:
        return f"{name}@{content}"
    return name


def _without_folder(place: str) -> str:
    """A run is placed in the default runs folder; anything else becomes the last part of its path."""
    run = RUN.search(place)
    return public_name(place) if run is None else f"runs/{run[1]}"


def _backbone(record: RunRecord) -> str:
    """The value of --backbone; a hub model with its commit."""
    name, revision = public_name(record.backbone), record.provenance.backbone.revision or ""
    return f"{name}@{revision}" if len(revision) == 40 and "@" not in name else name


def _plugins(record: RunRecord) -> list[str]:
    """The file names for --plugin: of the method and of suites that are not part of bench."""
    of_method = Path(record.provenance.plugin.package or "").name
    names = [of_method] if of_method.endswith(".py") else []
    return list(dict.fromkeys([*names, *_suite_files(record)]))


def _suite_files(record: RunRecord) -> list[str]:
    """The names of the files that define suites of the record's scores."""
    scored = {score.suite for score in record.scores}
    names = []
    for suite, code in record.provenance.execution.suites.items():
        name = Path(code.package or "").name
        if suite.partition(" ")[0] in scored and name.endswith(".py"):
            names.append(name)
    return list(dict.fromkeys(names))


# --- searches ---


def _search_words(search: Search) -> list[str]:
    study = search.study
    if not study.methods:
        raise _NotRepeatable
    first = next(iter(study.methods.values()))
    if first.setting not in SETTINGS:
        raise _NotRepeatable
    words = ["--method", ",".join(_searched_names(study.methods)), "--setting", first.setting]
    words += ["--backbone", _checked(public_name(first.backbone), _NAME)]
    for corpus in _searched_corpora(first.corpus):
        words += ["--corpus", corpus]
    words += ["--trials", str(study.trials), "--seeds", seed_ranges(study.seeds)]
    words += ["--sampler", _checked(study.sampler, _SUITE)]
    words += ["--pruner", _checked(study.pruner, _SUITE)]
    if study.budget:
        words += ["--budget", _checked(study.budget, _BUDGET)]
    words += ["--precision", _precision(study.precision)]
    words += ["--suite", ",".join(_checked(suite, _SUITE) for suite in study.suites)]
    words += ["--name", _checked(study.name, _NAME)]
    for key in study.fixed:
        if key != "budget":
            words += [SET, f"{_checked(key, _KEY)}={_fixed_value(key, study.methods)}"]
    for key, text in _own_spaces(study.methods.values()).items():
        words += ["--space", f"{_checked(key, _KEY)}={text}"]
    return words


def _searched_names(methods: Mapping[str, Searched]) -> list[str]:
    names = []
    for method, searched in methods.items():
        name = f"{method}+{searched.variant}" if searched.variant else method
        names.append(_checked(name, _METHOD))
    return names


def _searched_corpora(named: str) -> list[str]:
    """The values of --corpus. ``named``: name@sha256, or names = value + value if there were several texts, or columns were chosen."""
    _, equals, arguments = named.partition(" = ")
    if equals:
        return [_part_of_corpus(argument) for argument in arguments.split(" + ")]
    name, _, sha256 = named.rpartition("@")
    if not name:
        return []
    if name in ("builtin", *MADE_HERE):
        return [name]
    return [_checked(name if name.startswith(HUB) else f"{BY_HASH}{sha256}", _CORPUS)]


def _fixed_value(key: str, methods: Mapping[str, Searched]) -> str:
    for searched in methods.values():
        if key in searched.recipe:
            value = searched.recipe[key]
            return _value(_without_folder(value) if _is_place(value) else value)
    raise _NotRepeatable


def _is_place(value: object) -> bool:
    return isinstance(value, str) and RUN.search(value) is not None


def _own_spaces(methods: Iterable[Searched]) -> dict[str, str]:
    """What --space gave, in the place of recipe files."""
    spaces: dict[str, str] = {}
    for searched in methods:
        for key, axis in searched.space.items():
            if axis.get("source") != "--space":
                continue
            if axis.get("values"):
                spaces[key] = ",".join(_value(value) for value in axis["values"])
            else:
                scale = "log:" if axis.get("scale") == "log" else ""
                spaces[key] = f"{scale}{_value(axis.get('low'))}..{_value(axis.get('high'))}"
    return spaces
