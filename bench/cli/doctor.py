"""``bench doctor``: what is installed, where runs go, and which command is next."""

from __future__ import annotations

import importlib.util
import platform
import shlex
import shutil
from pathlib import Path
from typing import Any

import click

from bench import backbones
from bench.backbones.dropout import own_dropout
from bench.backbones.folder import read_config, transformer_folder
from bench.backbones.known_models import KNOWN
from bench.backbones.positions import named_positions
from bench.base import __version__, devices
from bench.base.cache import default_cache
from bench.base.errors import BenchError
from bench.base.files import expand_home
from bench.base.terminal import warn
from bench.base.text import format_bytes
from bench.cli.doctor_lines import print_machine
from bench.cli.options import (
    data_option,
    json_option,
    json_text,
    print_facts,
    runs_option,
)
from bench.data.sets import DataFolder, data_sets
from bench.method.plugins import discover
from bench.records import RunsFolder
from bench.score.suites import suite, suite_names

EXTRAS = {
    "publish": ("matplotlib",),
    "sentencepiece": ("sentencepiece",),
    "lora": ("peft",),
    "4bit": ("accelerate", "bitsandbytes"),
}


@click.command()
@click.argument("model", required=False)
@click.option("--fetch", is_flag=True, help="With MODEL: fetch it from the hub.")
@data_option
@runs_option
@json_option
def doctor(
    model: str | None,
    fetch: bool,
    data: Path | None,
    runs: Path | None,
    as_json: bool,
) -> None:
    """Show what is installed, which device and precision are used and why, which plugins and data
    are found, and what is next.

    With MODEL (a folder, or a name of the hub): its sizes, weights that are missing or
    unused, how it splits a sentence into tokens, which way it reads, and its dropout.

    \b
    Example:  bench doctor --data DIR
              bench doctor bert-base-uncased --fetch
    """
    if fetch and model is None:
        raise BenchError("--fetch needs a model", "bench doctor MODEL --fetch")
    if model is not None:
        facts = describe_backbone(model, fetch=fetch)
    else:
        facts = diagnose_machine(data, runs)
    if as_json:
        click.echo(json_text(facts))
    elif model is not None:
        print_facts((key, str(value)) for key, value in facts.items())
    else:
        print_machine(facts)


def describe_backbone(name: str, *, fetch: bool) -> dict[str, Any]:
    """Return facts about a backbone; a backbone that is on this machine is loaded.

    Raises BenchError if it cannot be loaded.
    """
    reference = backbones.resolve(name)
    if fetch:
        reference = backbones.fetch_backbone(reference, offline=False, allow_pickle=False, say=warn)
    facts = {"name": name, "about": KNOWN.get(name, ""), "revision": reference.revision}
    if reference.path is None:
        return {**facts, "files": "not on this machine; a run fetches them, and --fetch does now"}
    folder = transformer_folder(reference.path)
    config = read_config(folder)
    backbone = backbones.load(reference, offline=True)
    before, after = backbone.special_tokens()
    ids = [*before, *backbone.ids(["A sentence."])[0], *after]
    return {
        **facts,
        "files": str(folder),
        "family": config.get("model_type"),
        "layers": config.get("num_hidden_layers"),
        "hidden size": config.get("hidden_size"),
        "vocabulary": config.get("vocab_size"),
        "positions": named_positions(backbone.encoder),
        "weights": backbone.report(),
        "tokens": " ".join(backbone.tokenizer.convert_ids_to_tokens(ids)),
        "reads": "both ways" if backbone.reads_ahead else "earlier tokens only (causal)",
        "dropout": own_dropout(config),
    }


def diagnose_machine(data: Path | None, runs: Path | None) -> dict[str, Any]:
    """Return facts about this machine. Raises BenchError for a folder that cannot be read."""
    if data is not None and not expand_home(data).is_dir():
        raise BenchError(
            f"--data {data}: no such folder",
            "without --data: what was fetched; bench data fetch sts --data DIR makes one",
        )
    registry = discover()
    store = RunsFolder(runs)
    device = devices.choose_device("auto")
    extras = {}
    for extra, names in EXTRAS.items():
        extras[extra] = all(importlib.util.find_spec(name) for name in names)
    disk = store.path if store.path.exists() else Path.cwd()
    facts: dict[str, Any] = {
        "bench": __version__,
        "python": platform.python_version(),
        "packages": devices.packages(),
        "extras": extras,
        "device": devices.device_name(device),
        "precision": devices.choose_precision("auto", device),
        "methods": list(registry),
        "left out": list(registry.warnings),
        "builtin": backbones.resolve("builtin").revision[:12],
        "data": _data_states(DataFolder(data)),
        "runs": str(store.path.resolve()),
        "records": len(store.ids()),
        "cache": str(default_cache()),
        "disk free": format_bytes(shutil.disk_usage(disk).free),
    }
    return facts | {"next": _useful_command(facts, data, runs)}


def _data_states(folder: DataFolder) -> list[dict[str, Any]]:
    """Return, for each suite with data in files, how many tasks it has, and which lack their data.

    Judged by the names of files.
    """
    found = set()
    scored: set[str] = set()
    for name, wanted in data_sets().items():
        scored.update(wanted.suites)
        if folder.look(wanted).status == "found":
            found.add(name)
    states = []
    for name in suite_names():
        if name not in scored:
            continue
        tasks = suite(name).tasks
        if all(getattr(task, "data", ()) for task in tasks):
            missing = [task.name for task in tasks if found.isdisjoint(task.data)]
            states.append({"suite": name, "tasks": len(tasks), "missing": missing})
    return states


def _useful_command(facts: dict[str, Any], data: Path | None, runs: Path | None) -> str:
    """Return the most useful next command, with the folders that were named."""
    data_words = [] if data is None else ["--data", str(data)]
    runs_words = [] if runs is None else ["--runs", str(runs)]
    if facts["records"]:
        return shlex.join(["bench", "compare", *runs_words])
    whole = [state["suite"] for state in facts["data"] if not state["missing"]]
    if not whole:
        return "bench demo   (no data and no network needed)"
    command = ["bench", "run", "--method", "cls,last-avg", "--backbone", "builtin"]
    return shlex.join([*command, "--suite", whole[0], *data_words, *runs_words])
