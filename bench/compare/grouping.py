"""Runs with separate tables: runs chosen on a set that is no development set, runs of a rare
budget, and runs of a rare training text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from bench.compare.statistics.rows import is_start
from bench.compare.statistics.terms import corpus_words
from bench.records.record import RunRecord
from bench.records.value_sources import search_of

DEV = ("dev", "validation", "valid", "val", "train")
"""Last words in the names of sets that no score is taken of."""

UNNAMED = "a set that was not recorded"
UNNAMED_TEXT = "a text that was not recorded"


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
        if is_start(record):
            continue
        place = (record.setting, record.backbone_name)
        counts.setdefault(place, Counter())[recorded_budget(record)] += 1
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
        budget = recorded_budget(record)
        if is_start(record) or budget in ("", usual[record.setting, record.backbone_name]):
            continue
        rarer[record.run_id] = budget
    return rarer


Place = tuple[str, str, str]
"""Setting and backbone, and the budget if it is a rarer one."""


def usual_texts(records: Iterable[RunRecord], rarer: Mapping[str, str]) -> dict[Place, str | None]:
    """Return the text that most of the trained runs of a place have, by its sha256. ``rarer``: the
    rarer budgets, by run id."""
    counts: dict[Place, Counter[str | None]] = {}
    for record in records:
        if record.setting != "none" and not is_start(record):
            place = _place(record, rarer)
            counts.setdefault(place, Counter())[record.provenance.corpus.sha256] += 1
    usual = {}
    for place, texts in counts.items():
        usual[place] = min(texts, key=lambda text: (-texts[text], text or ""))
    return usual


def rarer_texts(
    records: Iterable[RunRecord], rarer: Mapping[str, str], usual: Mapping[Place, str | None]
) -> dict[str, str]:
    """Run id -> name of the training text, of the runs that were trained on another text than is
    ``usual`` for their place."""
    others = {}
    for record in records:
        if record.setting == "none" or is_start(record):
            continue
        text = record.provenance.corpus.sha256
        if text != usual[_place(record, rarer)]:
            others[record.run_id] = corpus_words(record) or UNNAMED_TEXT
    return others


def _place(record: RunRecord, rarer: Mapping[str, str]) -> Place:
    return record.setting, record.backbone_name, rarer.get(record.run_id, "")


def recorded_budget(record: RunRecord) -> str:
    """Return the budget of a run, such as "1000steps"; "" if its recipe says how long."""
    return str(getattr(record.recipe.get("budget"), "value", None) or "")
