"""The page's note on a row with runs of earlier code of their method."""

from __future__ import annotations

import tomllib

from factories import record
from msgspec.structs import replace

from bench.base.import_scope import own_packages
from bench.base.same_code import TABLE
from bench.board.changes import _differences
from bench.records import Code, RunRecord


def of_code(seed: int, sha256: str) -> RunRecord:
    one = record("simcse", seed)
    code = Code(package="sentence-bench", version="1", sha256=sha256)
    return replace(one, provenance=replace(one.provenance, plugin=code))


def test_code_of_the_same_numbers_is_no_difference() -> None:
    modules = tomllib.loads((own_packages()["bench.methods"] / TABLE).read_text("utf-8"))
    today, earlier = modules["simcse"]["code"], modules["simcse"]["earlier"][0]
    assert today != earlier
    key = of_code(1, today).scores[0].key
    assert _differences([of_code(1, earlier)], [of_code(1, today)], key) == []
    assert _differences([of_code(1, "0" * 64)], [of_code(1, today)], key) == ["code"]
