"""Addresses on published pages, which stay from version to version."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container
from itertools import chain, count
from urllib.parse import quote

from bench.base.text import slug


def unused_name(name: str, taken: Container[str]) -> str:
    """``name``, with a number where it is taken."""
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(one for one in names if one not in taken)


# --- where things lie below a version's folder. These addresses stay the same from version to version ---

_PLAIN = re.compile(
    r"[a-z0-9][a-z0-9-]{0,99}"
)  # what a method's name has to be; a record may hold anything


def run_file(run_id: str, name: str) -> str:
    """A file of a run: "index.html", "run.json". A record's run id is safe as a folder's name: the record's schema says so."""
    return f"runs/{run_id}/{name}"


def search_file(search: str) -> str:
    """The trials of a search. Any name becomes one that a folder can hold, different for each."""
    return f"searches/{method_file(search)}.json"


def method_page(method: str) -> str:
    """The page of a method. A name that no method may have becomes one that a folder can hold, different for each."""
    return f"methods/{method_file(method)}.html"


def method_file(method: str) -> str:
    """ "promcse"; "../Evil" -> "evil-1f2e3d4c" """
    if _PLAIN.fullmatch(method):
        return method
    words = slug(method, longest=60) or "method"
    return f"{words}-{hashlib.sha256(method.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def link(path: str, up: int = 0) -> str:
    """A relative link to a path below the version's folder, from a page that lies ``up`` folders deep."""
    return "../" * up + quote(path, safe="/+@=")
