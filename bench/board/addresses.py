"""Names of the files below a version's folder, and links to them. They stay the same from version
to version."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container
from itertools import count
from urllib.parse import quote

from bench.base.text import slug

_PLAIN = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")
"""The form of a method's name; a record may hold anything."""


def unused_name(name: str, taken: Container[str]) -> str:
    """Return ``name``, with a number if it is taken."""
    if name not in taken:
        return name
    for number in count(2):
        numbered = f"{name}-{number}"
        if numbered not in taken:
            return numbered
    raise AssertionError("numbers never end")


def run_file(run_id: str, name: str) -> str:
    """Return the path of a file of a run: "index.html", "run.json".

    A record's run id is safe as a folder's name: the record's schema says so.
    """
    return f"runs/{run_id}/{name}"


def search_file(search: str) -> str:
    """Return the path of a search's trials. Any name becomes a valid file name, different for
    each."""
    return f"searches/{method_file(search)}.json"


def method_page(method: str) -> str:
    """Return the path of a method's page. An invalid name becomes a valid file name, different for
    each."""
    return f"methods/{method_file(method)}.html"


def method_file(method: str) -> str:
    """Return a name as a part of an address: "promcse"; "../Evil" becomes "evil-1f2e3d4c"."""
    if _PLAIN.fullmatch(method):
        return method
    words = slug(method, longest=60) or "method"
    return f"{words}-{hashlib.sha256(method.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def link(path: str, up: int = 0) -> str:
    """Return a relative link to a path below the version's folder, from a page ``up`` folders
    deep."""
    return "../" * up + quote(path, safe="/+@=")
