"""``bench encode``: one's own sentences to vectors, with the model of a run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import DataMissing
from bench.cli.options import backbone_offline_option, device_option, json_option, json_text, plain_option, plugin_option, runs_option

if TYPE_CHECKING:
    import numpy as np

    from bench.method import Method
    from bench.run.executors.scoring import EncodingReporter
    from bench.run.trained_run import TrainedRun


@click.command()
@click.argument("reference", metavar="RUN")
@click.argument("file", metavar="FILE")
@click.option("--to", "out", required=True, type=click.Path(path_type=Path), help="What to write: NAME.npy or NAME.parquet.")
@click.option("--column", help="Of a file with several: sent0, sent1, hard_neg, or all (every cell, row by row).")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["txt", "csv", "tsv", "jsonl"]),
    default="txt",
    show_default=True,
    help="Of standard input (FILE is -).",
)
@device_option
@click.option("--fresh", is_flag=True, help="Begin anew, and replace what is there.")
@backbone_offline_option
@runs_option
@plugin_option
@json_option
@plain_option
def encode(
    reference: str, file: str, out: Path, column: str | None, kind: str, device: str, fresh: bool, offline: bool,
    runs: Path | None, plugins: tuple[Path, ...], as_json: bool, plain: bool,
) -> None:  # fmt: skip
    """Vectors of your own sentences: row i of the file that is written belongs to row i of FILE.

    RUN is an id, its beginning, or a path. FILE is text of any size: .txt (one sentence a line), .csv, .tsv or .jsonl, plain
    or with .gz or .xz behind it; - is standard input. Stopped or killed, the same command goes on.

    \b
    Example:  bench encode simcse-builtin-s42 sentences.txt --to vectors.npy
    """
    from bench.base import devices
    from bench.base.signals import stop_signals
    from bench.cli.progress import PlainReporter, reporting
    from bench.run.executors.scoring import EncodingReporter
    from bench.run.trained_run import find_run, load_run
    from bench.runs import RunsFolder
    from bench.score.encoding.stream import check_target

    check_target(out)
    if file != "-" and not Path(file).expanduser().exists():
        raise DataMissing(f"no file {file}", "FILE holds one sentence a line (.txt, .csv, .tsv, .jsonl); - is standard input")
    run = find_run(reference, RunsFolder(runs), plugins)
    sentences, total = _sentences(file, kind, column)
    for note in run.notes:
        click.echo(f"warning: {note}", err=True)
    device = devices.choose_device(device)
    with reporting(plain or as_json or total is None) as shown, stop_signals() as should_stop:
        shown.start(f"{run.record.run_id}: {file} to {out}")
        within = EncodingReporter(shown)
        method = load_run(run, device=device, offline=offline, reporter=within, should_stop=should_stop)
        with within.encoding(total):
            facts, worked = _encode(run, method, sentences, out, fresh, within)
        if isinstance(shown, PlainReporter):
            shown.label = ""
        shown.done(f"{'done' if worked else 'was done already, nothing repeated'}: {in_words(facts)}")
    if as_json:
        click.echo(json_text({"to": str(out), **facts}))
    else:
        click.echo(out)


def _sentences(file: str, kind: str, column: str | None) -> tuple[Iterator[str], int | None]:
    """The sentences, and how many they are where that can be known before the last one. A file is read once as a whole, so
    that a bad line is named before hours of encoding."""
    from bench.data.corpora import open_corpus
    from bench.data.corpora.rows import choose_columns, piped_sentences

    if file == "-":
        return piped_sentences(sys.stdin.buffer, kind, column), None
    corpus = open_corpus(file)
    several = len(corpus.columns) > 1
    if several or column not in (None, "all", corpus.columns[0]):
        choose_columns(corpus.columns, column, str(corpus.path))
    if several:
        corpus = corpus.only(str(column))
    return (row[0] for row in corpus.unchanged_rows()), len(corpus)


def _encode(
    run: TrainedRun, method: Method, sentences: Iterator[str], out: Path, fresh: bool, reporter: EncodingReporter
) -> tuple[dict[str, Any], bool]:
    from bench.run.provenance import hash_of_folder
    from bench.score.encoding.stream import encode_stream
    from bench.score.suites import check_vectors
    from bench.training.loop import explain_out_of_memory

    record = run.record
    about = {
        "run": record.run_id,
        "fingerprint": record.fingerprint,
        "checkpoint": hash_of_folder(run.checkpoint),
        "backbone": dict(record.provenance.backbone or {}),
        "method": run.plugin.sha256,
    }

    def progress(rows: int) -> None:
        reporter.before = rows
        reporter.advance(0)

    def vectors(some: list[str]) -> np.ndarray:
        try:
            encoded = method.encode(some)
        except (RuntimeError, MemoryError) as error:  # torch's OutOfMemoryError is a RuntimeError
            explain_out_of_memory(error, "encoding", method.context.device)
            raise
        return check_vectors(encoded, some, record.run_id)

    return encode_stream(sentences, vectors, out, about, fresh=fresh, should_stop=method.context.should_stop, progress=progress)


def in_words(facts: dict[str, Any]) -> str:
    """ "57,001 vectors of 256 dimensions, 58.4 MB" """
    from bench.show.tables.report import size

    return f"{facts['rows']:,} vectors of {facts['dim']} dimensions, {size(facts['bytes'])}"
