"""What of the scored sentences stands in the corpus of a run, counted for its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench.errors import CorpusError, Interrupted
from bench.overlap import Wanted, overlaps, scored_sentences
from bench.overlap.count import recorded

if TYPE_CHECKING:
    from bench.corpora import Corpus
    from bench.executors.options import Options
    from bench.method import Reporter
    from bench.runs import RunRecord
    from bench.suites import LoadedTask, TaskResult


def with_overlap(
    record: RunRecord, corpus: Corpus | None, scored: Sequence[tuple[TaskResult, LoadedTask]], options: Options,
    reporter: Reporter, should_stop: Callable[[], bool],
) -> Mapping[str, Any] | None:  # fmt: skip
    """``record.provenance.corpus`` with the overlap of what was scored just now in the place of older counts of the same tasks.

    A corpus that cannot be read any more leaves the rest as it is, with a note: the scores do not depend on it. Tasks of which
    only mteb knows the sentences have no counts. Raises Interrupted.
    """
    about = record.provenance.corpus
    if corpus is None or about is None:
        return about
    wanted = {(r.suite, r.task, r.text): Wanted(r.suite, r.task, r.text, scored_sentences(one)) for r, one in scored}
    known = [one for one in wanted.values() if one.sentences]
    if not known:
        return about

    def progress(rows: int) -> None:
        if should_stop():
            raise Interrupted("stopped while the corpus was compared with the evaluation data; the same command goes on")
        reporter.advance(rows, total=len(corpus))

    reporter.phase("overlap")
    try:
        found = overlaps(corpus, known, cache=options.cache, progress=progress)
    except (CorpusError, OSError) as error:
        reporter.note(f"the overlap of corpus and evaluation data was not counted: {error}")
        return about
    return {**about, "overlap": recorded(found, about.get("overlap"))}
