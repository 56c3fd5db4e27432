"""Predictions in the smallest form that says exactly the same: narrower whole numbers, stronger compression, no dates.

The hash of a predictions file is over its values (``bench.hashes``), so a packed file is still the one that was recorded.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import DataDamaged, DataMissing
from bench.hashes import values_sha256
from bench.runs.arrays import GIVEN_SHA256, LARGEST, read_arrays, read_own
from bench.suites.rescore import GIVEN as GIVEN_NAMES

if TYPE_CHECKING:
    import numpy as np

SMALL = 8192  # bytes of an array up to which deflate is as good as LZMA, and ten times as fast
SMALL_FILE = 4096  # bytes of a file in which there is nothing to save
EPOCH = (1980, 1, 1, 0, 0, 0)  # the date of every member: the same arrays give the same bytes tomorrow
FORM = "bench.packed/1"  # of kept files; it changes with what ``pack`` writes
APART = "apart"  # of kept files without the arrays that a version keeps once
_SIGNED = ("i1", "<i2", "<i4")  # unsigned numbers would wrap in a reader's subtraction


def pack(arrays: Mapping[str, np.ndarray]) -> bytes:
    """An .npz file of ``arrays``, which ``numpy.load`` reads: same names, shapes and values, in alphabetical order."""
    import numpy as np

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in sorted(arrays):
            content = io.BytesIO()
            np.lib.format.write_array(content, narrow(np.asarray(arrays[name])), version=(1, 0), allow_pickle=False)
            member = zipfile.ZipInfo(f"{name}.npy", EPOCH)
            member.compress_type = zipfile.ZIP_DEFLATED if len(content.getvalue()) <= SMALL else zipfile.ZIP_LZMA
            member.create_system = 3  # as on Unix, wherever this runs
            archive.writestr(member, content.getvalue())
    return file.getvalue()


def narrow(values: np.ndarray) -> np.ndarray:
    """The same values in the narrowest type that holds each of them exactly."""
    import numpy as np

    kind, candidates = values.dtype.kind, tuple[str, ...]()
    if kind in "iu":
        low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
        fitting = (one for one in _SIGNED if np.iinfo(one).min <= low and high <= np.iinfo(one).max)
        candidates = (next(fitting, ""),)
    elif kind == "U":
        candidates = (f"<U{int(np.char.str_len(values).max(initial=1)) or 1}",)
    elif kind == "f":
        candidates = ("<f4",)
    for name in candidates:
        if name and np.dtype(name).itemsize < values.dtype.itemsize:
            with np.errstate(over="ignore"):
                made = values.astype(name)
            if values_sha256({"": made}) == values_sha256({"": values}):  # also of infinities, NaN and the sign of zero
                return np.asarray(made, order="C")
    return np.asarray(values, order="C")


class Packed:
    """Packs predictions files, and keeps what took long: ``$BENCH_CACHE/packed``, which may be deleted at any time.

    A kept file is found by the hash of the file that it was made from, and says the hash of what it holds.
    """

    def __init__(self, folder: Path | None = None) -> None:
        from bench.corpora.cache import default_cache

        self.folder = folder or default_cache() / "packed"

    def read(self, path: Path) -> tuple[str, bytes]:
        """(hash of the arrays' values, the file in its smallest form). Raises DataMissing, DataDamaged."""
        source = _read(path)
        key = hashlib.sha256(source).hexdigest()
        if len(source) > SMALL_FILE and (kept := self._kept(key)) is not None:
            return kept
        arrays = read_arrays(path)
        try:
            values = values_sha256(arrays)
        except ValueError as error:
            raise DataDamaged(f"{path}: {error}") from None
        if len(source) <= SMALL_FILE:
            return values, source
        data = pack(arrays)
        self._keep(key, values, data)
        return values, data

    def apart(self, path: Path) -> tuple[str, bytes, str | None]:
        """(hash of all arrays' values, the file without what every model is given, the hash of that). Raises as ``read``.

        A small file stays whole, and its hash of what is given is None.
        """
        import numpy as np

        source = _read(path)
        arrays, given = read_own(path)
        if len(source) <= SMALL_FILE and given is None:
            return *self.read(path), None
        if given is not None:  # it was published in this form
            return values_sha256(read_arrays(path)), source, given
        shared = {name: values for name, values in arrays.items() if name in GIVEN_NAMES}
        if not shared:
            return *self.read(path), None
        key = f"{APART}-{hashlib.sha256(source).hexdigest()}"
        try:
            given = values_sha256(shared)
            values = values_sha256(arrays)
        except ValueError as error:
            raise DataDamaged(f"{path}: {error}") from None
        if (kept := self._kept(key)) is not None:
            return *kept, given
        data = pack({name: one for name, one in arrays.items() if name not in shared} | {GIVEN_SHA256: np.array(given)})
        self._keep(key, values, data)
        return values, data, given

    def _kept(self, key: str) -> tuple[str, bytes] | None:
        """None where there is none, or where it is not what was written."""
        with contextlib.suppress(OSError, ValueError):
            head, data = (self.folder / key).read_bytes().split(b"\n", 1)
            form, values, sha256 = head.decode("ascii").split(" ")
            if form == FORM and hashlib.sha256(data).hexdigest() == sha256:
                return values, data
        return None

    def _keep(self, key: str, values: str, data: bytes) -> None:
        aside = self.folder / f".{key}.{os.getpid()}"
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            aside.write_bytes(f"{FORM} {values} {hashlib.sha256(data).hexdigest()}\n".encode() + data)
            aside.replace(self.folder / key)


def _read(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():  # reading a pipe would wait for ever
            raise DataDamaged(f"{path} is no file")
        if path.stat().st_size > LARGEST:
            raise DataDamaged(f"{path}: {path.stat().st_size:,} bytes are too many for predictions")
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise DataMissing(f"there is no file {path}", "the run's command makes it again") from None
    except OSError as error:
        raise DataDamaged(f"{path} cannot be read: {error.strerror}") from None
