"""The comparison page: complete, self-contained, and safe whatever a record says."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import jinja2
import pytest
from factories import family, record

from bench.compare.statistics.summary import summarise
from bench.runs import RunRecord, Score
from bench.show.pages.comparison import render_page
from bench.show.pages.curves import curves, loss_words

VOID = {"meta", "br", "img", "link", "path", "circle"}


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
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def curve(folder: Path) -> Path:
    folder.mkdir(parents=True)
    lines = [
        {
            "step": step,
            "loss": 3 / step,
            "learning_rate": 1e-5,
            **({"dev_score": 60 + step / 100} if step % 125 == 0 else {}),
        }
        for step in range(25, 1001, 25)
    ]
    (folder / "curve.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines) + '{"step": 10'
    )
    return folder


def test_the_page_holds_every_number_and_everything_about_each_run(tmp_path: Path) -> None:
    records = family()
    folders = {
        one.run_id: curve(tmp_path / one.run_id) for one in records if one.method == "promcse"
    }
    html = render_page(records, "A title", "A note.", baseline="simcse", folders=folders)
    page = Reader(html)
    assert "A title" in page.text and "A note." in page.text
    (table,) = summarise(records)
    for row in table.rows:
        for cell in row.cells:
            assert cell is not None and f"{cell.mean:.2f}" in page.words
    for one in records:
        for part in (
            one.run_id,
            one.provenance.command,
            "MSRvid",
            *(value.source for value in one.recipe.values()),
        ):
            assert str(part) in page.text
    assert sum(tag == "polyline" for tag, _ in page.tags) == 2 * len(folders)
    assert "STS-B dev against training steps; the dot is the checkpoint that was kept." in page.text


def test_a_loss_that_is_small_is_not_called_nothing(tmp_path: Path) -> None:
    lines = [{"step": step, "loss": 2 * 10.0**-step} for step in range(6)]
    (tmp_path / "curve.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (loss,) = curves(record("simcse", 1), tmp_path)
    assert (loss.title, loss.low, loss.high) == ("loss", "2e-05", "2.000")
    assert [loss_words(value) for value in (0.0, 0.0123, -0.5, 0.00512)] == [
        "0.000",
        "0.012",
        "-0.500",
        "0.0051",
    ]


def test_the_answer_is_computed_and_claims_no_significance() -> None:
    (table,) = summarise(family())
    best, second = table.rows[0].cells[-1], table.rows[1].cells[-1]
    assert best and second
    text = Reader(render_page(family())).text
    gap = round(best.mean, 2) - round(second.mean, 2)
    assert (
        f"promcse has the highest value on the STS average, {best.mean:.2f}, {gap:.2f} above dcpcse (mlm)"
        in text
    )
    assert "On the built-in backbone" in text and "differences were not tested" in text
    assert "simcse reaches" in Reader(render_page([record("simcse", 1)])).text


def test_nothing_is_loaded_from_anywhere() -> None:
    page = Reader(render_page(family(), note="https://example.com"))
    assert {"script", "link", "img", "iframe", "object", "base", "form"}.isdisjoint(
        tag for tag, _ in page.tags
    )
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") or name == "src" for name in attributes), (
            tag,
            attributes,
        )
        assert (attributes.get("href") or "#").startswith("#")
    html = render_page(family())
    assert "@import" not in html and "url(" not in html and "default-src 'none'" in html


def test_every_link_on_the_page_arrives() -> None:
    page = Reader(render_page(family()))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.tags:
        if attributes.get("href"):
            assert str(attributes["href"])[1:].replace("%2B", "+") in ids
        if attributes.get("aria-labelledby"):
            assert attributes["aria-labelledby"] in ids


def test_the_same_records_give_the_same_bytes() -> None:
    assert render_page(family()) == render_page(family())


HOSTILE = "</style><script>alert(1)</script>\"' onload=x {{ 7*7 }} \x1b[2J \u202e &amp;"


def test_a_hostile_record_is_only_words(tmp_path: Path) -> None:
    score = Score(
        suite=HOSTILE,
        task=HOSTILE,
        protocol=HOSTILE,
        metric=HOSTILE,
        value=1.0,
        n=1,
        text=HOSTILE,
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


def test_a_missing_cell_is_empty() -> None:
    from factories import sts_scores

    html = render_page([record(scores=sts_scores(tasks=("STS12",)))])
    assert html.split("</table>")[0].count("<td></td>") == 6 and '<td class="average"></td>' in html
    assert "An empty cell was not scored." in html
    assert "No method has a score on every task yet." in html


def test_a_page_of_no_finished_run() -> None:
    assert "no runs" in Reader(render_page([record(status="failed")])).text


def test_the_template_cannot_print_what_is_not_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from bench.show.pages import engine

    for sheet in engine.SHEETS:
        (tmp_path / sheet).write_text("")
    monkeypatch.setattr(engine, "TEMPLATES", tmp_path)
    monkeypatch.setattr(
        engine, "_environment", engine._environment.__wrapped__
    )  # neither kept from before nor for later
    (tmp_path / "comparison.html").write_text("{{ page.nothing }}")
    with pytest.raises(jinja2.UndefinedError):
        render_page(family())
    (tmp_path / "comparison.html").write_text("{{ page.note }}")
    with pytest.raises(ValueError, match="not recorded"):
        render_page(family())


def test_contrast_is_aa_in_light_and_dark() -> None:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    style = render_page(family()).partition("</style>")[0]
    light_theme = dict[str, str]()
    dark_theme = dict[str, str]()
    for dark, colours in re.findall(r"(dark\) \{\s*)?:root \{(.*?)\}", style, re.DOTALL):
        (dark_theme if dark else light_theme).update(re.findall(r"--(\w+): (#\w{6})", colours))
    for theme in (light_theme, dark_theme):
        for text in ("ink", "quiet", "accent"):
            for ground in ("paper", "tint", "top", "raised"):
                light, dark = sorted(
                    (luminance(theme[text]), luminance(theme[ground])), reverse=True
                )
                assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)
