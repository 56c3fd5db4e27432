"""By what score the checkpoints of a column were chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.compare.statistics.table import Table
from bench.runs.record import RunRecord
from bench.runs.searches import search_of

DEV = ("dev", "validation", "valid", "val", "train")
"""Last words in the names of sets that no score is taken of."""
UNNAMED = "a set that was not recorded"
LAST = "the last step, nothing selected"
SHOWN = 4  # names of rows that a sentence lists


def chosen_on(record: RunRecord) -> str:
    """The set on which a checkpoint, or the values of a recipe, were chosen, where that is no development set: "" for all honest ways, else its name.

    Runs of different answers never share a table. A set whose name was not recorded may be any, and counts as no development set.
    """
    done, search = record.training, search_of(record)
    seeds = search.get("seeds")
    if isinstance(seeds, list) and record.seed in seeds:
        return f"a seed of {search.get('name', 'its own search')}"
    searched = _no_dev_set(str(search["select_on"])) if search.get("select_on") else ""
    if done is None or done.dev_score is None:  # the last step was kept
        return searched
    return searched or _no_dev_set(done.dev_task or "")


def _no_dev_set(name: str) -> str:
    """The name of a set, where it does not say that it is a development set; else ""."""
    name = name.strip()
    return "" if name.lower().split(" ")[-1] in DEV or name == "sts-dev-clean" else name or UNNAMED


def rule(record: RunRecord) -> str | None:
    """How the checkpoint of a run was chosen; None where nothing was trained.

    "best on STS-B dev, scored every 125 steps", "the last step, nothing selected"
    """
    done = record.training
    if done is None:
        return None
    if done.dev_score is None:
        return LAST
    every = record.recipe.get("eval_steps")
    often = f", scored every {every.value:,} steps" if every is not None and isinstance(every.value, int) and every.value else ""
    return f"best on {(done.dev_task or '').strip() or UNNAMED}{often}"


def words(table: Table, records: Mapping[str, RunRecord]) -> str:
    """One sentence for a table; where its rows differ, the rule of most of them comes first and the others are named.

    "" where nothing was trained.
    """
    rows: dict[str, list[str]] = {}
    for row in table.rows:
        for found in dict.fromkeys(rule(records[run]) for run in row.runs):
            if found is not None:
                rows.setdefault(found, []).append(row.name)
    if not rows:
        return ""
    return f"Checkpoint: {_told(rows)}."


def values_words(table: Table) -> str:
    """ "Values: recipe; tuned: 12 trials (simcse)." in one sentence for a table: where those of its rows come from, the most common first."""
    rows: dict[str, list[str]] = {}
    for row in table.rows:
        if row.values:
            rows.setdefault(row.values, []).append(row.name)
    return f"Values: {_told(rows)}." if rows else ""


def _told(rows: Mapping[str, Sequence[str]]) -> str:
    first, *others = sorted(rows, key=lambda found: (-len(rows[found]), found))
    return "; ".join([first, *(f"{found} ({_listed(rows[found])})" for found in others)])


def _listed(names: Sequence[str]) -> str:
    names = list(dict.fromkeys(names))
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
