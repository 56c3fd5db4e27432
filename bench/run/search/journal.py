"""Optuna's journal, the state of a search: its lock, and damage that is noticed before Optuna reads
it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from filelock import FileLock

from bench.base.errors import DataDamaged
from bench.records.searches import SUMMARY

JOURNAL = "optuna.log"


class JournalLock(FileLock):
    """The lock of Optuna's journal.

    The kernel releases it when its process dies; for Optuna's own, others would wait 30 s.
    """

    def acquire(self, *args: Any, **options: Any) -> Any:
        """Wait for the lock, and cut off a last line that a kill or a full disk left unfinished."""
        acquired = super().acquire(*args, **options)
        journal = Path(self.lock_file).with_name(JOURNAL)
        content = journal.read_bytes()
        if content and not content.endswith(b"\n"):
            os.truncate(journal, content.rfind(b"\n") + 1)
        return acquired


ANEW = (
    "put back a copy of the file, or begin the search anew with --name NEW; finished "
    f"trials stand in {SUMMARY}"
)


def check_journal(journal: Path) -> None:
    """Raise DataDamaged if a complete line of the journal is not an entry of Optuna's, naming the
    line; an unfinished last line is cut off later.
    """
    if not journal.is_file():
        return
    for number, line in enumerate(journal.read_bytes().split(b"\n")[:-1], start=1):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if not (isinstance(entry, dict) and isinstance(entry.get("op_code"), int)):
            raise DataDamaged(f"{journal}: line {number} is damaged", ANEW)
