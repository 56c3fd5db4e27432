"""Which texts and which of their columns ``--corpus`` names."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.base.errors import CorpusError
from bench.data.corpora.naming import name_columns, parse_columns, parse_corpus

HASH = "sha256:" + "0a" * 32


def named(text: str) -> tuple[str, tuple[str, ...]]:
    name = parse_corpus(text)
    return name.source, name.columns


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p.csv:q, a", ("p.csv", ("q", "a"))),
        ("n.txt", ("n.txt", ())),
        (r"C:\b.csv:q", (r"C:\b.csv", ("q",))),
        ("hub:o/n:a,b", ("hub:o/n:a,b", ())),
        (f"{HASH}:q=sent0,a=sent1", (HASH, ("q=sent0", "a=sent1"))),
        (HASH, (HASH, ())),
    ],
)
def test_a_name_is_taken_apart(text: str, expected: tuple[str, tuple[str, ...]]) -> None:
    assert named(text) == expected


def test_an_existing_path_with_a_colon_is_one_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a,b.txt", "at 10:30.csv"):
        Path(name).write_text("x\n", encoding="utf-8")
    assert named("a,b.txt") == ("a,b.txt", ())
    assert named("at 10:30.csv:q,a") == ("at 10:30.csv", ("q", "a"))


@pytest.mark.parametrize("text", ["", ":q", "p.csv:", "p.csv:q,"])
def test_an_empty_name_is_refused(text: str) -> None:
    with pytest.raises(CorpusError, match="a name is missing|without a name") as caught:
        parse_corpus(text)
    assert "--corpus" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("columns", "ours"),
    [
        (("hypothesis", "premise"), ("sent1", "sent0")),
        (("q", "a", "rating=score"), ("sent0", "sent1", "score")),
        (("q", "a", "neg_1", "neg_2"), ("sent0", "sent1", "hard_neg", "hard_neg_2")),
    ],
)
def test_columns_are_known_by_their_names_or_by_their_order(
    columns: tuple[str, ...], ours: tuple[str, ...]
) -> None:
    assert name_columns(columns) == ours
    assert parse_columns(columns, "p.csv").ours == ours


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (("q", "q"), "'q' is named twice"),
        (("a", "b", "c", "d"), "make no training text"),
        (("q", "label"), "'label' would be read as a text"),
    ],
)
def test_columns_that_mean_nothing_are_refused(columns: tuple[str, ...], problem: str) -> None:
    with pytest.raises(CorpusError, match=problem) as caught:
        parse_columns(columns, "p.csv")
    assert "\n" not in str(caught.value.message) and caught.value.hint
