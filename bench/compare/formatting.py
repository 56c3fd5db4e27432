"""Numbers as every form of a table writes them; words are in :mod:`bench.compare.words`."""

from __future__ import annotations

from collections.abc import Iterator

from bench.compare.statistics.table import AVERAGE, Cell, Table
from bench.records import RunRecord
from bench.records.names import OWN_DATA, protocol_text
from bench.records.record import Score
from bench.score.suites import find_metric


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
    ["STS12 68.40", ...], with their further measures: "news 59.01 (MRR@10 75.64)".
    """
    for suite, average, scores in _by_suite(record):
        tasks = []
        for known in scores:
            text = f"{known.task} {_value(known)}"
            beside = [f"{name} {score(value)}" for name, value in known.beside.items()]
            tasks.append(f"{text} ({', '.join(beside)})" if beside else text)
        yield suite, average, tasks


def _by_suite(record: RunRecord) -> Iterator[tuple[str, str, list[Score]]]:
    """Yield for each suite and protocol: its name, its average ("" if none) and the scores of its
    tasks.

    The name is the protocol if the suite was scored under several, or on other texts than the
    papers'; of own files if two have one name.
    """
    protocols = dict.fromkeys((known.suite, known.protocol) for known in record.scores)
    for suite, protocol in protocols:
        scores = {
            known.task: known
            for known in record.scores
            if (known.suite, known.protocol) == (suite, protocol)
        }
        average = scores.pop(AVERAGE, None)
        several = sum(other == suite for other, _ in protocols) > 1 or bool(protocol_text(protocol))
        if suite == OWN_DATA:
            named = [known for known in record.scores if known.suite == suite]
            several = sum(known.task in scores for known in named) > len(scores)
        name = protocol if several else suite
        yield name, "" if average is None else _value(average), list(scores.values())


def _value(known: Score) -> str:
    return score(known.value, find_metric(known.suite, known.metric).decimals)


def heads(record: RunRecord) -> str:
    """Return each suite's average, or its only task: "sts 76.25, geometry 0.21"."""
    heads = []
    for name, average, scores in _by_suite(record):
        only = _value(scores[0]) if len(scores) == 1 else f"{len(scores)} tasks"
        if name == OWN_DATA:
            name = scores[0].task
        heads.append(f"{name} {average or only}")
    return ", ".join(heads)


def signed_number(value: float, decimals: int = 2) -> str:
    """Return +1.40, -0.31, 0.00: never -0.00."""
    text = f"{value:+.{decimals}f}"
    return text[1:] if float(text) == 0 else text


def interval_end(value: float, decimals: int = 2) -> str:
    """Return +1.65 or 0.00; more digits for an end whose sign would be rounded away: +0.0036."""
    text = signed_number(value, decimals)
    if value != 0 and float(text) == 0:
        return signed_number(value, decimals + 2)
    return text


def with_interval(
    difference: float, low: float | None, high: float | None, decimals: int = 2
) -> str:
    """Return "+0.55 [-0.55, +1.65]"; the difference alone if its interval is not known."""
    text = signed_number(difference, decimals)
    if low is None or high is None:
        return text
    return f"{text} [{interval_end(low, decimals)}, {interval_end(high, decimals)}]"


def short_count(count: float | None) -> str:
    """Return "0", "12", "1.2k", "340M"; "" for None."""
    if count is None:
        return ""
    for unit in ("", "k", "M", "G"):
        if count < 999.5:
            return f"{count:.0f}{unit}" if not unit or count >= 99.95 else f"{count:.1f}{unit}"
        count /= 1000
    return f"{count:.1f}T"
