"""Finds the runs to verify, by a run's id, a folder or a published version, and reports on each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.base.errors import BenchError
from bench.board.publish.errata import find_checkout
from bench.board.publish.versions import version_folders
from bench.board.verify import check_manifest, runs_below, verify_run
from bench.board.verify.findings import RunReport
from bench.board.verify.tables import check_tables
from bench.board.verify.versions import MANIFEST, TABLES, is_version
from bench.records import RunsFolder

PUBLISHED = Path("leaderboards")
OF_VERSIONS = (MANIFEST, TABLES)
"""Names of reports on versions; the others are on runs."""


def find_folders(places: Sequence[str], store: RunsFolder) -> Iterator[Path]:
    """Yield the folder of each place: of a run, of runs, or of a published version; without a
    place, the runs folder.

    Raises UnknownName for anything else, BenchError for a version that has left the tree.
    """
    for place in places or (str(store.path),):
        if not places or Path(place).is_dir():
            yield Path(place)
        elif (PUBLISHED / place).is_dir():
            yield PUBLISHED / place
        else:
            check_in_tree(Path(place))
            yield from (file.parent for file in store.record_files(place))


def check_in_tree(version: Path) -> None:
    """Raise BenchError for a version that has left the tree: the errata name its commit."""
    for folder in (version.parent, PUBLISHED):
        found = find_checkout(folder, version.name)
        if found is not None:
            commit, command = found
            raise BenchError(
                f"{folder / version.name} is no longer in the tree; commit {commit} has it",
                f"{command}, and there: bench verify leaderboards/{version.name}",
            )


def verify_folders(
    folders: Sequence[Path],
    say: Callable[[str], None] = lambda activity: None,
) -> Iterator[RunReport]:
    """Yield a report on the manifest of each version, then one on each run, then one on the tables
    of each version. ``say`` gets each activity. Raises BenchError if a folder has no run.
    """
    runs: dict[Path, None] = {}
    versions: dict[Path, None] = {}
    for folder in folders:
        below = runs_below(folder)
        if not below:
            raise BenchError(f"no run in {folder}", "bench run ..., or another folder: --runs DIR")
        runs |= dict.fromkeys(run.absolute() for run in below)
        found = [folder] if is_version(folder) else version_folders(folder)
        versions |= dict.fromkeys(version.absolute() for version in found)
    for version in versions:
        say(f"files of {version.name}")
        yield check_manifest(version)
    say("scores of runs")
    for run in runs:
        yield verify_run(run)
    for version in versions:
        say(f"tables of {version.name}")
        yield check_tables(version)
