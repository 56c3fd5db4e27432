"""``bench data list|fetch|check``: evaluation data and corpora."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from bench.base.errors import BenchError, DataDamaged, UnknownName
from bench.base.findings import DIFFERS, Finding
from bench.base.grid import GridColumn, grid
from bench.base.printing import print_grid
from bench.base.terminal import warn
from bench.base.text import format_bytes, plural
from bench.cli.errors import show_error
from bench.cli.options import (
    data_option,
    json_option,
    json_text,
    print_facts,
    print_findings,
    print_json,
)
from bench.cli.verbs import HelpfulGroup
from bench.data.fetching import offline_now
from bench.data.sets import (
    DataFolder,
    DataSet,
    State,
    all_sources,
    data_sets,
    fetched_folder,
    pending_set,
    sources_of,
)
from bench.data.sets.fetch import Fetcher
from bench.run.needs import announce_fetches


@click.group(cls=HelpfulGroup)
def data() -> None:
    """Evaluation data and training text: what is here, what is missing, and how to get it.

    Example: bench data list --data DIR
    """


@data.command("list", short_help="List data sets and corpora, and which are here.")
@click.argument("name", required=False)
@data_option
@json_option
def list_data(name: str | None, data: Path | None, as_json: bool) -> None:
    """List the data of every suite and corpus, and how much of it is here (judged by file names).

    With a NAME, everything about that set.  Example: bench data list STS12 --data DIR
    """
    folder = DataFolder(data)
    folder.check_root()
    _print_sets(
        [(wanted, folder.look(wanted)) for wanted in _chosen_sets(name)],
        name,
        as_json,
        notes=(
            "all sizes in MB; judged by file names; to read every byte: bench data check",
            "to get what is missing: bench data fetch NAME, or a suite, or all",
            "data folder: --data DIR, or BENCH_DATA",
        ),
    )


@data.command("check", short_help="Compare every byte with the known checksums.")
@click.argument("name", required=False)
@data_option
@json_option
def check_data(name: str | None, data: Path | None, as_json: bool) -> None:
    """Read every byte of what is there and compare it with the known checksums.

    Exit code 2 if something is damaged or NAME is missing.  Example: bench data check --data DIR
    """
    folder = DataFolder(data)
    folder.check_root()
    states = [(wanted, folder.check(wanted)) for wanted in _chosen_sets(name)]
    _print_sets(states, name, as_json)
    for wanted, state in states:
        if state.status == "damaged":
            command = f"bench data check {wanted.name}"
            if data is not None:
                command += f" --data {shlex.quote(str(data))}"
            raise DataDamaged(
                f"damaged: {wanted.name}", f"{command} says which file and how to get it"
            )
        if name is not None and state.status == "missing":
            folder.open(wanted)  # raises an error with the searched files and places


@data.command("fetch", short_help="Get data sets and corpora from their sources.")
@click.argument("names", nargs=-1, required=True, metavar="NAME|SUITE|all ...")
@click.option(
    "--text",
    type=click.Choice(["tokenised", "raw"]),
    default="tokenised",
    show_default=True,
    help="Text form of the sets that have several; the papers scored the tokenised one.",
)
@data_option
@json_option
def fetch_data(names: tuple[str, ...], text: str, data: Path | None, as_json: bool) -> None:
    """Get data sets and corpora from their sources, into --data DIR.

    DIR may then be copied to a machine without a network.

    Names, sizes, licences and terms are shown first; every file is checked; a file that is cut off
    begins again. Complete sets and files are not fetched again.

    Example:  bench data fetch sts wiki1m --data DIR
    """
    folder = DataFolder(data)
    store = fetched_folder() if data is None else data.expanduser()
    chosen: dict[str, DataSet] = {}
    for name in names:
        chosen |= {wanted.name: wanted for wanted in _chosen_sets(name, with_source=True)}
    missing = []
    for wanted in chosen.values():
        form = text if wanted.forms else "any"
        if not any(copy.form in (text, "any") for copy in folder.copies(wanted)[0]):
            missing.append((wanted, form))
    pending = [pending_set(wanted, form) for wanted, form in missing if sources_of(wanted, form)]
    if pending and offline_now():
        listed = " ".join(item.name for item in pending)
        raise BenchError(
            f"{listed}: missing, and HF_HUB_OFFLINE forbids fetching",
            "unset HF_HUB_OFFLINE, or on a machine with a network: "
            f"bench data fetch {listed} --data DIR; then copy DIR here",
        )
    if pending:
        announce_fetches(pending, store)
    code = 0
    fetcher = Fetcher(store, warn)
    for wanted, form in missing:
        try:
            fetcher.get(wanted, form)
        except BenchError as error:
            show_error(error)
            code = 2
    for wanted in chosen.values():
        state = folder.check(wanted)
        if as_json:
            click.echo(json_text(_set_object(wanted, state)))
        elif state.places:
            click.echo(f"{wanted.name}: {state.status}, in {', '.join(state.places)}")
        else:
            click.echo(f"{wanted.name}: {state.status}")
    raise click.exceptions.Exit(code)


def _chosen_sets(name: str | None, *, with_source: bool = False) -> list[DataSet]:
    """Return the set of that name, the sets of a suite, or all for "all" and None.

    ``with_source``: of several sets, only those that can be fetched. Raises UnknownName for any
    other name.
    """
    sets = list(data_sets().values())
    named = [wanted for wanted in sets if wanted.name.lower() == str(name).lower()]
    if named:
        return named
    if str(name).partition(":")[0] == "mteb":
        command = "import mteb; mteb.get_task('STSBenchmark').load_data()"
        raise BenchError(
            "mteb's loader fetches the data of its tasks, when a run needs it or beforehand",
            f'python -c "{command}"; the hub\'s cache (HF_HOME) can be copied to another machine',
        )
    suites = {suite for wanted in sets for suite in wanted.suites}
    if name not in (None, "all", *suites):
        known = [*(wanted.name for wanted in sets), *sorted(suites), "all"]
        raise UnknownName("data set or suite", str(name), known, hint="bench data list")
    chosen = sets
    if name not in (None, "all"):
        chosen = [wanted for wanted in sets if name in wanted.suites]
    if with_source:
        chosen = [wanted for wanted in chosen if wanted.kind != "built-in" and sources_of(wanted)]
    return chosen


def _print_sets(
    states: Sequence[tuple[DataSet, State]],
    name: str | None,
    as_json: bool,
    notes: Sequence[str] = (),
) -> None:
    """Print a line for each set, or everything about the one that was named."""
    if as_json:
        print_json(_set_object(wanted, state) for wanted, state in states)
        return
    if len(states) == 1 and name is not None:
        print_facts(_set_facts(*states[0]))
        return
    columns = (
        "set",
        GridColumn("for", wrap=12),
        GridColumn("items", right=True),
        GridColumn("MB", right=True),
        GridColumn("here", wrap=12),
        GridColumn("licence", wrap=24, drop=1),
    )
    rows = []
    findings = []
    for wanted, state in states:
        forms = [form for form in state.forms if form != "any"]
        rows.append(
            (
                wanted.name,
                _use_of(wanted),
                f"{wanted.items.get('test', sum(wanted.items.values())):,}",
                _megabytes(wanted.bytes),
                ", ".join(forms) or state.status,
                wanted.licence,
            )
        )
        if state.status == "damaged":
            for problem in state.problems:
                findings.append(Finding("data", wanted.name, DIFFERS, problem, hint=wanted.get))
    print_grid(grid(columns, rows, whole="bench data list NAME", notes=notes))
    if findings:
        print_findings(findings)


def _megabytes(size: int) -> str:
    """Write a size in MB: "0.4", "2,177"."""
    megabytes = size / 1e6
    return f"{megabytes:,.0f}" if megabytes >= 1000 else f"{megabytes:.1f}"


USES = {"corpus": "training", "vectors": "word vectors", "built-in": "demo"}
"""Kind of a set that no suite scores -> its use."""


def _use_of(wanted: DataSet) -> str:
    return ", ".join(wanted.suites) or USES.get(wanted.kind, "")


def _set_facts(wanted: DataSet, state: State) -> list[tuple[str, str]]:
    addresses = [source.where for source in all_sources().values() if wanted.name in source.sets]
    forms = [form for form in state.forms if form != "any"]
    facts = [
        (wanted.name, wanted.title),
        ("needed by", _use_of(wanted)),
        (wanted.unit, ", ".join(f"{split} {count:,}" for split, count in wanted.items.items())),
        ("size", f"{format_bytes(wanted.bytes)} in {plural(len(wanted.files), 'file')}"),
    ]
    facts += [(key, getattr(wanted, key)) for key in ("licence", "terms", "source", "cite")]
    facts += [
        ("to get it", wanted.get),
        (
            "fetched from",
            "; ".join(addresses) or "no source: copy the file into the data folder",
        ),
        ("text forms", ", ".join(wanted.forms)),
        ("here", ", ".join([state.status, *forms])),
    ]
    facts += [("where", place) for place in state.places]
    facts += [("problem", problem) for problem in state.problems]
    return facts


FIELDS = (
    "name",
    "kind",
    "title",
    "suites",
    "unit",
    "items",
    "bytes",
    "licence",
    "terms",
    "source",
    "cite",
    "get",
    "forms",
)
"""Fields of a set that are printed as JSON."""


def _set_object(wanted: DataSet, state: State) -> dict[str, Any]:
    return {
        **{key: getattr(wanted, key) for key in FIELDS},
        "status": state.status,
        "found_forms": list(state.forms),
        "places": list(state.places),
        "problems": list(state.problems),
        "sources": [
            {"where": source.where, "form": source.form, "note": source.note}
            for source in all_sources().values()
            if wanted.name in source.sets
        ],
        "files": [
            {
                "path": file.path,
                "split": file.split,
                "rows": file.rows,
                "sha256": {name: form.sha256 for name, form in file.forms.items()},
            }
            for file in wanted.files
        ],
    }
