"""What the drawing library wrote becomes an element of a page: colours of the page, own ids, escaped text, the same bytes."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from bench.show.figures import Figure, drawing
from bench.show.figures.drawing import Drawing, fit_text, library
from bench.show.figures.labels import width
from bench.show.figures.points import slug

NS = "{http://www.w3.org/2000/svg}"
BAD = "<script>window.hit=1</script>\"'&{{7*7}}$\\frac{1}{2}$]]> \u202e 漢字"


def drawn(name: str = "made", title: str = "Title", alt: str = "Alt", text: str = "label") -> str:
    with library():
        drawing = Drawing()
        axes = drawing.axes()
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        drawing.dot(axes, 0.5, 0.5, text, strong=True)
        drawing.dot(axes, 0.2, 0.2, text)
        drawing.text(10, 10, text)
        return drawing.svg(name, title, alt)


def test_it_is_one_element_that_says_what_it_is() -> None:
    root = ET.fromstring(drawn())
    assert (
        root.tag == f"{NS}svg" and root.get("class") == "bench-figure" and root.get("role") == "img"
    )
    named = {element.get("id"): element.text for element in root if element.get("id")}
    assert [named[key] for key in (root.get("aria-labelledby") or "").split()] == ["Title", "Alt"]
    assert root.get("viewBox") == "0 0 360 300" and root.get("width") is None


def test_text_stays_text_and_is_escaped() -> None:
    found = drawn(text=BAD, title=BAD, alt=BAD)
    root = ET.fromstring(found)
    texts = [element.text for element in root.iter(f"{NS}text")]
    assert BAD in texts  # no mathematics, no outlines
    assert not list(root.iter(f"{NS}script")) and "<script" not in found
    assert [tip.text for tip in root.iter(f"{NS}title")] == [BAD, BAD, BAD]


def test_colours_are_the_pages_and_none_of_the_library_remains() -> None:
    found = drawn()
    assert (
        "var(--accent,#8a3b12)" in found
        and "currentColor" in found
        and "prefers-color-scheme:dark" in found
    )
    assert not set(drawing.COLOURS) & set(re.findall(r"#[0-9a-f]{6}", found))
    assert "var(--second" not in found  # only what is used
    assert "style=" not in found and "clip-path" not in found and "xlink" not in found


def test_ids_are_its_own_and_every_reference_has_one() -> None:
    found = [ET.fromstring(drawn(name)) for name in ("one", "two")]
    ids = [[element.get("id") for element in root.iter() if element.get("id")] for root in found]
    assert len(set(ids[0] + ids[1])) == len(ids[0]) + len(ids[1])
    for root, own in zip(found, ids, strict=True):
        references = {element.get("href") for element in root.iter() if element.get("href")}
        assert references and references <= {f"#{one}" for one in own}


def test_the_same_bytes_whatever_the_user_has_set() -> None:
    import matplotlib

    first = drawn()
    with matplotlib.rc_context(
        {"font.size": 30, "svg.fonttype": "path", "lines.linewidth": 9, "svg.hashsalt": "other"}
    ):
        assert drawn() == first
    assert re.search(r"20\d\d-\d\d-\d\d|matplotlib", first) is None


def test_numbers_have_one_decimal() -> None:
    root = ET.fromstring(drawn())
    drawn_numbers = [
        n
        for e in root.iter()
        for key in ("d", "x", "y")
        for n in re.findall(r"\d+\.(\d+)", e.get(key, ""))
    ]
    assert drawn_numbers and {len(decimals) for decimals in drawn_numbers} == {1}


def test_the_library_is_loaded_only_to_draw() -> None:
    code = "import sys, bench.show.figures; print([n for n in ('matplotlib', 'torch', 'sklearn') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


def test_cutting_keeps_what_fits() -> None:
    assert fit_text("short", 100.0) == "short"
    cut = fit_text("a-very-long-name-of-a-method+variant", 80.0)
    assert cut.endswith("…") and width(cut, 12.0) <= 80.0 and cut[0] == "a"
    assert fit_text("abc", 0.0) == "…"


def test_addresses_are_plain_and_apart() -> None:
    assert slug("cost", "unsupervised", "builtin") == "cost-unsupervised-builtin"
    assert slug("ablation", "promcse+eh", "margin") == "ablation-promcse-with-eh-margin"
    strange = [
        slug("cost", name)
        for name in ("a_b", "a-b", "A-B", "../../etc", "漢字", "漢", "", "x" * 300, "x" * 301)
    ]
    assert len(set(strange)) == len(strange)
    assert all(
        re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) and len(name) <= 90 for name in strange
    )


def test_csv_quotes_and_disarms() -> None:
    import csv
    import io

    made = Figure(
        name="n",
        kind="k",
        title="t",
        caption="c",
        alt="a",
        svg="",
        header=("method", "x"),
        data=(("=1+1", 1.5), ('a "b", c', ""), ("plain", -2.0)),
    )
    assert list(csv.reader(io.StringIO(made.csv))) == [
        ["method", "x"],
        ["'=1+1", "1.5"],
        ['a "b", c', ""],
        ["plain", "-2.0"],
    ]


@pytest.mark.parametrize("colour", list(drawing.COLOURS.values()), ids=lambda one: one[0])
def test_both_modes_have_every_colour(colour: tuple[str, str]) -> None:
    assert colour[0] in drawing.DARK and drawing.DARK[colour[0]] != colour[1]
