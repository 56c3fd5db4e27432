"""Training curves as points of small vector drawings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.compare.formatting import score
from bench.runs.intact import read_curve, series
from bench.runs.record import RunRecord

LEFT, RIGHT, TOP, BASE = 44, 300, 26, 128  # ends of the axes
MOST = 240  # points of a line; more cannot be told apart in this width
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One line over training steps, in drawing units."""

    title: str  # what is drawn: the loss, or the dev set
    points: str  # "x,y x,y ..." of the line
    low: str  # labels of the axes' ends
    high: str
    first: str
    last: str
    best: tuple[float, float, str] | None  # x, y and label of the kept checkpoint
    width: int = 320
    height: int = 150
    left: int = LEFT
    right: int = RIGHT
    top: int = TOP
    base: int = BASE


def curves(record: RunRecord, folder: Path | None) -> list[Curve]:
    """Loss and dev score of a run, as far as its ``curve.jsonl`` has at least two points of them."""
    curve, done = read_curve(folder) if folder is not None else [], record.training
    loss, dev = series(curve, "loss"), series(curve, "dev_score")
    made = [draw(loss, "loss", loss_text)] if len(loss) > 1 else []
    if len(dev) > 1:
        best = None
        if done and done.best_step is not None and done.dev_score is not None:
            best = (float(done.best_step), done.dev_score)
        made.append(draw(dev, (done.dev_task if done else None) or "dev", score, best))
    return made


def loss_text(loss: float) -> str:
    """ "0.123", and "5.1e-05" where three decimals would hide what is left."""
    return f"{loss:.3f}" if loss == 0 or abs(loss) >= 0.01 else f"{loss:.2g}"


def draw(
    points: Points,
    title: str,
    label: Callable[[float], str],
    best: tuple[float, float] | None = None,
) -> Curve:
    """The line through (step, value), thinned; ``best``: the kept checkpoint."""
    steps, values = zip(*points, *([best] if best else []), strict=True)
    low, high, begin, end = min(values), max(values), points[0][0], max(steps)

    def at(step: float, value: float) -> tuple[float, float]:
        x = LEFT + (step - begin) / ((end - begin) or 1) * (RIGHT - LEFT)
        return round(x, 1), round(BASE - (value - low) / ((high - low) or 1) * (BASE - TOP), 1)

    return Curve(
        title=title,
        points=" ".join("{},{}".format(*at(*point)) for point in _thinned(points)),
        low=label(low),
        high=label(high),
        first=f"step {begin:,.0f}",
        last=f"{end:,.0f}",
        best=(*at(*best), label(best[1])) if best else None,
    )


def _thinned(points: Points) -> Points:
    """At most MOST points, the ends among them."""
    last = len(points) - 1
    places = {round(i * last / (MOST - 1)) for i in range(MOST)}
    return [points[i] for i in sorted(places)]
