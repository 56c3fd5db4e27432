"""What became of a paper's table or figure that was run again: cell by cell on the terminal, and as a page of orders and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import BenchError
from bench.cli.columns import print_columns, say
from bench.cli.options import json_text
from bench.references import RUNS, SCORES, Part, figure_runs, printed_points

if TYPE_CHECKING:
    from bench.data.sets import DataFolder
    from bench.references import PrintedPoint, ReferenceResult, Row
    from bench.run.reproduce.execute import Job, ReproduceOptions
    from bench.run.reproduce.verdicts import Order, Reproduced
    from bench.run.reproduce.wanted import WantedRun
    from bench.runs import RunsFolder
    from bench.show.pages.reproduced import PageFigure, PageOrder


def show_results(
    name: str,
    listed: Sequence[Job],
    store: RunsFolder,
    asked: ReproduceOptions,
    as_json: bool,
    margin: float,
) -> None:
    """Every printed cell beside ours: printed value, mean and interval, difference, verdict; then the count of each verdict."""
    from bench.run.reproduce.execute import records
    from bench.run.reproduce.verdicts import judge_cells

    jobs = [job for job in listed if job.run.method]
    results = list(
        zip(
            jobs,
            judge_cells([(job.run, records(job, store)) for job in jobs], asked.text, margin),
            strict=True,
        )
    )
    if as_json:
        for job, cells in results:
            for cell in cells:
                click.echo(
                    json_text(
                        {
                            **asdict(cell),
                            "run": job.run.name,
                            "left_out": job.error.message if job.error else None,
                        }
                    )
                )
        return
    for job, cells in results:
        rows: dict[tuple[str, bool], list[Reproduced]] = {}
        for cell in cells:
            rows.setdefault((cell.printed.label, cell.printed.own_result), []).append(cell)
        for row in rows.values():
            _show_row(job, row)
    show_left_out(listed)
    _show_counts(name, [cell for _, cells in results for cell in cells], margin)
    click.echo(f"records: {store.path}")


def _show_row(job: Job, cells: Sequence[Reproduced]) -> None:
    first = cells[0]
    click.echo()
    printed = [f"{first.printed.paper} table {first.printed.table}", first.printed.runs]
    printed.append("" if first.printed.own_result else f"copied from {first.printed.source}")
    seeds = (
        f"{len(first.seeds)} seed{'s' * (len(first.seeds) != 1)}"
        if first.runs
        else "no finished run"
    )
    say(
        f"{first.printed.label} ({', '.join(filter(None, printed))}): {job.run.name}; {seeds}",
        hang=2,
    )
    if job.error is not None:
        say(f"left out: {job.error.message}", indent=2, hang=2)
    rows = []
    for cell in cells:
        places = cell.decimals
        ours = f"{cell.mean:.{places}f}" if cell.mean is not None else "-"
        interval = (
            f"{cell.low:.{places}f} to {cell.high:.{places}f}"
            if cell.low is not None and cell.high is not None
            else "-"
        )
        difference = f"{cell.difference:+.{places}f}" if cell.difference is not None else "-"
        more = f", {cell.seeds_needed} seeds would tell" if cell.seeds_needed else ""
        rows.append(
            (cell.printed.task, _printed(cell), ours, interval, difference, cell.verdict + more)
        )
    print_columns(
        rows,
        headings=("task", "printed", "ours", "new seeds, 95 %", "difference", "verdict"),
        indent=2,
    )
    if freedom := [cell.freedom for cell in cells if cell.freedom is not None]:
        least, most = min(freedom), max(freedom)
        words = f"{least:.0f}" if round(least) == round(most) else f"{least:.0f} to {most:.0f}"
        say(
            f"variance over seeds from the methods of this table, {words} degrees of freedom; verdicts hold for the whole row (Holm)",
            indent=2,
            hang=2,
        )
    for note in dict.fromkeys(
        [*_conditions(job), *(note for cell in cells for note in cell.notes)]
    ):
        say(f"note: {note}", indent=2, hang=6)


def _conditions(job: Job) -> list[str]:
    """Why a run is not comparable with the print, or less so."""
    told = [f"{job.run.backbone} stands in for {job.run.instead_of}"] if job.run.instead_of else []
    if job.run.asked:
        told.append(f"not the recipe: {', '.join(f'{k}={v}' for k, v in job.run.asked.items())}")
    if job.run.checkpoint is not None and job.run.checkpoint.note:
        told.append(job.run.checkpoint.note)
    ours = {run.precision for run in job.planned}
    if job.in_fp16 and ours - {"fp16"}:
        told.append(f"trained in {', '.join(sorted(ours))}; the authors in fp16 autocast")
    return told


def _printed(cell: Reproduced) -> str:
    from bench.references.audit import show

    spread = (
        f" ±{show(cell.printed.std, cell.printed.metric)}" if cell.printed.std is not None else ""
    )
    return cell.printed.printed + spread


def _show_counts(name: str, cells: Sequence[Reproduced], margin: float) -> None:
    from bench.run.reproduce.verdicts import VERDICTS

    counts = Counter(cell.verdict for cell in cells)
    click.echo()
    click.echo(f"{name}: {len(cells)} printed cells, margin ±{margin:g} points")
    for verdict, words in VERDICTS.items():
        if counts[verdict]:
            say(f"{counts[verdict]:>4} {verdict}: {words}", hang=5)


def show_left_out(listed: Sequence[Job]) -> None:
    if reasons := _reasons(listed):
        click.echo("\nrows that cannot be run")
        for why, labels in reasons.items():
            say(f"{', '.join(dict.fromkeys(labels))}: {why}", indent=3, hang=3)


# --- the page ---


def write_reproduction(
    file: Path,
    name: str,
    runs_of: Mapping[Part, Sequence[WantedRun]],
    listed: Sequence[Job],
    store: RunsFolder,
    asked: ReproduceOptions,
    data: DataFolder,
    suites: Sequence[str],
) -> None:
    """The page of these parts: for each table the paper's order against ours, for each figure ours. ``suites``: what was scored in
    the place of the tables' own."""
    from bench.base.files import write_or_fail
    from bench.references import results, rows
    from bench.run.reproduce.verdicts import orders
    from bench.show.pages import reproduced as page

    jobs = {job.run.identity: job for job in listed}
    values = _Values(
        jobs,
        {row: run for runs in runs_of.values() for run in runs for row in run.rows},
        store,
        asked,
        tuple(suites),
    )
    tables = {(part.paper, part.short) for part in runs_of if part.how == SCORES}
    printed = [
        row
        for row in rows(results())
        if (row.first.paper, row.first.table) in tables and row in values.runs
    ]
    compared = [order for order in orders(printed, values, LOWER) if order.compared]
    figures = [
        _page_figure(part, [jobs[run.identity] for run in runs], store)
        for part, runs in runs_of.items()
        if part.how == RUNS
    ]
    stand_in = _not_the_papers(listed, suites)
    made = page.Reproduction(
        title="The papers, run again" if name == "all" else f"{name}, run again",
        answer=_answer(compared),
        statement=page.NO_EVIDENCE.format(why=stand_in) if stand_in else "",
        made_of=_made_of(listed, store),
        summary=tuple(_summary(order) for order in compared),
        orders=tuple(_page_order(order) for order in compared),
        figures=tuple(figures),
        left_out=tuple(
            (", ".join(dict.fromkeys(labels)), why)
            for why, labels in _reasons(listed, errors=True).items()
        ),
    )
    write_or_fail(file, page.render(made).encode(), hint="--html FILE")


LOWER = ("alignment", "uniformity")  # metrics of which less is better


@dataclass(frozen=True)
class _Values:
    """Our value of a printed cell, and what it is: of the suites that were asked for instead, the first one's head."""

    jobs: Mapping[tuple[object, ...], Job]
    runs: Mapping[Row, WantedRun]
    store: RunsFolder
    asked: ReproduceOptions
    suites: tuple[str, ...]

    def __call__(self, cell: ReferenceResult, row: Row) -> tuple[float | None, str]:
        from statistics import mean

        from bench.references.audit import DECIMALS
        from bench.run.reproduce.execute import records
        from bench.run.reproduce.verdicts import score_of

        run = self.runs[row]
        job = self.jobs[run.identity]
        if not run.method or job.error is not None:
            return None, run.why_not or (job.error.message if job.error else "")
        if self.suites and cell.metric in LOWER:
            return (
                None,
                f"{run.name}: of {cell.metric} less is better, of what was scored instead more",
            )
        scores = [
            self._instead(record) if self.suites else score_of(record, cell, self.asked.text)
            for record, _ in records(job, self.store)
        ]
        values = [score.value for score in scores if score is not None]
        if not values:
            return None, f"{run.name}: not scored"
        # to the digits that are printed: what looks equal on the page is equal; and no "-0.000"
        return round(mean(values), DECIMALS.get(cell.metric, 2)) + 0.0, run.name

    def _instead(self, record: Any) -> Any:
        scores = [score for score in record.scores if score.suite == self.suites[0]]
        return next(
            (score for score in scores if score.task == "Avg."),
            scores[0] if len(scores) == 1 else None,
        )


def _not_the_papers(listed: Sequence[Job], suites: Sequence[str]) -> str:
    """Why these runs are not the papers'; "" where they are meant to be."""
    runs = [job.run for job in listed if job.run.method]
    backbones = list(dict.fromkeys(run.backbone for run in runs if run.instead_of))
    asked = list(
        dict.fromkeys(f"{key} {value}" for run in runs for key, value in run.asked.items())
    )
    told = [f"the backbone is {', '.join(backbones)}"] if backbones else []
    told += [f"recipes were changed ({', '.join(asked)})"] if asked else []
    told += (
        [f"the suite {', '.join(suites)} was scored in the place of the tables' own"]
        if suites
        else []
    )
    text = "; ".join(told)
    return text[:1].upper() + text[1:]


def _answer(orders: Sequence[Order]) -> str:
    kept, able = (sum(order.pairs[i] for order in orders) for i in (0, 1))
    if not able:
        return "No table has two rows here that could be compared."
    tables = len({(order.paper, order.table) for order in orders})
    whole = [order for order in orders if order.pairs[1] and order.pairs[0] == order.pairs[1]]
    of = f"{len(orders)} order{'s' * (len(orders) != 1)} of {tables} table{'s' * (tables != 1)}"
    return f"Of {able:,} pairs of rows {kept:,} ({100 * kept / able:.0f} %) stand here as in the papers; {len(whole)} of {of} are kept whole."


def _made_of(listed: Sequence[Job], store: RunsFolder) -> str:
    from bench.board.repeat import seed_words
    from bench.run.reproduce.execute import records

    able = [job for job in listed if job.run.method]
    done = [job for job in able if records(job, store)]
    seeds = sorted({seed for job in able for seed in job.seeds if seed is not None})
    return f"{len(done)} of {len(able)} different runs are finished, seeds {seed_words(seeds)}. Records: {store.path}"


def _summary(order: Order) -> tuple[str, str, str, str]:
    rho, (kept, able) = order.correlation, order.pairs
    compared = f"{len(order.compared)} of {len(order.places)}"
    return _title(order), compared, "" if rho is None else f"{rho:.2f}", f"{kept} of {able}"


def _title(order: Order) -> str:
    return f"{order.paper} table {order.table}, {order.setting}, {order.backbone}: {order.task}"


def _page_order(order: Order) -> PageOrder:
    from bench.references.audit import show
    from bench.show.figures.points import slug
    from bench.show.pages.reproduced import PageOrder, PageRow, places

    lowest, both = order.metric in LOWER, [place.ours is not None for place in order.places]
    there = places(
        [place.printed if here else None for place, here in zip(order.places, both, strict=True)],
        lowest_first=lowest,
    )
    here = places([place.ours for place in order.places], lowest_first=lowest)
    rows = tuple(
        PageRow(
            label=place.label,
            printed=show(place.printed, order.metric),
            ours="" if place.ours is None else show(place.ours, order.metric),
            places=(a, b),
            run=place.run,
        )
        for place, a, b in zip(order.places, there, here, strict=True)
    )
    rho, (kept, able) = order.correlation, order.pairs
    finding = (
        f"{kept} of {able} pairs of rows stand as in the paper"
        if able
        else "no two rows can be told apart on both sides"
    )
    if rho is None:
        finding += "; too few rows for a rank correlation."
    else:
        finding += f"; rank correlation {rho:.2f}.".replace("-", "\N{MINUS SIGN}")
    return PageOrder(
        title=_title(order),
        anchor=slug(
            order.paper, order.table, order.setting, order.backbone, order.task, order.metric
        ),
        finding=finding[:1].upper() + finding[1:],
        rows=rows,
    )


def _page_figure(part: Part, jobs: Sequence[Job], store: RunsFolder) -> PageFigure:
    from bench.board.board import PublishedRun
    from bench.board.content import board
    from bench.run.reproduce.execute import records
    from bench.show.figures import figures
    from bench.show.pages.cosines import cosines
    from bench.show.pages.reproduced import PageFigure

    spec = next(drawn for drawn in figure_runs() if drawn.part == part)
    runs_of = [records(job, store) for job in jobs]
    runs = [run for of_job in runs_of for run in of_job]
    ridges, drawn, why = [], [], ""
    first = [
        (job.run.name, *of_job[0]) for job, of_job in zip(jobs, runs_of, strict=True) if of_job
    ]
    if spec.draws == "cosines":
        ridges = [
            (name, shown)
            for name, record, folder in first
            if (shown := cosines(record, folder)) is not None
        ]
    elif runs:
        try:
            published = [PublishedRun(record=record, folder=folder) for record, folder in runs]
            made = board(published, version="reproduced", title=part.name, statistics="no")
            drawn = [figure for figure in figures(made) if figure.kind == spec.draws]
        except BenchError as error:
            why = f" ({error.message})"
    points = printed_points(part)
    words = [
        f"It shows {part.shows}; {spec.open}." if spec.open else f"It shows {part.shows}.",
        points_words(points),
    ]
    if not drawn and not ridges:
        words.append(
            f"Not drawn: {len(runs)} of its runs are finished, and they have not what it needs{why}."
        )
    return PageFigure(
        title=f"{part.paper} {part.part}",
        anchor=f"{part.paper}-{part.short}",
        drawn=tuple(drawn),
        ridges=tuple(ridges),
        words=tuple(words),
    )


def write_formula(part: Part, file: Path) -> None:
    """The page of a figure that is drawn from its formula."""
    from bench.base.files import write_or_fail
    from bench.show.figures.papers import rescaling
    from bench.show.pages import reproduced as page

    drawn = page.PageFigure(
        title=f"{part.paper} {part.part}", anchor=f"{part.paper}-{part.short}", drawn=(rescaling(),)
    )
    made = page.Reproduction(
        title=f"{part.name}, drawn again",
        answer=f"It shows {part.shows}.",
        statement="",
        made_of="Drawn from a formula: no run is needed.",
        summary=(),
        orders=(),
        figures=(drawn,),
        left_out=(),
    )
    write_or_fail(file, page.render(made).encode(), hint="--html FILE")


def points_words(points: Sequence[PrintedPoint]) -> str:
    """The points of a paper's picture, those of one line and one source together."""
    if not points:
        return "None of the picture's points could be read in the sources at hand: what is drawn is ours alone."
    lines: dict[tuple[str, str, str], list[str]] = {}
    for point in points:
        lines.setdefault((point.panel, point.key, point.read), []).append(
            f"{point.x:g}: {point.y:g}"
        )
    told = [
        f"{panel} at {key} {', '.join(values)} ({read})"
        for (panel, key, read), values in lines.items()
    ]
    return f"Printed points that a source gives: {'; '.join(told)}."


def _reasons(listed: Sequence[Job], *, errors: bool = False) -> dict[str, list[str]]:
    """Why rows were not run -> their labels; with ``errors`` those too that could be run and were left out."""
    reasons: dict[str, list[str]] = {}
    for job in listed:
        if why := job.run.why_not or (job.error.message if errors and job.error else ""):
            reasons.setdefault(why, []).extend(job.run.labels or (job.run.name,))
    return reasons
