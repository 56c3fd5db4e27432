"""``bench references [PAPER[:TABLE]]``: what the papers printed, and what their tables say about themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import BenchError, UnknownName
from bench.base.text import plural
from bench.cli.columns import print_columns, print_grid, say
from bench.cli.options import comma_list, json_option, json_text, runs_option
from bench.show.grid import Cell, Column, Grid, grid

if TYPE_CHECKING:
    from bench.references import ReferenceResult, Row
    from bench.references.audit import Remark
    from bench.references.checkpoints import Checkpoint


# --- ``bench references import``: published mteb result files as reference rows ---

FILE = "references.jsonl"  # in the runs folder


class WithImport(click.Command):
    """The command ``bench references [NAME]``, which also takes ``bench references import FILE ...`` and ``bench references
    checkpoints``: @click.command(cls=WithImport)."""

    commands = ("import", "checkpoints")

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        if args[:1] == ["import"]:
            return import_.make_context(f"{info_name} import", args[1:], parent, **extra)
        if args[:1] == ["checkpoints"]:
            return checkpoints_.make_context(f"{info_name} checkpoints", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command("import")
@click.argument(
    "places", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
@click.option(
    "--model", help="Whose results they are, where neither model_meta.json nor the folders say so."
)
@click.option(
    "--to",
    "out",
    type=click.Path(path_type=Path),
    envvar="BENCH_REFERENCES",
    show_envvar=True,
    help=f"File that keeps the rows.  [default: {FILE} in the runs folder]",
)
@runs_option
def import_(
    places: tuple[Path, ...], model: str | None, out: Path | None, runs: Path | None
) -> None:
    """Keep published mteb results as reference rows: numbers of others, shown beside runs and never counted among them.

    FILE is a result file that mteb wrote, or a folder of them (MODEL/REVISION/TASK.json, as in mteb's results repository).
    A number that is there already is replaced; all files are read before anything is written.

    \b
    Example:  bench references import results/sentence-transformers__all-MiniLM-L6-v2
    """
    from bench.base.files import write_or_fail
    from bench.references import imported
    from bench.runs import RunsFolder
    from bench.score.suites.mteb import quiet

    file = out or RunsFolder(runs).path / FILE
    before = imported.read_imported(file)
    files = imported.result_files(places)
    with quiet(offline=True):
        read = [imported.read_mteb_file(path, model) for path in files]
    rows = []
    for result in read:
        if isinstance(result, imported.LeftOut):
            click.echo(f"left out: {result.file}: {result.why}", err=True)
        else:
            rows.append(result)
    if not rows:
        raise BenchError(f"none of {len(files)} files gives a number", "see the lines above")
    kept = imported.merge(before, rows)
    write_or_fail(file, imported.as_lines(kept), "--to FILE, or BENCH_REFERENCES")
    new = len(kept) - len(before)
    models = len({row.backbone for row in rows})
    click.echo(
        f"{plural(len(rows), 'result')} of {plural(models, 'model')}, {new} of them new; {len(kept)} in {file}"
    )


# --- ``bench references checkpoints``: what authors released ---


@click.command("checkpoints")
@json_option
def checkpoints_(as_json: bool) -> None:
    """Models that authors released: the printed row that each is, and the command that scores it without any training.

    Scored by the method and recipe values shown; bench reproduce PAPER:TABLE --released does so for a whole table.

    \b
    Example:  bench references checkpoints
              bench evaluate princeton-nlp/unsup-simcse-bert-base-uncased --allow-pickle
    """
    from bench.references.checkpoints import checkpoints

    if as_json:
        for checkpoint in checkpoints():
            click.echo(json_text({**asdict(checkpoint), "printed": checkpoint.printed}))
        return
    lines = [
        (
            checkpoint.hub,
            f"{checkpoint.paper}:{checkpoint.table}",
            checkpoint.printed,
            how_scored(checkpoint),
        )
        for checkpoint in checkpoints()
    ]
    print_columns(lines, headings=("hub", "table", "Avg.", "scored by"))
    click.echo()
    for note, hubs in _by_note(checkpoints()).items():
        say(f"note: {note} ({', '.join(hubs)})", hang=6)
    for checkpoint in checkpoints():
        if checkpoint.scored_in:
            say(
                f"{', '.join(checkpoint.scored_in)}: the paper scored a released checkpoint of {checkpoint.method}; here {checkpoint.hub}",
                hang=2,
            )


def how_scored(checkpoint: Checkpoint) -> str:
    """ "stored-prefix pooling=mlp, a prefix of 10"."""
    values = " ".join(f"{key}={value}" for key, value in checkpoint.set.items())
    return f"{checkpoint.ours} {values}" + (
        f", a prefix of {checkpoint.prefix}" if checkpoint.prefix else ""
    )


def _by_note(listed: Sequence[Checkpoint]) -> dict[str, list[str]]:
    notes: dict[str, list[str]] = {}
    for checkpoint in listed:
        notes.setdefault(checkpoint.note, []).append(checkpoint.hub)
    notes.pop("", None)
    return notes


@click.command(cls=WithImport)
@click.argument("name", metavar="[PAPER[:TABLE]]", required=False)
@click.option(
    "--method", help="Only rows of these methods (a,b), as the tables or as bench call them."
)
@click.option("--backbone", help="Only rows of these backbones.")
@click.option("--setting", help="Only rows of these settings: unsupervised, supervised, other.")
@click.option("--task", help="Only these tasks.")
@click.option("--own", is_flag=True, help="Only what a paper ran itself: no copied rows.")
@click.option(
    "--audit",
    is_flag=True,
    help="What does not fit: averages, quotations, best-of-n, protocols; computed from the cells.",
)
@click.option(
    "--kind", help="With --audit: only these kinds of remarks (the words before each list)."
)
@json_option
def references(
    name: str | None,
    method: str | None,
    backbone: str | None,
    setting: str | None,
    task: str | None,
    own: bool,
    audit: bool,
    kind: str | None,
    as_json: bool,
) -> None:
    """What papers printed, as data; never mixed up with runs.

    Without a name: the papers and their tables. With one: the table as it is printed, with remarks.

    \b
    Example:  bench references promcse:1
              bench references promcse:1 --setting supervised --backbone roberta-base
              bench references --audit
    """
    from bench.references import split_name
    from bench.references.audit import remarks

    paper, table = split_name(name) if name else (None, None)
    given = {"method": method, "backbone": backbone, "setting": setting, "task": task}
    wanted = {key: comma_list(text) for key, text in given.items()}
    numbers = choose_printed(paper, table, wanted, own)
    if audit:
        _audit(numbers, comma_list(kind), as_json)
    elif as_json:
        for number in numbers:
            told = [{"kind": remark.kind, "text": remark.text} for remark in remarks(number)]
            click.echo(json_text({**asdict(number), "remarks": told}))
    elif name is None and not own and not any(wanted.values()):
        show_overview()
    else:
        show_tables(numbers)


def choose_printed(
    paper: str | None, table: str | None, wanted: dict[str, tuple[str, ...]], own: bool
) -> list[ReferenceResult]:
    """The printed numbers that fit; UnknownName, with the nearest, for a name that no number has."""
    from bench.references import results
    from bench.references.ours import meaning

    def names(r: ReferenceResult, key: str) -> set[str]:
        means = meaning(r.method, r.variant, r.setting, r.backbone)
        return {str(getattr(r, key))} | ({means.method, means.name} if key == "method" else set())

    numbers = [r for r in results(paper=paper) if table in (None, r.table)]
    for key, values in wanted.items():
        have = {name for r in numbers for name in names(r, key) if name}
        for value in values:
            if value not in have:
                raise UnknownName(
                    key, value, have, "among these printed numbers", "bench references"
                )
        numbers = [r for r in numbers if not values or names(r, key) & set(values)]
    numbers = [r for r in numbers if r.own_result or not own]
    if not numbers:
        raise BenchError(
            "no printed number fits all of that", "bench references, with fewer conditions"
        )
    return numbers


def _audit(numbers: Sequence[ReferenceResult], kinds: Sequence[str], as_json: bool) -> None:
    from bench.references.audit import KINDS, remarks

    for kind in kinds:
        if kind not in KINDS:
            raise UnknownName("kind", kind, KINDS, "of remark")
    told = list(
        dict.fromkeys(
            remark for r in numbers for remark in remarks(r) if not kinds or remark.kind in kinds
        )
    )
    if as_json:
        for remark in told:
            click.echo(json_text(asdict(remark)))
    else:
        show_audit(told, numbers)


# --- lays out what papers printed for a terminal of any width: the papers, a table with its footnotes, the audit ---


MARKED = ("average", "impossible", "same", "claim", "quoted", "best", "protocol")
"""Kinds of remarks that get a footnote in a table, the gravest first; copies and what is printed differently elsewhere are a line each below it."""


def show_overview() -> None:
    """The papers, and a line for each of their tables."""
    from bench.references import PAPERS, results, rows, tables
    from bench.references.audit import audit, count_told

    for paper, title in PAPERS.items():
        say(f"{paper}: {title}", hang=2)
        lines = []
        for table in (t for p, t in tables() if p == paper):
            numbers = [r for r in results(paper=paper) if r.table == table]
            printed = rows(numbers, by_metric=False)
            copied = sum(not row.first.own_result for row in printed)
            remarks = count_told(r for r in audit() if (r.paper, r.table) == (paper, table))
            settings = ", ".join(dict.fromkeys(r.setting for r in numbers))
            metrics = ", ".join(dict.fromkeys(r.metric for r in numbers))
            lines.append(
                (
                    f"{paper}:{table}",
                    str(len(printed)),
                    str(copied),
                    str(remarks),
                    f"{metrics}; {settings}",
                )
            )
        counts = [Column(name, right=True) for name in ("rows", "copied", "remarks")]
        print_grid(grid(["table", *counts, Column("what", wrap=24)], lines), indent=2)
        click.echo()
    print_columns(
        [
            ("one of them:", "bench references PAPER:TABLE"),
            ("what does not fit:", "bench references --audit"),
        ]
    )


def show_tables(numbers: Sequence[ReferenceResult]) -> None:
    """Every table that the numbers belong to, with the rows and columns that were chosen."""
    from bench.references import PAPERS, rows

    for i, (paper, table) in enumerate(dict.fromkeys((r.paper, r.table) for r in numbers)):
        if i:
            click.echo()
        say(f"table {table} of {PAPERS[paper]}", hang=2)
        _show_table(
            rows([r for r in numbers if (r.paper, r.table) == (paper, table)], by_metric=False)
        )


def _show_table(lines: Sequence[Row]) -> None:
    marked = [remark for row in lines for cell in row.cells for remark in _of(cell)]
    marked.sort(key=lambda remark: MARKED.index(remark.kind))
    numbers = {text: i for i, text in enumerate(dict.fromkeys(r.text for r in marked), 1)}
    for title, part in _parts(lines):
        click.echo()
        print_grid(_grid(title, part, numbers))
    click.echo()
    for text, number in numbers.items():
        say(f"[{number}] {text}", hang=4)
    if any(cell.std is not None for row in lines for cell in row.cells):
        say("±: over the draws of CxC-STS, over seeds elsewhere")
    _footnotes(lines)
    _elsewhere(lines)
    _copies(lines)
    _released(lines)


def _parts(lines: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """The table in the parts that papers rule off: by setting, and by backbone where labels do not tell them apart."""
    parts: dict[str, list[Row]] = {}
    for row in lines:
        labels = [other.first.label for other in lines if other.first.setting == row.first.setting]
        backbone = f", {row.first.backbone}" if len(set(labels)) < len(labels) else ""
        parts.setdefault(row.first.setting + backbone, []).append(row)
    return list(parts.items())


def _grid(title: str, part: Sequence[Row], numbers: Mapping[str, int]) -> Grid:
    """A part of the table as it is printed; raised numbers lead to the remarks below."""
    from bench.references.audit import show

    def marks(remarks: Iterable[Remark]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(numbers[remark.text] for remark in remarks))

    tasks = list(dict.fromkeys(cell.task for row in part for cell in row.cells))
    columns = [Column(t, right=True, drop=int(t != "Avg."), lead=t == "Avg.") for t in tasks]
    rows = []
    for row in part:
        cells = {cell.task: cell for cell in row.cells}
        whole = [remark for cell in row.cells for remark in _of(cell) if not remark.task]
        drawn = [Cell(text=row.first.label, marks=marks(whole))]
        for task in tasks:
            if (cell := cells.get(task)) is None:
                drawn.append(Cell())
                continue
            half = "" if cell.std is None else f" ± {show(cell.std, cell.metric)}"
            own = marks(remark for remark in _of(cell) if remark.task)
            drawn.append(Cell(text=cell.printed + half, marks=own))
        rows.append(drawn)
    return grid([Column("row", wrap=24), *columns], rows, title=title, whole="--json")


def _of(cell: ReferenceResult) -> list[Remark]:
    from bench.references.audit import remarks

    return [remark for remark in remarks(cell) if remark.kind in MARKED]


def _footnotes(lines: Sequence[Row]) -> None:
    """What the package knows of single rows beyond what is computed; a note that all have is said once."""
    told: dict[str, list[str]] = {}
    for row in lines:
        for cell in row.cells:
            parts = [
                part
                for part in cell.note.split("; ")
                if not part.startswith(
                    ("copied", "text: ", "same ", "best Avg.", "abstract and text claim")
                )
            ]
            labels = told.setdefault("; ".join(parts), [])
            if row.first.label not in labels:
                labels.append(row.first.label)
    told.pop("", None)
    for text, labels in told.items():
        everywhere = len(labels) == len({row.first.label for row in lines})
        say(f"note: {text}" + ("" if everywhere else f" ({', '.join(labels)})"), hang=6)


def _elsewhere(lines: Sequence[Row]) -> None:
    from bench.references.audit import remarks

    told = []
    for row in lines:
        differing = [
            cell for cell in row.cells if any(remark.kind == "differs" for remark in remarks(cell))
        ]
        if differing:
            told.append(f"{row.first.label} ({len(differing)} of {len(row.cells)} cells)")
    if told:
        say(
            f"printed differently elsewhere: {', '.join(dict.fromkeys(told))}; see --audit --kind differs",
            hang=2,
        )


def _copies(lines: Sequence[Row]) -> None:
    """Whom rows were copied from, in one line."""
    labels: dict[str, dict[str, None]] = {}
    for row in lines:
        if not row.first.own_result:
            labels.setdefault(row.first.source or "elsewhere", {})[row.first.label] = None
    if labels:
        say(
            "copied from "
            + "; ".join(f"{source}: {', '.join(copied)}" for source, copied in labels.items()),
            hang=2,
        )


def _released(lines: Sequence[Row]) -> None:
    """The checkpoints that authors released of these rows, a line each."""
    from bench.references.checkpoints import released_for, scored_from

    released = {}
    for row in lines:
        for cell in row.cells:
            if (checkpoint := released_for(cell)) is not None:
                released[row.first.label, checkpoint.hub] = (
                    "the paper scored a released checkpoint: "
                    if scored_from(cell)
                    else "released: "
                )
    for (label, hub), how in released.items():
        say(f"{label}: {how}{hub}", hang=2)


def show_audit(told: Sequence[Remark], among: Sequence[ReferenceResult]) -> None:
    """Kind after kind: how many, and a line for each; cells of one row that say the same stand in one line."""
    from bench.references.audit import KINDS

    say(
        f"{len(among):,} printed numbers, {len(told):,} remarks: all computed from the numbers and what is recorded of their rows"
    )
    for kind, title in KINDS.items():
        mine = [remark for remark in told if remark.kind == kind]
        if not mine:
            continue
        click.echo()
        say(f"{kind}: {title} ({len(mine)})", hang=2)
        if kind == "copied":
            _show_copied(mine)
            continue
        for place, task, text in _lines(mine):
            say(f"{place}{', ' if task else ''}{task}: {text}", indent=2, hang=4)
    if not told:
        click.echo("nothing to say of them")


def _lines(mine: Sequence[Remark]) -> list[tuple[str, str, str]]:
    """(where, task, text), one for each row: of several cells the average, or the first, speaks for all and says how many."""
    groups: dict[tuple[str, ...], list[Remark]] = {}
    for remark in mine:
        backbone = remark.backbone.removesuffix("-uncased")
        where = f"{remark.paper}:{remark.table} {remark.setting}, {remark.label}"
        if backbone not in remark.label.lower():
            where += f" ({backbone})"
        key = (
            where,
            remark.kind,
            remark.text
            if remark.kind != "differs"
            else remark.setting + remark.variant + remark.metric,
        )
        groups.setdefault(key, []).append(remark)
    lines = []
    for (where, *_), same in groups.items():
        spoken = next((remark for remark in same if remark.task == "Avg."), same[0])
        others = len({remark.task for remark in same}) - 1
        lines.append((where, spoken.task + (f" and {others} more" if others else ""), spoken.text))
    return lines


def _show_copied(mine: Sequence[Remark]) -> None:
    from bench.references.audit import checked_rows

    checked = checked_rows()
    counts = Counter(remark.text for remark in mine)
    compared = "of them compared with the source's own table"
    lines = [
        (text, f"{plural(n, 'row')}, {checked[text] or 'none'} {compared}")
        for text, n in counts.most_common()
    ]
    print_columns(lines, indent=2)
