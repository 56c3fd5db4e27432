"""The readers of files that others write, each with correct contents for it."""

from __future__ import annotations

import contextlib
import gzip
import lzma
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fuzz_contents import (
    CSV,
    ELSEWHERE,
    HASHES,
    INDEX,
    JSONL,
    RECIPES,
    ROWS,
    TSV,
    VERSION,
    arrays,
    older,
    parquet,
    sentence_vectors,
    tarred,
    tensors,
    text,
    zipped,
)

from bench.backbones.folder import module_folders, read_config
from bench.backbones.tensors import checkpoint_names, tensor_names
from bench.base.cache import CacheEntry
from bench.base.errors import BenchError
from bench.data.corpora import open_corpus_file
from bench.data.corpora.hub import HubName, read_hub_rows
from bench.data.sets import (
    ANY,
    DataFile,
    Form,
    Found,
    data_set,
    read_receipt,
    recognise,
    sts,
    transfer,
)
from bench.data.unpacking import unpack as unpack_archive
from bench.external import external, server, stored
from bench.method import read_json
from bench.methods import glove_avg
from bench.publish import submissions
from bench.publish.versions import read_version
from bench.records.arrays import read_arrays
from bench.records.curve import read_curve
from bench.records.packed import NAME, read_manifest, read_packed
from bench.records.record import Score, read_record
from bench.run import recipe_files
from bench.verify import check_manifest

Read = Callable[[Path], object]


@dataclass(frozen=True)
class Reader:
    """A function that reads a file which others may have written."""

    name: str
    # the file's path below its own folder
    file: str
    # correct contents of the file
    contents: tuple[bytes, ...]
    # called with the file
    read: Read


def submitted(path: Path) -> None:
    """Read a predictions file of a submission, without the net that catches unexpected errors."""
    submissions.predictions_size(path)
    score = Score(suite="sts", task="STS12", protocol="p/1", metric="spearman", value=1.0, n=1)
    submissions.check_arrays(score, read_arrays(path))


def corpus(path: Path) -> int:
    return sum(1 for _ in open_corpus_file(path, path.parent / "cache").rows())


def recipes(path: Path) -> object:
    recipe_files.read_recipes.cache_clear()
    return recipe_files.read_recipes(path.parent.parent, path.stem)


def evaluation(parse: Callable[[Found], object], encoding: str = "utf-8", columns: int = 1) -> Read:
    """Return a function that recognises a file, and parses it as one form in any case."""

    def read(path: Path) -> None:
        form = Form(sha256="0" * 64, bytes=1)
        file = DataFile(
            path=path.name,
            role="positive",
            rows=3,
            forms={ANY: form},
            columns=columns,
            encoding=encoding,
        )
        with contextlib.suppress(BenchError):
            recognise(data_set("MR"), file, path)
        # recognise reads the file in the same way, and reports another encoding
        with contextlib.suppress(BenchError, UnicodeDecodeError):
            parse(Found(file, path, ANY, "", path.read_bytes().decode(encoding)))

    return read


def manifest(path: Path) -> object:
    return check_manifest(path.parent)


def first_seen(path: Path) -> object:
    file = DataFile(
        path=path.name, role="text", rows=3, forms={ANY: Form(sha256="", bytes=1)}, first_use=True
    )
    return recognise(data_set("MR"), file, path)


def unarchived(path: Path) -> None:
    try:
        unpack_archive(
            path,
            lambda name: path.parent / "out" / Path(name).name if name.endswith(".txt") else None,
            most_bytes=1_000_000,
        )
    finally:
        shutil.rmtree(path.parent / "out", ignore_errors=True)


def answered(path: Path) -> object:
    import requests

    response = requests.Response()
    response.status_code, response._content = 200, path.read_bytes()
    return external.as_vectors(server.rows_of(response, 2), ["a", "b"], "m")


def hub_file(path: Path) -> object:
    name = HubName.of("hub:o/n:text,label")
    return sum(1 for _ in read_hub_rows(path, path.name, name))


def cached(path: Path) -> object:
    entry = CacheEntry("kind", "name", 1, path.parent.parent)
    shutil.copyfile(path, entry.file)
    return entry.read()


READERS = (
    Reader("records of every schema", "a/run.json", (older(3), older(2), older(1)), read_record),
    Reader(
        "predictions",
        "a/STS12.npz",
        (arrays(True), arrays(False), arrays(True)[:2000]),
        read_arrays,
    ),
    Reader("safetensors headers", "model.safetensors", (tensors(),), tensor_names),
    Reader(
        "indices of safetensors",
        "model.safetensors.index.json",
        text(INDEX),
        lambda path: checkpoint_names(path.parent),
    ),
    Reader(
        "configs of models",
        "config.json",
        text({"model_type": "bert", "dim": 3}),
        lambda path: read_config(path.parent),
    ),
    Reader(
        "lists of modules",
        "modules.json",
        text([{"path": "0_T", "type": "a"}]),
        lambda path: module_folders(path.parent),
    ),
    Reader("files of methods", "a.json", text({"a": 1}), read_json),
    Reader("sentences", "a.txt", ("\n".join(row[0] for row in ROWS).encode(),), corpus),
    Reader("TSV", "a.tsv", (TSV,), corpus),
    Reader("CSV", "a.csv", (CSV,), corpus),
    Reader("JSON lines", "a.jsonl", (JSONL,), corpus),
    Reader("xz", "a.tsv.xz", (lzma.compress(TSV * 20),), corpus),
    Reader("gzip", "a.tsv.gz", (gzip.compress(TSV * 20),), corpus),
    Reader(
        "MR",
        "a.pos",
        (b"good .\nfine\x85 .\n",),
        evaluation(partial(transfer.parse_texts, "MR"), "latin-1"),
    ),
    Reader(
        "SST-2",
        "a",
        (b"good film\t1\nbad film\t0\nx\t1\n",),
        evaluation(partial(transfer.parse_texts, "SST-2")),
    ),
    Reader(
        "TREC",
        "a",
        (b"NUM:dist How far ?\nHUM:ind Who is it ?\n",),
        evaluation(partial(transfer.parse_texts, "TREC"), "latin-1"),
    ),
    Reader(
        "MRPC",
        "a",
        (b'1\t2\t3\tA "b" .\tC\n0\t2\t3\tD\tE\n',),
        evaluation(partial(transfer.parse_texts, "MRPC")),
    ),
    Reader(
        "pairs of STS",
        "a",
        (b"A man\tA woman\nx\ty\n",),
        evaluation(lambda one: sts.parse_pairs(one.text, one.file), columns=2),
    ),
    Reader(
        "gold of STS",
        "a",
        (b"4.5\n\n0\n",),
        evaluation(lambda one: sts.parse_gold(one.text, one.file)),
    ),
    Reader(
        "tables of STS",
        "a",
        (b"1\tA\tB\t4.5\n2\tC\tD\t0.0\n",),
        evaluation(lambda one: sts.parse_table(one.text, one.file, (1, 2, 3)), columns=4),
    ),
    Reader("recipes", "recipes/simcse.toml", (RECIPES,), recipes),
    Reader("manifests", "MANIFEST.json", text(HASHES), manifest),
    Reader("versions", "v1/tables.json", text(VERSION), lambda path: read_version(path.parent)),
    Reader(
        "one file of predictions",
        NAME,
        (parquet(),),
        lambda path: read_packed(path.parent / "runs/a/predictions/STS12.npz"),
    ),
    Reader(
        "predictions elsewhere",
        "v2/MANIFEST.json",
        text(ELSEWHERE),
        lambda path: read_manifest(path.parent),
    ),
    Reader("files seen first", "a.csv", (b'a,b\n"c\nd",e\nf,g\n',), first_seen),
    Reader(
        "word vectors", "a.txt", (b"2 3\nthe 0.5 1 -2\ncat 1 2 3e-2\n",), glove_avg.read_vectors
    ),
    Reader(
        "word vectors, xz",
        "a.txt.xz",
        (lzma.compress(b"the 0.5 1\ncat 1 2\n" * 20),),
        glove_avg.read_vectors,
    ),
    Reader(
        "word vectors, zip",
        "a.zip",
        (zipped({"a.txt": b"the 0.5 1\ncat 1 2\n"}),),
        glove_avg.read_vectors,
    ),
    Reader("vectors of sentences", "v.npz", (sentence_vectors(),), stored.file_plugin),
    Reader(
        "answers of a server",
        "a.json",
        text({"data": [{"index": 0, "embedding": [0.5, 1]}, {"index": 1, "embedding": [2, 3]}]}),
        answered,
    ),
    Reader("CSV of the hub", "a.csv", (b'text,label\n"a b",1\nc,-1\n',), hub_file),
    Reader("TSV of the hub", "a.tsv", (b"text\tlabel\na b\t1\n",), hub_file),
    Reader(
        "JSON lines of the hub",
        "a.jsonl",
        (b'{"text": "a", "label": "1"}\n{"text": "b", "label": "-1"}\n',),
        hub_file,
    ),
    Reader(
        "archives",
        "a.tar",
        (tarred(""), tarred("gz"), zipped({"d/a.txt": b"a" * 50, "d/b.txt": b"b"})),
        unarchived,
    ),
    Reader(
        "receipts of downloads",
        "a.receipt.json",
        text(
            {
                "schema": "bench.receipt/1",
                "source": "a",
                "url": "u",
                "revision": "r",
                "fetched": "f",
                "downloads": {"a": "0" * 64},
            }
        ),
        read_receipt,
    ),
    Reader(
        "entries of the cache",
        "kind/entry.json",
        text({"about": 1, "value": [1], "sha256": "0" * 64}),
        cached,
    ),
    Reader(
        "curves",
        "a/curve.jsonl",
        (b'{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.25}\n',),
        lambda path: read_curve(path.parent),
    ),
    Reader("submissions", "STS12.npz", (arrays(True),), submitted),
)
CASES = {
    "records of every schema": (b'{"schema": "bench.run/\xb3"}', b'{"\xc5": 1}'),
    "recipes": (b"[[common]]\nx = " + b"[" * 3000,),
    "safetensors headers": (
        b"k" + bytes(7) + b"9" * 107,
        b"\x02" + bytes(7) + b"[]",
        (6000).to_bytes(8, "little") + b"[" * 6000,
        b"\x04" + bytes(7) + b"null",
    ),
    "CSV of the hub": (b'"', b"te\rxt,label\na,1\n", b"text,label\n" + b"a" * 200_000 + b",1\n"),
    "JSON lines of the hub": (b"[" * 6000,),
    "word vectors, zip": (
        zipped({"a.txt": b"the 0.5 1\n"})
        .replace(b"PK\x01\x02\x14", b"PK\x01\x02\xa9")
        .replace(b"\x08\x00", b"\xfb\x00"),
    ),
    "receipts of downloads": (b"[" * 6000,),
    "answers of a server": (b"[" * 6000,),
    "configs of models": (b"[" * 6000,),
    "lists of modules": (b"[" * 6000,),
    "files of methods": (b"[" * 6000,),
    "indices of safetensors": (
        b"[" * 6000,
        b'{"weight_map": ' + b"[" * 6000,
        b'{"weight_map": "x"}',
        b'{"weight_map": [1, 2]}',
    ),
}
"""Reader -> contents that once gave a traceback."""
