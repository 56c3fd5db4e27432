"""What differs between the rows of a table and matters, in words, of five kinds: the training text,
how the values were found, the number of seeds, the vectors, and how the scores were made."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from bench.base.text import list_names, plural
from bench.compare.differences import (
    CODE_OF,
    DATA_OF,
    LIBRARIES,
    MTEB,
    differences,
    rows_elsewhere,
    seen_test_tasks,
)
from bench.compare.formatting import score
from bench.compare.starts import asks_for_starts, start_command, starts_of
from bench.compare.statistics.table import FEW_SEEDS, NOT_TRAINED, Row, Table
from bench.compare.words.finding import (
    MOST_NAMED,
    as_good_untrained,
    comparison_of,
    why_untested,
)
from bench.compare.words.names import baseline_name, row_name, row_names
from bench.papers.names import printed_dimensions
from bench.records.record import RunRecord
from bench.records.selection import dev_words
from bench.records.value_sources import TUNED, search_of

OTHER_TEXT = "trained on other sentences"
TEST_SENTENCES = "trained on test sentences"
NO_ENCODER = "encoder not trained"
NOT_TUNED = "not tuned"
OTHER_RULES = "tuned by other rules"
OTHER_CODE = "runs of other code are left out"
OTHER_SCORER = "scored by other code"
OTHER_DATA = "scored on other data"
OTHER_LIBRARIES = "made with other versions of"

SEARCH_RULES = ("trials", "sampler", "pruner", "seeds", "budget", "select_on")
"""What a search that is like another has in common with it."""

FEW_IDS = 3
"""Runs that a note names by their ids; of more it says how many there are."""

WIDTH = re.compile(r"\b(\d+)d\b")
"""The number of dimensions in the name of a file of word vectors: glove.6B.50d.txt."""


def note_lines(table: Table) -> list[str]:
    """Return a line for each note on rows, "not tuned: PCL and BERT-flow", then the table's own."""
    rows_of: dict[str, list[str]] = {}
    for row in table.rows:
        for note in row.notes:
            rows_of.setdefault(note, []).append(row_name(row, table))
    lines = [f"{note}: {list_names(names, len(names))}" for note, names in rows_of.items()]
    return [*lines, *table_notes(table)]


def table_notes(table: Table) -> list[str]:
    """Return the notes on runs that are not shown as the others, then the table's own."""
    return [*_run_notes(table), *table.notes]


def with_notes(table: Table, tables: Sequence[Table], records: Mapping[str, RunRecord]) -> Table:
    """Return a judged table with the notes on each row, and those on the table.

    ``tables``: all that are shown; rows that only another protocol has are named.
    """
    scoring = _scoring_notes(table, records)
    tuning = _tuning_notes(table, records)
    usual_text = _usual_text(table, records)
    few = sum(row.untested == FEW_SEEDS for row in table.rows)
    has_others = few < sum(row.seeds != (None,) and not row.stands for row in table.rows)
    rows = []
    for place, row in enumerate(table.rows):
        runs = [records[run] for run in row.runs]
        notes = [*_text_notes(row, runs, usual_text, table, records), *tuning[place]]
        if row.untested == FEW_SEEDS and has_others:
            notes.append(why_untested(row, table))
        notes += [*_vector_notes(row, runs), *scoring[place]]
        rows.append(replace(row, notes=tuple(notes)))
    of_table = [f"planned: {table.question}"] if table.question else []
    of_table += [*_checkpoint_notes(table, records), *_same_place_notes(table, records)]
    shown = [records[run] for row in table.rows for run in row.runs]
    failed = [record for record in shown if record.error]
    if failed:
        named = list_names((f"{record.run_id} ({record.error})" for record in failed), 3)
        of_table.append(f"not scored in full: {named}")
    untrained = as_good_untrained(table)
    if untrained:
        of_table.append(untrained)
    of_table += [*_start_notes(table, records), *_seed_notes(table), *rows_elsewhere(table, tables)]
    return replace(table, rows=tuple(rows), notes=(*table.notes, *of_table))


def _run_notes(table: Table) -> Iterator[str]:
    """Yield a line for runs without a score of a column, and for runs that are left out."""
    older: dict[str, tuple[str, ...]] = {}
    for row in table.rows:
        name = row_name(row, table)
        for column, cell in zip(table.columns, row.cells, strict=True):
            if cell is not None and len(cell.values) < len(row.runs):
                yield f"{name}: {column} from {len(cell.values)} of {len(row.runs)} seeds"
        if row.older:
            older[name] = row.older
    left_out = [run_id for of_row in older.values() for run_id in of_row]
    if not left_out:
        return
    named = list_names(left_out, FEW_IDS)
    if len(left_out) > FEW_IDS:
        named = list_names(f"{len(of_row):,} of {name}" for name, of_row in older.items())
    count = plural(len(left_out), "run")
    yield f"{count} left out, because newer runs have the same seeds: {named}"


def _start_notes(table: Table, records: Mapping[str, RunRecord]) -> Iterator[str]:
    """Name the judged rows whose start was not scored, with the command that scores it and the row
    that is taken for it, and rows that are not above it and have another place in the table."""
    if not asks_for_starts(table):
        return
    trained = [row for row in table.rows if row.setting != "none" and not row.is_start]
    judged = [row for row in trained if row.is_asked_about]
    missing = [row for row in judged if not starts_of(row, table.rows)]
    if missing:
        names = list_names(row_names(missing, table), MOST_NAMED)
        taken = list_names(dict.fromkeys(row.start.row for row in missing if row.start))
        instead = f", {taken} taken for it" if taken else ""
        # rows of several backbones or settings have no command in common
        has_command = table.setting is not None and table.backbone is not None
        command = f" ({start_command(missing, table, records)})" if has_command else ""
        yield f"untrained start not scored{instead}: {names}{command}"
    others = [row for row in trained if row.is_at_start and row.stands != NOT_TRAINED]
    if others:
        names = list_names(row_names(others, table), MOST_NAMED)
        yield f"not above the untrained start: {names}"


def _seed_notes(table: Table) -> Iterator[str]:
    """Give the averages of the rows that were compared over fewer seeds than they or the baseline
    have."""
    baseline = next((row for row in table.rows if row.is_baseline), None)
    averages: dict[tuple[int, str], list[str]] = {}
    for row in table.rows:
        of = comparison_of(row)
        cell = row.cells[-1]
        if baseline is None or cell is None or of is None:
            continue
        if of.paired_seeds is None or of.mean is None or of.baseline_mean is None:
            continue
        if of.paired_seeds < max(table.n(row), table.n(baseline)):
            key = of.paired_seeds, score(of.baseline_mean, cell.decimals)
            text = f"{row_name(row, table)} {score(of.mean, cell.decimals)}"
            averages.setdefault(key, []).append(text)
    for (seeds, base), texts in averages.items():
        yield (
            f"compared over the {seeds} seeds that both have, with {base} of "
            f"{baseline_name(table)}: {list_names(texts, len(texts))}"
        )


def _usual_text(table: Table, records: Mapping[str, RunRecord]) -> str | None:
    """Return the sha256 of the baseline's training text, else of that of most rows."""
    texts: Counter[str] = Counter()
    for row in table.rows:
        sha256 = records[row.runs[0]].provenance.corpus.sha256
        if sha256 and row.is_baseline:
            return sha256
        if sha256:
            texts[sha256] += 1
    return texts.most_common(1)[0][0] if texts else None


def _text_notes(
    row: Row,
    runs: Sequence[RunRecord],
    usual: str | None,
    table: Table,
    records: Mapping[str, RunRecord],
) -> Iterator[str]:
    sha256 = runs[0].provenance.corpus.sha256
    if sha256 and sha256 != usual:
        yield OTHER_TEXT
    tasks = seen_test_tasks(row.runs, table, records)
    if tasks:
        yield f"{TEST_SENTENCES} ({list_names(tasks)})"


def _tuning_notes(table: Table, records: Mapping[str, RunRecord]) -> list[list[str]]:
    """Return for each row if no encoder was trained, and how its values were found, if not as in
    the baseline's row or in most rows."""
    rules: Counter[tuple[str, ...]] = Counter()
    tuned = untuned = 0
    of_baseline: tuple[str, ...] = ()
    for row in table.rows:
        if not row.values:
            continue
        if row.values.startswith(TUNED):
            tuned += 1
            of_row = _search_rules(row, records)
            rules[of_row] += 1
            if row.is_baseline:
                of_baseline = of_row
        else:
            untuned += 1
    usual = of_baseline or next((found for found, _ in rules.most_common(1)), ())
    notes = []
    for row in table.rows:
        said = []
        if row.setting == "none" and table.setting != "none":
            said.append(NO_ENCODER)
        is_tuned = row.values.startswith(TUNED)
        if row.values and not is_tuned and tuned >= untuned:
            said.append(NOT_TUNED)
        elif is_tuned and tuned < untuned:
            said.append(TUNED)
        elif is_tuned and _search_rules(row, records) != usual:
            said.append(OTHER_RULES)
        notes.append(said)
    return notes


def _search_rules(row: Row, records: Mapping[str, RunRecord]) -> tuple[str, ...]:
    """Return how the search behind a row chose; two searches may have chosen in the same way."""
    search = search_of(records[row.runs[0]])
    return tuple(str(search.get(name)) for name in SEARCH_RULES)


def _vector_notes(row: Row, runs: Sequence[RunRecord]) -> Iterator[str]:
    """Say if the vectors have another number of dimensions than the paper's."""
    printed = printed_dimensions(row.method)
    if printed is None:
        return
    for entry in runs[0].recipe.values():
        found = WIDTH.search(str(entry.value))
        if found and int(found[1]) != printed:
            yield f"its vectors have {found[1]} dimensions, the paper's {printed}"


def _scoring_notes(table: Table, records: Mapping[str, RunRecord]) -> list[list[str]]:
    """Return for each row in which precision, by which code, on which data and with which libraries
    it was scored, if not as most rows."""
    found = differences(table, records)
    notes = []
    for row in table.rows:
        said: dict[str, None] = {}
        libraries = []
        for run in row.runs:
            precision = records[run].provenance.execution.scored_in
            if precision:
                said[f"scored in {precision}"] = None
        for difference in found:
            if not difference.runs.intersection(row.runs):
                continue
            if difference.setting.startswith(CODE_OF):
                said[OTHER_SCORER] = None
            elif difference.setting.startswith(DATA_OF):
                said[OTHER_DATA] = None
            elif difference.setting in (*LIBRARIES, MTEB):
                libraries.append(difference.setting)
        if libraries:
            said[f"{OTHER_LIBRARIES} {list_names(dict.fromkeys(libraries), len(libraries))}"] = None
        if row.other_code:
            said[f"{OTHER_CODE} ({row.other_code})"] = None
        notes.append(list(said))
    return notes


def _checkpoint_notes(table: Table, records: Mapping[str, RunRecord]) -> Iterator[str]:
    """Say on which set the checkpoints were chosen."""
    if table.suite != "sts":
        return
    runs = [records[run] for row in table.rows for run in row.runs]
    for text in dict.fromkeys(map(dev_words, runs)):
        if text:
            yield f"checkpoints: {text}"


def _same_place_notes(table: Table, records: Mapping[str, RunRecord]) -> Iterator[str]:
    """Name rows with the same teacher for all seeds, or another model that the recipe names: their
    ± covers no other one."""
    rows_of: dict[str, list[str]] = {}
    for row in table.rows:
        if row.seeds == (None,):
            continue
        keys = _shared_places([records[run] for run in row.runs])
        if keys:
            rows_of.setdefault(list_names(keys), []).append(row_name(row, table))
    for shared, names in rows_of.items():
        yield f"± does not include the choice of {shared}: {list_names(names, len(names))}"


def _shared_places(runs: Sequence[RunRecord]) -> list[str]:
    """Return the recipe keys that name a file, a folder or a model that all these runs share."""
    places_of_runs: list[Mapping[object, object]] = []
    for run in runs:
        places = (run.provenance.determines or {}).get("places")
        if not isinstance(places, dict):
            return []
        places_of_runs.append(places)
    first, *others = places_of_runs
    shared = []
    for key, content in sorted(first.items(), key=str):
        if content is not None and all(places.get(key) == content for places in others):
            shared.append(str(key))
    return shared
