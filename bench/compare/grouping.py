"""Which runs have tables of their own: those chosen on a set that is no development set, and those
of a rare budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from bench.records.record import RunRecord
from bench.records.value_sources import search_of

DEV = ("dev", "validation", "valid", "val", "train")
"""Last words in the names of sets that no score is taken of."""

UNNAMED = "a set that was not recorded"


def chosen_on(record: RunRecord) -> str:
    """Return the set that chose the checkpoint or the recipe values, if it is no development set;
    else "".

    Runs with different answers never share a table. A set without a recorded name may be any, so
    it counts as no development set.
    """
    done, search = record.training, search_of(record)
    seeds = search.get("seeds")
    if isinstance(seeds, list) and record.seed in seeds:
        return f"a seed of {search.get('name', 'its own search')}"
    searched = _no_dev_set(str(search["select_on"])) if search.get("select_on") else ""
    if searched or done is None or done.dev_score is None:  # the last step was kept
        return searched
    return _no_dev_set(done.dev_task or "")


def _no_dev_set(name: str) -> str:
    """Return the name of a set, unless the name marks it as a development set; else ""."""
    name = name.strip()
    return "" if name.lower().split(" ")[-1] in DEV or name == "sts-dev-clean" else name or UNNAMED


def usual_budgets(records: Iterable[RunRecord]) -> dict[tuple[str, str], str]:
    """Return (setting, backbone) -> the budget that most runs have; "" for none."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for record in records:
        place = (record.setting, record.backbone_name)
        counts.setdefault(place, Counter())[_budget(record)] += 1
    return {place: budgets.most_common(1)[0][0] for place, budgets in counts.items()}


def rarer_budgets(
    records: Iterable[RunRecord], usual: Mapping[tuple[str, str], str]
) -> dict[str, str]:
    """Run id -> budget, of the runs with another budget than is ``usual`` for their setting and
    backbone.

    Runs without a budget, untrained or trained as long as their recipe says, are not among them.
    """
    rarer = {}
    for record in records:
        budget = _budget(record)
        if budget not in ("", usual[record.setting, record.backbone_name]):
            rarer[record.run_id] = budget
    return rarer


def _budget(record: RunRecord) -> str:
    return str(getattr(record.recipe.get("budget"), "value", None) or "")
