"""``bench encode``: turn sentences into vectors with the model of a run."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from msgspec import to_builtins

from bench.base.devices import choose_device
from bench.base.errors import BenchError
from bench.base.files import write_or_fail
from bench.base.hashes import files_sha256
from bench.base.reading import list_plain_files
from bench.base.signals import stop_signals
from bench.base.terminal import warn
from bench.base.text import format_bytes
from bench.cli.options import (
    backbone_offline_option,
    json_option,
    json_text,
    plain_option,
    plugin_option,
    runs_option,
)
from bench.data.corpora import open_corpus_file
from bench.records import RunsFolder
from bench.run.finished import TrainedRun, find_run, load_finished_run
from bench.score.suites import check_vectors
from bench.session.progress import terminal_reporter

FORMATS = (".npy", ".parquet")


@click.command()
@click.argument("reference", metavar="RUN")
@click.argument("file", metavar="FILE")
@click.option(
    "--to",
    "out",
    required=True,
    type=click.Path(path_type=Path),
    help="What to write: NAME.npy or NAME.parquet.",
)
@click.option(
    "--column",
    help="Column of a file with several: sent0, sent1, hard_neg, or all (every cell, row by row).",
)
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1, mps.")
@click.option("--fresh", is_flag=True, help="Replace an existing file.")
@backbone_offline_option
@runs_option
@plugin_option
@json_option
@plain_option
def encode(
    reference: str,
    file: str,
    out: Path,
    column: str | None,
    device: str,
    fresh: bool,
    offline: bool,
    runs: Path | None,
    plugins: tuple[Path, ...],
    as_json: bool,
    plain: bool,
) -> None:
    """Encode your sentences: row i of the output belongs to row i of FILE.

    RUN is an id, its beginning, or a path. FILE is text: .txt (one sentence a line), .csv, .tsv or
    .jsonl, plain or with .gz or .xz appended. Sentences and vectors are held in memory.

    \b
    Example:  bench encode simcse-builtin-s42 sentences.txt --to vectors.npy
    """
    _check_target(out, fresh)
    run = find_run(reference, RunsFolder(runs), plugins)
    texts = [row[0] for row in open_corpus_file(file).only(column).unchanged_rows()]
    for note in run.notes:
        warn(f"warning: {note}")
    device = choose_device(device)
    origin = _origin_of(run)
    reporter = terminal_reporter(plain or as_json)
    with reporter.display(), stop_signals() as should_stop:
        reporter.start(f"{run.record.run_id}: {file} to {out}")
        method = load_finished_run(
            run, device=device, offline=offline, reporter=reporter, should_stop=should_stop
        )
        reporter.phase("encode", len(texts))
        try:
            vectors_ND = method.encode(texts)
        except (RuntimeError, MemoryError) as error:  # torch's OutOfMemoryError is a RuntimeError
            from bench.training.memory import explain_out_of_memory

            explain_out_of_memory(error, "encoding", device)
            raise
        vectors_ND = check_vectors(vectors_ND, texts, run.record.run_id)
        facts = _write_vectors(out, texts, vectors_ND, origin)
        reporter.label = ""
        reporter.done(
            f"done: {facts['rows']:,} vectors of {facts['dim']} dimensions, "
            f"{format_bytes(facts['bytes'])}"
        )
    if as_json:
        click.echo(json_text({"to": str(out), **facts}))
    else:
        click.echo(out)


def _origin_of(run: TrainedRun) -> dict[str, Any]:
    """Return what decides the vectors."""
    return {
        "run": run.record.run_id,
        "fingerprint": run.record.fingerprint,
        "checkpoint": files_sha256(list_plain_files(run.checkpoint), run.checkpoint),
        "backbone": to_builtins(run.record.provenance.backbone),
        "method": run.plugin.sha256,
    }


def _check_target(out: Path, fresh: bool) -> None:
    """Raise BenchError if vectors cannot be written to the file."""
    hint = f"--to a name that ends in {' or '.join(FORMATS)}, in a folder where you may write"
    if out.suffix.lower() not in FORMATS:
        raise BenchError(f"--to {out}: unknown format '{out.suffix}'", hint)
    if out.is_dir():
        raise BenchError(f"--to {out}: is a folder", "--fresh replaces a file; or another name")
    if out.exists() and not fresh:
        raise BenchError(f"--to {out}: exists already", "--fresh replaces a file; or another name")
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise BenchError(f"--to {out}: {out.parent} is not a folder that you may write to", hint)


def _write_vectors(
    out: Path, texts: Sequence[str], vectors_ND: np.ndarray, origin: Mapping[str, Any]
) -> dict[str, Any]:
    """Write vectors, completely or not at all, as .npy or .parquet, and facts about them as
    OUT.json.

    ``vectors_ND``: row i for text i. Returns the facts. Raises BenchError if they cannot be
    written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    vectors_ND = np.ascontiguousarray(vectors_ND, dtype="<f4")
    rows, dim = vectors_ND.shape
    content = io.BytesIO()
    if out.suffix.lower() == ".npy":
        np.save(content, vectors_ND)
    else:
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(vectors_ND.reshape(-1)), dim)
        table = pa.table({"sentence": pa.array(texts, pa.string()), "vector": vectors})
        table = table.replace_schema_metadata({"bench": json.dumps(origin)})
        pq.write_table(table, content, use_dictionary=False)
    hint = "free disk space, or another --to"
    write_or_fail(out, content.getvalue(), hint)
    facts = {**origin, "rows": rows, "dim": dim, "dtype": "float32", "bytes": out.stat().st_size}
    lines = f"{json.dumps(facts, indent=1, ensure_ascii=False)}\n"
    write_or_fail(out.with_name(out.name + ".json"), lines.encode(), hint)
    return facts
