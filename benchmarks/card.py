"""A few minutes on a rented card: measure it, pack what travels, collect what came back.

    python benchmarks/card.py measure --out DIR            # five tables; again: what is missing
    python benchmarks/card.py measure --out DIR --device cpu --tiny      # a rehearsal
    python benchmarks/card.py pack DIR --plan plan.toml --corpus wiki.txt --data DATA
    python benchmarks/card.py runs plan.toml --processes 8 --seconds 400 --out OUT     # there
    python benchmarks/card.py collect FOLDER RUNS

``measure`` needs this checkout, torch, transformers and what they need, and for the table of speed
sentence-transformers with datasets and accelerate. No data, no network. What each line means is in
benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# this very checkout, even if another one is installed
sys.path[:0] = [str(HERE.parent), str(HERE)]

from bench.base.errors import BenchError  # noqa: E402


def main(words: list[str] | None = None) -> int:
    """Run a verb; returns the exit code: 1 if something failed, 2 for a user's mistake."""
    options = parser().parse_args(words)
    try:
        if options.verb == "measure":
            return measure(options)
        if options.verb == "pack":
            return pack(options)
        if options.verb == "runs":
            return runs(options)
        return collect(options)
    except BenchError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"try: {error.hint}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
        return 130


def measure(options: argparse.Namespace) -> int:
    """Measure the card that is here."""
    import card_measure

    only = tuple(filter(None, (options.only or "").split(",")))
    try:
        card_measure.chosen_lines(only)
    except ValueError as error:
        raise BenchError(str(error), "names with commas: right,speed.64") from None
    order = card_measure.Order(options.out, options.device, options.tiny, options.seconds, only)
    if options.child:
        names, deadline = json.loads(options.child)
        return card_measure.measure_here(order, names, deadline)
    return card_measure.measure(order)


def pack(options: argparse.Namespace) -> int:
    """Put together what travels, and print the commands."""
    import card_pack

    order = card_pack.Parcel(
        folder=options.folder,
        limit_bytes=int(options.limit_mb * 2**20),
        command_length=options.command_length,
        wheels=tuple(options.wheel),
        corpus=options.corpus,
        data=options.data,
        plan=options.plan,
        processes=options.processes,
        seconds=options.seconds,
    )
    for line in card_pack.pack(order):
        print(line)
    return 0


def runs(options: argparse.Namespace) -> int:
    """Do the runs of a plan on the card that is here, and pack them."""
    import card_runs

    work = card_runs.Work(
        plan=options.plan,
        out=options.out.absolute(),
        device=options.device,
        processes=options.processes,
        seconds=options.seconds,
    )
    return card_runs.do_runs(work)


def collect(options: argparse.Namespace) -> int:
    """Take what came back into a runs folder."""
    import card_collect

    for line in card_collect.collect(options.folder, options.runs):
        print(line)
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the options of the verbs."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = made.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("measure", help="measure the card that is here")
    one.add_argument("--out", type=Path, default=Path("card-results"), help="[card-results]")
    one.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="[cuda]")
    one.add_argument("--seconds", type=float, default=240.0, help="time to spend  [240]")
    one.add_argument("--only", metavar="NAMES", help="tables or lines, with commas")
    one.add_argument("--tiny", action="store_true", help="small shapes: a rehearsal")
    one.add_argument("--child", help=argparse.SUPPRESS)
    two = verbs.add_parser("pack", help="put together what travels to a card")
    two.add_argument("folder", metavar="DIR", type=Path, help="a new or empty folder")
    two.add_argument("--limit-mb", type=float, default=64.0, help="of all files together  [64]")
    two.add_argument("--command-length", type=int, default=2000, help="characters  [2000]")
    two.add_argument("--wheel", type=Path, action="append", default=[], help="repeatable")
    two.add_argument("--corpus", type=Path, help="text for the plan's trainings")
    two.add_argument("--data", type=Path, help="folder with the plan's evaluation sets")
    two.add_argument("--plan", type=Path, help="plan.toml of bench run --dry-run --to")
    two.add_argument("--processes", type=int, default=8, help="runs at once on the card  [8]")
    two.add_argument("--seconds", type=int, default=400, help="until the runs are ended  [400]")
    four = verbs.add_parser("runs", help="do a plan's runs on the card that is here")
    four.add_argument("plan", metavar="PLAN.toml", type=Path)
    four.add_argument("--out", type=Path, default=Path("card-results"), help="[card-results]")
    four.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="[cuda]")
    four.add_argument("--processes", type=int, default=8, help="runs at once  [8]")
    four.add_argument("--seconds", type=float, default=400, help="until the runs end  [400]")
    three = verbs.add_parser("collect", help="take what came back into a runs folder")
    three.add_argument("folder", metavar="FOLDER", type=Path)
    three.add_argument("runs", metavar="RUNS", type=Path)
    return made


if __name__ == "__main__":
    sys.exit(main())
