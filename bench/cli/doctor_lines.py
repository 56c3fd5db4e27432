"""The screen of ``bench doctor``: what is ready, what is missing and the command that gets it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from bench.base.extras import install_hint
from bench.base.text import format_bytes, list_names, plural
from bench.cli.options import say
from bench.data.sets import data_sets

USES = {
    "publish": "publish (figures)",
    "sentencepiece": "sentencepiece (DeBERTa-v3)",
}
"""Extra -> its name and its use."""

WIDE = len("optional ")


def print_machine(facts: Mapping[str, Any]) -> None:
    """Print what is here, what is missing, and the next command. ``facts``: as JSON has them."""
    torch = facts["packages"].get("torch", "not installed")
    say(f"bench {facts['bench']}, Python {facts['python']}, torch {torch} (all versions: --json)")
    click.echo()
    _print_line("ok", _device_text(facts))
    _print_line("ok", "built-in model and data: bench demo works without a network")
    runs = f"{plural(facts['records'], 'run')} in {_short_path(facts['runs'])}"
    _print_line(
        "ok", f"{plural(len(facts['methods']), 'method')}, {runs}, {facts['disk free']} free"
    )
    whole = [state for state in facts["data"] if not state["missing"]]
    if whole:
        counts = [f"{state['suite']} ({plural(state['tasks'], 'task')})" for state in whole]
        _print_line("ok", f"evaluation data: {', '.join(counts)}")
    _print_missing_data(facts["data"])
    for text in facts["left out"]:
        _print_line("FAILED", f"plugin: {text}")
    _print_extras(facts["extras"])
    say(f"Next: {facts['next']}", blank=True)


def _print_line(state: str, text: str) -> None:
    say(f"{state:{WIDE}}{text}", hang=WIDE)


def _device_text(facts: Mapping[str, Any]) -> str:
    """Write "CPU only: AMD EPYC, 2 cores; trains in fp32", or the name of the GPU."""
    kind, separator, model = facts["device"].partition(": ")
    precision = facts["precision"]
    if separator and kind == "cpu":
        return f"CPU only: {model}; trains in {precision}"
    return f"{facts['device']}; trains in {precision}, scores in fp32"


def _short_path(path: str) -> str:
    """Return a folder as "./runs" if it is below the working directory."""
    folder = Path(path)
    if folder.is_relative_to(Path.cwd()):
        return f"./{folder.relative_to(Path.cwd())}"
    return path


def _print_missing_data(states: list[dict[str, Any]]) -> None:
    """Print the suites that lack data, and the commands that fetch the first one's, or find it."""
    lacking = [state for state in states if state["missing"]]
    if not lacking:
        return
    names = []
    for state in lacking:
        here = state["tasks"] - len(state["missing"])
        names.append(
            f"{state['suite']} (has {here} of {state['tasks']})" if here else state["suite"]
        )
    _print_line("missing", f"evaluation data: {', '.join(names)}")
    first = lacking[0]["suite"]
    sets = [wanted for wanted in data_sets().values() if first in wanted.suites]
    size = format_bytes(sum(wanted.bytes for wanted in sets))
    say(f"bench data fetch {first} --data DIR   ({size}; or: all)", indent=WIDE + 2, hang=2)
    say("bench doctor --data DIR   (if a folder has it)", indent=WIDE + 2, hang=2)


def _print_extras(extras: Mapping[str, bool]) -> None:
    """Print the optional libraries that are not installed, and the command that installs them."""
    absent = [extra for extra, is_installed in extras.items() if not is_installed]
    if not absent:
        return
    _print_line("optional", list_names((USES.get(extra, extra) for extra in absent), len(absent)))
    say(install_hint(",".join(absent)), indent=WIDE + 2, hang=2)
