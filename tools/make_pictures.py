"""The pictures of README and docs: ``python tools/make_pictures.py`` writes docs/pictures/.

The terminal is the output of ``bench compare`` on the runs of leaderboards/v3 itself, the page that version's own, in Chromium (``dev`` extra). The
pictures of docs/statistics.md are of leaderboards/v2, an example of few seeds, from the JSON of the same verb. Elements of an SVG that stand
for a number have an id, so that a test can measure them.
"""

from __future__ import annotations

import io
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
VERSION = "leaderboards/v3"
COMMAND = ("compare", "--runs", f"{VERSION}/runs")
EXAMPLE = "leaderboards/v2/runs"
COLUMNS = 100
COLOURS = {"better": "#1b7837", "worse": "#a6361c", "equivalent": "#2b5c8a", "unknown": "#666666"}
MARGIN = 0.5  # points; what ``bench compare`` calls equivalent
COMPARISONS = range(1, 29)


def terminal() -> str:
    """SVG of the command and what it prints."""
    environment = os.environ | {
        "COLUMNS": str(COLUMNS),
        "PYTHONPATH": str(ROOT),
        "FORCE_COLOR": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "bench", *COMMAND],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    console = Console(width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ bench {' '.join(COMMAND)}", style="bold"))
    console.print(Text.from_ansi(done.stdout.partition("\nother tables")[0].rstrip()))
    return (
        "\n".join(
            line.rstrip()
            for line in console.export_svg(title="bench compare", unique_id="bench").splitlines()
        )
        + "\n"
    )


def board(to: Path) -> None:
    from PIL import Image
    from playwright.sync_api import sync_playwright

    chromium = next(
        (
            path
            for path in ("/usr/bin/chromium", "/usr/bin/chromium-browser")
            if Path(path).is_file()
        ),
        None,
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
        page.goto((ROOT / VERSION / "index.html").as_uri())
        page.screenshot(path=to)
        browser.close()
    Image.open(to).convert("RGB").quantize(64).save(
        to, optimize=True
    )  # a third of the bytes; nobody sees the difference


def judged(runs: str) -> list[dict[str, Any]]:
    """Rows of the unsupervised STS table of those runs on the built-in backbone, as ``--format json`` has them."""
    words = (
        "compare",
        "--runs",
        runs,
        "--suite",
        "sts",
        "--baseline",
        "simcse",
        "--format",
        "json",
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "bench", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    (table,) = [
        one
        for one in json.loads(done.stdout)["tables"]
        if (one["setting"], one["backbone"]) == ("unsupervised", "builtin")
    ]
    return list(table["rows"])


def seeds() -> dict[str, dict[int, float]]:
    """Method -> seed -> STS average, of the methods that were trained."""
    from bench.runs import RunRecord

    found: dict[str, dict[int, float]] = {}
    records = json.loads(lzma.decompress((ROOT / "tests/data/v1_records.json.xz").read_bytes()))
    for run in map(RunRecord.from_json, records.values()):
        if run.training is not None and run.seed is not None:
            (value,) = [one.value for one in run.scores if (one.suite, one.task) == ("sts", "Avg.")]
            found.setdefault(run.method, {})[run.seed] = value
    return found


def draw_differences(axes: Axes) -> None:
    rows = [
        one
        for one in judged(EXAMPLE)
        if "against" in one["cells"]["Avg."] and one["cells"]["Avg."]["against"]
    ]
    axes.axvspan(-MARGIN, MARGIN, color="#2b5c8a", alpha=0.12, linewidth=0)
    axes.axvline(0, color="#222222", linewidth=0.8)
    for y, row in enumerate(reversed(rows)):
        of = row["cells"]["Avg."]["against"]
        colour = COLOURS[of["verdict"]]
        axes.plot(
            [of["low"], of["high"]],
            [y, y],
            color=colour,
            linewidth=2,
            gid=f"interval {row['method']}",
        )
        axes.plot([of["difference"]], [y], "o", color=colour, markersize=6)
        axes.text(
            1.02, y, of["verdict"], color=colour, va="center", transform=axes.get_yaxis_transform()
        )
    axes.set_yticks(
        range(len(rows)),
        [f"{row['method']} {row.get('variant') or ''}".strip() for row in reversed(rows)],
    )
    axes.set_xlabel("STS average less that of simcse, points (tinted: equivalent)")


def draw_seeds(axes: Axes) -> None:
    found = sorted(seeds().items(), key=lambda one: sum(one[1].values()))
    for y, (method, values) in enumerate(found):
        mean = sum(values.values()) / len(values)
        for seed, value in values.items():
            axes.plot(
                [value - mean],
                [y],
                "o",
                color="#2b5c8a",
                alpha=0.75,
                markersize=7,
                gid=f"seed {method} {seed}",
            )
    axes.axvline(0, color="#222222", linewidth=0.8)
    axes.set_yticks(range(len(found)), [method for method, _ in found])
    axes.set_xlabel("STS average of each seed less the mean of its method, points")


def draw_families(axes: Axes) -> None:
    chance = [100 * (1 - 0.95**k) for k in COMPARISONS]
    axes.plot(
        list(COMPARISONS),
        chance,
        color=COLOURS["worse"],
        label="each judged at 5 %",
        gid="curve single",
    )
    axes.axhline(5, color=COLOURS["better"], label="together at 5 % (Holm): at most")
    for k, what, aside, side in (
        (7, "7: all against the baseline", (8, -12), "left"),
        (28, "28: all pairs of 8 rows", (-8, 8), "right"),
    ):
        axes.plot([k], [chance[k - 1]], "o", color=COLOURS["worse"])
        axes.annotate(what, (k, chance[k - 1]), aside, textcoords="offset points", ha=side)
    axes.set_ylim(0, 100)
    axes.set_xlabel("comparisons in which nothing differs, independent of each other")
    axes.set_ylabel("chance of a false verdict, %")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0, 0.85))


DRAWN = {
    "statistics-differences": (draw_differences, 2.8),
    "statistics-seeds": (draw_seeds, 2.3),
    "statistics-families": (draw_families, 3.2),
}


def draw(name: str, to: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    function, height = DRAWN[name]
    style = {
        "svg.fonttype": "none",
        "svg.hashsalt": "bench",
        "font.family": "sans-serif",
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with matplotlib.rc_context(style):
        figure, axes = plt.subplots(figsize=(7.2, height), layout="constrained")
        function(axes)
        figure.savefig(to, format="svg", metadata={"Date": None})
        plt.close(figure)
    to.write_text(
        "\n".join(line.rstrip() for line in to.read_text(encoding="utf-8").splitlines()) + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in DRAWN:
        draw(name, PICTURES / f"{name}.svg")
    (PICTURES / "terminal.svg").write_text(terminal(), encoding="utf-8")
    board(PICTURES / "board.png")
