"""The learning curve of a method's runs, as points; ``method.html`` has the frame."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from bench.records.curve import curve_series, read_curve
from bench.records.run import Run

CURVE_SIZE = (256, 102)
"""Width and height of a curve; its corner is at 0, 0."""
MOST_POINTS = 240
"""Points of a line, about one for each unit of its width."""
Points = Sequence[tuple[float, float]]


def learning_curve(runs: Sequence[Run]) -> dict[str, Any] | None:
    """Draw the dev scores of a row's runs over steps, a line for each seed, or their losses if no
    run has two dev scores.

    None if no ``curve.jsonl`` has two losses, too.
    """
    for key, form in (("dev_score", "{:.2f}"), ("loss", "{:.3g}")):
        lines, best = [], []
        name = key
        for run in runs:
            points = curve_series(read_curve(run.folder), key)
            if len(points) < 2:
                continue
            lines.append(points)
            done = run.record.training
            if key == "dev_score" and done is not None:
                name = done.dev_task or "dev"
                if done.best_step is not None and done.dev_score is not None:
                    best.append((done.best_step, done.dev_score))
        if lines:
            return draw_curves(name, lines, form, best)
    return None


def draw_curves(title: str, lines: Sequence[Points], form: str, best: Points) -> dict[str, Any]:
    """Draw lines through (step, value), thinned; ``best``: the checkpoints that were kept, if they
    are known."""
    every = [*chain.from_iterable(lines), *best]
    steps, values = zip(*every, strict=True)
    low, high = min(values), max(values)
    first, last = min(line[0][0] for line in lines), max(steps)

    def at(step: float, value: float) -> tuple[float, float]:
        width, height = CURVE_SIZE
        x = (step - first) / ((last - first) or 1) * width
        y = (high - value) / ((high - low) or 1) * height
        return round(x, 1), round(y, 1)

    drawn = []
    for points in lines:
        thinned = [*points[: -1 : len(points) // MOST_POINTS + 1], points[-1]]
        drawn.append(" ".join("{},{}".format(*at(*point)) for point in thinned))
    return {
        "title": title,
        "lines": drawn,
        "low": form.format(low),
        "high": form.format(high),
        "first": f"step {first:,.0f}",
        "last": f"{last:,.0f}",
        "best": [at(*point) for point in best],
    }
