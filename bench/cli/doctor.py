"""``bench doctor``: what is installed, where runs go, and which command is next."""

from __future__ import annotations

import importlib.util
import platform
import shlex
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from bench import backbones
from bench.backbones.dropout import own_dropout
from bench.backbones.folder import FAMILIES, check_mlm_head, read_config
from bench.base import __version__, devices
from bench.base.errors import AGREES, DIFFERS, UNCHECKED, BenchError, Finding
from bench.base.files import default_cache
from bench.base.terminal import warn
from bench.base.text import plural, size
from bench.cli.options import (
    data_option,
    json_option,
    json_text,
    print_facts,
    print_findings,
    runs_option,
)
from bench.data.sets import DataFolder, data_sets
from bench.records import RunsFolder
from bench.run.plugins import discover
from bench.score.suites import suite, suite_names

EXTRAS = {
    "publish": ("matplotlib",),
    "search": ("optuna",),
    "ray": ("ray",),
    "sentencepiece": ("sentencepiece",),
}


@click.command()
@click.option("--backbone", metavar="NAME", help="What loading this backbone gives, instead.")
@click.option("--fetch", is_flag=True, help="With --backbone: fetch it from the hub.")
@data_option
@runs_option
@json_option
def doctor(
    backbone: str | None, fetch: bool, data: Path | None, runs: Path | None, as_json: bool
) -> None:
    """What is installed, which device and precision are used and why, which plugins and data are found, and what is next.

    With --backbone NAME (a folder, or a name of the hub): its sizes, weights that are missing or unused, and how it splits a
    sentence into tokens.

    \b
    Example:  bench doctor --data DIR
              bench doctor --backbone bert-base-uncased --fetch
    """
    if fetch and backbone is None:
        raise BenchError("--fetch needs --backbone", "bench doctor --backbone NAME --fetch")
    facts = diagnose(data, runs) if backbone is None else backbone_facts(backbone, fetch=fetch)
    if as_json:
        click.echo(json_text(facts))
    elif backbone is not None:
        print_facts((key, str(value)) for key, value in facts.items())
    else:
        print_findings(findings(facts))
        click.echo(f"\nnext: {facts['next']}")


def backbone_facts(name: str, *, fetch: bool) -> dict[str, Any]:
    """What is known about a backbone, and what loading it shows. Raises BenchError if it cannot be loaded."""
    reference = backbones.resolve(name)
    if fetch:
        reference = backbones.fetch(reference, offline=False, allow_pickle=False, say=warn)
    facts = {"name": name, "about": backbones.KNOWN.get(name, ""), "revision": reference.revision}
    if reference.path is None:
        return {**facts, "files": "not on this machine; a run fetches them, and --fetch does now"}
    folder = backbones.transformer_folder(reference.path)
    config = read_config(folder)
    backbone = backbones.load(reference, offline=True)
    family, head = FAMILIES.get(backbone.family), "no"
    with suppress(BenchError):
        check_mlm_head(backbone.weights or backbone.path)
        head = "yes"
    before, after = backbone.special_tokens()
    return {
        **facts,
        "files": str(folder),
        "family": config.get("model_type"),
        "layers": config.get("num_hidden_layers"),
        "hidden size": config.get("hidden_size"),
        "vocabulary": config.get("vocab_size"),
        "positions": config.get("max_position_embeddings"),
        "dropout": own_dropout(config),
        "weights": backbone.report(),
        "tokens": " ".join(
            backbone.tokenizer.convert_ids_to_tokens(
                [*before, *backbone.ids(["A sentence."])[0], *after]
            )
        ),
        "MLM head": head,
        "deep prompt": "unknown" if family is None else "yes" if family.prefix else "no",
    }


def diagnose(data: Path | None, runs: Path | None) -> dict[str, Any]:
    """All facts, as JSON. Raises BenchError for a folder that cannot be read."""
    if data is not None and not data.expanduser().is_dir():
        raise BenchError(
            f"--data {data}: no such folder",
            "without --data: what was fetched; bench data fetch sts --data DIR makes one",
        )
    registry, store = discover(), RunsFolder(runs)
    device = devices.choose_device("auto")
    facts: dict[str, Any] = {
        "bench": __version__,
        "python": platform.python_version(),
        "packages": devices.packages(),
        "extras": {
            extra: all(importlib.util.find_spec(name) for name in names)
            for extra, names in EXTRAS.items()
        },
        "device": devices.device_name(device),
        "precision": devices.choose_precision("auto", device),
        "methods": list(registry),
        "left out": list(registry.warnings),
        "builtin": backbones.resolve("builtin").revision[:12],
        "data": data_state(DataFolder(data)),
        "runs": str(store.path.resolve()),
        "records": len(store.ids()),
        "cache": str(default_cache()),
        "disk free": size(
            shutil.disk_usage(store.path if store.path.exists() else Path.cwd()).free
        ),
    }
    return facts | {"next": next_command(facts, data, runs)}


def data_state(folder: DataFolder) -> list[dict[str, Any]]:
    """For each suite whose data is in files: how many tasks it has, and which of them lack theirs, judged by the names of files."""
    here = {name for name, each in data_sets().items() if folder.look(each).status == "found"}
    scored = {name for each in data_sets().values() for name in each.suites}
    return [
        {
            "suite": name,
            "tasks": len(suite(name).tasks),
            "missing": [task.name for task in suite(name).tasks if here.isdisjoint(task.data)],
        }
        for name in suite_names()
        if name in scored and all(getattr(task, "data", ()) for task in suite(name).tasks)
    ]


def findings(facts: dict[str, Any]) -> list[Finding]:
    """A line for each fact about this machine, and for the data of each suite."""
    about = {
        "bench": f"{facts['bench']}, Python {facts['python']}",
        "packages": ", ".join(f"{name} {version}" for name, version in facts["packages"].items()),
        "device": facts["device"],
        "precision": f"{facts['precision']} while training, fp32 for scores",
        "methods": f"{len(facts['methods'])}; bench methods lists them",
        "backbone": f"builtin, {facts['builtin']}",
        "runs": f"{plural(facts['records'], 'record')} in {facts['runs']}",
        "cache": facts["cache"],
        "disk free": facts["disk free"],
    }
    lines = [Finding("machine", what, AGREES, text) for what, text in about.items()]
    lines += [
        Finding("extra", extra, AGREES, "installed")
        if whole
        else Finding(
            "extra",
            extra,
            UNCHECKED,
            "not installed",
            hint=f"pip install 'sentence-bench[{extra}]'",
        )
        for extra, whole in facts["extras"].items()
    ]
    lines += [Finding("plugin", "left out", DIFFERS, text) for text in facts["left out"]]
    for state in facts["data"]:
        text = f"{state['tasks'] - len(state['missing'])} of {plural(state['tasks'], 'task')}"
        hint = f"bench data fetch {state['suite']} --data DIR" if state["missing"] else ""
        lines.append(
            Finding("data", state["suite"], UNCHECKED if hint else AGREES, text, hint=hint)
        )
    return lines


def next_command(facts: dict[str, Any], data: Path | None, runs: Path | None) -> str:
    """The most useful next command, with the folders that were named."""
    of_data, of_runs = (
        f" --{option} {shlex.quote(str(folder))}" if folder else ""
        for option, folder in (("data", data), ("runs", runs))
    )
    if facts["records"]:
        return f"bench compare{of_runs}"
    whole = [state["suite"] for state in facts["data"] if not state["missing"]]
    if not whole:
        return "bench demo   (no data and no network needed)"
    return (
        f"bench run --method cls,last-avg --backbone builtin --suite {whole[0]}{of_data}{of_runs}"
    )
