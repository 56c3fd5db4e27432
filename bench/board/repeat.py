"""The one command that makes a row again, written from its records: a command as it was typed names its author's files, and other rows."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.base.text import one_value
from bench.data.sets.manifest import BY_HASH, RECIPE_CORPORA, TARGET, data_sets
from bench.runs.record import AVERAGE, CorpusUsed, RunRecord, public_name

SET = "--set"  # how the source of a recipe value that was given by hand begins
RUN = re.compile(r"([^/\\]+-(?:s\d+|any)-[0-9a-f]{8})(?:[/\\]checkpoint)?[/\\]?$")
"""The id of a run at the end of a path."""
OWN = "sentence-bench"  # the distribution whose methods need nothing more


@dataclass(frozen=True, kw_only=True)
class Repeat:
    """A command, and what it cannot fetch."""

    command: str
    needs: str  # one sentence; "" where bench has or fetches everything


def repeat(records: Sequence[RunRecord]) -> Repeat:
    """What makes these runs again, which differ in nothing but the seed, and scores them on the same suites."""
    first = records[0]
    if first.model_name:
        return _evaluate(first)
    scores = [score for record in records for score in record.scores]
    suites = list(dict.fromkeys(score.suite for score in scores))
    made, determines, needs = first.provenance, first.provenance.determines or {}, []
    corpus = None if made.corpus.name is None else corpus_option(made.corpus)
    if corpus is not None and corpus.startswith(BY_HASH):
        text = f"the training text {public_name(str(made.corpus.name))} in the folder where you type it"
        needs.append(
            f"{text}, or in train/ of --data: it is found by its sha256, whatever its name"
        )
    values = _values(first, suites)
    for key, content in (determines.get("places") or {}).items():
        if content is not None and values.get(key) is not None:
            values[key], file = _place(str(values[key]), str(content))
            needs += [f"as {key} {file}"] if file else []
    forms = [
        text
        for text in dict.fromkeys(score.text or "" for score in scores)
        if text in ("tokenised", "raw") or text.startswith("other-")
    ]
    tasks = ",".join(
        dict.fromkeys(s.task for s in scores if s.suite == "mteb" and s.task != AVERAGE)
    )
    files, of_others = _plugins(first, suites)
    ranks = determines.get("ranks")
    options = [
        ("--method", f"{first.method}+{first.variant}" if first.variant else first.method),
        ("--setting", first.setting),
        ("--backbone", _backbone(first)),
        ("--seeds", seed_words([record.seed for record in records])),
        ("--corpus", corpus),
        ("--precision", corpus and str(determines.get("precision") or "auto")),
        *(("--set", f"{key}={_value(value)}") for key, value in values.items()),
        ("--on", None if ranks is None else f"torchrun:{ranks}"),
        (
            "--suite",
            ",".join(f"mteb:{tasks}" if suite == "mteb" and tasks else suite for suite in suites),
        ),
        ("--text", "" if forms == ["tokenised"] else ",".join(forms)),
        *(("--plugin", file) for file in files),
    ]
    revision = _revision(first)
    if first.backbone != "builtin" and len(revision) == 64:  # a commit of the hub has 40 digits
        weights = f"(sha256 of its weights {revision[:12]}...)"
        needs.append(f"the model folder {public_name(first.backbone)} {weights}")
    needs += of_others
    return Repeat(
        command=_command("run", options), needs=f"Needs {'; and '.join(needs)}." if needs else ""
    )


def _command(verb: str, options: Iterable[tuple[str, str | None]]) -> str:
    """With the options that have a value."""
    return shlex.join(
        [
            "bench",
            verb,
            *(text for name, value in options if value for text in (name, value) if text),
        ]
    )


def _values(record: RunRecord, suites: Sequence[str]) -> dict[str, Any]:
    """The recipe values that a command set, or a recipe file."""
    of_file = record.provenance.execution.recipe_file
    values = {
        key: entry.value
        for key, entry in record.recipe.items()
        if entry.source.startswith(SET) or key in of_file
    }
    if suites == ["check"] and "select_on" in record.recipe:  # which then has another default
        values.setdefault("select_on", record.recipe["select_on"].value)
    return values


def _evaluate(record: RunRecord) -> Repeat:
    """Of an evaluated model: how a server is asked again; anything else only its owner can evaluate again."""
    suites = list(dict.fromkeys(score.suite for score in record.scores))
    values = {key: value.value for key, value in record.recipe.items()}
    kind = record.provenance.backbone.model.get("kind", record.method)
    identity = f"{_revision(record)[:12]}..."
    prompt, prompts = values.get("prompt"), json.loads(str(values.get("prompts") or "{}"))
    if kind in ("object", "function"):
        texts = f", prefix={prompt!r}" * bool(prompt) + f", prompts={prompts}" * bool(prompts)
        name = public_name(record.backbone)
        call = f"bench.evaluate(model, suites={suites}, name={name!r}{texts})"
        return Repeat(
            command=call, needs=f"Needs the {kind} itself, in Python; its identity is {identity}"
        )
    server = kind == "server"
    options = [
        ("", str(values.get("address")) if server else "vectors:FILE"),
        ("--model", str(values["model"]) if server and "model" in values else None),
        ("--dimensions", str(values.get("dimensions") or "")),
        ("--prefix", str(prompt or "")),
    ]
    command = _command("evaluate", options)
    for task, text in prompts.items():
        command += f" {shlex.join(['--prompt', task, str(text)])}"
    needs = (
        "the server, with the same model"
        if server
        else f"the vectors, as FILE; their identity is {identity}"
    )
    return Repeat(
        command=f"{command} --suite {shlex.quote(','.join(suites))}", needs=f"Needs {needs}."
    )


def _place(place: str, content: str) -> tuple[str, str]:
    """(a file, a folder or a model that a recipe names, as anybody may type it; what one has to have, "" of a model of the hub)"""
    name = _without_folder(place)
    if RUN.search(place) is not None:
        return name, f"the run {Path(name).name}, made as its own row says"
    if name == place and len(content) == 40:  # a commit of the hub
        return name if "@" in name else f"{name}@{content}", ""
    return name, f"{name}, in the folder where you type it (sha256 {content[:12]}...)"


def _without_folder(place: str) -> str:
    """A run in the folder that runs are in where nothing else is said, anything else by its own name."""
    run = RUN.search(place)
    return public_name(place) if run is None else f"runs/{run[1]}"


def without_folders(command: str) -> str:
    """A command as it was typed, without its author's folders: what is elsewhere there is named alone, and where runs and data lie is left
    to who types it again."""
    try:
        words = shlex.split(command)
    except ValueError:  # no command that a shell would take
        return command
    kept: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        if not {before, word.partition("=")[0]} & {"--runs", "--data"}:
            key, equals, value = word.rpartition("=")
            kept.append(key + equals + _without_folder(value))
    return shlex.join(kept)


def corpus_option(corpus: CorpusUsed) -> str:
    """What --corpus takes: a name that bench can find or fetch, else the hash of the text."""
    name, sha256 = str(corpus.name), str(corpus.sha256)
    if name in ("builtin", TARGET) or name.startswith("hub:"):
        return name
    files = [data_set.files[0] for data_set in data_sets().values() if data_set.kind == "corpus"]
    hashes = {(file.name, form.sha256) for file in files for form in file.forms.values()}
    return next(
        (word for word, file in RECIPE_CORPORA.items() if (file, sha256) in hashes),
        f"{BY_HASH}{sha256}",
    )


def seed_words(seeds: Iterable[int | None]) -> str:
    """[1, 2, 3, 7] -> "1-3,7": what --seeds takes; "" where nothing is random."""
    parts: list[list[int]] = []
    for seed in sorted({seed for seed in seeds if seed is not None}):
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def _backbone(record: RunRecord) -> str:
    """Of the hub with the very commit."""
    name, revision = public_name(record.backbone), _revision(record)
    return f"{name}@{revision}" if len(revision) == 40 and "@" not in name else name


def _plugins(record: RunRecord, suites: Sequence[str]) -> tuple[list[str], list[str]]:
    """(the names of the files that --plugin takes, what a reader has to have) of a method and of suites that are not of bench."""
    sources = {f"the method {record.method}": record.provenance.plugin}
    scorers = record.provenance.execution.suites
    sources |= {f"the suite {name}": scorers[name] for name in suites if name in scorers}
    files, needs = [], []
    for what, source in sources.items():
        package = source.package
        if package in (None, OWN):
            continue
        if not package.endswith(".py"):
            needs.append(f"{what} of {package}")
        elif (name := Path(package).name) not in files:
            files.append(name)
            needs.append(f"the file {name} (sha256 of its source {str(source.sha256)[:12]}...)")
    return files, needs


def _revision(record: RunRecord) -> str:
    return record.provenance.backbone.revision or ""


def _value(value: object) -> str:
    """What --set takes behind the equals sign."""
    if value is None:
        return "none"
    return one_value(value) if isinstance(value, str) else json.dumps(value)
