"""The tables that ``bench compare`` shows: means, footnotes, costs, and the sentence and legend that describe a judged table.

Each sentence has a condition under which it is true; docs/statistics.md has the rule behind it.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from bench.base.errors import BenchError
from bench.base.installed_code import hash_of_method
from bench.base.same_code import equivalent_code, suite_code_of
from bench.base.text import list_names, plural
from bench.compare.formatting import SEVERAL, protocol_words, row_name, score, setting_words
from bench.compare.judge import judge
from bench.compare.printed import with_paper
from bench.compare.senders import sender_of
from bench.compare.statistics.rows import (
    DEV_SET,
    PRECISION,
    PROCESSES,
    SELECT_ON,
    KnownCode,
    terms_of,
)
from bench.compare.statistics.table import (
    AVERAGE,
    BETTER,
    INCONCLUSIVE,
    WORSE,
    Against,
    Cell,
    Cost,
    Footnote,
    Row,
    Table,
    summarise,
    with_baseline,
)
from bench.compare.submitted import beside_publishers, judge_submitted, publishers_table
from bench.data.overlap import seen_tasks
from bench.records.copies import distinct_runs
from bench.records.names import data_key
from bench.records.record import RunRecord, Score, name_in_suites
from bench.records.run import Run
from bench.records.selection import dev_words
from bench.records.value_sources import is_tuned, kind_of_values, search_of

# --- what the runs of one table do not share although they stand in one column: a footnote for each difference ---


CODE_HERE = KnownCode(hash_of_method, equivalent_code)
"""The code of the installed methods, and of the files that records name; nothing is imported."""
LIBRARIES = ("torch", "transformers", "tokenizers", "numpy", "scipy", "scikit-learn")
"""Packages that a score may depend on; ``mteb`` too, of its own suite."""
UNKNOWN = "not recorded"


def with_footnotes(
    table: Table,
    tables: Sequence[Table],
    records: Mapping[str, RunRecord],
    beside: Table | None = None,
) -> Table:
    """The table with a footnote for each difference between its runs, and marks at the rows that
    differ.

    Of each thing that is compared, the value that most runs have is the rule; one footnote names
    all who differ. Rows that a suite has only under another protocol or text form, in another one
    of ``tables``, are named too. ``beside``: the publisher's table next to a submitted one; what its runs have counts for what most have.
    """
    table = _seen_in_training(_with_differences(table, records, beside), records)
    runs = [records[run] for row in table.rows for run in row.runs]
    notes = [
        f"checkpoints: {text}"
        for text in dict.fromkeys(map(dev_words, runs))
        if text and table.suite == "sts"
    ]
    notes += _same_place_notes(table, records)
    if failed := [f"{record.run_id} ({record.error})" for record in runs if record.error]:
        notes.append(f"not scored in full: {list_names(failed, 3)}")
    return replace(
        table,
        footnotes=(*table.footnotes, *_elsewhere(table, tables)),
        notes=(*table.notes, *notes),
    )


def _same_place_notes(table: Table, records: Mapping[str, RunRecord]) -> list[str]:
    """A note on rows whose seeds all have the same teacher, or another model that the recipe names: their ± covers no other one."""
    rows_of: dict[str, list[str]] = {}
    for row in table.rows:
        if row.seeds == (None,):
            continue
        keys = _shared_places([records[run] for run in row.runs])
        if keys:
            rows_of.setdefault(list_names(keys), []).append(row_name(row, table))
    told = [f"{keys} ({list_names(names)})" for keys, names in rows_of.items()]
    if not told:
        return []
    return [f"± is over other seeds with the same {'; '.join(told)}, and covers no other one"]


def _shared_places(runs: Sequence[RunRecord]) -> list[str]:
    """The recipe keys that name a file, a folder or a model, if all these runs have the same one."""
    shared = []
    every = [(run.provenance.determines or {}).get("places") for run in runs]
    first = every[0]
    if not isinstance(first, dict):
        return []
    for key, content in sorted(first.items()):
        others = [of.get(key) for of in every if isinstance(of, dict)]
        if (
            content is not None
            and len(others) == len(every)
            and all(one == content for one in others)
        ):
            shared.append(str(key))
    return shared


def _with_differences(
    table: Table, records: Mapping[str, RunRecord], beside: Table | None
) -> Table:
    every = table.rows if beside is None else (*table.rows, *beside.rows)
    facts = {run: _facts(records[run], table) for row in every for run in row.runs}
    _leave_out_dev_sets(facts)
    footnotes = list(table.footnotes)
    marks = [list(row.footnotes) for row in table.rows]
    for setting in dict.fromkeys(key for fact in facts.values() for key in fact):
        having = {run: of_run[setting] for run, of_run in facts.items() if setting in of_run}
        counts = Counter(having.values())
        if all(search_of(records[run]) for run in having):
            counts.pop(SEARCHED, None)  # rows of a search may differ in what it chose
        if len(counts) < 2:
            continue
        usual = max(counts, key=lambda value: (counts[value], value))
        for value in sorted(counts.keys() - {usual}):
            names = []
            for row, row_marks in zip(table.rows, marks, strict=True):
                seeds = [
                    seed
                    for run, seed in zip(row.runs, row.seeds, strict=True)
                    if having.get(run) == value
                ]
                if seeds:
                    noun = "seed" if len(seeds) == 1 else "seeds"
                    some = f" ({noun} {', '.join(map(str, seeds))})" * (len(seeds) < len(row.runs))
                    row_marks.append(len(footnotes))
                    names.append(row_name(row, table) + some)
            if names:  # else only rows of the table beside it have this value
                footnotes.append(Footnote(setting, value, list_names(names), usual))
    return replace(
        table,
        rows=tuple(
            replace(
                row,
                footnotes=tuple(row_marks),
                values=", ".join(
                    filter(None, dict.fromkeys(kind_of_values(records[run]) for run in row.runs))
                ),
            )
            for row, row_marks in zip(table.rows, marks, strict=True)
        ),
        footnotes=tuple(footnotes),
    )


def _leave_out_dev_sets(facts: Mapping[str, dict[str, str]]) -> None:
    """Remove the contents of dev sets, unless one name has several: else the name, ``select_on``, says the same."""
    contents: dict[str, set[str]] = {}
    for of_run in facts.values():
        if DEV_SET in of_run:
            contents.setdefault(of_run.get(SELECT_ON, ""), set()).add(of_run[DEV_SET])
    if any(len(found) > 1 for found in contents.values()):
        return
    for of_run in facts.values():
        of_run.pop(DEV_SET, None)


def _seen_in_training(table: Table, records: Mapping[str, RunRecord]) -> Table:
    """The table with a footnote for each row whose training text contains a tenth or more of a task's sentences."""
    footnotes, rows = list(table.footnotes), []
    for row in table.rows:
        tasks = dict.fromkeys(
            task
            for run in row.runs
            for task in seen_tasks(records[run].provenance.corpus.overlap, table.suite)
        )
        if tasks:
            row = replace(row, footnotes=(*row.footnotes, len(footnotes)))
            footnotes.append(
                Footnote(
                    "training text",
                    f"a tenth or more of the sentences of {list_names(tasks)}",
                    row_name(row, table),
                )
            )
        rows.append(row)
    return replace(table, rows=tuple(rows), footnotes=tuple(footnotes))


def _facts(record: RunRecord, table: Table) -> dict[str, str]:
    """What should be the same in all runs of the table -> its value in this one."""
    packages, data = record.provenance.packages, record.provenance.data
    facts = {"bench": record.provenance.bench_version or UNKNOWN} | {
        name: str(packages.get(name, UNKNOWN))
        for name in (*LIBRARIES, *(("mteb",) if table.suite == "mteb" else ()))
    }
    for one in record.scores:
        if (one.suite, one.protocol) != (table.suite, table.protocol) or one.task == AVERAGE:
            continue
        if code := _code_of(one, record):
            facts[f"code of {one.task}"] = code[:8]
        if table.text and one.text and (one.text == table.text or one.text.startswith("other-")):
            facts[f"text of {one.task}"] = one.text
        sha256 = data.get(data_key(one.task, one.text, table.suite))
        if one.text == table.text and sha256 is not None:
            facts[f"data of {one.task}"] = str(sha256)[:8]
    if kind := kind_of_values(record):
        facts["values"] = kind
    if name := search_of(record).get("name"):
        facts["search"] = str(name)
    return facts | terms(record)


def _code_of(score: Score, record: RunRecord) -> str | None:
    """The hash of the code that scored a task; None if it was not recorded."""
    codes = record.provenance.execution.suites
    code = codes.get(name_in_suites(*score.key), codes.get(score.suite))
    return None if code is None else suite_code_of(score.suite, code.sha256)


def _elsewhere(table: Table, tables: Sequence[Table]) -> list[Footnote]:
    """A footnote for rows of the same suite that only other tables have, under another protocol or text form."""
    here = {run for row in table.rows for run in row.runs}
    place, form = (table.suite, table.setting, table.backbone), protocol_words(table)
    return [
        Footnote("protocol", f"{protocol_words(other)} only", list_names(names), form)
        for other in tables
        if (other.suite, other.setting, other.backbone) == place and protocol_words(other) != form
        if (names := dict.fromkeys(row.name for row in other.rows if not here & set(row.runs)))
    ]


# --- by what score the checkpoints of a row were chosen ---


DEV = ("dev", "validation", "valid", "val", "train")
"""Last words in the names of sets that no score is taken of."""
UNNAMED = "a set that was not recorded"


def chosen_on(record: RunRecord) -> str:
    """The set on which a checkpoint, or the values of a recipe, were chosen, if it is not a development set; else "".

    Runs of different answers never share a table. A set whose name was not recorded may be any, and counts as no development set.
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
    """The name of a set, unless the name marks it as a development set; else ""."""
    name = name.strip()
    return "" if name.lower().split(" ")[-1] in DEV or name == "sts-dev-clean" else name or UNNAMED


# --- the tables ---


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """What the tables show next to the means."""

    baseline: str | None = None
    together: bool = False
    tasks: tuple[str, ...] = ()  # only these; a single one is what a table ranks by
    with_paper: bool = False
    cost: bool = False
    strict: bool = False


def compare_runs(runs: Sequence[Run], options: TableOptions) -> tuple[Table, ...]:
    """The tables of these runs: the publisher's first, then those of each sender, which change nothing in them.

    Raises BenchError where the runs have no score, ``options`` refuse them, or two different runs have one id.
    """
    by_id = {run.record.run_id: run for run in distinct_runs(runs)}
    records = {run_id: run.record for run_id, run in by_id.items()}
    by_sender: dict[str, list[RunRecord]] = {}
    for record in records.values():
        by_sender.setdefault(sender_of(record), []).append(record)
    own_records = by_sender.pop("", [])
    budgets = usual_budgets(own_records)
    own = _summarised(own_records, options, budgets)
    if not any(record.scores for record in records.values()):
        raise BenchError("none of these runs has a score", "bench run ... --suite sts")
    own = with_baseline(own, options.baseline)
    own = [with_footnotes(table, own, records) for table in own]
    if options.strict:
        refuse_footnotes(own)
    own = [judge(table, by_id) for table in own]
    tables = list(own)
    for sender, theirs in sorted(by_sender.items()):
        usual = usual_budgets(theirs) | budgets
        sent = _summarised(theirs, options, usual, beside=own_records)
        sent = [replace(table, sender=sender) for table in sent]
        tables += [_submitted(table, own, sent, by_id) for table in sent]
    if options.with_paper:
        tables = [with_paper(table, records) for table in tables]
    if options.cost:
        tables = [with_costs(table, records) for table in tables]
    return tuple(tables)


def _summarised(
    records: Sequence[RunRecord],
    options: TableOptions,
    usual: Mapping[tuple[str, str], str],
    beside: Sequence[RunRecord] = (),
) -> list[Table]:
    """The tables of one sender's runs, before anything is compared. ``beside``: as for ``summarise``."""
    rarer = {} if options.together else rarer_budgets(records, usual)
    groups: dict[tuple[str, str], list[RunRecord]] = {}
    for record in records:
        groups.setdefault((chosen_on(record), rarer.get(record.run_id, "")), []).append(record)
    made = []
    for (name, budget), group in sorted(groups.items()):
        tables = summarise(
            group,
            together=options.together,
            tasks=options.tasks,
            beside=beside,
            code=CODE_HERE,
        )
        made += [replace(table, chosen_on=name, budget=budget) for table in tables]
    return made


def _submitted(
    table: Table, own: Sequence[Table], sent: Sequence[Table], runs: Mapping[str, Run]
) -> Table:
    """A table of one sender's runs, compared with the publisher's. ``sent``: all tables of the sender."""
    publishers = publishers_table(table, own)
    records = {run_id: run.record for run_id, run in runs.items()}
    table = with_footnotes(beside_publishers(table, publishers), sent, records, publishers)
    return judge_submitted(table, publishers, runs)


def usual_budgets(records: Iterable[RunRecord]) -> dict[tuple[str, str], str]:
    """(setting, backbone) -> the budget that most runs have; "" for none."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for record in records:
        place = (record.setting, record.backbone_name)
        counts.setdefault(place, Counter())[_budget(record)] += 1
    return {place: of.most_common(1)[0][0] for place, of in counts.items()}


def rarer_budgets(
    records: Iterable[RunRecord], usual: Mapping[tuple[str, str], str]
) -> dict[str, str]:
    """Run id -> budget, of the runs with another budget than is ``usual`` for their setting and backbone.

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


def refuse_footnotes(tables: Sequence[Table]) -> None:
    """``--strict``: raises BenchError where a table has a footnote."""
    differences = [f"{table.suite}: {footnote}" for table in tables for footnote in table.footnotes]
    if differences:
        raise BenchError(
            f"--strict: {plural(len(differences), 'difference')} between the runs of a table: {list_names(differences, 1)}",
            "name the runs, filter them (--method, --backbone, --text), or leave --strict out and read the footnotes",
        )


# --- what a row took, and the settings of a training that its neighbours in a table may not share ---


def with_costs(table: Table, records: Mapping[str, RunRecord]) -> Table:
    """The table with what every row took: means over its runs."""
    return replace(
        table,
        rows=tuple(
            replace(row, cost=_cost([records[run] for run in row.runs])) for row in table.rows
        ),
    )


TERMS = ("learning_rate", "batch_size", "max_seq_length", SELECT_ON)
"""Recipe values that two methods may have unlike each other without being other methods for it."""
SEARCHED = "searched"
"""What a footnote calls a value that a search chose."""


def terms(record: RunRecord) -> dict[str, str]:
    """The training settings of a run besides its method and its corpus: term -> value; empty if nothing was trained.
    "processes" are those that divide the gradient.

    Rows of one table that differ in one of them get a footnote, and ``--strict`` refuses them. What a search chose is SEARCHED,
    whatever it is: that methods were searched alike is what they share. So is the rate of a recipe that no trial of its search beat.
    """
    done = record.training
    if done is None:
        return {}
    rate = "learning_rate" if search_of(record) else None
    words = {
        key: SEARCHED if key == rate or is_tuned(value) else str(value.value)
        for key in TERMS
        if (value := record.recipe.get(key)) is not None and value.value is not None
    }
    if "learning_rate" in record.recipe:
        words["steps"] = f"{done.steps:,}"
    decides = terms_of(record)
    if PRECISION in decides:
        words[PRECISION] = decides[PRECISION].shown
        words[PROCESSES] = decides[PROCESSES].shown if PROCESSES in decides else "1"
    if DEV_SET in decides:
        words[DEV_SET] = decides[DEV_SET].shown
    return words


def _cost(runs: Sequence[RunRecord]) -> Cost:
    costs, (seconds, trials) = [run.cost for run in runs], tuning_cost(runs)
    return Cost(
        tuning_seconds=seconds,
        tuning_trials=trials,
        trainable_parameters=_mean([cost.trainable_parameters for cost in costs]),
        trainable_parts=_parts([cost.trainable_parts for cost in costs]),
        train_seconds=_mean([cost.train_seconds for cost in costs]),
        peak_memory_bytes=_mean([cost.peak_memory_bytes for cost in costs]),
    )


def tuning_cost(runs: Sequence[RunRecord]) -> tuple[float | None, int | None]:
    """(seconds, trials) of the one search behind all runs of a row; None if not recorded, or invalid."""
    searches = [search_of(run) for run in runs]
    if any(search.get("name") != searches[0].get("name") for search in searches):
        return None, None
    seconds, trials = searches[0].get("seconds"), searches[0].get("trials")
    return (
        float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < 1e12 else None,
        trials if type(trials) is int and 0 <= trials < 1e6 else None,
    )


def _parts(counts: Sequence[Mapping[str, int] | None]) -> dict[str, float] | None:
    """The mean of each part over runs; None if a run recorded none, or has other parts than the rest."""
    known = [parts for parts in counts if parts is not None]
    if len(known) < len(counts) or any(parts.keys() != known[0].keys() for parts in known):
        return None
    return {part: fmean(parts[part] for parts in known) for part in known[0]}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


# --- what is said of a judged table: one sentence, and a legend of four static lines with their numbers ---


NAMED = 6  # rows that a sentence names
NAMES = {"sts": "STS", "cxc": "CxC", "mteb": "MTEB"}


# --- the sentence ---


def table_answer(table: Table) -> str:
    """Which row is best, as far as the data tell, and what the comparison with the baseline found; "" for a table that is not ranked.

    A: one row, or nothing was tested. B: one row may be the best. C: some may be. D: all may be. Of submitted rows only how they
    compare with the baseline.
    """
    rows = _best_first(table)
    if not rows:
        return ""
    where, column_name = place(table), head(table)
    if table.sender:
        return " ".join(
            filter(
                None, (f"{where}: {_submitted_rows(table)}", _compared(table), not_tested(table))
            )
        )
    tested = [(row, cell) for row, cell in rows if not row.untested]
    top = [(row, cell) for row, cell in tested if row.may_be_best]
    if len(rows) == 1:
        return (
            f"{where}: {row_name(rows[0][0], table)} reaches {_value(rows[0][1])} on {column_name}."
        )
    if table.tested is None:
        best = [(row, cell) for row, cell in rows if cell.rounded == rows[0][1].rounded]
        names = list_names((row_name(row, table) for row, _ in best), NAMED)
        return (
            f"{where}: highest on {column_name} {'is' if len(best) == 1 else 'are'} {names}, "
            f"{_value(best[0][1])}; "
            f"differences were not tested: {_reasons(row for row, _ in rows)}."
        )
    if len(top) == 1:
        said = f"{row_name(top[0][0], table)} is the best of {len(tested)} rows on {column_name}, {_value(top[0][1])}."
    elif len(top) < len(tested):
        some = list_names((f"{row_name(row, table)} ({_value(cell)})" for row, cell in top), NAMED)
        said = f"the best of {len(tested)} rows on {column_name} is one of {some}; which, the data do not tell."
    else:
        said = f"the data do not tell which of {len(tested)} rows is best on {column_name}."
    return " ".join(filter(None, (f"{where}: {said}", _compared(table), not_tested(table))))


def _submitted_rows(table: Table) -> str:
    """ "2 rows on the STS average, not among the candidates for the best." """
    return (
        f"{plural(len(table.rows), 'row')} on {head(table)}, not among the candidates for the best."
    )


def place(table: Table) -> str:
    """ "On the built-in backbone, unsupervised", "Submitted by Ada, on the built-in backbone, unsupervised" """
    backbone = "the built-in backbone" if table.backbone == "builtin" else table.backbone or SEVERAL
    words = [f"On {backbone}", setting_words(table.setting), table.budget]
    if table.sender:
        words[:1] = [f"Submitted by {table.sender}", f"on {backbone}"]
    return ", ".join(filter(None, words))


def head(table: Table) -> str:
    """ "the STS average", "CxC-STS" """
    form = "" if table.text in (None, "tokenised") else f" ({table.text})"
    if table.head == AVERAGE:
        return f"the {NAMES.get(table.suite, table.suite)} average{form}"
    return f"{table.head}{form}"


def not_tested(table: Table) -> str:
    """ "Not tested: a and b (no predictions of every task)." "" where all rows were."""
    reasons: dict[str, list[str]] = {}
    for row in table.rows if table.tested or table.sender else ():
        if row.untested:
            reasons.setdefault(row.untested, []).append(row_name(row, table))
    told = "; ".join(f"{list_names(names, NAMED)} ({reason})" for reason, names in reasons.items())
    return f"Not tested: {told}." if told else ""


def _compared(table: Table) -> str:
    """ "Against simcse: of 13 trained rows 0 are better, 10 worse, 3 inconclusive; of all 19: 0 better, 16 worse, 3 inconclusive." """
    compared = [row for row in table.rows if verdict(row)]
    if not compared:
        return ""
    trained = [row for row in compared if row.setting != "none"]
    every = _counted(compared)
    if trained and len(trained) < len(compared):
        every = (
            f"of {len(trained)} trained rows {_counted(trained)}; of all {len(compared)}, {every}"
        )
    return f"Against {table.baseline}: {every}."


def _counted(rows: Sequence[Row]) -> str:
    counts = Counter(verdict(row) for row in rows)
    return ", ".join(f"{counts[name]} {name}" for name in (BETTER, WORSE, INCONCLUSIVE))


def _reasons(rows: Iterable[Row]) -> str:
    return (
        "; ".join(dict.fromkeys(row.untested for row in rows if row.untested))
        or "their predictions were not read"
    )


def _best_first(table: Table) -> list[tuple[Row, Cell]]:
    """The rows with a value in the column that ranks; a table has them in this order."""
    return [
        (row, cell)
        for row in (table.rows if table.head else ())
        if (cell := row.cells[-1]) is not None
    ]


def _value(cell: Cell) -> str:
    return score(cell.mean, cell.decimals)


# --- a row's comparison with the baseline ---


def compared(row: Row) -> Against | None:
    """How the row was compared with the baseline on the column that ranks; None where it was not."""
    cell = row.cells[-1]
    against = cell.against if cell is not None else None
    return against if against is not None and against.verdict is not None else None


def verdict(row: Row) -> str | None:
    against = compared(row)
    return against.verdict if against is not None else None


# --- the legend ---


INTERVAL = "95 % CI of a row's own mean, over other items and seeds (one seed: items only; no predictions: seeds only)"


RIGHT = "right in about 94 of 100 such tables, if rows of few seeds spread like the others"
"""How often all that a table says is true; docs/statistics.md has the simulation behind it, and worlds in which it is less."""


def sign_legend(table: Table, better: str, worse: str, tint: str) -> list[str]:
    """At most four lines, and one of untested rows; only those whose numbers the table has. ``better``, ``worse``, ``tint``: how a form
    marks them."""
    lines = []
    base = table.baseline if table.has_verdicts else None
    if table.tested is not None:
        over = table.tested.comparisons
        if base is not None:
            lines.append(
                f'{better} better, {worse} worse than {base}; no sign: inconclusive, which is not "equal"; -: not tested'
            )
        if table.sender:
            lines.append(f"signs together are {RIGHT} (Bonferroni-Holm over {over})")
        elif base is not None:
            lines.append(
                f"{tint}: may be the best; signs and {tint} together are {RIGHT} (Bonferroni-Holm over {over})"
            )
        else:
            lines.append(f"{tint}: may be the best; {RIGHT} (Hsu over {over})")
    if table.sender:
        lines.append(
            "submitted rows borrow their spread from the publisher's rows, lend none, and are no candidates for the best"
        )
    if any(cell.spread for row in table.rows for cell in row.cells if cell):
        by = "; compare rows by the difference, not by ±" if base is not None else ""
        lines.append(f"±: {INTERVAL}{by}")
    if table.tested is not None and base is not None:
        lines.append(
            f"difference from {base} with its {100 * table.tested.ci_level:.3g} % CI, which excludes zero exactly where there is a sign"
        )
    return [*lines, *filter(None, (_spread(table, base), not_tested(table).rstrip(".")))]


def _spread(table: Table, base: str | None) -> str:
    """ "SD over seeds: median 0.67, 0.07 (flow) to 3.21 (promcse); n = 6 to 10; MDE against simcse (80 % power): median 1.6, 1.1 to 5.0 points" """
    ranked = _best_first(table)
    known = sorted((cell.sd, row_name(row, table)) for row, cell in ranked if cell.sd is not None)
    effects = sorted(against.mde for row, _ in ranked if (against := compared(row)) and against.mde)
    parts = []
    if known:
        (low, first), (high, last) = known[0], known[-1]
        counts = [len(cell.values) for _, cell in ranked if cell.sd is not None]
        n = " to ".join(map(str, sorted({min(counts), max(counts)})))
        middle = statistics.median(sd for sd, _ in known)
        between = f", {low:.2f} ({first}) to {high:.2f} ({last})" if len(known) > 1 else ""
        parts.append(f"SD over seeds: median {middle:.2f}{between}; n = {n}")
    if base is not None and effects:
        between = f", {effects[0]:.1f} to {effects[-1]:.1f}" if len(effects) > 1 else ""
        middle = statistics.median(effects)
        parts.append(f"MDE against {base} (about 80 % power): median {middle:.1f}{between} points")
    return "; ".join(parts)
