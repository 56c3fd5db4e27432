"""How a corpus of the hub is named: ``hub:owner/name@revision/path:column,column#rows``."""

from __future__ import annotations

from dataclasses import dataclass

from bench.base.errors import CorpusError

PREFIX = "hub:"
FORM = "hub:OWNER/NAME:COLUMN (or COLUMN,COLUMN for pairs; OWNER/NAME@REVISION, OWNER/NAME/FOLDER-OR-FILE, COLUMN#ROWS)"


@dataclass(frozen=True)
class HubName:
    """``hub:owner/name@revision/path:column,column#rows``, taken apart."""

    text: str
    repo: str
    revision: str | None
    path: str  # a folder or file of the data set; "" for all of it
    columns: tuple[str, ...]
    limit: int | None  # rows at most

    @classmethod
    def of(cls, text: str) -> HubName:
        """Raises CorpusError for what is no such name."""
        where, _, columns = text.removeprefix(PREFIX).partition(":")
        columns, hash_sign, rows = columns.partition("#")
        owner, _, rest = where.partition("/")
        name, _, path = rest.partition("/")
        name, at, revision = name.partition("@")
        given = tuple(column.strip() for column in columns.split(",") if column.strip())
        if not owner or not name or (at and not revision) or (hash_sign and not (rows.isdigit() and int(rows))) or len(given) > 3:
            raise CorpusError(f"--corpus {text}: expected {FORM}", "for example --corpus hub:owner/name:text")
        return cls(text, f"{owner}/{name}", revision or None, path.strip("/"), given, int(rows) if rows else None)
