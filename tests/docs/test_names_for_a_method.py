"""The names that a method may use: promise 5's list, the code, and the pages say the same."""

from __future__ import annotations

import re
from pathlib import Path

import bench.method
from bench.method import Method, TorchMethod
from bench.methods import losses, simcse

DOCS = Path(__file__).resolve().parents[2] / "docs"


def promised() -> dict[str, set[str]]:
    """Return the list of docs/promises.md: kind -> names."""
    text = (DOCS / "promises.md").read_text(encoding="utf-8")
    text = text.split("## Names for a method\n")[1].split("\n## ")[0]
    found = {}
    for kind, names in re.findall(r"^- \*\*(.*?)\*\*(.*)$", text, flags=re.M):
        found[kind] = set(re.findall(r"`(?:self\.)?([\w.]+)(?:\(\w+\))?`", names))
    return found


def public(names: dict[str, object]) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def test_the_promise_lists_what_a_class_has_and_nothing_else() -> None:
    kinds = promised()
    lists = ("Of a class", "Defined by a class", "Used by its methods")
    listed = [name for kind in lists for name in kinds[kind]]
    assert len(listed) == len(set(listed))
    has = set[str]()
    for cls in (Method, TorchMethod):
        has |= public({**vars(cls), **cls.__annotations__})
    assert set(listed) == has


def test_the_promise_lists_what_bench_method_offers_and_nothing_else() -> None:
    assert promised()["Imported"] == set(bench.method.__all__)
    assert all(hasattr(bench.method, name) for name in bench.method.__all__)
    assert simcse.SimCSE and losses.info_nce  # "Of bench.methods"


def test_the_page_for_a_new_method_names_what_is_promised() -> None:
    page = (DOCS / "add-a-method.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 165
    kinds = promised()
    known = set[str]().union(*kinds.values())
    text = re.sub(r"^```.*?^```$", "", page, flags=re.M | re.S)
    text = text.split("## What a method may use")[1].split("\n## ")[0]
    used = re.findall(r"`(?:self\.)?(\w+)(?:\([^`]*\))?`", text)
    assert len(used) > 25 and set(used) - known == set()
    imported = set[str]()
    for line in re.findall(r"^from bench\.method import (.*)$", page, flags=re.M):
        imported |= set(line.split(", "))
    assert imported and imported <= kinds["Imported"]
