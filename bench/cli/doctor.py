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
from bench.base.errors import BenchError, DataDamaged
from bench.base.findings import AGREES, DIFFERS, UNCHECKED, Finding
from bench.base.package import __version__
from bench.base.text import list_names, plural, size
from bench.cli.columns import print_command, print_facts, print_findings
from bench.cli.options import data_option, json_option, json_text, runs_option
from bench.data.corpora import default_cache
from bench.data.sets import DataFolder, data_set
from bench.run.plugins import discover
from bench.runs import RunsFolder
from bench.score.suites import suite, suite_names
from bench.score.suites.known import survey

NOT_BY_NAME = ("mteb",)  # its tasks are named one by one, and loaded by mteb from the hub's cache
EXTRAS = {"publish": ("matplotlib",), "search": ("optuna",), "ray": ("ray",)}


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
        print_command(facts["next"], "next: ")


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
    folder = DataFolder(data)
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
        "data": data_state(folder),
        "runs": str(store.path.resolve()),
        "records": len(store.ids()),
        "cache": str(default_cache()),
        "disk free": size(disk.free),
    }
    own_runs = "" if runs is None else f" --runs {shlex.quote(str(runs))}"
    return facts | {"next": next_command(facts, folder, own_runs)}


def data_state(folder: DataFolder) -> dict[str, Any]:
    """One entry a suite, see :func:`suite_state`; ``none`` says why there is nothing to list."""
    suites = [
        suite_state(name, folder)
        for name in suite_names()
        if name not in NOT_BY_NAME and _loads(name)
    ]
    none: str | None = "no folder is set (--data DIR, or BENCH_DATA) and nothing was fetched yet"
    if folder.roots:
        none = f"none of the sets is in {', '.join(map(str, folder.roots))}"
    if any((s["here"] or s["damaged"]) and not s["carried"] for s in suites):
        none = None
    return {"none": none, "suites": suites}


def _loads(name: str) -> bool:
    """Whether a suite can be listed: one that an installed package registers may not import, which ``bench suites`` says."""
    try:
        return bool(suite(name))
    except BenchError:
        return False


def suite_state(name: str, folder: DataFolder) -> dict[str, Any]:
    """How many of its tasks have their data in each text form, and which have it in none, or damaged."""
    tasks = suite(name).tasks
    sets = [data_set(set_name) for task in tasks for set_name in getattr(task, "data", ())]
    forms = ("tokenised", "raw") if any(each.forms for each in sets) else ("tokenised",)
    state: dict[str, Any] = {"suite": name, "tokenised": "", "raw": "one form", "carried": not sets}
    here: dict[str, list[str]] = {form: [] for form in forms}
    problems: dict[str, BenchError] = {}
    for form in forms:
        for task in tasks:
            try:
                survey(task, folder, form)
                here[form].append(task.name)
            except BenchError as error:
                problems[task.name] = error
        count = len(here[form])
        state[form] = {0: "missing", len(tasks): "found"}.get(count, f"{count} of {len(tasks)}")
    damaged = [task for task, error in problems.items() if isinstance(error, DataDamaged)]
    loaded = {task for names in here.values() for task in names}
    return state | {
        "here": sorted(loaded),
        "missing": [task.name for task in tasks if task.name not in loaded],
        "damaged": damaged,
        "problems": {task: error.message for task, error in problems.items()},
    }


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
    if facts["data"]["none"]:
        hint = "bench data fetch sts --data DIR"
        lines.append(Finding("data", "all suites", UNCHECKED, facts["data"]["none"], hint=hint))
    return [*lines, *(_of_suite(s) for s in facts["data"]["suites"] if s["here"] or s["damaged"])]


def _of_suite(state: dict[str, Any]) -> Finding:
    name, damaged, missing = state["suite"], state["damaged"], state["missing"]
    forms = [f"{form}: {state[form]}" for form in ("tokenised", "raw") if state[form] != "one form"]
    if damaged:
        names = list_names(damaged)
        return Finding(
            "data", name, DIFFERS, f"damaged: {names}", hint=f"bench data check {damaged[0]}"
        )
    if missing:
        hint = f"bench data fetch {name}"
        return Finding("data", name, UNCHECKED, f"missing: {list_names(missing)}", hint=hint)
    return Finding("data", name, AGREES, ", ".join(forms))


def next_command(facts: dict[str, Any], folder: DataFolder, runs: str) -> str:
    """The one command that helps most from here. ``runs``: the option that names the runs folder, where there is one."""
    data = f" --data {shlex.quote(str(folder.root))}" if folder.root is not None else ""
    if facts["data"]["none"] and not facts["records"]:
        return "bench demo   (no data and no network needed)"
    if facts["data"]["none"]:
        return f"bench data fetch sts{data or ' --data DIR'}"
    whole = [
        state["suite"]
        for state in facts["data"]["suites"]
        if state["tokenised"] == "found" and not state["carried"]
    ]
    if not whole:
        return f"bench data list{data}   (what is missing or damaged, and how to get it)"
    if facts["records"]:
        return f"bench compare{runs}"
    return f"bench run --method cls,last-avg --backbone builtin --suite {whole[0]}{data}{runs}"
