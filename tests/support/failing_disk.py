"""A disk that fails at the n-th write below a folder, there alone or from there on."""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CHANGES = "wax+"


class FailingDisk:
    """A disk with a failing write.

    ``at``: the number of the first write that fails, from 0. ``once``: it alone fails, with EIO;
    otherwise all from there on fail, with ENOSPC.

    A write is any operation that may fail on a disk that is full or breaks: opening a file to
    write, making a folder, renaming, waiting for the disk (which writes the buffers), and the
    writes of a library that does not ask Python.
    """

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        below: Path,
        at: float = float("inf"),
        *,
        once: bool = False,
    ) -> None:
        self.below = below.resolve()
        self.at = at
        self.once = once
        self.failed = 0
        self.writes: list[str] = []
        for module, name, path_of in (
            (io, "open", self._to_open),
            (builtins, "open", self._to_open),
            (os, "open", self._to_open),
            (os, "mkdir", self._first),
            (os, "rename", self._second),
            (os, "replace", self._second),
            (os, "fsync", self._of_handle),
        ):
            patch.setattr(module, name, self._around(getattr(module, name), name, path_of))
        import safetensors.torch

        save_file = self._around(safetensors.torch.save_file, "save_file", self._second)
        patch.setattr(safetensors.torch, "save_file", save_file)

    def _around(
        self, real: Callable[..., Any], name: str, path_of: Callable[..., Any]
    ) -> Callable[..., Any]:
        def write(*given: Any, **named: Any) -> Any:
            path = path_of(*given, **named)
            whole = Path(os.path.abspath(path)) if isinstance(path, str | os.PathLike) else None
            if whole and whole.is_relative_to(self.below):
                number = len(self.writes)
                self.writes.append(f"{name} {whole.relative_to(self.below)}")
                if number == self.at or (number > self.at and not self.once):
                    self.failed += 1
                    code = errno.EIO if self.once else errno.ENOSPC
                    raise OSError(code, os.strerror(code), str(path))
            return real(*given, **named)

        return write

    @staticmethod
    def _to_open(path: Any, mode: Any = "r", *_: Any, **named: Any) -> Any:
        mode = named.get("flags", mode)
        flags = os.O_WRONLY | os.O_RDWR | os.O_CREAT
        writes = mode & flags if isinstance(mode, int) else set(mode) & set(CHANGES)
        return path if writes else None

    @staticmethod
    def _first(path: Any, *_: Any, **__: Any) -> Any:
        return path

    @staticmethod
    def _second(_: Any, path: Any, *__: Any, **___: Any) -> Any:
        return path

    @staticmethod
    def _of_handle(handle: Any) -> Any:
        path = Path(f"/proc/self/fd/{handle}")
        # syncing a folder may fail, so it is not counted
        return os.readlink(path) if path.is_symlink() and not path.is_dir() else None
