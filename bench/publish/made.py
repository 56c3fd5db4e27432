"""How a version was made, in sentences: what its numbers are of, what was done about failures, how to repeat and to check them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from bench.compare.budget import budget
from bench.publish.board import GRADES, BoardTable, Fact, PublishedRun
from bench.publish.costs import made_in
from bench.publish.grades import WORDS
from bench.publish.selection import rule
from bench.runs.record import RunRecord
from bench.tables.words import metric_words

MANY = 3  # different values up to which a sentence lists them


def made(runs: Sequence[PublishedRun], tables: Sequence[BoardTable], left_out: Sequence[str], version: str) -> tuple[Fact, ...]:
    """Every fact that there is something to say of; computed from the records, nothing is assumed."""
    records = [one.record for one in runs]
    facts = [
        Fact(topic="Protocols", text=_protocols(tables)), Fact(topic="Selection", text=_selection(records)),
        Fact(topic="Seeds", text=_seeds(records)), Fact(topic="Training", text=_training(tables, records)),
        Fact(topic="Intervals and tests", text=_statistics(tables)), Fact(topic="Missing and failed", text=_missing(left_out)),
        Fact(topic="Hardware", text=_hardware(records)), Fact(topic="Not comparable", text=_not_comparable(tables)),
        Fact(topic="What papers printed", text="Stands in its own section as it was printed, and is never ranked among runs. Beside a "
             "run stands only a number of the same method, backbone, setting and protocol."),
        Fact(topic="Trust", text=_grades(runs)),
        Fact(topic="Repeat", text="The page of every run has the command that made it."),
        Fact(topic="Check", text="Recomputes every score from the stored predictions.", command=f"bench verify leaderboards/{version}"),
        Fact(topic="Add a row", text="Packs a run into one file, which is verified before it is taken.", command="bench submit RUN"),
    ]  # fmt: skip
    return tuple(fact for fact in facts if fact.text)


def _protocols(tables: Sequence[BoardTable]) -> str:
    forms: dict[tuple[str, str, str], dict[str, None]] = {}
    for one in tables:
        forms.setdefault((one.table.suite, one.table.protocol, one.table.metric), {})[one.table.text or ""] = None
    told = [f"{suite}: {protocol}, {metric_words(metric)}" + (f", {' and '.join(sorted(form for form in found if form))} text" if any(found) else "")
            for (suite, protocol, metric), found in forms.items()]  # fmt: skip
    return "; ".join(told) + ". Numbers of different protocols or text forms never share a column." if told else ""


def _selection(records: Sequence[RunRecord]) -> str:
    rules = Counter(found for record in records if (found := rule(record)) is not None)
    if not rules:
        return "Nothing was trained, so no checkpoint was chosen."
    if len(rules) == 1:
        return f"Checkpoint of every trained run: {next(iter(rules))}."
    told = [
        f"{found} ({count} run{'s' * (count != 1)})" for found, count in sorted(rules.items(), key=lambda one: (-one[1], one[0]))
    ]
    return f"Checkpoints of trained runs: {'; '.join(told)}."


def _seeds(records: Sequence[RunRecord]) -> str:
    trained = [record for record in records if record.seed is not None]
    seeds = sorted({record.seed for record in trained if record.seed is not None})
    if not seeds:
        return "No run depends on a seed."
    listed = ", ".join(map(str, seeds)) if len(seeds) <= 10 else f"{len(seeds)} different ones"
    return f"Seeds: {listed}. A cell is the mean over the seeds of its row; a row without randomness has one run."


def _training(tables: Sequence[BoardTable], records: Sequence[RunRecord]) -> str:
    by_id = {record.run_id: record for record in records}
    rows = {row.runs: row for one in tables for row in one.table.rows}
    found = [
        one
        for row in rows.values()
        if (one := budget([by_id[run] for run in row.runs])) is not None and one.sentences is not None
    ]
    if not found:
        return ""
    seen = sorted({one.sentences for one in found if one.sentences is not None})
    corpora = sorted({one.corpus for one in found if one.corpus})
    rows_seen = f"{seen[0]:,}" if len(seen) == 1 else f"{seen[0]:,} to {seen[-1]:,}"
    usual = found[0]
    equal = all(one.sentences is not None and usual.sentences is not None and abs(one.sentences - usual.sentences) <= 0.01 * usual.sentences
                for one in found)  # fmt: skip
    same = ", the same for every trained row" if equal and len(corpora) == 1 else ""
    return f"Each trained run saw {rows_seen} rows of {_few(corpora, 'training texts')}{same}."


def _statistics(tables: Sequence[BoardTable]) -> str:
    tested = next((one.table.tested for one in tables if one.table.tested), None)
    covers = {
        cell.spread.covers for one in tables for row in one.table.rows for cell in row.cells if cell is not None and cell.spread
    }
    if tested is None or not tested.families:
        return (
            "± is half of a 95 % interval over seeds; differences were not tested." if covers else "Differences were not tested."
        )
    return (
        "± is half of a 95 % interval over items (and seeds, where a row has several); pairs that share a sentence count together, and the "
        f"spread over seeds is borrowed across rows. p-values are adjusted (Holm, alpha {tested.alpha:g}) within each table in three families: "
        "the average less the baseline's, single tasks less the baseline's, all pairs of rows. Every baseline that may be chosen has its own."
    )


def _missing(left_out: Sequence[str]) -> str:
    said = "A cell that was not scored stays empty, and so does the average of its row. A failed, interrupted or damaged run has no row"
    count = (
        f"{len(left_out)} run{' was' if len(left_out) == 1 else 's were'} left out for that, listed below"
        if left_out
        else "here there was none"
    )
    return f"{said}; {count}."


def _hardware(records: Sequence[RunRecord]) -> str:
    devices = sorted({made_in(record).device for record in records})
    versions = sorted({made_in(record).bench_version for record in records})
    torch = sorted({str(record.provenance.packages["torch"]) for record in records if record.provenance.packages.get("torch")})
    libraries = f", torch {_few(torch, 'versions')}" if torch else ""
    return (f"{_few(devices, 'kinds of hardware')}; bench {_few(versions, 'versions')}{libraries}. Times and memory of different "
            "hardware or versions never share a column.")  # fmt: skip


def _not_comparable(tables: Sequence[BoardTable]) -> str:
    places = {(one.table.setting, one.table.backbone) for one in tables}
    noted = sum(bool(one.table.footnotes) for one in tables)
    said = (
        ["Rows of different tables: another setting, backbone, protocol or text form."]
        if len(places) > 1 or len(tables) > 1
        else []
    )
    if noted:
        said.append(
            f"{noted} table{' has rows that differ' if noted == 1 else 's have rows that differ'} in data or libraries: see the footnotes."
        )
    return " ".join(said)


def _grades(runs: Sequence[PublishedRun]) -> str:
    counts = Counter(one.grade for one in runs)
    told = [f"{counts[grade]:,} {grade}: {WORDS[grade]}" for grade in GRADES if counts[grade]]
    return f"Runs by grade. {' '.join(told)}"


def _few(values: Iterable[str], what: str) -> str:
    found = list(values)
    return ", ".join(found) if len(found) <= MANY else f"{len(found)} {what}"
