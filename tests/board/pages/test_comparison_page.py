"""The comparison page: complete, self-contained, and safe whatever a record says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

from factories import family, record

from bench.board.pages.board import comparison
from bench.compare.baseline import compare_with_baseline
from bench.compare.statistics.summary import summarise
from bench.records import Run, RunRecord, Score


def render_page(
    records: Sequence[RunRecord],
    title: str = "Comparison",
    note: str | None = None,
) -> str:
    """The page of these records with ``simcse`` as the baseline."""
    runs = [Run(one, Path("nowhere")) for one in records]
    return comparison(
        runs, [compare_with_baseline(table, None) for table in summarise(records)], title, note
    )


VOID = {"meta", "br", "img", "link", "path", "circle", "input"}


class Reader(HTMLParser):
    """A strict reading: every tag closed in order; collects tags, attributes and words."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.cells: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def test_the_page_holds_every_number_and_everything_about_each_run() -> None:
    records = family()
    html = render_page(records, "A title", "A note.")
    page = Reader(html)
    assert "A title" in page.text and "A note." in page.text
    (table,) = summarise(records)
    for row in table.rows:
        for cell in row.cells:
            assert cell is not None and f"{cell.mean:.2f}" in page.words
    for one in records:
        for part in (
            one.run_id,
            one.method,
            "MSRvid",
            *(value.source for value in one.recipe.values()),
        ):
            assert str(part) in page.text


HOSTILE = "</style><script>alert(1)</script>\"' onload=x {{ 7*7 }} \x1b[2J \u202e &amp;"


def test_a_hostile_record_is_only_words(tmp_path: Path) -> None:
    score = Score(
        suite=HOSTILE,
        task=HOSTILE,
        protocol=HOSTILE,
        metric=HOSTILE,
        value=1.0,
        n=1,
        detail={
            "subsets": {HOSTILE: {"spearman": 1.0, "n": 2}, "x": 3},
            "pearson": HOSTILE,
            "mean": "x",
        },
    )
    bad: list[RunRecord] = [
        record(
            HOSTILE,
            seed,
            variant=HOSTILE,
            backbone=HOSTILE,
            scores=(score,),
            recipe={HOSTILE: HOSTILE},
            run_id=f"bad-{seed}",
        )
        for seed in (1, 2)
    ]
    page = Reader(render_page(bad, HOSTILE, HOSTILE))
    plain = Reader(render_page(family()))
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in plain.tags}
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    html = render_page(bad, HOSTILE, HOSTILE)
    assert (
        "\x1b" not in html
        and "\u202e" not in html
        and "49" not in re.findall(r"<h1>(.*?)</h1>", html)[0]
    )
