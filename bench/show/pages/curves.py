"""Training curves as points of small vector drawings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.compare.formatting import score
from bench.runs.intact import read_curve, series
from bench.runs.record import RunRecord

WIDTH, HEIGHT = 320, 150
LEFT, RIGHT, TOP, BOTTOM = 44, 20, 26, 22  # room for labels
MOST = 240  # points of a line; more cannot be told apart in this width


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One line over training steps, in drawing units."""

    title: str  # what is drawn: the loss, or the dev set
    points: str  # "x,y x,y ..." of the line
    dots: tuple[tuple[float, float], ...]  # where it was measured, when these are few
    low: str
    high: str
    low_y: float
    high_y: float
    first: str
    last: str
    mark: tuple[float, float, str] | None  # x, y and label of the kept checkpoint
    mark_anchor: str  # "middle", or "end" where the label would leave the drawing

    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    base: int = HEIGHT - BOTTOM


def curves(record: RunRecord, folder: Path | None) -> tuple[Curve, ...]:
    """Loss and dev score of a run, as far as its ``curve.jsonl`` has at least two points of them."""
    if folder is None:
        return ()
    curve = read_curve(folder)
    made = []
    training = record.training
    dev = (training.dev_task if training else None) or "dev"
    for key, title, words in (("loss", "loss", loss_words), ("dev_score", dev, score)):
        points = series(curve, key)
        if len(points) < 2:
            continue
        best = None
        if (
            key == "dev_score"
            and training
            and training.best_step is not None
            and training.dev_score is not None
        ):
            best = (float(training.best_step), training.dev_score)
        made.append(_draw(_thinned(points), title, words, best))
    return tuple(made)


def loss_words(loss: float) -> str:
    """ "0.123", and "5.1e-05" where three decimals would hide what is left."""
    return f"{loss:.3f}" if loss == 0 or abs(loss) >= 0.01 else f"{loss:.2g}"


def _draw(
    points: Sequence[tuple[float, float]],
    title: str,
    words: Callable[[float], str],
    best: tuple[float, float] | None,
) -> Curve:
    values = [value for _, value in points] + ([best[1]] if best else [])
    low, high = min(values), max(values)
    begin, end = points[0][0], max(points[-1][0], best[0] if best else 0)

    def at(step: float, value: float) -> tuple[float, float]:
        x = LEFT + (step - begin) / ((end - begin) or 1) * (WIDTH - LEFT - RIGHT)
        y = HEIGHT - BOTTOM - (value - low) / ((high - low) or 1) * (HEIGHT - TOP - BOTTOM)
        return round(x, 1), round(y, 1)

    placed = [at(step, value) for step, value in points]
    mark = (*at(*best), words(best[1])) if best else None
    return Curve(
        title=title,
        points=" ".join(f"{x},{y}" for x, y in placed),
        dots=tuple(placed) if len(placed) <= 40 else (),
        low=words(low),
        high=words(high),
        low_y=HEIGHT - BOTTOM,
        high_y=TOP,
        first=f"step {begin:,.0f}",
        last=f"{end:,.0f}",
        mark=mark,
        mark_anchor="end" if mark and mark[0] > WIDTH - 2 * RIGHT else "middle",
    )


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most MOST points; each stretch keeps its mean, the ends stay."""
    if len(points) <= MOST:
        return list(points)
    edges = [round(i * len(points) / (MOST - 2)) for i in range(MOST - 1)]
    inside = [points[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    means = [
        (sum(x for x, _ in part) / len(part), sum(y for _, y in part) / len(part))
        for part in inside
    ]
    return [points[0], *means, points[-1]]
