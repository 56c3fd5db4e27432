"""Time ``bench publish`` of 1,000 runs, and how large the main page is and how fast it sorts.

    python benchmarks/publish.py [--runs FOLDER] [--methods 25] [--seeds 5] [--items 150]
                                 [--suites sts,transfer]

The runs are made first (a minute or two): methods x 4 backbones x 2 settings x seeds, with
predictions and curves. With ``--runs`` they are kept in FOLDER, and a second start finds them.
``--items``: predictions per task; the real sets have 1,200 to 11,000. Published twice, as for a
first and a second time: resamples are kept in the cache in between. Sorting is timed in Chromium,
from the click to the laid-out page, for every column of every table. Targets: 20 s, 1.5 MB, 100 ms.
Exit code 1 if one is missed.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from machine import describe_machine  # noqa: E402
from made_predictions import draw  # noqa: E402
from made_runs import made_run  # noqa: E402
from many_records import measured  # noqa: E402

SECONDS = 20.0
BYTES = 1.5e6
MILLISECONDS = 100.0
BACKBONES = ("builtin", "bert-base-uncased", "bert-large-uncased", "roberta-base")
SETTINGS = ("unsupervised", "supervised")

SORTS = """() => {
  const taken = [];
  for (const button of document.querySelectorAll('th button')) {
    for (const direction of button.offsetParent ? ['one way', 'the other way'] : []) {
      const head = button.closest('th'), before = head.getAttribute('aria-sort');
      const began = performance.now();
      button.click();
      void document.body.getBoundingClientRect().height;
      taken.push(performance.now() - began);
      if (head.getAttribute('aria-sort') === before)
        throw new Error('not sorted: ' + head.textContent);
    }
  }
  return taken;
}"""


def fill(folder: Path, methods: int, seeds: int, items: int, suites: list[str]) -> int:
    """Make the runs that are not there yet, and return the number of all."""
    names = [f"method-{i:02d}" for i in range(methods)]
    wanted = list(itertools.product(names, BACKBONES, SETTINGS, range(1, seeds + 1)))
    there = len(list(folder.glob("*/run.json"))) if folder.is_dir() else 0
    if there == len(wanted):
        return there
    for method, backbone, setting, seed in wanted:
        noise = 0.3 + 0.5 * float(draw(method, backbone, setting).uniform())
        made_run(
            folder,
            method,
            seed,
            noise=noise,
            backbone=backbone,
            setting=setting,
            suites=suites,
            n=items,
        )
    return len(wanted)


def published(runs: Path, out: Path) -> float:
    """Seconds of one process."""
    taken, computed, memory = measured(["publish", "--runs", str(runs), "--out", str(out)], runs)
    print(f"bench publish: {taken:.1f} s (processor {computed:.1f} s), {memory:.0f} MB", flush=True)
    return taken


def sorting(page: Path) -> list[float] | None:
    """Return the milliseconds of each sort, or None if there is no Chromium."""
    import browser
    from playwright.sync_api import sync_playwright

    if browser.CHROMIUM is None:
        return None
    with (
        sync_playwright() as playwright,
        browser.launched(playwright) as chromium,
        browser.visit(chromium, browser.address(page)) as seen,
    ):
        taken: list[float] = seen.page.evaluate(SORTS)
        return taken


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--methods", type=int, default=25)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--items", type=int, default=150)
    parser.add_argument("--suites", default="sts,transfer")
    options = parser.parse_args()
    print(describe_machine())
    missed = []
    with tempfile.TemporaryDirectory() as temporary:
        runs = options.runs or Path(temporary) / "runs"
        count = fill(runs, options.methods, options.seeds, options.items, options.suites.split(","))
        print(f"{count:,} runs of {options.suites}, {options.items} items a task", flush=True)
        outs = [Path(temporary) / name for name in ("first", "second")]
        taken = [published(runs, out) for out in outs]
        version = outs[0] / "v1"
        page = (version / "index.html").stat().st_size
        everything = sum(path.stat().st_size for path in version.rglob("*") if path.is_file())
        print(
            f"the main page: {page / 1e6:.2f} MB; all of v1: {everything / 1e6:.0f} MB", flush=True
        )
        sorts = sorting(version / "index.html")
    if sorts:
        middle, worst = statistics.median(sorts), max(sorts)
        print(f"{len(sorts)} sorts: median {middle:.0f} ms, worst {worst:.0f} ms")
    if taken[0] > SECONDS:
        missed.append("seconds")
    if page > BYTES:
        missed.append("bytes")
    if sorts is not None and (not sorts or max(sorts) > MILLISECONDS):
        missed.append("milliseconds")
    print(
        f"targets: {SECONDS:.0f} s, {BYTES / 1e6:.1f} MB, {MILLISECONDS:.0f} ms; missed: "
        f"{', '.join(missed) or 'none'}"
    )
    raise SystemExit(1 if missed else 0)


if __name__ == "__main__":
    main()
