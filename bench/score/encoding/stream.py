"""Any number of sentences to a file of vectors: block after block, in constant memory, to be gone on with after a kill.

While it grows, everything lies in ``OUT.part/``; at the end the file appears whole under its name, with ``OUT.json`` beside
it, which says what made it. A block always holds the same rows, so that a disturbed file equals an undisturbed one.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.base.errors import BenchError, Interrupted, RunLocked
from bench.base.files import write_whole

BLOCK = 4096  # sentences that are encoded and kept at once: what a kill may cost
SCHEMA = "bench.encode/1"
FRESH = "--fresh begins anew and replaces it; or give --to another name"


@dataclass
class State:
    """How far a file is. ``sentences`` is the hash of the rows so far."""

    blocks: int = 0
    rows: int = 0
    dim: int = 0
    sentences: str = ""


class _Digest:
    """A hash over sentences that tells "ab", "c" from "a", "bc"; and how many there were."""

    def __init__(self) -> None:
        self._hash, self.rows = hashlib.sha256(), 0

    def add(self, sentences: Iterable[str]) -> str:
        for sentence in sentences:
            data = sentence.encode("utf-8", "surrogatepass")
            self._hash.update(len(data).to_bytes(4, "little") + data)
            self.rows += 1
        return self._hash.hexdigest()


def check_target(out: Path) -> None:
    """Raise BenchError for a file that vectors cannot be written to."""
    if out.suffix.lower() not in SINKS:
        raise BenchError(f"--to {out}: unknown format '{out.suffix}'", f"a name that ends in {' or '.join(SINKS)}")
    if out.is_dir():
        raise BenchError(f"--to {out} is a folder", f"a file: --to {out / 'vectors.npy'}")
    if not out.parent.is_dir():
        raise BenchError(f"--to {out}: there is no folder {out.parent}", f"mkdir -p {out.parent}")
    if not os.access(out.parent, os.W_OK):
        raise BenchError(f"--to {out}: no permission to write into {out.parent}")


def encode_stream(
    sentences: Iterator[str],
    encode: Callable[[list[str]], np.ndarray],
    out: Path,
    about: Mapping[str, Any],
    *,
    fresh: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
    progress: Callable[[int], None] = lambda rows: None,
    block: int = BLOCK,
) -> tuple[dict[str, Any], bool]:
    """Write the vector of every sentence to ``out`` (.npy or .parquet), row i for sentence i.

    ``encode`` turns a list of sentences into (n, dim) float32; ``about`` names all that decides the vectors, so that a file
    that something else began or made is neither gone on with nor overwritten. Returns what ``OUT.json`` holds, and whether
    anything was left to do. Raises Interrupted where ``should_stop`` says so, BenchError for another file's rest or another
    input, RunLocked where another process writes the same file; OSErrors become BenchError, and what was written is kept.
    """
    check_target(out)
    part = out.with_name(out.name + ".part")
    about = {"schema": SCHEMA, **about, "block": block}
    try:
        with _alone(part):
            if fresh:
                for file in (*_inside(part), out, _beside(out)):
                    file.unlink(missing_ok=True)
            _deliver(part, out)
            if out.exists():
                return _as_it_is(sentences, out, about, part), False
            try:
                return _write(sentences, encode, out, about, part, should_stop, progress, block), True
            except BaseException:
                if not (part / "state.json").exists() and not out.exists():  # nothing was kept
                    shutil.rmtree(part, ignore_errors=True)
                raise
    except OSError as error:
        raise BenchError(
            f"cannot write {out}: {error.strerror or error}", f"what is done is kept in {part}: the same command goes on"
        ) from None


def _write(
    sentences: Iterator[str],
    encode: Callable[[list[str]], np.ndarray],
    out: Path,
    about: Mapping[str, Any],
    part: Path,
    should_stop: Callable[[], bool],
    progress: Callable[[int], None],
    block: int,
) -> dict[str, Any]:
    sink = SINKS[out.suffix.lower()](part)
    state = _begun(part, about)
    digest = _skip(sentences, state, out)
    sink.resume(state)
    progress(state.rows)
    while rows := list(itertools.islice(sentences, block)):
        if should_stop():
            raise _stopped(state, part)
        try:
            vectors = np.asarray(encode(rows))
        except Interrupted:
            raise _stopped(state, part) from None
        expected = (len(rows), state.dim or (vectors.shape[1] if vectors.ndim == 2 else 0))
        if vectors.shape != expected:
            raise ValueError(f"encode returned shape {vectors.shape} for {len(rows)} sentences; expected {expected}")
        sink.append(state.blocks, rows, vectors)
        state = State(state.blocks + 1, state.rows + len(rows), vectors.shape[1], digest.add(rows))
        write_whole(part / "state.json", json.dumps(asdict(state)).encode())
        progress(state.rows)
    facts = {**about, "rows": state.rows, "dim": state.dim, "dtype": "float32", "sentences": state.sentences}
    sink.finish(state, facts)
    facts["bytes"] = sink.whole.stat().st_size
    write_whole(part / "done.json", (json.dumps(facts, indent=1, ensure_ascii=False) + "\n").encode())
    _deliver(part, out)
    return facts


def _stopped(state: State, part: Path) -> Interrupted:
    if not state.rows:
        return Interrupted("stopped before the first vectors were kept; the same command begins again")
    return Interrupted(f"stopped: {state.rows:,} vectors are kept in {part}; the same command goes on from there")


def _begun(part: Path, about: Mapping[str, Any]) -> State:
    """How far the rest of an earlier process is; all of it is thrown away where it is not readable."""
    known = _read(part / "about.json")
    state = _read(part / "state.json")
    if known is not None and state is not None:
        differs = [key for key in about if known.get(key) != about[key]]
        if differs:
            raise BenchError(
                f"{part} is the beginning of something else: {differs[0]} was {known.get(differs[0])}, now {about[differs[0]]}",
                FRESH,
            )
        with contextlib.suppress(TypeError):
            return State(**state)
    for file in _inside(part):
        file.unlink()
    write_whole(part / "about.json", json.dumps(about).encode())
    return State()


def _skip(sentences: Iterator[str], state: State, out: Path) -> _Digest:
    """Read past the rows that are done. Raises BenchError where they are not the ones that were encoded."""
    digest = _Digest()
    if state.rows and (digest.add(itertools.islice(sentences, state.rows)), digest.rows) != (state.sentences, state.rows):
        raise BenchError(f"the sentences are not those of which the first {state.rows:,} vectors of {out} were made", FRESH)
    return digest


def _as_it_is(sentences: Iterator[str], out: Path, about: Mapping[str, Any], part: Path) -> dict[str, Any]:
    """What is known of a finished file. Raises BenchError where this command would not make that very file."""
    shutil.rmtree(part, ignore_errors=True)
    facts = _read(_beside(out))
    if facts is None or facts.get("bytes") != out.stat().st_size:
        raise BenchError(f"{out} is there already, and not known to be a finished file of this command", FRESH)
    differs = [key for key in about if facts.get(key) != about[key]]
    if differs:
        raise BenchError(f"{out} is there already, with another {differs[0]}: {facts.get(differs[0])}", FRESH)
    digest = _Digest()
    if digest.add(sentences) != facts["sentences"] or digest.rows != facts["rows"]:
        raise BenchError(f"{out} is there already, made of other sentences ({facts['rows']:,} of them, now {digest.rows:,})", FRESH)
    return facts


def _deliver(part: Path, out: Path) -> None:
    """Put a finished file in its place, if there is one; a process that was killed in the middle of that leaves the rest to the next."""
    done = part / "done.json"
    if not done.exists():
        return
    if (part / "whole").exists():
        os.replace(part / "whole", out)
    write_whole(_beside(out), done.read_bytes())
    done.unlink()  # before the rest, so that a half-removed folder is never taken for one to deliver
    shutil.rmtree(part, ignore_errors=True)


def _inside(part: Path) -> list[Path]:
    """Everything but the lock, which this process holds."""
    return [file for file in part.iterdir() if file.name != "lock"]


def _beside(out: Path) -> Path:
    return out.with_name(out.name + ".json")


def _read(file: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


@contextlib.contextmanager
def _alone(part: Path) -> Iterator[None]:
    """Hold ``part`` for this process. The kernel lets go of it when the process dies, however it dies."""
    import fcntl

    part.mkdir(exist_ok=True)
    with (part / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunLocked(f"another process writes {part.name.removesuffix('.part')}", "wait for it, or stop it") from None
        yield


# --- files of vectors that grow by blocks and can be gone on with after a kill: NumPy's .npy and Parquet ---
# A sink writes below one folder of its own. What ``append`` has returned from is on the disk; ``resume(state)`` goes back to the
# blocks and rows that had been appended then; ``finish`` leaves the whole file at ``sink.whole``.

HEADER = 128  # bytes before the first value of a .npy file: a multiple of 64, with room for any number of rows
WHOLE = "whole"


class NpySink:
    """(rows, dim) little-endian float32 behind a header that is written last, so that the rows never move."""

    def __init__(self, folder: Path) -> None:
        self.whole, self._growing = folder / WHOLE, folder / "rows"

    def resume(self, state: State) -> None:
        if self.whole.exists():  # the last process was killed when it was all but done
            os.replace(self.whole, self._growing)
        size = HEADER + 4 * state.rows * state.dim
        if not state.blocks:
            self._growing.write_bytes(b"\0" * HEADER)
        elif self._growing.stat().st_size < size:
            raise OSError(f"{self._growing} is shorter than the {state.rows:,} vectors that were written")
        else:
            os.truncate(self._growing, size)

    def append(self, block: int, sentences: Sequence[str], vectors: np.ndarray) -> None:
        with self._growing.open("ab") as file:
            file.write(np.ascontiguousarray(vectors, dtype="<f4").data)
            _to_disk(file)

    def finish(self, state: State, about: Mapping[str, Any]) -> None:
        with self._growing.open("r+b") as file:
            file.write(npy_header(state.rows, state.dim))
            _to_disk(file)
        os.replace(self._growing, self.whole)


class ParquetSink:
    """A row group a block, with the columns ``sentence`` (string) and ``vector`` (a list of dim float32).

    Each block is a file of its own until the end, because the index of a Parquet file is its last part; they are then joined,
    one block in memory at a time, which for a while needs the space twice.
    """

    def __init__(self, folder: Path) -> None:
        self.whole, self._folder = folder / WHOLE, folder

    def resume(self, state: State) -> None:
        self.whole.unlink(missing_ok=True)
        for block in map(self._block, range(state.blocks)):
            if not block.is_file():
                raise OSError(f"{block} is missing")

    def append(self, block: int, sentences: Sequence[str], vectors: np.ndarray) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        values = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).reshape(-1))
        columns = [pa.array(sentences, pa.string()), pa.FixedSizeListArray.from_arrays(values, vectors.shape[1])]
        aside = self._folder / "block.tmp"
        with aside.open("wb") as file:
            pq.write_table(pa.table(columns, names=["sentence", "vector"]), file, use_dictionary=False)
            _to_disk(file)
        os.replace(aside, self._block(block))

    def finish(self, state: State, about: Mapping[str, Any]) -> None:
        import pyarrow.parquet as pq

        aside = self._folder / "whole.tmp"
        schema = pq.read_schema(self._block(0)).with_metadata({"bench": json.dumps(about)})
        with aside.open("wb") as file:
            with pq.ParquetWriter(file, schema, use_dictionary=False) as writer:
                for block in range(state.blocks):
                    writer.write_table(pq.read_table(self._block(block)).cast(schema))
            _to_disk(file)
        os.replace(aside, self.whole)

    def _block(self, block: int) -> Path:
        return self._folder / f"{block:08d}.parquet"


SINKS: Mapping[str, type[NpySink] | type[ParquetSink]] = {".npy": NpySink, ".parquet": ParquetSink}


def npy_header(rows: int, dim: int) -> bytes:
    """The first HEADER bytes of a version 1.0 .npy file of (rows, dim) float32 (NumPy enhancement proposal 1)."""
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {dim}), }}".encode("ascii")
    room = HEADER - 10
    return b"\x93NUMPY\x01\x00" + room.to_bytes(2, "little") + text.ljust(room - 1) + b"\n"


def _to_disk(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())
