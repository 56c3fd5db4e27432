"""What stands under and beside a row's means in every form of a table: differences, printed values, cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bench.base.text import duration, list_names
from bench.compare.formatting import (
    family_words,
    has_ranks,
    score,
    seeds_borrowed,
    seeds_differ,
    signed_number,
    spread,
    spread_words,
    variant_words,
    with_interval,
)
from bench.compare.statistics.table import PAIRS, PRIMARY, SINGLE, Against, Cell, Cost, Row, Table

BETTER, WORSE, EQUIVALENT, OUTSIDE = "better", "worse", "equivalent", "outside"
MAYBE_BETTER, MAYBE_WORSE = "better, exploratory", "worse, exploratory"
SIGNS = {
    BETTER: "▲",
    WORSE: "▼",
    EQUIVALENT: "≈",
    OUTSIDE: "*",
    MAYBE_BETTER: "△",
    MAYBE_WORSE: "▽",
}
PLAIN_SIGNS = {
    BETTER: "^",
    WORSE: "v",
    EQUIVALENT: "=",
    OUTSIDE: "*",
    MAYBE_BETTER: "+",
    MAYBE_WORSE: "-",
}  # ASCII alone
MOST_ANSWERS = 30
"""Rows whose verdict is put into a sentence below a table; ``--format json`` has all."""


@dataclass(frozen=True)
class Entry:
    """A number as printed, and the name of the sign after it ("" for none)."""

    text: str = ""
    sign: str = ""


@dataclass(frozen=True)
class Line:
    """One line under a row: its entries belong to the table's columns."""

    label: str
    entries: tuple[Entry, ...]


def under(row: Row, table: Table, *, against_baseline: bool = True) -> list[Line]:
    """Differences from the baseline, unless they are not wanted; then what a paper printed, and ours less that."""
    lines = []
    if against_baseline and table.baseline and not row.is_baseline:
        lines.append(
            Line(
                f"less {table.baseline}",
                tuple(
                    _against(cell, primary=task == table.head)
                    for task, cell in zip(table.columns, row.cells, strict=True)
                ),
            )
        )
    sources = list(
        dict.fromkeys(
            cell.printed.source for cell in row.cells if cell is not None and cell.printed
        )
    )
    for source in sources:
        copied, values, differences = False, [], []
        for cell in row.cells:
            if cell is None or cell.printed is None or cell.printed.source != source:
                values.append(Entry())
                differences.append(Entry())
                continue
            printed = cell.printed
            copied = copied or not printed.own
            values.append(Entry(score(printed.value, cell.decimals)))
            differences.append(
                Entry(
                    signed_number(printed.difference, cell.decimals),
                    OUTSIDE if printed.inside is False else "",
                )
            )
        lines.append(Line(f"{source}, copied" if copied else source, tuple(values)))
        lines.append(Line("ours less that", tuple(differences)))
    return lines


def _against(cell: Cell | None, *, primary: bool) -> Entry:
    if cell is None or cell.against is None:
        return Entry()
    return Entry(
        signed_number(cell.against.difference, cell.decimals), sign_name(cell, primary=primary)
    )


def spread_text(cell: Cell) -> str:
    """What stands after a mean's ± sign; "" for nothing."""
    half = spread(cell)
    return "" if half is None else score(half, cell.decimals)


def sign_name(cell: Cell, *, primary: bool) -> str:
    """Which of the signs stands at a cell; "" for none."""
    names = (
        {BETTER: BETTER, WORSE: WORSE} if primary else {BETTER: MAYBE_BETTER, WORSE: MAYBE_WORSE}
    )
    return (names | {EQUIVALENT: EQUIVALENT}).get(
        (cell.against.verdict or "") if cell.against else "", ""
    )


def cost_columns(table: Table) -> tuple[str, ...]:
    """Headings of the columns of cost; none where it was not asked for."""
    if all(row.cost is None for row in table.rows):
        return ()
    return "params", "train", "memory", *(["encode"] if encode_condition(table) else [])


def encode_condition(table: Table) -> str:
    """Under which the encoding of its rows was measured; "" where it was not."""
    return next(
        (row.cost.encode_condition for row in table.rows if row.cost and row.cost.encode_condition),
        "",
    )


def costs(cost: Cost | None) -> dict[str, str]:
    """Trained parameters, training time, peak memory, sentences encoded a second, by heading and short: "5.3M", "13m32s",
    "1.4G", "1.2k/s"; "" where it was not recorded. Behind the time that of the search for the values, and its trials:
    "13m32s +2.6h/12"."""
    cost = cost or Cost()
    time = "" if cost.train_seconds is None else duration(cost.train_seconds)
    if cost.tuning_seconds is not None:
        time = f"{time} +{duration(cost.tuning_seconds)}/{cost.tuning_trials or '?'}".strip()
    return {
        "params": short(cost.trainable_parameters),
        "train": time,
        "memory": short(cost.peak_memory_bytes),
        "encode": ""
        if cost.encode_sentences_per_second is None
        else f"{short(cost.encode_sentences_per_second)}/s",
    }


def cost_texts(row: Row, table: Table) -> list[str]:
    """What a row took, in the columns of :func:`cost_columns`."""
    texts = costs(row.cost)
    return [texts[name] for name in cost_columns(table)]


def parts_trained(table: Table) -> list[str]:
    """ "trained of promcse, dcpcse: 295k prompt, 591k head", a line for all rows that train the same numbers of the same parts."""
    rows: dict[str, dict[str, None]] = {}
    for row in table.rows:
        if row.cost is not None and row.cost.trainable_parts:
            parts = ", ".join(
                f"{short(count)} {part_name(part)}"
                for part, count in row.cost.trainable_parts.items()
            )
            rows.setdefault(parts, {})[row.name] = None
    return [f"trained of {list_names(names)}: {parts}" for parts, names in rows.items()]


def part_name(part: str) -> str:
    """What a reader calls a part of a method."""
    return "LM head" if part == "lm_head" else part.replace("_", " ")


def short(count: float | None) -> str:
    """ "0", "12", "1.2k", "340M"; "" for None."""
    if count is None:
        return ""
    for unit in ("", "k", "M", "G"):
        if count < 999.5:
            return f"{count:.0f}{unit}" if not unit or count >= 99.95 else f"{count:.1f}{unit}"
        count /= 1000
    return f"{count:.1f}T"


def legend(table: Table, signs: dict[str, str], *, plus_minus: str = "±") -> list[str]:
    """What the signs and lines mean, one sentence each; only what the table has. ``signs`` as the form prints them."""
    words = []
    if intervals := spread_words(table):
        words.append(f"{plus_minus}: half of the {intervals}")
    if borrowed := seeds_borrowed(table):
        words.append(borrowed)
    if has_ranks(table):
        words.append(
            f"rank: those that a row may have; all pairs are one family ({family_words(table, PAIRS)})"
        )
    if table.baseline:
        words += _baseline_legend(table, signs)
    if any(cell is not None and cell.printed for row in table.rows for cell in row.cells):
        words.append(_paper_legend(table, signs))
    if columns := cost_columns(table):
        encode = "; encode: sentences a second" if "encode" in columns else ""
        words.append(
            f"params: trained; train: time of training; memory: peak, bytes{encode}; means over seeds"
        )
        words += parts_trained(table)
        if any(row.cost is not None and row.cost.tuning_seconds is not None for row in table.rows):
            words.append(
                "train +time/trials: what the search for the values took besides, once for all seeds"
            )
    return words


def _baseline_legend(table: Table, signs: dict[str, str]) -> list[str]:
    primary, single = family_words(table, PRIMARY), family_words(table, SINGLE)
    if table.tested is None or not (primary or single):
        return [f"less {table.baseline}: not tested{_why_untested(table)}"]
    equal = f"{signs[EQUIVALENT]} equivalent, within ±{table.tested.margin:g}; no sign: unknown"
    words = []
    if primary:
        words.append(
            f"{table.head} less {table.baseline} is the question, a family of its own ({primary}): {signs[BETTER]} better, "
            f"{signs[WORSE]} worse, {equal}"
        )
    if single:
        words.append(
            f"single tasks are exploratory, another family ({single}): {signs[MAYBE_BETTER]} better, {signs[MAYBE_WORSE]} worse"
            + ("" if primary else f", {equal}")
        )
    return words + answers(table)


def _why_untested(table: Table) -> str:
    return "" if table.tested else ", for want of predictions or by --statistics no"


def short_legend(table: Table, signs: dict[str, str], plus_minus: str, *, tasks: bool) -> list[str]:
    """What stands in a table without differences: interval, ranks, and the signs beside the numbers, of single ``tasks`` too."""
    words = [f"{plus_minus}: half of the {intervals}"] if (intervals := spread_words(table)) else []
    words += ["rank: those that a row may have"] if has_ranks(table) else []
    if not table.baseline:
        return words
    if table.tested is None or not (family_words(table, PRIMARY) or family_words(table, SINGLE)):
        return [*words, f"not tested against {table.baseline}{_why_untested(table)}"]
    shown = {
        sign_name(cell, primary=task == table.head)
        for row in table.rows
        for task, cell in zip(table.columns, row.cells, strict=True)
        if cell is not None and (tasks or task == table.head)
    }
    meanings = {
        BETTER: "better",
        WORSE: "worse",
        EQUIVALENT: f"equivalent, within ±{table.tested.margin:g}",
        MAYBE_BETTER: "better on that task (exploratory)",
        MAYBE_WORSE: "worse on that task (exploratory)",
    }
    told = [f"{signs[name]} {meaning}" for name, meaning in meanings.items() if name in shown]
    return [
        *words,
        f"against {table.baseline}: {', '.join([*told, 'no sign: cannot be told apart'])}",
    ]


def in_order(
    table: Table, rank: str, method: str, seeds: str, cells: Iterable[str], costs: Iterable[str]
) -> list[str]:
    """What stands in the columns of ``table``, from left to right: ranks and seeds where it has them."""
    return [*[rank] * has_ranks(table), method, *[seeds] * seeds_differ(table), *cells, *costs]


def average_place(table: Table) -> int | None:
    """Of the average among the columns, where it stands after two others or more."""
    return len(table.columns) - 1 if table.head is not None and len(table.columns) > 2 else None


def row_name(row: Row, table: Table) -> str:
    """ "promcse eh" """
    return " ".join(filter(None, (row.label, variant_words(row, table))))


def answers(table: Table) -> list[str]:
    """The primary question, row by row: verdict, difference and interval, and what goes with it."""
    lines = []
    for row in table.rows if table.head else ():
        cell = row.cells[-1]
        if cell is not None and cell.against and cell.against.verdict:
            lines.append(
                f"{row_name(row, table)}: {answer(cell.against, table.baseline or 'the baseline', cell.decimals)}"
            )
    more = len(lines) - MOST_ANSWERS
    return lines[:MOST_ANSWERS] + ([f"and {more} more: --format json"] if more > 0 else [])


def answer(against: Against, baseline: str, decimals: int = 2) -> str:
    """ "worse, -17.10 [-18.90, -15.30] (99 %); one new run beats one of simcse: <1 %"; of an unknown, what would settle it."""
    words = f"{against.verdict}, {with_interval(against.difference, against.low, against.high, decimals)}"
    if against.low is not None and against.high is not None and against.level is not None:
        words += f" ({100 * against.level:.3g} %)"
    if against.chance is not None:
        words += f"; one new run beats one of {baseline}: {percent(against.chance)}"
    if against.verdict == "unknown":
        if against.detectable is not None:
            words += f"; {score(against.detectable, decimals)} would have been found"
        words += (
            f"; {against.seeds_needed} seeds of each would settle it"
            if against.seeds_needed
            else "; more seeds alone would not settle it"
        )
    return words


def percent(share: float) -> str:
    """ "98 %", "<1 %", ">99 %" """
    if share < 0.01:
        return "<1 %"
    return ">99 %" if share > 0.99 else f"{100 * share:.0f} %"


def _paper_legend(table: Table, signs: dict[str, str]) -> str:
    printed = [
        cell.printed
        for row in table.rows
        for cell in row.cells
        if cell is not None and cell.printed
    ]
    words = "paper:table: what it printed"
    if any(one.inside is not None for one in printed):
        words += f"; {signs[OUTSIDE]} the printed value lies outside our interval"
    return words
