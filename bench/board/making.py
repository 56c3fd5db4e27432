"""How a version was made: data, training, machines and libraries of its runs, and how to check
it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from bench.base.text import list_names, plural, seed_ranges
from bench.compare.formatting import metric_words
from bench.compare.statistics.table import Table
from bench.compare.statistics.terms import corpus_words
from bench.records.record import RunRecord
from bench.records.value_sources import kind_of_values, search_of

FROM_SOURCE = "0+source"
"""The version of a checkout without an installed release."""
TESTED = (
    "± is the 95 % interval of a row's own mean. Pairs that share a sentence count together. With "
    "few seeds, a row's spread is estimated partly from the other rows, but never by more than two "
    "degrees of freedom. Each table is one family of tests on the column that ranks (Holm, level "
    "0.05): verdicts against the baseline, which was fixed before the scores, and the rows that "
    "may be the best. About 94 of 100 such tables contain no wrong verdict or mark, if rows with "
    "few seeds spread like the others. Of pages with several tables, fewer are free of mistakes. "
    "Rows with fewer than three seeds and single tasks are not tested."
)
NOT_COMPARABLE = (
    "Numbers with another protocol, setting or backbone are in another table. A table shows times "
    "and memory only if one machine and one version of bench measured all of them, and seeds of a "
    "row took about as long. A note names rows of one table that differ in data, libraries or code."
)
MISSING = (
    "A cell that was not scored is empty, and so is the average of its row. Failed, interrupted, "
    "damaged and replaced runs have no row."
)
REPEAT = (
    "Each number comes with the one command that repeats its row, seeds included. On another kind"
    " of processor a clustering score may differ in the second decimal: k-means runs in float32, "
    "and small differences grow."
)


def how_it_was_made(
    version: str, records: Sequence[RunRecord], senders: Mapping[str, str], tables: Sequence[Table]
) -> dict[str, str]:
    """Return topic -> how a board was made; unknown topics are left out.

    ``records``: the records of the board's own runs, if it has any, else of all.
    """
    protocols = []
    for table in tables:
        protocols.append(f"{table.protocol}, {metric_words(table)}")
    texts, lengths = [], []
    for record in records:
        if record.training and record.training.sentences:
            text = corpus_words(record) or "a text without a sha256"
            texts.append(f"{record.training.sentences:,} rows of {text}")
        if record.training and record.training.steps:
            lengths.append(plural(record.training.steps, "step"))
    tested = any(table.tested for table in tables)
    made = {
        "Protocols": count_values(protocols, "table"),
        "Selection": count_values(map(checkpoint_rule, records), "run"),
        "Seeds": seed_ranges(record.seed for record in records),
        "Training": count_values(texts, "run"),
        "Length of training": count_values(lengths, "run"),
        "Values": count_values(map(values_from, records), "run"),
        "Intervals and tests": TESTED if tested else "Differences were not tested.",
        "Hardware": count_values(map(machine_of, records), "run"),
        "Libraries": count_values(map(torch_version, records), "run"),
        "Not comparable": NOT_COMPARABLE,
        "Missing and failed": MISSING,
        "Submitted by": list_names(sorted(set(senders.values()))),
        "Repeat": REPEAT,
        "Check": f"bench verify leaderboards/{version} computes every score again from the stored "
        "predictions, and every verdict from the scores.",
    }
    return {topic: text for topic, text in made.items() if text}


def torch_version(record: RunRecord) -> str | None:
    """Return "torch 2.6.0"; None if it was not recorded."""
    version = record.provenance.packages.get("torch")
    return f"torch {version}" if version else None


def values_from(record: RunRecord) -> str:
    """Return "tuned: 6 trials in v3-unsupervised", "paper", "recipe"; "" if nothing is trained."""
    kind = kind_of_values(record)
    search = search_of(record).get("name")
    return f"{kind} in {search}" if kind and search else kind


def count_values(values: Iterable[str | None], noun: str) -> str:
    """Return "best on STS-B dev: 20 runs; ...", the most frequent first."""
    counts = Counter(value for value in values if value)
    ordered = sorted(counts.items(), key=lambda counted: (-counted[1], counted[0]))
    return "; ".join(f"{value}: {plural(count, noun)}" for value, count in ordered)


def checkpoint_rule(record: RunRecord) -> str | None:
    """Say how the checkpoint of a run was chosen; None if nothing was trained.

    "best on STS-B dev, scored every 125 steps", "the last step, nothing selected"
    """
    done = record.training
    if done is None:
        return None
    if done.dev_score is None:
        return "the last step, nothing selected"
    every = record.recipe.get("eval_steps")
    often = ""
    if every is not None and isinstance(every.value, int) and every.value:
        often = f", scored every {every.value:,} steps"
    return f"best on {(done.dev_task or '').strip() or 'a set that was not recorded'}{often}"


def machine_of(record: RunRecord) -> str | None:
    """Return "cpu: Intel(R) Xeon(R) Processor, 2 cores, bench 0.1.0"; None if that was not
    recorded.

    Code that was not released has no version; its commit is shown instead.
    """
    made = record.provenance
    device = record.cost.device or made.platform.get("device")
    version = made.bench_version
    if version and version.startswith(FROM_SOURCE) and made.git.commit:
        version = f"commit {made.git.commit[:12]}"
    return f"{device}, bench {version}" if device and version else None
