"""``bench doctor``: what is installed, where runs would go, and which command is next."""

from __future__ import annotations

import importlib.util
import platform
import shlex
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import click

from bench.backbones import KNOWN, load, resolve, transformer_folder
from bench.backbones import fetch as fetch_backbone
from bench.backbones.families import FAMILIES, check_mlm_head, own_dropout, read_config
from bench.base import devices
from bench.base.errors import BenchError
from bench.base.findings import AGREES, DIFFERS, UNCHECKED, Finding
from bench.base.package import __version__
from bench.base.text import plural, size
from bench.cli.options import (
    data_option,
    json_option,
    json_text,
    print_facts,
    print_findings,
    runs_option,
)
from bench.data.corpora import default_cache
from bench.data.sets import DataFolder, data_sets
from bench.run.plugins import discover
from bench.runs import RunsFolder
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
        click.echo()
        click.echo(f"next: {facts['next']}")


def backbone_facts(name: str, *, fetch: bool) -> dict[str, Any]:
    """What is known of a backbone, and what shows when it is loaded. Raises BenchError where it cannot be."""
    reference = resolve(name)
    if fetch:
        say = partial(click.echo, err=True)
        reference = fetch_backbone(reference, offline=False, allow_pickle=False, say=say)
    facts = {"name": name, "about": KNOWN.get(name, ""), "revision": reference.revision}
    if reference.path is None:
        return {**facts, "files": "not on this machine; a run fetches them, and --fetch does now"}
    config = read_config(transformer_folder(reference.path))
    backbone = load(reference, offline=True)
    family = FAMILIES.get(backbone.family)
    try:
        check_mlm_head(backbone.weights or backbone.path)
        head = "yes"
    except BenchError:
        head = "no"
    before, after = backbone.special_tokens()
    ids = [*before, *backbone.ids(["A sentence."])[0], *after]
    return {
        **facts,
        "files": str(transformer_folder(reference.path)),
        "family": config.get("model_type"),
        "layers": config.get("num_hidden_layers"),
        "hidden size": config.get("hidden_size"),
        "vocabulary": config.get("vocab_size"),
        "positions": config.get("max_position_embeddings"),
        "dropout": own_dropout(config),
        "weights": backbone.report(),
        "tokens": " ".join(backbone.tokenizer.convert_ids_to_tokens(ids)),
        "MLM head": head,
        "deep prompt": "unknown" if family is None else "yes" if family.prefix else "no",
    }


def diagnose(data: Path | None, runs: Path | None) -> dict[str, Any]:
    """All facts, as JSON. Raises BenchError where a folder that was given cannot be read."""
    if data is not None and not data.expanduser().is_dir():
        raise BenchError(
            f"--data {data}: no such folder",
            "without --data: what was fetched; bench data fetch sts --data DIR makes one",
        )
    registry = discover()
    device = devices.choose_device("auto")
    store = RunsFolder(runs)
    disk = shutil.disk_usage(store.path if store.path.exists() else Path.cwd())
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
        "builtin": resolve("builtin").revision[:12],
        "data": data_state(DataFolder(data)),
        "runs": str(store.path.resolve()),
        "records": len(store.ids()),
        "cache": str(default_cache()),
        "disk free": size(disk.free),
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
    """A line for each part of this machine, and for the data of each suite."""
    packages = [f"{name} {version}" for name, version in facts["packages"].items()]
    about = {
        "bench": f"{facts['bench']}, Python {facts['python']}",
        "packages": ", ".join(packages),
        "device": facts["device"],
        "precision": f"{facts['precision']} while training, fp32 for scores",
        "methods": f"{len(facts['methods'])}; bench methods lists them",
        "backbone": f"builtin, {facts['builtin']}",
        "runs": f"{plural(facts['records'], 'record')} in {facts['runs']}",
        "cache": facts["cache"],
        "disk free": facts["disk free"],
    }
    lines = [Finding("machine", what, AGREES, text) for what, text in about.items()]
    for extra, whole in facts["extras"].items():
        outcome, text = (AGREES, "installed") if whole else (UNCHECKED, "not installed")
        hint = "" if whole else f"pip install 'sentence-bench[{extra}]'"
        lines.append(Finding("extra", extra, outcome, text, hint=hint))
    lines += [Finding("plugin", "left out", DIFFERS, text) for text in facts["left out"]]
    for state in facts["data"]:
        outcome = UNCHECKED if state["missing"] else AGREES
        text = f"{state['tasks'] - len(state['missing'])} of {plural(state['tasks'], 'task')}"
        hint = f"bench data fetch {state['suite']} --data DIR" if state["missing"] else ""
        lines.append(Finding("data", state["suite"], outcome, text, hint=hint))
    return lines


def next_command(facts: dict[str, Any], data: Path | None, runs: Path | None) -> str:
    """The command that helps most from here, with the folders that were named."""
    named = "".join(
        f" --{option} {shlex.quote(str(folder))}"
        for option, folder in (("data", data), ("runs", runs))
        if folder is not None
    )
    if facts["records"]:
        return "bench compare" + (f" --runs {shlex.quote(str(runs))}" if runs else "")
    whole = [state["suite"] for state in facts["data"] if not state["missing"]]
    if not whole:
        return "bench demo   (no data and no network needed)"
    return f"bench run --method cls,last-avg --backbone builtin --suite {whole[0]}{named}"
