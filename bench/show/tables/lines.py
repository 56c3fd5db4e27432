"""What stands under and beside a row's means in every form of a table: differences, printed values, cost."""

from __future__ import annotations

from dataclasses import dataclass

from bench.base.text import duration, list_names
from bench.compare import statements
from bench.compare.formatting import (
    score,
    signed_number,
    spread,
    with_interval,
)
from bench.compare.statistics.table import BETTER, WORSE, Cell, Cost, Row, Table

OUTSIDE, UNTESTED, TOP = "outside", "not tested", "may be the best"
SIGNS = {BETTER: "▲", WORSE: "▼", OUTSIDE: "*", UNTESTED: "-", TOP: "◆"}


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


def under(row: Row) -> list[Line]:
    """What a paper printed, and ours less that."""
    lines = []
    sources = list(
        dict.fromkeys(
            cell.printed.source for cell in row.cells if cell is not None and cell.printed
        )
    )
    for source in sources:
        copied, values, differences, halves = False, [], [], []
        for cell in row.cells:
            if cell is None or cell.printed is None or cell.printed.source != source:
                values.append(Entry())
                differences.append(Entry())
                halves.append(Entry())
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
            halves.append(Entry("" if printed.half is None else score(printed.half, cell.decimals)))
        lines.append(Line(f"{source}, copied" if copied else source, tuple(values)))
        lines.append(Line("ours less that", tuple(differences)))
        if any(entry.text for entry in halves):
            lines.append(Line("95 % prediction ±", tuple(halves)))
    return lines


def spread_text(cell: Cell) -> str:
    """What stands after a mean's ± sign; "" for nothing."""
    half = spread(cell)
    return "" if half is None else score(half, cell.decimals)


def sign_name(row: Row, table: Table) -> str:
    """Which of the signs stands at a row's number in the column that ranks; "" for none."""
    if table.tested is not None and row.untested and row.cells[-1] is not None:
        return UNTESTED
    verdict = statements.verdict(row)
    return verdict if verdict in (BETTER, WORSE) else ""


def has_differences(table: Table) -> bool:
    return any(map(statements.verdict, table.rows))


def difference_heading(table: Table) -> str:
    level = f" [{100 * table.tested.ci_level:.3g} % CI]" if table.tested else ""
    return f"less {table.baseline}{level}"


def difference_text(row: Row) -> str:
    """ "-1.84 [-2.73, -0.95]"; "" of a row that was not compared."""
    against, cell = statements.compared(row), row.cells[-1]
    if against is None or cell is None:
        return ""
    return with_interval(against.difference, against.ci_low, against.ci_high, cell.decimals)


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


def legend(
    table: Table, signs: dict[str, str], *, plus_minus: str = "±", tint: str = ""
) -> list[str]:
    """What the signs and columns mean, a sentence each; only what the table has. ``signs`` as the form prints them; ``tint``: the word for what
    marks a row that may be the best, where it is none of them."""
    words = statements.legend(table, signs[BETTER], signs[WORSE], tint or signs[TOP], plus_minus)
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


def average_place(table: Table) -> int | None:
    """Of the average among the columns, where it stands after two others or more."""
    return len(table.columns) - 1 if table.head is not None and len(table.columns) > 2 else None


def _paper_legend(table: Table, signs: dict[str, str]) -> str:
    printed = [
        cell.printed
        for row in table.rows
        for cell in row.cells
        if cell is not None and cell.printed
    ]
    words = "paper:table: what it printed"
    if any(one.inside is not None for one in printed):
        words += f"; {signs[OUTSIDE]} outside the 95 % prediction interval for as many runs as the paper had"
    return words
