"""``bench data overlap``: which sentences of the evaluation sets stand in a training corpus."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from bench.cli.filters import json_text
from bench.cli.options import comma_list, data_option, json_option

if TYPE_CHECKING:
    from bench.corpora import Corpus
    from bench.datasets import DataFolder
    from bench.overlap import Match, Overlap, Wanted

SUITES = "sts,cxc,transfer,clustering"  # of the suites that papers report, those with sentences of their own


@click.command()
@click.argument("corpus")
@click.option("--suite", "suites", default=SUITES, show_default=True, help="Suites whose sentences are looked for; or all.")
@click.option("--text", default="tokenised", show_default=True, help="Text form of the sets that have several.")
@click.option("--column", help="Only this column of the corpus: sent0, sent1, hard_neg.  [default: every cell]")
@click.option("--matches", type=click.Path(path_type=Path), help="Write every match into this file: .jsonl, one object a line.")
@data_option
@json_option
def overlap(
    corpus: str, suites: str, text: str, column: str | None, matches: Path | None, data: Path | None, as_json: bool
) -> None:
    """Sentences of the evaluation sets that stand in CORPUS (a file, or builtin): the same, and nearly the same.

    The same: equal letters and digits, whatever the case, punctuation and white space. Nearly: both have at least 4 of 5
    words that either has. A run counts it too, for the tasks that it scores; bench show RUN.

    \b
    Example:  bench data overlap nli.csv --data DIR
    """
    from bench.datasets import DataFolder
    from bench.overlap import overlaps

    opened = _open(corpus, column)
    wanted = _wanted(DataFolder(data, offline=True), comma_list(suites), text)
    say = _progress(opened)
    found = overlaps(opened, wanted, progress=say) if matches is None else _listed(opened, wanted, matches, say)
    if as_json:
        click.echo(json_text({"corpus": opened.name, "sha256": opened.sha256, "rows": len(opened),
                               "tasks": [asdict(one) for one in found]}))  # fmt: skip
        return
    _show(opened, found)
    if matches is not None:
        click.echo(f"every match: {matches}")


def _open(corpus: str, column: str | None) -> Corpus:
    from bench.corpora import open_corpus

    opened = open_corpus(corpus)
    return opened.only(column) if column not in (None, "all") and len(opened.columns) > 1 else opened


def _wanted(data: DataFolder, suites: Sequence[str], text: str) -> list[Wanted]:
    """Every task of the suites whose data is here; what is not is said, once."""
    from bench.errors import DataMissing
    from bench.overlap import Wanted, scored_sentences
    from bench.suites import expanded, suite

    wanted: dict[tuple[str, str], Wanted] = {}
    missing: dict[str, DataMissing] = {}
    for name in expanded(suites):
        for task in suite(name).tasks:
            if (name, task.name) in wanted:  # one set under two protocols
                continue
            try:
                loaded = task.load(data, text)
            except DataMissing as error:
                missing.setdefault(error.message, error)
                continue
            sentences = scored_sentences(loaded)
            if sentences:
                wanted[name, task.name] = Wanted(name, task.name, loaded.form, sentences)
    if not wanted and missing:
        raise next(iter(missing.values()))
    for problem in missing:
        click.echo(f"left out: {problem}", err=True)
    return list(wanted.values())


def _progress(corpus: Corpus) -> Callable[[int], None]:
    """A plain line every so often, on standard error."""
    from bench.cli.progress import PlainReporter

    reporter, total = PlainReporter(), len(corpus)
    reporter.phase("rows", total)
    return lambda rows: reporter.advance(rows)


def _listed(corpus: Corpus, wanted: Sequence[Wanted], file: Path, progress: Callable[[int], None]) -> list[Overlap]:
    """As ``overlaps``, with every match written to ``file``, whole or not at all."""
    import os

    from bench.errors import BenchError
    from bench.overlap import overlaps

    if file.suffix != ".jsonl":
        raise BenchError(f"--matches {file}: unknown format '{file.suffix}'", f"--matches {file.with_suffix('.jsonl')}")
    aside = file.with_name(file.name + ".part")
    try:
        with aside.open("w", encoding="utf-8") as stream:
            found = overlaps(corpus, wanted, progress=progress, found=lambda match: _write(match, stream))
        os.replace(aside, file)
    except OSError as error:
        raise BenchError(f"cannot write {file}: {error.strerror or error}") from None
    finally:
        aside.unlink(missing_ok=True)
    return found


def _write(match: Match, stream: IO[str]) -> None:
    stream.write(json.dumps({**asdict(match), "similarity": round(match.similarity, 4)}, ensure_ascii=False) + "\n")


def _show(corpus: Corpus, found: Sequence[Overlap]) -> None:
    from rich.console import Console

    from bench.cli.show import print_section
    from bench.overlap.count import recorded
    from bench.tables.overlap import section

    console = Console(highlight=False, markup=False, emoji=False)
    console.print(f"{corpus.name}: {len(corpus):,} rows of {', '.join(corpus.columns)}")
    print_section(section(recorded(found)), console)
