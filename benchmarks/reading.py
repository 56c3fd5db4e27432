"""Compare reading a million lines of text with ``datasets.load_dataset``.

    python benchmarks/reading.py --corpus wiki_sentences.txt.xz [--rows 1000000] [--repeat 3]

The lines are written as text, CSV, JSON lines and Parquet. Each side reads each file in a process
of its own, from the file to every text once as a Python string: ``load_dataset`` with an empty
cache, and our rows with all checks. Both sides take turns. Prints seconds, their ratio, and the
peak memory of a process. Exits with 1 if the texts differ.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import lzma
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from machine import describe_machine

FORMATS = {".txt": "text", ".csv": "csv", ".jsonl": "json", ".parquet": "parquet"}
"""Ending of a file -> the loader of ``datasets``."""


def write_files(corpus: Path, rows: int, folder: Path) -> None:
    """Write the first lines of a text, which may be packed with xz, in every format."""
    import pyarrow as pa
    from pyarrow import parquet

    opened = lzma.open if corpus.suffix == ".xz" else open
    with opened(corpus, "rt", encoding="utf-8", newline="\n") as text:
        lines = [line.rstrip("\r\n") for line in islice(text, rows)]
    with (folder / "a.txt").open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(f"{line}\n" for line in lines)
    with (folder / "a.csv").open("w", encoding="utf-8", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows([["text"], *([line] for line in lines)])
    with (folder / "a.jsonl").open("w", encoding="utf-8") as out:
        out.writelines(json.dumps({"text": line}, ensure_ascii=False) + "\n" for line in lines)
    parquet.write_table(pa.table({"text": lines}), folder / "a.parquet")


def our_texts(file: Path, cache: Path) -> Iterator[str]:
    from bench.data.corpora import open_corpus_file

    for row in open_corpus_file(file, cache).rows():
        yield row[0]


def their_texts(file: Path, cache: Path) -> Iterator[str]:
    import datasets

    datasets.disable_progress_bars()
    options = {"keep_default_na": False, "na_filter": False} if file.suffix == ".csv" else {}
    loader = FORMATS[file.suffix]
    loaded = datasets.load_dataset(
        loader, data_files=str(file), split="train", cache_dir=str(cache), **options
    )
    for batch in loaded.with_format("arrow").iter(10_000):
        yield from batch["text"].to_pylist()


def read_once(side: str, file: Path) -> None:
    """Print seconds, peak megabytes, and a hash of the texts; in a process of its own."""
    texts = {"bench": our_texts, "datasets": their_texts}[side]
    digest = hashlib.sha256()
    with tempfile.TemporaryDirectory() as cache:
        began = time.perf_counter()
        for text in texts(file, Path(cache)):
            digest.update(text.encode())
        seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([seconds, peak, digest.hexdigest()]))


def in_a_process(side: str, file: Path, *options: str) -> str:
    """Return what this script prints with ``--side``.

    A process is started from a small one: Linux counts the memory of who starts it as its own.
    """
    command = [sys.executable, __file__, "--side", side, "--corpus", str(file), *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def measure(side: str, file: Path) -> tuple[float, float, str]:
    seconds, peak, digest = json.loads(in_a_process(side, file).splitlines()[-1])
    return seconds, peak, digest


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, required=True, help="lines of text, plain or .xz")
    parser.add_argument("--rows", type=int, default=1_000_000, help="lines that are read")
    parser.add_argument("--repeat", type=int, default=3, help="how often each side runs")
    parser.add_argument("--side", choices=["bench", "datasets", "files"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side == "files":
        write_files(args.corpus, args.rows, args.folder)
        return
    if args.side:
        read_once(args.side, args.corpus)
        return
    print(describe_machine())
    with tempfile.TemporaryDirectory() as folder:
        in_a_process("files", args.corpus, "--rows", str(args.rows), "--folder", folder)
        for suffix in FORMATS:
            file = Path(folder) / f"a{suffix}"
            rounds = []
            for _ in range(args.repeat):
                theirs, ours = measure("datasets", file), measure("bench", file)
                if theirs[2] != ours[2]:
                    sys.exit(f"{suffix}: the two sides give different texts")
                rounds.append((theirs[0], ours[0], theirs[1], ours[1]))
            peer, bench, peer_peak, bench_peak = zip(*rounds, strict=True)
            ratio = statistics.median(a / b for a, b in zip(peer, bench, strict=True))
            print(
                f"{suffix}: datasets {statistics.median(peer):.2f} s, {max(peer_peak):,.0f} MB; "
                f"bench {statistics.median(bench):.2f} s, {max(bench_peak):,.0f} MB: {ratio:.2f} x"
            )


if __name__ == "__main__":
    main()
