"""Items on which two runs disagree, for the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bench.compare.formatting import visible

if TYPE_CHECKING:
    from rich.console import Console

    from bench.compare.items import Disagreement, ItemValue


def print_items(
    disagreements: Sequence[Disagreement],
    first: str,
    second: str,
    reasons: Mapping[str, str] | None = None,
    console: Console | None = None,
) -> None:
    """One block a task: gold, what A and B said, and the texts where they are at hand."""
    from rich.console import Console as RichConsole
    from rich.text import Text

    console = console or RichConsole(highlight=False, markup=False, emoji=False)

    def say(text: str, style: str = "", indent: int = 0) -> None:
        for line in Text(text, style).wrap(console, max(console.width - indent, 20)):
            line.rstrip()
            console.print(Text(" " * indent).append_text(line))

    def shown(text: str) -> str:
        return visible(text, console.encoding, limit=None)

    say(f"A: {shown(first)}")
    say(f"B: {shown(second)}")
    for disagreement in disagreements:
        _, task, protocol, form = disagreement.key
        console.print()
        say(
            f"{shown(task)}, {shown(protocol)}{f' ({shown(form)})' if form else ''}: {disagreement.differ:,} of {disagreement.n:,} items differ",
            "bold",
        )
        for item in disagreement.items:
            say(
                f"{item.number:>6}  gold {shown(_said(item.gold))}   A {shown(_said(item.first))}   B {shown(_said(item.second))}"
            )
            for text in item.texts or ():
                say(shown(text), indent=8)
        if reason := (reasons or {}).get(task):
            say(f"no texts: {shown(reason)}", "dim")
    if any(disagreement.ranked for disagreement in disagreements):
        console.print()
        say(
            "in brackets: place by rank among all items, 0 to 100; first the pairs whose places are furthest apart",
            "dim",
        )


def _said(item: ItemValue) -> str:
    return item.text if item.place is None else f"{item.text} ({item.place:.0f})".lstrip()


def as_data(disagreements: Sequence[Disagreement], first: str, second: str) -> dict[str, Any]:
    """Schema ``bench.items/1``: numbers in full."""
    return {
        "schema": "bench.items/1",
        "runs": [first, second],
        "tasks": [_task(disagreement) for disagreement in disagreements],
    }


def _task(disagreement: Disagreement) -> dict[str, Any]:
    suite, task, protocol, text = disagreement.key
    return {
        "suite": suite,
        "task": task,
        "protocol": protocol,
        "text": text,
        "metric": disagreement.metric,
        "n": disagreement.n,
        "differ": disagreement.differ,
        "items": [asdict(item) for item in disagreement.items],
    }
