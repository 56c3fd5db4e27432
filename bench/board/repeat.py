"""The one command that makes a row again, written from its records: a command as it was typed names its author's files, and other rows."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.base.text import one_value, seed_ranges
from bench.data.sets.manifest import BY_HASH, MADE_HERE, RECIPE_CORPORA, data_sets
from bench.runs.record import AVERAGE, RunRecord, public_name

SET = "--set"  # how the source of a recipe value that was given by hand begins
RUN = re.compile(r"([^/\\]+-(?:s\d+|any)-[0-9a-f]{8})(?:[/\\]checkpoint)?[/\\]?$")
"""The id of a run at the end of a path."""
DISTRIBUTION = "sentence-bench"  # whose methods need nothing more


class Repeat(NamedTuple):
    command: str
    needs: str
    """What bench cannot fetch, one sentence; "" where there is nothing."""


def repeat(records: Sequence[RunRecord]) -> Repeat:
    """What makes these runs again, which differ in nothing but the seed, and scores them on the same suites."""
    first = records[0]
    if first.model_name:
        return _evaluate(first)
    corpus, needs = _corpus(first)
    values, of_values = _values(first)
    backbone, of_backbone = _backbone(first)
    files, of_plugins = _plugins(first)
    ranks = (first.provenance.determines or {}).get("ranks")
    options = [
        ("--method", first.method_name),
        ("--setting", first.setting),
        ("--backbone", backbone),
        ("--seeds", seed_ranges(record.seed for record in records)),
        ("--corpus", corpus),
        ("--precision", corpus and (first.provenance.determines or {}).get("precision", "auto")),
        *((SET, value) for value in values),
        ("--on", f"torchrun:{ranks}" if ranks else ""),
        *_suites(records),
        *(("--plugin", file) for file in files),
    ]
    words = [word for name, value in options if value for word in (name, value)]
    needs += [*of_values, *of_backbone, *of_plugins]
    return Repeat(
        shlex.join(["bench", "run", *words]), f"Needs {'; and '.join(needs)}." if needs else ""
    )


def _evaluate(record: RunRecord) -> Repeat:
    """Of an evaluated object, of vectors or of a server, which only its owner can evaluate again."""
    typed, revision = record.provenance.command or "", record.provenance.backbone.revision or ""
    needs = f"Needs what it names; the identity of the model is {revision[:12]}..."
    return Repeat(without_folders(typed) if typed.startswith("bench ") else typed, needs)


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


def _corpus(record: RunRecord) -> tuple[str, list[str]]:
    """(what --corpus takes, "" where nothing was trained: a name that bench can find or fetch, else the hash of the text; what one has
    to have)"""
    name, sha256 = record.provenance.corpus.name, record.provenance.corpus.sha256
    if name is None or name in ("builtin", *MADE_HERE) or name.startswith("hub:"):
        return name or "", []
    files = [data_set.files[0] for data_set in data_sets().values() if data_set.kind == "corpus"]
    hashes = {(file.name, form.sha256) for file in files for form in file.forms.values()}
    known = [word for word, file in RECIPE_CORPORA.items() if (file, sha256) in hashes]
    text = f"the training text {public_name(name)} in the folder where you type it, or in train/ of --data"
    return (
        (known[0], [])
        if known
        else (f"{BY_HASH}{sha256}", [f"{text}: it is found by its sha256, whatever its name"])
    )


def _values(record: RunRecord) -> tuple[list[str], list[str]]:
    """(recipe values that a command set, or a recipe file: "learning_rate=3e-5"; what one has to have for them)"""
    of_file = record.provenance.execution.recipe_file
    contents = (record.provenance.determines or {}).get("places") or {}
    checked = {score.suite for score in record.scores} == {"check"}
    values, needs = [], []
    for key, entry in record.recipe.items():
        default = checked and key == "select_on"  # which the suite check decides otherwise
        if not (entry.source.startswith(SET) or key in of_file or default):
            continue
        value = entry.value
        if value is not None and contents.get(key) is not None:
            value, file = _place(str(value), str(contents[key]))
            needs += [f"as {key} {file}"] if file else []
        values.append(f"{key}={_value(value)}")
    return values, needs


def _value(value: object) -> str:
    """What --set takes behind the equals sign."""
    if value is None:
        return "none"
    return one_value(value) if isinstance(value, str) else json.dumps(value)


def _place(place: str, content: str) -> tuple[str, str]:
    """(a file, a folder or a model that a recipe names, as anybody may type it; what one has to have, "" of a model of the hub)"""
    name = _without_folder(place)
    if RUN.search(place) is not None:
        return name, f"the run {Path(name).name}, made as its own row says"
    if name == place and len(content) == 40:  # a commit of the hub
        return name if "@" in name else f"{name}@{content}", ""
    return name, f"{name}, in the folder where you type it (sha256 {content[:12]}...)"


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


def _backbone(record: RunRecord) -> tuple[str, list[str]]:
    """(what --backbone takes, of the hub with the very commit; what one has to have)"""
    name, revision = public_name(record.backbone), record.provenance.backbone.revision or ""
    if len(revision) == 40 and "@" not in name:
        return f"{name}@{revision}", []
    local = name != "builtin" and len(revision) == 64
    return name, [f"the model folder {name} (sha256 of its weights {revision[:12]}...)"] * local


def _plugins(record: RunRecord) -> tuple[list[str], list[str]]:
    """(the names of the files that --plugin takes, what one has to have) of a method and of suites that are not of bench."""
    sources = {f"the method {record.method}": record.provenance.plugin}
    scorers, suites = record.provenance.execution.suites, {one.suite for one in record.scores}
    sources |= {f"the suite {name}": scorers[name] for name in scorers if name in suites}
    files: dict[str, str] = {}
    needs: list[str] = []
    for what, source in sources.items():
        name = Path(source.package or DISTRIBUTION).name
        if name.endswith(".py"):
            files[name] = f"the file {name} (sha256 of its source {str(source.sha256)[:12]}...)"
        elif name != DISTRIBUTION:
            needs.append(f"{what} of {source.package}")
    return list(files), [*needs, *files.values()]
