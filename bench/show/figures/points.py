"""From the tables of a board to the marks of its figures: which tables belong together, what a row is called, and how captions say it.
Below it the figure that draws no numbers of a table: sentences of STS-B as points of a plane.

Legend: N sentences, the first ones of P pairs before the second ones; D dimensions.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import numpy as np

from bench.base.errors import BenchError
from bench.compare.formatting import (
    setting_words,
    signed_number,
    variant_words,
    visible,
)
from bench.compare.statements import interval_covers
from bench.compare.statistics.table import SENDER, Cell, Row, Table
from bench.score.encoding import KEY_BYTES
from bench.show.figures.drawing import (
    ACCENT,
    INK,
    LINE,
    SECOND,
    TEXT,
    THIRD,
    WIDTH,
    Drawing,
    Figure,
    fit_text,
    library,
)
from bench.show.figures.labels import width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bench.board.board import Board, BoardTable, PublishedRun
    from bench.data.sets import DataFolder


LONGEST = 26  # characters of a label
PREFERRED = ("senteval-all/1", "cxc-promcse/1", "geometry-stsb/1", "senteval-fewshot/1")
"""Of several protocols of a suite, the ones that the papers' figures show."""
MOST_GROUPS = 6
LONGEST_NAME = 80


@dataclass(frozen=True)
class Group:
    """The tables of one setting and backbone, one per suite: what a figure may show together."""

    setting: str
    backbone: str
    tables: Mapping[str, BoardTable]  # by suite
    alone: bool  # the board has no other group

    @property
    def where(self) -> str:
        """ "unsupervised, builtin" """
        return f"{setting_words(self.setting)}, {short_name(self.backbone)}"

    @property
    def suites(self) -> list[str]:
        """The STS sets first, then by name."""
        return sorted(self.tables, key=lambda suite: (suite != "sts", suite))

    def table(self, suite: str) -> Table | None:
        """None where the suite was not scored."""
        return self.tables[suite].table if suite in self.tables else None

    def titled(self, title: str) -> str:
        """The title, with where it is of unless that is the same for all."""
        return title if self.alone else f"{title} ({self.where})"

    def name(self, kind: str, *more: str) -> str:
        return slug(kind, *more, self.setting or "any", short_name(self.backbone) or "any")


@dataclass(frozen=True)
class Point:
    """A row, and its cell in the column that is drawn."""

    label: str
    row: Row
    cell: Cell


def table_groups(board: Board) -> list[Group]:
    """Settings and backbones of at least two rows, those with most rows first."""
    chosen: dict[tuple[str, str], dict[str, BoardTable]] = {}
    for board_table in sorted(board.tables, key=_preference):
        place = board_table.table.setting or "", board_table.table.backbone or ""
        chosen.setdefault(place, {}).setdefault(board_table.table.suite, board_table)
    sizes = {
        place: max(len(board_table.table.rows) for board_table in tables.values())
        for place, tables in chosen.items()
    }
    order = sorted(
        (place for place, size in sizes.items() if size > 1),
        key=lambda place: (-sizes[place], place),
    )
    return [Group(*place, chosen[place], len(order) == 1) for place in order[:MOST_GROUPS]]


def _preference(board_table: BoardTable) -> tuple[object, ...]:
    table = board_table.table
    return (
        table.protocol not in PREFERRED,
        table.text not in (None, "tokenised"),
        -len(table.rows),
        table.protocol,
        table.text or "",
    )


def points(table: Table, column: str | None) -> list[Point]:
    """The rows that have a number in ``column``, in the table's order."""
    if column is None or column not in table.columns:
        return []
    i = table.columns.index(column)
    return [
        Point(label(row, table), row, cell)
        for row in table.rows
        if (cell := row.cells[i]) is not None
    ]


def one_point_per_method(points: Sequence[Point], table: Table) -> list[Point]:
    """One point per method and variant where that is clear: of rows that differ in their recipe the one with most seeds.

    Where several have as many, all stay: taking the best of them would be a choice by test scores.
    """
    named: dict[tuple[str, ...], list[Point]] = {}
    for point in points:
        sender = tuple(
            value for key, value in point.row.differs if key == SENDER
        )  # a submitted row stands for nobody else's
        named.setdefault(
            (point.row.name, point.row.setting, point.row.backbone, *sender), []
        ).append(point)
    kept: set[tuple[str, ...]] = set()
    for alike in named.values():
        most = max(len(point.row.runs) for point in alike)
        chosen = [point for point in alike if len(point.row.runs) == most]
        kept.update(point.row.runs for point in chosen)
        if len(chosen) == 1 < len(alike):
            points = [
                replace(
                    p,
                    label=label(
                        replace(p.row, differs=tuple(d for d in p.row.differs if d[0] == SENDER)),
                        table,
                    ),
                )
                if p.row is chosen[0].row
                else p
                for p in points
            ]
    return [point for point in points if point.row.runs in kept]


def shown_words(shown: Sized, all_of_them: Sized) -> str:
    """ " Shown are 9 of 12 methods.", for the end of a caption; "" where all are shown."""
    return (
        f" Shown are {len(shown)} of {len(all_of_them)} methods."
        if len(shown) < len(all_of_them)
        else ""
    )


def label(row: Row, table: Table) -> str:
    """What a row is called beside its point; it may be cut."""
    beside = variant_words(row, table)
    text = f"{row.label}+{beside}" if row.variant else f"{row.label} {beside}".strip()
    return visible(text, limit=LONGEST)


def join_points(first: Sequence[Point], second: Sequence[Point]) -> list[tuple[Point, Point]]:
    """The points of the same runs."""
    by_run = {run: point for point in second for run in point.row.runs}
    return [
        (point, other)
        for point in first
        if (other := next((by_run[r] for r in point.row.runs if r in by_run), None))
    ]


def bars_words(tables: Iterable[Table]) -> str:
    """ "Bars: 95 % CI of a row's own mean, other items and seeds." or nothing."""
    covers = list(dict.fromkeys(found for table in tables if (found := interval_covers(table))))
    return f"Bars: 95 % CI of a row's own mean, {'; '.join(covers)}." if covers else ""


def mean_and_ends(cell: Cell) -> tuple[float | str, ...]:
    """(mean, low, high) as a figure's data have them; "" for ends that there are not."""
    bar = ends(cell)
    return round(cell.mean, 4), *(("", "") if bar is None else (round(bar[0], 4), round(bar[1], 4)))


def ends(cell: Cell) -> tuple[float, float] | None:
    """The ends of a cell's error bar, of the same kind as the table's: the interval, else one standard deviation each way."""
    if cell.spread is not None:
        return cell.spread.low, cell.spread.high
    return None if cell.sd is None else (cell.mean - cell.sd, cell.mean + cell.sd)


def names_in_words(names: Sequence[str], most: int = 4) -> str:
    """ "a, b and c"; "a, b, c and 3 more" """
    names = list(names)
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} more"]
    if len(names) < 2:
        return names[0] if names else "none"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def leaders(values: Sequence[tuple[str, float]], decimals: int = 2) -> tuple[str, ...]:
    """Whoever has the largest value as it is printed, in order: who is equal there is not told to be behind."""
    top = max(round(value, decimals) for _, value in values)
    return tuple(name for name, value in values if round(value, decimals) == top)


def count_words(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def short_name(backbone: str) -> str:
    """A backbone's name; of a folder its last part."""
    return PurePath(backbone).name or backbone


def slug(*parts: str) -> str:
    """Letters, digits and hyphens: fit for a file's name and an id. Where that loses something, a hash keeps different ones apart."""
    whole = "-".join(parts).replace("+", "-with-")
    plain = unicodedata.normalize("NFKD", whole).encode("ascii", "ignore").decode().lower()
    plain = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    if plain == whole and len(plain) <= LONGEST_NAME:
        return plain
    digest = hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{plain[:LONGEST_NAME].strip('-')}-{digest}".lstrip("-")


# --- sentences of STS-B as points of a plane: do pairs that mean the same lie together? (ConPVP, Figure 6) ---
# Ten pairs each whose gold score is exactly 0, 3 and 5, the first ones in the order of the data; t-SNE of their 60 vectors.
# A picture, not a score. It needs the vectors that a run has kept, and the sentences themselves.


LEVELS = {0.0: (ACCENT, "o"), 3.0: (SECOND, "s"), 5.0: (THIRD, "^")}
EACH = 10  # pairs of a level
MOST = 3  # methods


@dataclass(frozen=True)
class Pairs:
    """The pairs that are drawn: P pairs, level by level."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    gold: tuple[float, ...]


def pairs(data: DataFolder) -> Pairs | None:
    """The pairs of STS-B test that are drawn; None where the set is not there, is damaged, or has too few."""
    from bench.data.sets import read_sts

    try:
        sts_b = read_sts(data.as_it_is, "STS-B", text="any")
    except BenchError:
        return None
    chosen = [i for level in LEVELS for i in np.flatnonzero(sts_b.gold == level)[:EACH].tolist()]
    if len(chosen) < EACH * len(LEVELS):
        return None
    first, second = (
        tuple(side[i] for i in chosen) for side in (sts_b.sentences1, sts_b.sentences2)
    )
    return Pairs(first, second, tuple(float(sts_b.gold[i]) for i in chosen))


def draw_groups(
    group: Group, runs: Mapping[str, PublishedRun], wanted: Pairs | None
) -> Figure | None:
    """The best, the baseline and an untrained method side by side, as far as their vectors are at hand. None where none's are."""
    table = group.table("sts")
    if wanted is None or table is None:
        return None
    chosen = _chosen(table, runs, wanted)
    if not chosen:
        return None
    with library():
        gap = 8.0
        wide = (WIDTH - 2 * gap) / MOST
        drawing = Drawing(height=wide + 52)
        _marks(drawing)
        for i, (name, x_ND) in enumerate(chosen):
            left = i * (wide + gap)
            drawing.text(left, drawing.height - 40, fit_text(name, wide), colour=INK)
            _panel(
                drawing, drawing.axes(left + 4, 4, left + wide - 4, wide - 4), _plane(x_ND), wanted
            )
        name, title = group.name("groups"), group.titled("Sentences that mean the same")
        cosines = [_cosines(x_ND, wanted) for _, x_ND in chosen]
        finding = gap_words(
            [
                (label, cosines_of[5.0] - cosines_of[0.0])
                for (label, _), cosines_of in zip(chosen, cosines, strict=True)
            ]
        )
        how = (
            f"t-SNE of the first {EACH} pairs of STS-B test at each of gold 0, 3 and 5, a line between the two of a pair; the planes are "
            "a picture, distances between groups mean nothing."
        )
        alt = f"Sentence pairs as points in a plane, for {names_in_words([label for label, _ in chosen])}. {finding}"
        return Figure(
            name=name,
            kind="groups",
            title=title,
            caption=f"{finding} {how}",
            alt=alt,
            svg=drawing.svg(name, title, alt),
            paper_figure="ConPVP, Figure 6",
            header=("method", "gold", "pairs", "mean cosine"),
            data=tuple(
                (label, level, float(EACH), round(cosines_of[level], 4))
                for (label, _), cosines_of in zip(chosen, cosines, strict=True)
                for level in LEVELS
            ),
        )


def gap_words(gaps: Sequence[tuple[str, float]]) -> str:
    """How far pairs of gold 5 lie above those of gold 0, the farthest first; below where they do."""
    ordered = sorted(gaps, key=lambda pair: (-pair[1], pair[0]))
    return f"Mean cosine of pairs with gold 5 less that of pairs with gold 0: {names_in_words([f'{signed_number(gap)} in {name}' for name, gap in ordered])}."


def _chosen(
    table: Table, runs: Mapping[str, PublishedRun], wanted: Pairs
) -> list[tuple[str, np.ndarray]]:
    """(name, vectors of all first and then all second sentences): the best row, the baseline's, an untrained one, then the next."""
    rows = one_point_per_method(points(table, table.head), table)
    untrained = [point for point in rows if point.row.setting == "none"]
    order = [*rows[:1], *(point for point in rows if point.row.is_baseline), *untrained[:1], *rows]
    vectors_of: dict[str, np.ndarray] = {}
    for point in order:
        run = runs.get(point.row.runs[0])
        if point.label in vectors_of or run is None or len(vectors_of) == MOST:
            continue
        vectors = stored_vectors(
            run.folder / "vectors", run.record.fingerprint[:16], (*wanted.first, *wanted.second)
        )
        if vectors is not None:
            vectors_of[point.label] = vectors
    return list(vectors_of.items())


def stored_vectors(folder: Path, key: str, sentences: Sequence[str]) -> np.ndarray | None:
    """(n, dim) float32 out of a run's vectors, which are only read; None where any of them is not there."""
    for file in sorted(folder.glob(f"{key}-*.keys")) if key.isalnum() else ():
        dim = int(text) if (text := file.stem.rpartition("-")[2]).isdecimal() else 0
        try:
            keys = file.read_bytes()
            vectors = np.memmap(file.with_suffix(".f32"), dtype="<f4", mode="r")
        except (OSError, ValueError):
            continue
        rows = min(len(keys) // KEY_BYTES, len(vectors) // dim) if dim else 0
        place = {keys[i * KEY_BYTES : (i + 1) * KEY_BYTES]: i for i in range(rows)}
        at = np.array([place.get(_key(sentence), -1) for sentence in sentences])
        if rows and (at >= 0).all():
            chosen_ND = np.asarray(vectors[: rows * dim].reshape(rows, dim)[at], dtype=np.float32)
            return (
                chosen_ND
                if np.isfinite(chosen_ND).all() and np.abs(chosen_ND).sum(axis=1).all()
                else None
            )
    return None


def _key(sentence: str) -> bytes:
    return hashlib.blake2b(
        sentence.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES
    ).digest()


def _plane(x_ND: np.ndarray) -> np.ndarray:
    """(N, 2): t-SNE of the directions of the vectors."""
    from sklearn.manifold import TSNE

    plane_N2: np.ndarray = TSNE(
        2, perplexity=10.0, init="pca", metric="cosine", random_state=0
    ).fit_transform(_unit(x_ND))
    return plane_N2


def _unit(x_ND: np.ndarray) -> np.ndarray:
    """Each row divided by its length."""
    x_ND = x_ND.astype(np.float64)
    unit_ND: np.ndarray = x_ND / np.linalg.norm(x_ND, axis=1, keepdims=True)
    return unit_ND


def _cosines(x_ND: np.ndarray, wanted: Pairs) -> dict[float, float]:
    """Gold level -> mean cosine of its pairs."""
    unit_ND = _unit(x_ND)
    half = len(unit_ND) // 2
    cosine_P, gold_P = (unit_ND[:half] * unit_ND[half:]).sum(axis=1), np.array(wanted.gold)
    return {level: float(cosine_P[gold_P == level].mean()) for level in LEVELS}


def _panel(drawing: Drawing, axes: Axes, plane_N2: np.ndarray, wanted: Pairs) -> None:
    axes.grid(False)
    axes.spines["bottom"].set_visible(False)
    axes.set_xticks([])
    axes.set_yticks([])
    low, high = plane_N2.min(axis=0), plane_N2.max(axis=0)
    room = 0.05 * (high - low)
    axes.set_xlim(low[0] - room[0], high[0] + room[0])
    axes.set_ylim(low[1] - room[1], high[1] + room[1])
    half = len(wanted.gold)
    for i in range(half):
        axes.plot(
            plane_N2[[i, i + half], 0],
            plane_N2[[i, i + half], 1],
            color=LINE,
            linewidth=1.0,
            zorder=1,
        )
    for level, (colour, marker) in LEVELS.items():
        chosen = [i for i in range(half) if wanted.gold[i] == level]
        both = [*chosen, *(i + half for i in chosen)]
        axes.plot(
            plane_N2[both, 0],
            plane_N2[both, 1],
            linestyle="",
            marker=marker,
            markersize=4.5,
            markerfacecolor=colour,
            markeredgecolor=colour,
            markeredgewidth=0,
            zorder=3,
            clip_on=False,
            gid=drawing.tip(f"gold {level:g}"),
        )


def _marks(drawing: Drawing) -> None:
    """What the marks are, said once above all panels, each in its colour and beside its shape."""
    from matplotlib.lines import Line2D

    x, y = 6.0, drawing.height - 14
    for level, (colour, marker) in LEVELS.items():
        text = f"gold {level:g}"
        drawing.sheet.add_artist(
            Line2D(
                [x / WIDTH],
                [(y + 4) / drawing.height],
                marker=marker,
                markersize=6,
                color=colour,
                linestyle="",
                markeredgewidth=0,
                transform=drawing.sheet.transFigure,
            )
        )
        drawing.text(x + 8, y, text, colour=colour)
        x += 8 + width(text, TEXT) + 20
