"""The record of a planned run, which gives no folder of this machine away: it has names in place
of absolute paths.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

import bench.base
from bench.backbones.adapters import KEY
from bench.base import __version__, devices
from bench.base.files import expand_home
from bench.base.paths import hide_paths, recorded_command, recorded_path
from bench.base.places import remember_place
from bench.data.corpora.hub import first_fetch_of
from bench.data.sets import read_origin, unexpected_corpus
from bench.method import Method
from bench.method.config import RunConfig
from bench.records.names import CHECKPOINT
from bench.records.record import (
    BackboneUsed,
    Checkout,
    CorpusUsed,
    Cost,
    Facts,
    HowExecuted,
    Provenance,
    RecipeValue,
    RunRecord,
)
from bench.run.planned import PlannedRun


def command_of_run(config: RunConfig) -> str:
    """Return the command that made a run, with paths relative to the working directory, or by their
    names.
    """
    if not config.command:
        return recorded_command(["bench", *sys.argv[1:]])
    try:
        words = shlex.split(config.command) if config.command.startswith("bench ") else []
    except ValueError:
        words = []
    return recorded_command(words) if words else hide_paths(config.command)


def recorded_recipe(run: PlannedRun) -> dict[str, RecipeValue]:
    """Return every hyperparameter.

    One that is a file, a folder or a backbone has its name; ``determines`` has its hash.
    """
    values = {
        key: RecipeValue(**asdict(value)) for key, value in run.recipe.values_with_source().items()
    }
    for key in run.determines["places"]:
        known = values[key]
        if isinstance(known.value, str):
            values[key] = RecipeValue(
                value=recorded_path(known.value), source=known.source, note=known.note
            )
    hidden = {}
    for key, value in values.items():
        note = None if value.note is None else hide_paths(value.note)
        hidden[key] = RecipeValue(value=value.value, source=hide_paths(value.source), note=note)
    return hidden


def corpus_used(run: PlannedRun) -> CorpusUsed:
    """Return the training text by name and hash; without a name if nothing was trained."""
    corpus = run.corpus
    if corpus is None:
        return CorpusUsed()
    warnings = dict.fromkeys(unexpected_corpus(part.path, len(part)) for part in corpus.parts)
    warnings.pop("", None)
    origins = dict.fromkeys(
        read_origin(part.path, part.content_sha256) or first_fetch_of(part.path)
        for part in corpus.parts
    )
    origins.pop("", None)
    return CorpusUsed(
        name=recorded_path(corpus.name),
        sha256=corpus.sha256,
        columns=corpus.columns,
        warning=hide_paths("; ".join(warnings)),
        url=" and ".join(origins) or None,
    )


def remember_places(run: PlannedRun, runs: Path) -> None:
    """Note in the runs folder where this machine has the folders and files that the record
    names.
    """
    backbone = run.backbone
    if backbone.path is not None and not backbone.hub and backbone.name != "builtin":
        _remember(runs, backbone.revision, backbone.name)
    for key, content in (run.determines.get("places") or {}).items():
        value = run.recipe.get(key)
        if content is not None and isinstance(value, str):
            _remember(runs, content, value)


def _remember(runs: Path, content: str, name: str) -> None:
    place = expand_home(name)
    if place.exists():
        remember_place(runs, content, place)


def new_record(run: PlannedRun, config: RunConfig) -> RunRecord:
    custom = run.custom
    return RunRecord(
        run_id=run.run_id,
        fingerprint=run.fingerprint,
        status="interrupted",
        method=run.method,
        variant=run.variant,
        setting=run.setting,
        backbone=recorded_path(run.backbone.name),
        seed=run.seed,
        recipe=recorded_recipe(run),
        scores=(),
        cost=Cost(),
        provenance=Provenance(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            command=command_of_run(config),
            bench_version=version_of_bench(),
            git=git_state(run.plugin.folder),
            packages=devices.packages(),
            plugin=run.plugin.code,
            platform=devices.platform_facts(config.device),
            data={},
            corpus=corpus_used(run),
            backbone=BackboneUsed(
                name=recorded_path(run.backbone.name), revision=run.backbone.revision
            ),
            determines=run.determines,
            execution=HowExecuted(
                recipe_file=tuple(sorted(custom.values)) if custom else (),
                search=dict(custom.search) if custom else {},
            ),
        ),
    )


def version_of_bench() -> str:
    """Return bench's version; of a checkout with its commit: "0.1.1.dev2071+g8647c412ab12"."""
    commit = git_state(Path(bench.base.__file__).parent).commit
    if commit is None:
        return __version__
    separator = "." if "+" in __version__ else "+"
    return f"{__version__}{separator}g{commit[:12]}"


def git_state(folder: Path) -> Checkout:
    """Return the commit, and whether the working tree differs from it; nothing if ``folder`` is not
    in a git checkout, or git takes too long.
    """
    git = ["git", "-c", "core.abbrev=40", "-C", str(folder)]
    call = partial(subprocess.run, capture_output=True, text=True, timeout=10, check=True)
    try:
        call([*git, "ls-files", "--error-unmatch", "."])
        state = call([*git, "describe", "--always", "--exclude", "*", "--dirty"]).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return Checkout()
    return Checkout(commit=state.removesuffix("-dirty"), dirty=state.endswith("-dirty"))


def with_provenance(record: RunRecord, **facts: Any) -> RunRecord:
    return replace(record, provenance=replace(record.provenance, **facts))


def with_execution(record: RunRecord, facts: Facts) -> RunRecord:
    """Return the record with more facts about how it was executed."""
    return with_provenance(record, execution=replace(record.provenance.execution, **facts))


def measure_cost(method: Method, folder: Path, *, trained: bool) -> Cost:
    return Cost(
        device=devices.device_name(method.context.device),
        checkpoint_bytes=sum(
            file.stat().st_size for file in (folder / CHECKPOINT).rglob("*") if file.is_file()
        ),
        **parameter_counts(method, trained=trained),
    )


def parameter_counts(method: Method, *, trained: bool) -> dict[str, Any]:
    """Fields of a record's cost, counted after everything is built; empty without torch.

    A run that trains nothing has no trainable parameters.

    A part is an attribute of the method: the first component of a parameter's name. Adapters are a
    part of their own, "adapter". Shared parameters count for the first part. A weight in 4 bits is
    one parameter, although two are in a byte.
    """
    if not hasattr(method, "named_parameters"):
        return {}
    parts = Counter[str]()
    for name, parameter in method.named_parameters():
        if trained and parameter.requires_grad:
            part = "adapter" if KEY in name else name.partition(".")[0]
            parts[part] += parameter.numel()
    return {
        "trainable_parameters": parts.total(),
        "trainable_parts": dict(parts),
        "total_parameters": sum(_count(parameter) for _, parameter in method.named_parameters()),
    }


def _count(parameter: Any) -> int:
    """Count the numbers of a parameter; of packed ones, those that are in it."""
    state = getattr(parameter, "quant_state", None)
    return int(state.shape.numel() if state is not None else parameter.numel())
