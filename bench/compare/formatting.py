"""Words and numbers that are the same in every form of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bench.base.text import plural
from bench.compare.statistics.rows import SENDER
from bench.compare.statistics.table import AVERAGE, Cell, Row, Table
from bench.records import RunRecord
from bench.records.names import RAW, text_of
from bench.records.value_sources import TUNED
from bench.score.suites import find_metric

SEVERAL = "several backbones"
"""The word for the backbone of a table without one."""


def variant_words(row: Row, table: Table) -> str:
    """Return the label after the method name: variant, what distinguishes the row, and anything not
    shared by the whole table."""
    parts = [row.variant] if row.variant else []
    parts += _distinguishing_words(row, table)
    kinds = table.kinds_of_values
    usual = max(kinds, key=lambda kind: (kinds[kind], not kind.startswith(TUNED)), default="")
    is_unusual = row.setting != "none" and row.values not in ("", usual)
    has_tuned = row.values.startswith(TUNED) or usual.startswith(TUNED)
    if _told_by_values(row, table) or (is_unusual and has_tuned):
        parts.append(row.values)
    return " ".join(parts)


def command_name(row: Row, table: Table) -> str:
    """Write a row's name as ``bench run`` takes it, "promcse+eh", and what sets the row apart."""
    parts = [row.name, *_distinguishing_words(row, table)]
    if _told_by_values(row, table):
        parts.append(row.values)
    return " ".join(parts)


def _distinguishing_words(row: Row, table: Table) -> list[str]:
    """Return values that set a row apart from rows of its name, and facts that the table lacks."""
    by_values = _told_by_values(row, table)
    parts = [f"{key}={value}" for key, value in row.differs if not by_values or key == SENDER]
    if table.backbone is None and not row.model:
        parts.append(row.backbone)
    if table.setting is None:
        parts.append("not trained here" if row.setting == "none" else row.setting)
    return parts


def _told_by_values(row: Row, table: Table) -> bool:
    """Say if the source of its values tells the row from its namesakes."""
    return bool(row.differs) and _values_suffice(row, table)


def _values_suffice(row: Row, table: Table) -> bool:
    """Say if the source of the values (paper, recipe, tuned) is enough to tell rows of the same
    name apart."""
    name = (row.method, row.variant, row.setting, row.backbone)
    kinds = []
    for other in table.rows:
        if (other.method, other.variant, other.setting, other.backbone) == name:
            kinds.append(other.values)
    return (
        any(kind.startswith(TUNED) for kind in kinds)
        and all(kinds)
        and len(set(kinds)) == len(kinds)
    )


def row_name(row: Row, table: Table) -> str:
    """Return the method and its variant: "promcse eh"."""
    return " ".join(filter(None, (row.label, variant_words(row, table))))


def setting_words(setting: str | None) -> str:
    """Write a setting as tables print it; None means several."""
    if setting is None:
        return "several settings"
    if setting == "none":
        return "nothing trained"
    return setting


def text_words(protocol: str) -> str:
    """Return " (raw texts)" for a protocol of raw texts, " (1a2b3c4d)" for a user's file, else
    "".
    """
    text = text_of(protocol)
    if text == RAW:
        return " (raw texts)"
    return f" ({text})" if text else ""


def budget_words(budget: str) -> str:
    """Write a budget such as "1000steps" as "1,000 steps"; others, such as "10m", as they are."""
    found = re.fullmatch(r"(\d+)([a-z]{2,})", budget)
    return f"{int(found[1]):,} {found[2]}" if found else budget


def headline(table: Table) -> str:
    """Return the heading "unsupervised, builtin, 3 seeds, senteval-all/1"."""
    fewest, most = table.seeds
    seeds = plural(most, "seed") if fewest == most else f"{fewest} to {most} seeds"
    words: list[str | None] = []
    if table.sender:
        words.append(f"submitted by {table.sender}")
    if table.setting:
        words.append(setting_words(table.setting))
    words += [table.backbone, budget_words(table.length), seeds, table.protocol]
    return ", ".join(word for word in words if word)


def spread(cell: Cell) -> float | None:
    """Return the number after ±: half of the 95 % interval."""
    return None if cell.spread is None else (cell.spread.high - cell.spread.low) / 2


def metric_words(table: Table) -> str:
    """Describe the numbers of a table; an unknown metric has its own name."""
    return ", ".join(find_metric(table.suite, name).label for name in table.metric.split(", "))


def score(value: float, decimals: int = 2) -> str:
    return f"{value:.{decimals}f}"


def suite_scores(record: RunRecord) -> Iterator[tuple[str, str, list[str]]]:
    """Yield for each suite and protocol: its name, its average ("" if none) and its tasks:
    ["STS12 68.40", ...].

    The name is the protocol if the suite was scored under several, or on other texts than the
    papers'.
    """
    protocols = dict.fromkeys((known.suite, known.protocol) for known in record.scores)
    for suite, protocol in protocols:
        values = {}
        for known in record.scores:
            if (known.suite, known.protocol) == (suite, protocol):
                decimals = find_metric(known.suite, known.metric).decimals
                values[known.task] = score(known.value, decimals)
        average = values.pop(AVERAGE, "")
        several = sum(other == suite for other, _ in protocols) > 1
        name = protocol if several or text_of(protocol) else suite
        yield name, average, [f"{task} {value}" for task, value in values.items()]


def heads(record: RunRecord) -> str:
    """Return each suite's average, or its only task: "sts 76.25, geometry 0.21"."""
    heads = []
    for name, average, tasks in suite_scores(record):
        only = tasks[0].rpartition(" ")[2] if len(tasks) == 1 else f"{len(tasks)} tasks"
        heads.append(f"{name} {average or only}")
    return ", ".join(heads)


def signed_number(value: float, decimals: int = 2) -> str:
    """Return +1.40, -0.31, 0.00: never -0.00."""
    text = f"{value:+.{decimals}f}"
    return text[1:] if float(text) == 0 else text


def with_interval(
    difference: float, low: float | None, high: float | None, decimals: int = 2
) -> str:
    """Return "+0.55 [-0.55, +1.65]"; the difference alone if its interval is not known."""
    text = signed_number(difference, decimals)
    if low is None or high is None:
        return text
    return f"{text} [{signed_number(low, decimals)}, {signed_number(high, decimals)}]"
