"""The picture of the matrix, for a README and for the cards of links: what the page shows of the
judged rows, on a light and a dark ground."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.base.foreign_text import make_visible
from bench.board.figures.sheet import STYLE, UNDATED
from bench.board.pages.engine import CARD
from bench.board.pages.matrix import ShownCell, ShownMatrix, ShownRow
from bench.compare.statistics.table import BETTER, NOT_TRAINED, WORSE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LIGHT, DARK = "figures/matrix-light.svg", "figures/matrix-dark.svg"
"""The pictures for a README, in a version."""
WIDTH = 720.0
"""Pixels of the picture."""
NAMES = 168.0
"""Pixels of the column of names."""
EDGE = 8.0
"""Pixels of the margin."""
SIZE = 20.5
"""Pixels of the letters: ten where a phone halves the picture."""
LINE = 32.0
"""Pixels of a line of text."""
ROW = 58.0
"""Pixels of a row, with two lines."""
GAP = 4.0
"""Pixels between two cells."""
UPPER, LOWER = 18.0, 41.0
"""Places of the two lines of a row, below its top."""
LONG_NAME = 14
"""Letters of a name that the width of names, or of a column, has room for."""
MOST_COLUMNS = 4
"""Suites that the width has room for."""
CARD_DPI = 120
"""1,200 pixels across."""
FONTS = "'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Liberation Sans', 'DejaVu Sans'"


class Ground(NamedTuple):
    """The colours of a ground, as board.css has them."""

    paper: str
    ink: str
    quiet: str
    rule: str
    cell: str
    # verdict -> colours of its cell and its letters
    verdicts: dict[str, tuple[str, str]]


ON_LIGHT = Ground(
    paper="#fdfcf9",
    ink="#1c1b19",
    quiet="#66625b",
    rule="#d9d5cc",
    cell="#f4f0e6",
    verdicts={BETTER: ("#dfeaf6", "#1f5f9e"), WORSE: ("#f8e3d0", "#a8480c")},
)
ON_DARK = Ground(
    paper="#171614",
    ink="#e6e2da",
    quiet="#a8a297",
    rule="#3b3832",
    cell="#24211b",
    verdicts={BETTER: ("#1c3550", "#8cbcec"), WORSE: ("#4a2f18", "#eda46c")},
)


def matrix_pictures(shown: ShownMatrix) -> dict[str, bytes]:
    """Draw the matrix; return path in the version -> content.

    The same matrix gives the same bytes.
    """
    return {
        LIGHT: _svg(shown, ON_LIGHT),
        DARK: _svg(shown, ON_DARK),
        CARD: _png(shown, ON_LIGHT),
    }


def _svg(shown: ShownMatrix, ground: Ground) -> bytes:
    text = _drawn(shown, ground, format="svg", transparent=True, metadata=UNDATED).decode()
    # a unit is a pixel, not a point
    return text.replace('pt"', '"', 2).replace("'DejaVu Sans'", FONTS).encode()


def _png(shown: ShownMatrix, ground: Ground) -> bytes:
    options = {"dpi": CARD_DPI, "facecolor": ground.paper, "metadata": {"Software": None}}
    return _drawn(shown, ground, format="png", **options)


def _drawn(shown: ShownMatrix, ground: Ground, **options: Any) -> bytes:
    import matplotlib.style
    from matplotlib.figure import Figure

    with matplotlib.style.context(STYLE, after_reset=True):
        sheet = Figure()
        sheet.set_layout_engine("none")
        _draw(sheet, shown, ground)
        out = io.BytesIO()
        sheet.savefig(out, **options)
    return out.getvalue()


def _draw(sheet: Figure, shown: ShownMatrix, ground: Ground) -> None:
    rows = picture_rows(shown)
    height = 3 * LINE + ROW * (len(rows) + 1) + GAP
    sheet.set_size_inches(WIDTH / 72, height / 72)
    axes = sheet.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(height, 0))
    axes.axis("off")
    columns = shown.columns[:MOST_COLUMNS]
    width = (WIDTH - NAMES - EDGE) / len(columns)
    middles = [NAMES + width * (place + 0.5) for place in range(len(columns))]

    _write(axes, EDGE, LINE / 2, f"Difference from {shown.baseline}, in points", ground.quiet)
    for middle, name in zip(middles, columns, strict=True):
        _write_name(axes, middle, 1.5 * LINE, name, ground.ink, "center")
    top = 2 * LINE
    for row, stands in rows:
        _write_name(axes, EDGE, top + UPPER, row.name, ground.ink)
        if row.claimed:
            _write(axes, EDGE, top + LOWER, f"paper {row.claimed}", ground.quiet)
        for middle, cell in zip(middles, row.cells, strict=False):
            if cell is not None:
                _draw_cell(axes, (middle, top, width), cell, stands, ground)
        top += ROW
    axes.axhline(top + GAP / 2, color=ground.rule, linewidth=1)
    _write_name(axes, EDGE, top + ROW / 2, f"{shown.baseline}, score", ground.ink)
    for middle, one in zip(middles, shown.scores, strict=False):
        _write(axes, middle, top + ROW / 2, one.text, ground.ink, "center")
    note = "paper: the published gain on STS, BERT-base"
    _write(axes, EDGE, top + ROW + LINE / 2, note, ground.quiet)


def picture_rows(shown: ShownMatrix) -> list[tuple[ShownRow, str]]:
    """Return the rows that a question asks about, each with why it is not judged: "" for the judged
    ones, then those that did not train."""
    rows = []
    for group in shown.groups:
        if group.stands in ("", NOT_TRAINED):
            rows += [(row, group.stands) for row in group.rows]
    return rows


def _draw_cell(
    axes: Axes, place: tuple[float, float, float], cell: ShownCell, stands: str, ground: Ground
) -> None:
    """Draw the difference above its word; ``place``: middle, top and width."""
    from matplotlib.patches import Rectangle

    middle, top, width = place
    fill, ink = ground.verdicts.get(cell.word, (ground.cell, ground.ink))
    if stands or not cell.judged:
        fill, ink = "none", ground.quiet
    corner = (middle - width / 2 + GAP / 2, top + GAP / 2)
    axes.add_patch(Rectangle(corner, width - GAP, ROW - GAP, facecolor=fill, edgecolor="none"))
    _write(axes, middle, top + UPPER, cell.text or "–", ink, "center")
    _write(axes, middle, top + LOWER, cell.word or stands, ink, "center")


def _write_name(axes: Axes, x: float, y: float, text: str, ink: str, side: str = "left") -> None:
    """Write a name, in smaller letters if it is a long one."""
    size = SIZE * min(1.0, LONG_NAME / max(1, len(text)))
    _write(axes, x, y, text, ink, side, size)


def _write(
    axes: Axes, x: float, y: float, text: str, ink: str, side: str = "left", size: float = SIZE
) -> None:
    """Write a text; an SVG cannot hold the control characters of a foreign name."""
    axes.text(x, y, make_visible(text), color=ink, size=size, ha=side, va="center_baseline")
