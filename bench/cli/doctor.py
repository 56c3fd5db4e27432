"""``bench doctor``: what is installed, where runs would go, and which command is next."""

from __future__ import annotations

import importlib.util
import platform
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import BenchError, DataDamaged
from bench.base.text import size
from bench.cli.columns import print_columns, print_command, print_facts
from bench.cli.options import data_option, json_option, json_text, runs_option

if TYPE_CHECKING:
    from bench.data.sets import DataFolder

NOT_BY_NAME = ("mteb",)  # its tasks are named one by one, and loaded by mteb from the hub's cache
EXTRAS = {"publish": ("matplotlib",), "search": ("optuna",), "ray": ("ray",)}
FEW = 6  # names that are listed; of more, how many there are


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
        print_facts(machine_rows(facts))
        click.echo()
        _print_data(facts["data"])
        click.echo()
        print_command(facts["next"], "next: ")


def _print_data(data: dict[str, Any]) -> None:
    if data["none"]:
        print_facts([("data", data["none"])])
        return
    rows = [(s["suite"], s["tokenised"], s["raw"], ", ".join(s["missing"])) for s in data["suites"]]
    print_columns(rows, headings=("data", "tokenised", "raw", "missing or damaged"))


def backbone_facts(name: str, *, fetch: bool) -> dict[str, Any]:
    """What is known of a backbone, and what shows when it is loaded. Raises BenchError where it cannot be."""
    from functools import partial

    from bench.backbones import KNOWN, load, resolve, transformer_folder
    from bench.backbones import fetch as fetch_backbone
    from bench.backbones.families import FAMILIES, check_mlm_head, own_dropout, read_config

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
    from bench.backbones import resolve
    from bench.base import devices
    from bench.base.package import __version__
    from bench.data.corpora import default_cache
    from bench.data.sets import DataFolder
    from bench.run.plugins import discover
    from bench.runs import RunsFolder

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
    return facts | {
        "next": next_command(
            facts, folder, "" if runs is None else f" --runs {shlex.quote(str(runs))}"
        )
    }


def data_state(folder: DataFolder) -> dict[str, Any]:
    """One entry a suite, see :func:`suite_state`; ``none`` says why there is nothing to list."""
    from bench.score.suites import suite_names

    suites = [
        suite_state(name, folder)
        for name in suite_names()
        if name not in NOT_BY_NAME and _loads(name)
    ]
    if any(
        suite["here"] or "(damaged)" in " ".join(suite["missing"])
        for suite in suites
        if not suite["carried"]
    ):
        return {"none": None, "suites": suites}
    if folder.roots:
        none = f"none of the sets is in {', '.join(map(str, folder.roots))}"
    else:
        none = "no folder was given (--data DIR, or BENCH_DATA) and nothing was fetched yet"
    carried = ", ".join(suite["suite"] for suite in suites if suite["carried"])
    return {
        "none": f"{none}; only {carried} can be scored, which the package carries",
        "suites": suites,
    }


def _loads(name: str) -> bool:
    """Whether a suite can be listed: one that an installed package registers may not import, which ``bench suites`` says."""
    from bench.score.suites import suite

    try:
        return bool(suite(name))
    except BenchError:
        return False


def suite_state(name: str, folder: DataFolder) -> dict[str, Any]:
    """How many of its tasks have their data in each text form, in words, and which have it in none, or damaged."""
    from bench.data.sets import data_set
    from bench.score.suites import suite
    from bench.score.suites.known import survey

    tasks = suite(name).tasks
    sets = [data_set(set_name) for task in tasks for set_name in getattr(task, "data", ())]
    forms = ("tokenised", "raw") if any(set_.forms for set_ in sets) else ("tokenised",)
    state: dict[str, Any] = {"suite": name, "tokenised": "", "raw": "one form", "carried": not sets}
    here: set[str] = set()
    problems: dict[str, str] = {}
    damaged: set[str] = set()
    for text in forms:
        count = 0
        for task in tasks:
            try:
                survey(task, folder, text)
                count += 1
                here.add(task.name)
            except BenchError as error:
                problems[task.name] = error.message
                if isinstance(error, DataDamaged):
                    damaged.add(task.name)
        state[text] = {0: "missing", len(tasks): "found"}.get(count, f"{count} of {len(tasks)}")
    names = dict.fromkeys(
        task.name for task in tasks if task.name not in here or task.name in damaged
    )
    missing = [
        f"{task_name} (damaged)" if task_name in damaged else task_name for task_name in names
    ]
    return state | {"here": sorted(here), "missing": missing, "problems": problems}


def machine_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    methods = facts["methods"]
    here, lacking = (
        ", ".join(extra for extra, whole in facts["extras"].items() if whole is wanted)
        for wanted in (True, False)
    )
    return [
        ("bench", f"{facts['bench']}, Python {facts['python']}"),
        ("packages", ", ".join(f"{name} {version}" for name, version in facts["packages"].items())),
        ("extras", (here or "none") + (f"; not installed: {lacking}" if lacking else "")),
        ("device", facts["device"]),
        ("precision", f"{facts['precision']} while training, fp32 for scores"),
        (
            "methods",
            ", ".join(methods)
            if len(methods) <= FEW
            else f"{len(methods)}; bench methods lists them",
        ),
        *(("left out", warning) for warning in facts["left out"]),
        ("backbone", f"builtin, {facts['builtin']}"),
        ("runs", f"{facts['records']} in {facts['runs']}"),
        ("cache", facts["cache"]),
        ("disk free", facts["disk free"]),
    ]


def next_command(facts: dict[str, Any], folder: DataFolder, runs: str) -> str:
    """The one command that helps most from here. ``runs``: the option that names the runs folder, where it was given."""
    given = f" --data {shlex.quote(str(folder.root))}" if folder.root is not None else ""
    if facts["data"]["none"]:
        return (
            f"bench data fetch sts{given or ' --data DIR'}"
            if facts["records"]
            else "bench demo   (no data and no network needed)"
        )
    whole = [
        suite["suite"]
        for suite in facts["data"]["suites"]
        if suite["tokenised"] == "found" and not suite["carried"]
    ]
    if not whole:
        return f"bench data list{given}   (what is missing or damaged, and how to get it)"
    if facts["records"]:
        return f"bench compare{runs}"
    return f"bench run --method cls,last-avg --backbone builtin --suite {whole[0]}{given}{runs}"
