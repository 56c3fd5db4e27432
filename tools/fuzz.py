"""Every reader of files that others write, on files that were changed at random: an error of ours
or an answer, never a traceback, soon, and within bounded memory.

    python tools/fuzz.py [--changes 100000] [--start 0] [--seconds 600] [--only NAME,...] [--list]

``--changes``: of all readers together, as many of each; ``--seconds``: of the processor, after
which no reader begins another change. Every change is a function of its reader and its number, and
``--start`` is the first number: another start, other changes. Prints how many there were and
everything that went wrong, with the number that makes it again. Exit code 1 where anything did.

``tests/project/test_readers_fuzzed.py`` does the same in bounded time; what was found once stands in
``CASES``.
"""

from __future__ import annotations

# ruff: noqa: E402
import argparse
import gzip
import io
import itertools
import json
import lzma
import os
import random
import re
import resource
import shutil
import signal
import sys
import tarfile
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SUPPORT = ROOT / "tests" / "support"
if str(SUPPORT) not in sys.path:
    sys.path.insert(0, str(SUPPORT))
sys.path.append(str(ROOT))  # last: where bench is installed, that one is meant

from factories import record

from bench import methods
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
from bench.records.packed import NAME, Packed, read_manifest, read_packed
from bench.records.record import Score, read_record
from bench.run import recipe_files
from bench.verify import check_manifest

HANGS = 10  # seconds of one file
MEMORY = 400  # megabytes that all of it may take above what was there
Read = Callable[[Path], object]


@dataclass(frozen=True)
class Reader:
    name: str
    file: str  # where the content lies, below a folder of its own
    contents: tuple[bytes, ...]
    read: Read  # given the file


def older(version: int) -> bytes:
    content = json.loads(json.dumps(record().to_json())) | {"schema": f"bench.run/{version}"}
    for part, keys in {
        "cost": ("train_tokens_per_second", "host_memory_bytes"),
        "training": ("dev_pairs", "dev_test_pairs", "tokens"),
        "provenance": ("execution",),
    }.items():
        for key in keys if version < 3 else ():
            del content[part][key]
    content["scores"] = content["scores"][:3]
    return json.dumps(content, indent=1).encode()


def arrays(compressed: bool) -> bytes:
    file, draw = io.BytesIO(), np.random.default_rng(1)
    values = {
        "prediction": draw.normal(size=30),
        "gold": np.arange(30),
        "subset": np.array(["a", "bé"] * 15),
    }
    (np.savez_compressed if compressed else np.savez)(file, **values)  # type: ignore[arg-type]
    return file.getvalue()


def tensors() -> bytes:
    header = {
        "__metadata__": {"format": "pt"},
        "encoder.w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
    }
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(16)


def submitted(path: Path) -> None:
    """Read a predictions file of a submission, without the net that catches unexpected errors."""
    submissions.predictions_size(path)
    score = Score(suite="sts", task="STS12", protocol="p/1", metric="spearman", value=1.0, n=1)
    submissions.check_arrays(score, read_arrays(path))


def parquet() -> bytes:
    import numpy as np

    packed = Packed()
    for run in "ab":
        values = {"gold": np.arange(300) / 7, "subset": np.array(["a", "b"] * 150)}
        packed.add(f"runs/{run}/predictions/STS12.npz", values)
    with tempfile.TemporaryDirectory() as folder:
        packed.write(Path(folder) / NAME)
        return (Path(folder) / NAME).read_bytes()


def corpus(path: Path) -> int:
    return sum(1 for _ in open_corpus_file(path, path.parent / "cache").rows())


def recipes(path: Path) -> object:
    recipe_files.read_recipes.cache_clear()
    return recipe_files.read_recipes(path.parent.parent, path.stem)


def evaluation(parse: Callable[[Found], object], encoding: str = "utf-8", columns: int = 1) -> Read:
    """Parse a file as one form, whatever it is, after the check that would recognise it."""

    def read(path: Path) -> None:
        """Read a changed file and describe any problem; None: read, or refused in a line."""
        form = Form(sha256="0" * 64, bytes=1)
        file = DataFile(
            path=path.name,
            role="positive",
            rows=3,
            forms={ANY: form},
            columns=columns,
            encoding=encoding,
        )
        for one in (
            lambda: recognise(data_set("MR"), file, path),
            lambda: parse(Found(file, path, ANY, "", path.read_bytes().decode(encoding))),
        ):
            try:
                one()
            except (
                BenchError,
                UnicodeDecodeError,
            ):  # the first reads it in the same way, and says where it is not that encoding
                continue

    return read


def manifest(path: Path) -> object:
    return check_manifest(path.parent)


ROWS = [
    ("A man plays.", "A man is playing .", "4.5"),
    ('Say "hi", now', "x\u2028y", "0"),
    ("", "é", "2.25"),
]
TSV = ("sent0\tsent1\thard_neg\n" + "".join("\t".join(row) + "\n" for row in ROWS)).encode()
CSV = b'sent0,sent1\n"a, ""b""",c\n"d\ne",f\n' * 2
JSONL = b"".join(json.dumps({"sent0": a, "sent1": b}).encode() + b"\n" for a, b, _ in ROWS)
RECIPES = (
    (Path(methods.__file__).parent / "recipes" / "simcse.toml")
    .read_bytes()[:2500]
    .rsplit(b"[[", 1)[0]
)
VERSION = {
    "date": "2026-01-01",
    "title": "T",
    "answer": "A",
    "note": None,
    "left_out": [],
    "runs": [{"run_id": "a-s1-0", "method": "simcse", "submitted_by": None}],
}
HASHES = {
    "files": {"a.txt": "0" * 64, "runs/a/run.json": {"sha256": "1" * 64}},
    "older": {"v1": {"b": "2" * 64}},
}
ELSEWHERE = {"files": {}, "predictions_url": {"url": "https://x/y", "sha256": "0" * 64, "bytes": 5}}
INDEX = {"metadata": {}, "weight_map": {"encoder.w": "model-1.safetensors"}}


def first_seen(path: Path) -> object:
    file = DataFile(
        path=path.name, role="text", rows=3, forms={ANY: Form(sha256="", bytes=1)}, first_use=True
    )
    return recognise(data_set("MR"), file, path)


def zipped(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return file.getvalue()


def tarred(compression: str) -> bytes:
    file = io.BytesIO()
    mode: Any = f"w:{compression}"
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for name, data in {"d/a.txt": b"a" * 700, "d/b.txt": b"b"}.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def unarchived(path: Path) -> None:
    try:
        unpack_archive(
            path,
            lambda name: path.parent / "out" / Path(name).name if name.endswith(".txt") else None,
            most_bytes=1_000_000,
        )
    finally:
        shutil.rmtree(path.parent / "out", ignore_errors=True)


def sentence_vectors() -> bytes:
    file = io.BytesIO()
    np.savez(
        file,
        sentences=np.array(["a man", "a dog"]),
        vectors=np.array([[0.5, 1.0], [2.0, 3.0]], dtype=np.float32),
    )
    return file.getvalue()


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


def text(content: object) -> tuple[bytes, ...]:
    return (json.dumps(content).encode(),)


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


ODD = (
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-1e308",
    b"9" * 400,
    b"9" * 5000,
    b"null",
    b"true",
    b'""',
    b"[]",
    b"{}",
    b"-1",
    b"0",
    b"18446744073709551616",
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\n",
    b"\r\n",
    b"\t",
    b'"',
    b"\\ud800",
    b"\\",
    b"[" * 3000,
    b'{"a":' * 3000,
    "\u202e".encode(),
    b"\x85",
    b"PK\x03\x04",
    b"../",
    b"\x93NUMPY",
)
NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?")
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    2**64,
    1e308,
    "",
    "x",
    "../x",
    "\x00",
    [],
    {},
    [[]],
    {"a": {}},
    "2026-99-99",
)


def changed(draw: random.Random, content: bytes) -> bytes:
    if content[:1] == b"{" and draw.random() < 0.5:
        return restructured(draw, content)
    data = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 2, 4, 16))):
        at, length = draw.randrange(len(data) + 1), draw.choice((1, 1, 2, 8, 64))
        kind = draw.randrange(7)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << draw.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = draw.randrange(256)
        elif kind == 2:
            del data[at : at + length]
        elif kind == 3:
            data[at:at] = data[at : at + length] * draw.choice((1, 2, 50))
        elif kind == 4:
            data[at:at] = draw.choice(ODD)
        elif kind == 5:
            del data[at:]
        elif numbers := list(itertools.islice(NUMBER.finditer(data), 40)):
            one = draw.choice(numbers)
            data[one.start() : one.end()] = draw.choice(ODD[:14])
    return bytes(data)


def restructured(draw: random.Random, content: bytes) -> bytes:
    """Change JSON: give a value another type, leave it out, or add one."""
    lines = content.split(b"\n") if content.count(b"\n{") else [content]
    at = draw.randrange(len(lines))
    try:
        place = whole = json.loads(lines[at])
    except ValueError:
        return content
    for _ in range(draw.randrange(5)):
        inside = [
            one
            for one in (place.values() if isinstance(place, dict) else place)
            if isinstance(one, dict | list) and one
        ]
        if not inside:
            break
        place = draw.choice(inside)
    key = draw.choice(list(place) if isinstance(place, dict) else range(len(place)))
    match draw.randrange(4):
        case 0:
            del place[key]
        case 1 if isinstance(place, dict):
            place[draw.choice(("extra", "schema", "value", "sha256"))] = draw.choice(VALUES)
        case _:
            place[key] = draw.choice(VALUES)
    lines[at] = json.dumps(whole).encode()
    return b"\n".join(lines)


@contextmanager
def no_hang() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {HANGS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, HANGS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def read(reader: Reader, content: bytes, folder: Path) -> str | None:
    """What went wrong, as nobody may see it; None where it was read or refused in a line."""
    path = folder / reader.file
    path.write_bytes(content)
    try:
        with no_hang():
            reader.read(path)
    except BenchError as error:
        return (
            None
            if error.message and "\n" not in error.message
            else f"a message of several lines: {error.message!r}"
        )
    except BaseException as error:
        return f"{type(error).__name__}: {error}"[:200]
    return None


def peak() -> float:
    """Return the most megabytes that this process has taken so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1e6 if sys.platform == "darwin" else 1e3
    )


def prepared(reader: Reader, folder: Path) -> Path:
    (folder / reader.file).parent.mkdir(parents=True, exist_ok=True)
    return folder


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
"""What such changes found once, by reader: each was a traceback."""


def fuzz(
    readers: Sequence[Reader], folder: Path, changes: int, seconds: float, start: int = 0
) -> tuple[dict[str, int], list[str]]:
    """Give each reader changed files and return how many, and the problems.

    At most so many changes and seconds of the processor for each.
    """
    counts, found = dict[str, int](), list[str]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of zipfile, about two members with one name
        for i, reader in enumerate(readers):
            place, until = prepared(reader, folder / str(i)), time.process_time() + seconds
            for number in range(start, start + changes):
                if time.process_time() > until:
                    break
                draw = random.Random(f"{reader.name} {number}")
                content = changed(draw, draw.choice(reader.contents))
                counts[reader.name] = counts.get(reader.name, 0) + 1
                if (why := read(reader, content, place)) is not None and len(found) < 100:
                    found.append(f"{reader.name} {number}: {why}: {content[:300]!r}")
    return counts, found


@contextmanager
def in_memory(otherwise: Path | None = None) -> Iterator[Path]:
    """Open a folder in memory if there is one.

    On a busy disk the files would take most of the time.
    """
    place = Path("/dev/shm")
    with tempfile.TemporaryDirectory(
        dir=place if os.access(place, os.W_OK) else otherwise
    ) as folder:
        yield Path(folder)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--changes", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--only", default="", help="readers, comma-separated")
    parser.add_argument("--list", action="store_true", help="name the readers")
    options = parser.parse_args()
    wanted = [one for one in options.only.split(",") if one]
    readers = [one for one in READERS if not wanted or one.name in wanted]
    if options.list or not readers:
        raise SystemExit("\n".join(one.name for one in READERS))
    before = peak()
    with in_memory() as folder:
        counts, found = fuzz(
            readers,
            folder,
            -(-options.changes // len(readers)),
            options.seconds / len(readers),
            options.start,
        )
    more = peak() - before
    print(
        f"{sum(counts.values()):,} changes: "
        f"{', '.join(f'{name} {n:,}' for name, n in counts.items())}; {more:.0f} MB more; "
        f"{len(found)} wrong"
    )
    print("\n".join(found))
    raise SystemExit(1 if found or more > MEMORY else 0)


if __name__ == "__main__":
    main()
