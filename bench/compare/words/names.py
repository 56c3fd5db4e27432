"""The names of rows, columns and tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from bench.compare.statistics.rows import SENDER
from bench.compare.statistics.table import AVERAGE, Row, Table, namesake_key
from bench.compare.statistics.terms import CORPUS
from bench.papers.names import printed_name
from bench.records.names import OWN_DATA, RAW, protocol_text
from bench.records.record import VECTOR_PRECISION
from bench.records.value_sources import TUNED

SEVERAL = "several backbones"
"""The word for the backbone of a table without one."""

SUITES = {
    "sts": "STS",
    "sts-multi": "multilingual STS",
    "cxc": "CxC",
    "fewshot": "few-shot",
    "mteb": "MTEB",
    OWN_DATA: "own files",
}
"""Suites as papers write them; another one is written as in commands."""

BUILTIN = "builtin"

MOST_SOURCES = 4
"""Rows of one name that the sources of their values may tell apart."""

SUFFIXES = re.compile(r"(\.(txt|csv|tsv|jsonl?|parquet))?(\.(xz|gz|bz2))?$")


def row_name(row: Row, table: Table) -> str:
    """Return "PromCSE", "DCPCSE+MLM", "SimCSE (wiki_sentences)"."""
    apart = row_details(row, table)
    return f"{method_title(row)} {apart}" if apart else method_title(row)


def row_names(rows: Sequence[Row], table: Table) -> list[str]:
    return [row_name(row, table) for row in rows]


def method_title(row: Row) -> str:
    """Return method and variant as the papers write them; a model that somebody else made has its
    own name."""
    if row.model:
        return row.name
    return printed_name(row.method, row.variant)


def row_details(row: Row, table: Table) -> str:
    """Return in brackets what sets a row apart from rows of its name, and what the table does not
    say for all of its rows; "" if there is nothing.
    """
    namesakes = table.namesakes.get(namesake_key(row), ())
    told_by_values = bool(row.differs) and _are_told_by_values(namesakes)
    parts = ["step 0"] if row.is_start else []
    for key, value in unlike_planned(row, table):
        if key == SENDER:
            if value != table.sender:
                parts.append(f"{key} {value}")
        elif not told_by_values:
            parts.append(_difference(key, value, namesakes))
    if told_by_values:
        parts.append(row.values)
    if table.backbone is None and not row.model:
        parts.append(row.backbone)
    if table.setting is None:
        parts.append("not trained here" if row.setting == "none" else row.setting)
    return f"({', '.join(parts)})" if parts else ""


def unlike_planned(row: Row, table: Table) -> list[tuple[str, str]]:
    """Return what sets a row apart from its namesakes; from the one that the question names, if it
    names one, which then needs nothing."""
    namesakes = table.namesakes.get(namesake_key(row), ())
    planned = [one for one in namesakes if table.question and one.is_asked_about]
    if len(planned) != 1:
        return list(row.differs)
    usual = dict(planned[0].differs)
    return [(key, value) for key, value in row.differs if key == SENDER or usual.get(key) != value]


def _difference(key: str, value: str, namesakes: Sequence[Row]) -> str:
    """Return "temperature 0.1"; "int8", which says what it is; of a training text its name, without
    a file's suffix if no other row needs it."""
    if key == VECTOR_PRECISION:
        return value
    if key != CORPUS:
        return f"{key} {value}"
    short = short_text(value)
    others = {dict(row.differs).get(CORPUS, value) for row in namesakes} - {value}
    return value if short in {short_text(other) for other in others} else short


def short_text(name: str) -> str:
    """Return the name of a training text without the suffix of a file and without its hash."""
    return SUFFIXES.sub("", name.partition("@")[0])


def _are_told_by_values(namesakes: Sequence[Row]) -> bool:
    """Say if the source of their values (paper, recipe, tuned) tells rows of one name apart."""
    if len(namesakes) > MOST_SOURCES:
        return False
    kinds = [row.values for row in namesakes]
    is_one_tuned = any(kind.startswith(TUNED) for kind in kinds)
    return is_one_tuned and all(kinds) and len(set(kinds)) == len(kinds)


def baseline_name(table: Table) -> str:
    """Return the baseline's name: "SimCSE", "PromCSE+EH", "SimCSE roberta-base"; "" for a table
    without one."""
    name, blank, backbone = (table.baseline or "").partition(" ")
    method, _, variant = name.partition("+")
    return f"{printed_name(method, variant)}{blank}{backbone}"


def versus(table: Table) -> str:
    """Return "vs SimCSE", the name of the column of differences; "" if no row was compared."""
    if table.head is None or not table.comparisons:
        return ""
    return f"vs {baseline_name(table)}"


def level_words(table: Table) -> str:
    """Return "[99.4 % CI]", the level of the intervals of differences; "" if nothing was tested."""
    levels = [against.ci_level for against in table.comparisons if against.ci_level is not None]
    return f"[{100 * levels[0]:.3g} % CI]" if levels else ""


def column_name(table: Table) -> str:
    """Return the column that ranks: "the STS average after 1,000 steps", "CxC-STS"."""
    words = text_words(table.protocol)
    if table.length:
        words += f" after {budget_words(table.length)}"
    if table.head == AVERAGE:
        return f"the {suite_name(table.suite)} average{words}"
    return f"{table.head}{words}"


def table_name(table: Table) -> str:
    """Return "STS, unsupervised, built-in backbone, 1,000 steps, senteval-all/1"."""
    return _joined(_name_parts(table))


def table_names(tables: Sequence[Table], beside: Table) -> list[str]:
    """Return the names of tables without what they share with a table that the reader knows, and
    without their protocols where the rest tells them apart."""
    known = _name_parts(beside)
    briefs = []
    for table in tables:
        parts = _name_parts(table)
        different = {key: word for key, word in parts.items() if word != known.get(key)}
        briefs.append(different | {"suite": parts["suite"]})
    names = [_joined(parts | {"protocol": ""}) for parts in briefs]
    return [
        name if names.count(name) == 1 and name != known["suite"] else _joined(parts)
        for name, parts in zip(names, briefs, strict=True)
    ]


def _joined(parts: Mapping[str, str]) -> str:
    return ", ".join(parts[key] for key in _ORDER if parts.get(key))


_ORDER = (
    *("sender", "suite", "question", "setting", "backbone", "length", "text"),
    "protocol",
)


def _name_parts(table: Table) -> dict[str, str]:
    return {
        "suite": suite_name(table.suite),
        "question": table.question if table.is_further else "",
        "sender": f"submitted by {table.sender}" if table.sender else "",
        **dict(_place_parts(table.setting, table.backbone, table.length)),
        "text": f"trained on {table.trained_on}" if table.trained_on else "",
        "protocol": table.protocol,
    }


def _place_parts(setting: str | None, backbone: str | None, length: str) -> list[tuple[str, str]]:
    parts = [("setting", setting_words(setting)), ("backbone", backbone_words(backbone))]
    if setting == "none" and backbone is None:
        parts = [("setting", "ready-made encoders")]
    return [*parts, ("length", budget_words(length))]


def place_words(setting: str | None, backbone: str | None) -> str:
    """Return "unsupervised, built-in backbone"."""
    return ", ".join(word for _, word in _place_parts(setting, backbone, "") if word)


def suite_name(suite: str) -> str:
    return SUITES.get(suite, suite)


def backbone_words(backbone: str | None) -> str:
    if backbone is None:
        return SEVERAL
    return "built-in backbone" if backbone == BUILTIN else backbone


def setting_words(setting: str | None) -> str:
    """Write a setting; None means several."""
    if setting is None:
        return "several settings"
    return "nothing trained" if setting == "none" else setting


def text_words(protocol: str) -> str:
    """Return " (raw texts)" for a protocol of raw texts, " (without 4 tokens)" for shortened ones,
    else "", also for a user's file.
    """
    text = protocol_text(protocol)
    if text == RAW:
        return " (raw texts)"
    return f" ({text.replace('-', ' ')})" if text.startswith("without-") else ""


def budget_words(budget: str) -> str:
    """Write a budget such as "1000steps" as "1,000 steps"; others, such as "10m", as they are."""
    found = re.fullmatch(r"(\d+)([a-z]{2,})", budget)
    return f"{int(found[1]):,} {found[2]}" if found else budget
