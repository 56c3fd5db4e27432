"""The one command that makes a row again, written from its records: a command as it was typed names its author's files, and other rows."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from bench.base.text import one_value, seed_ranges
from bench.data.sets import BY_HASH, MADE_HERE, RECIPE_CORPORA, data_sets
from bench.runs.record import AVERAGE, SET, RunRecord, public_name

RUN = re.compile(r"([^/\\]+-(?:s\d+|any)-[0-9a-f]{8})(?:[/\\]checkpoint)?[/\\]?$")
"""The id of a run at the end of a path."""


def repeat(records: Sequence[RunRecord]) -> str:
    """What makes these runs again, which differ in nothing but the seed, and scores them on the same suites.

    Of an evaluated object, of vectors or of a server the command as it was typed, which only its owner can give again. What bench cannot
    fetch (files of plugins, model folders, a training text) stands in it by its name, and in the record with its sha256.
    """
    first = records[0]
    if first.model_name:
        typed = first.provenance.command or ""
        return without_folders(typed) if typed.startswith("bench ") else typed
    corpus, determines = _corpus(first), first.provenance.determines or {}
    ranks = determines.get("ranks")
    options = [
        ("--method", first.method_name),
        ("--setting", first.setting),
        ("--backbone", _backbone(first)),
        ("--seeds", seed_ranges(record.seed for record in records)),
        ("--corpus", corpus),
        ("--precision", corpus and determines.get("precision", "auto")),
        *((SET, value) for value in _values(first)),
        ("--on", f"torchrun:{ranks}" if ranks else ""),
        *_suites(records),
        *(("--plugin", file) for file in _plugins(first)),
    ]
    words = [word for name, value in options if value for word in (name, value)]
    return shlex.join(["bench", "run", *words])


def _suites(records: Sequence[RunRecord]) -> list[tuple[str, str]]:
    """The options --suite and --text; of mteb with its tasks, of text what is not the default."""
    scores = [score for record in records for score in record.scores]
    tasks = dict.fromkeys(one.task for one in scores if one.suite == "mteb" and one.task != AVERAGE)
    names = {"mteb": f"mteb:{','.join(tasks)}"} if tasks else {}
    suites = dict.fromkeys(names.get(score.suite, score.suite) for score in scores)
    forms = dict.fromkeys(score.text for score in scores if score.text)
    known = [form for form in forms if form in ("tokenised", "raw") or form.startswith("other-")]
    text = "" if known == ["tokenised"] else ",".join(known)
    return [("--suite", ",".join(suites)), ("--text", text)]


def _corpus(record: RunRecord) -> str:
    """What --corpus takes, "" where nothing was trained: a name that bench can find or fetch, else the hash of the text."""
    name, sha256 = record.provenance.corpus.name, record.provenance.corpus.sha256
    if name is None or name in ("builtin", *MADE_HERE) or name.startswith("hub:"):
        return name or ""
    files = [data_set.files[0] for data_set in data_sets().values() if data_set.kind == "corpus"]
    hashes = {(file.name, form.sha256) for file in files for form in file.forms.values()}
    known = (word for word, file in RECIPE_CORPORA.items() if (file, sha256) in hashes)
    return next(known, f"{BY_HASH}{sha256}")


def _values(record: RunRecord) -> list[str]:
    """Recipe values that a command set, or a recipe file: "learning_rate=3e-5"."""
    of_file = record.provenance.execution.recipe_file
    contents = (record.provenance.determines or {}).get("places") or {}
    checked = {score.suite for score in record.scores} == {"check"}
    values = []
    for key, entry in record.recipe.items():
        default = checked and key == "select_on"  # which the suite check decides otherwise
        if not (entry.source.startswith(SET) or key in of_file or default):
            continue
        value = entry.value
        if value is not None and contents.get(key) is not None:
            value = _place(str(value), str(contents[key]))
        values.append(f"{key}={_value(value)}")
    return values


def _value(value: object) -> str:
    """What --set takes behind the equals sign."""
    if value is None:
        return "none"
    return one_value(value) if isinstance(value, str) else json.dumps(value)


def _place(place: str, content: str) -> str:
    """A file, a folder or a model that a recipe names, as anybody may type it; of the hub with the very commit."""
    name = _without_folder(place)
    of_hub = name == place and len(content) == 40 and RUN.search(place) is None
    return f"{name}@{content}" if of_hub and "@" not in name else name


def _without_folder(place: str) -> str:
    """A run in the folder that runs are in by default, anything else by the last part of its path."""
    run = RUN.search(place)
    return public_name(place) if run is None else f"runs/{run[1]}"


def without_folders(command: str) -> str:
    """A command as it was typed, without its author's folders: each path by its last part."""
    try:
        words = [word.rpartition("=") for word in shlex.split(command)]
    except ValueError:  # no command that a shell would take
        return command
    return shlex.join(key + equals + _without_folder(value) for key, equals, value in words)


def _backbone(record: RunRecord) -> str:
    """What --backbone takes, of the hub with the very commit."""
    name, revision = public_name(record.backbone), record.provenance.backbone.revision or ""
    return f"{name}@{revision}" if len(revision) == 40 and "@" not in name else name


def _plugins(record: RunRecord) -> list[str]:
    """The names of the files that --plugin takes, of the method and of suites that are not of bench."""
    execution, suites = record.provenance.execution, {one.suite for one in record.scores}
    sources = [code for name, code in execution.suites.items() if name in suites]
    names = (Path(code.package or "").name for code in (record.provenance.plugin, *sources))
    return list(dict.fromkeys(name for name in names if name.endswith(".py")))
