"""The one command that makes a row again, written from its records: a command as it was typed names its author's files, and other rows."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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


def repeat(records: Sequence[RunRecord], suites: Sequence[str] = ()) -> Repeat:
    """What makes these runs again, which differ in nothing but the seed; scored on these suites, on all of theirs without any."""
    first = records[0]
    if first.model_name:
        return _of_given(first, suites)
    scores = [
        score
        for record in records
        for score in record.scores
        if not suites or score.suite in suites
    ]
    suites = suites or list(dict.fromkeys(score.suite for score in scores))
    words = [
        "bench",
        "run",
        "--method",
        f"{first.method}+{first.variant}" if first.variant else first.method,
    ]
    words += ["--setting", first.setting, "--backbone", _backbone(first)]
    if seeds := sorted({record.seed for record in records if record.seed is not None}):
        words += ["--seeds", seed_words(seeds)]
    determines, needs = first.provenance.determines or {}, []
    if (corpus := first.provenance.corpus).name is not None:
        name = corpus_word(corpus)
        words += ["--corpus", name, "--precision", str(determines.get("precision") or "auto")]
        if name.startswith(BY_HASH):
            needs.append(
                f"the training text {public_name(corpus.name)} in the folder where you type it, or in train/ of --data: it is "
                "found by its sha256, whatever its name"
            )
    of_file = first.provenance.execution.recipe_file
    by_hand = {
        key: given.value
        for key, given in first.recipe.items()
        if given.source.startswith(SET) or key in of_file
    }
    if (
        list(suites) == ["check"] and "select_on" in first.recipe
    ):  # which has a default of its own where nothing else is scored
        by_hand.setdefault("select_on", first.recipe["select_on"].value)
    for key, content in (determines.get("places") or {}).items():
        if content is not None and by_hand.get(key) is not None:
            by_hand[key], what = _place(str(by_hand[key]), str(content))
            needs += [f"as {key} {what}"] if what else []
    for key, value in by_hand.items():
        words += ["--set", f"{key}={_value(value)}"]
    if (ranks := determines.get("ranks")) is not None:
        words += ["--on", f"torchrun:{ranks}"]
    tasks = ",".join(
        dict.fromkeys(
            score.task for score in scores if score.suite == "mteb" and score.task != AVERAGE
        )
    )
    words += [
        "--suite",
        ",".join(f"mteb:{tasks}" if suite == "mteb" and tasks else suite for suite in suites),
    ]
    forms = dict.fromkeys(
        score.text
        for score in scores
        if score.text in ("tokenised", "raw") or (score.text or "").startswith("other-")
    )
    if forms and list(forms) != ["tokenised"]:
        words += ["--text", ",".join(form for form in forms if form)]
    files, of_others = _plugins(first, suites)
    words += [word for file in files for word in ("--plugin", file)]
    if (
        first.backbone != "builtin" and len(revision := _revision(first)) == 64
    ):  # a commit of the hub has 40 digits
        needs.append(
            f"the model folder {public_name(first.backbone)} (sha256 of its weights {revision[:12]}...)"
        )
    needs += of_others
    return Repeat(
        command=shlex.join(words), needs=f"Needs {'; and '.join(needs)}." if needs else ""
    )


def _of_given(record: RunRecord, suites: Sequence[str]) -> Repeat:
    """Of a model that was given itself: what a server is asked again; what else its owner alone can give again."""
    names = list(
        dict.fromkeys(score.suite for score in record.scores if not suites or score.suite in suites)
    )
    values = {key: value.value for key, value in record.recipe.items()}
    about = record.provenance.backbone.model
    kind = about.get("kind", record.method)
    revision = _revision(record)[:12]
    if kind in ("object", "function"):
        prompts = json.loads(str(values.get("prompts") or "{}"))
        around = (f", prefix={values['prompt']!r}" if values.get("prompt") else "") + (
            f", prompts={prompts}" if prompts else ""
        )
        call = (
            f"bench.evaluate(model, suites={names}, name={public_name(record.backbone)!r}{around})"
        )
        return Repeat(
            command=call, needs=f"Needs the {kind} itself, in Python; its identity is {revision}..."
        )
    words = [
        "bench",
        "evaluate",
        str(values.get("address")) if kind == "server" else "vectors:FILE",
    ]
    words += ["--model", str(values["model"])] if kind == "server" and "model" in values else []
    words += ["--dimensions", str(values["dimensions"])] if values.get("dimensions") else []
    words += ["--prefix", str(values["prompt"])] if values.get("prompt") else []
    for task, text in json.loads(str(values.get("prompts") or "{}")).items():
        words += ["--prompt", task, str(text)]
    needs = (
        "the server, with the same model"
        if kind == "server"
        else f"the vectors, as FILE; their identity is {revision}..."
    )
    return Repeat(command=shlex.join([*words, "--suite", ",".join(names)]), needs=f"Needs {needs}.")


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


def corpus_word(corpus: CorpusUsed) -> str:
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


def seed_words(seeds: Sequence[int]) -> str:
    """[1, 2, 3, 7] -> "1-3,7": what --seeds takes."""
    parts: list[list[int]] = []
    for seed in seeds:
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
