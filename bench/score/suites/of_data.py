"""What a loaded task says of itself, taken from the data that it was read from."""

from __future__ import annotations

from typing import Protocol


class Read(Protocol):
    """Data of one task, read and checked: its text form, the sha256 of its content, its number of items."""

    @property
    def form(self) -> str | None: ...

    @property
    def sha256(self) -> str: ...

    def __len__(self) -> int: ...


class OfData:
    """Form, hash and size of a task are those of ``data``, which the class that builds on this one holds."""

    data: Read

    @property
    def form(self) -> str | None:
        return self.data.form

    @property
    def sha256(self) -> str:
        return self.data.sha256

    @property
    def n(self) -> int:
        """Items that are scored."""
        return len(self.data)
