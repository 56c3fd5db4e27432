"""``bench compare`` alone says what the published page says first; the commands that it prints work; it fits a screen."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from commands import bench
from made_runs import made_run, made_runs, whole_folder

from bench.board.board import Board, PublishedRun
from bench.board.content import board
from bench.runs import RunsFolder
from bench.show.tables.lines import SIGNS

SCREEN = 40  # lines of 80 columns


def page_of(runs: Path) -> Board:
    records, _ = RunsFolder(runs).records()
    return board(
        [PublishedRun(record=one, folder=runs / one.run_id) for one in records],
        version="v1",
        title="made",
    )


def joined(text: str) -> str:
    return " ".join(text.split())


def drawn(text: str, methods: Sequence[str]) -> dict[str, tuple[str, str, str]]:
    """method -> (rank, average, sign) of the lines of the first table, at a width at which nothing stands in blocks."""
    found = {}
    for line in text.split("\nother tables")[0].splitlines():
        if match := re.match(
            r"(\d+(?:-\d+)?) +(\S+?)[¹²³⁴·]*(?: .*?)? (\d+\.\d\d)(\S?) *(?:±\d+\.\d\d)?$", line
        ):
            found[match[2]] = (match[1], match[3], match[4])
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "noise",
    [
        {"simcse": 0.5, "promcse": 0.3},
        {"simcse": 0.3, "promcse": 0.5},
        {"simcse": 0.4, "promcse": 0.401},
    ],
)
def test_the_answer_and_every_verdict_are_those_of_the_page(
    tmp_path: Path, noise: dict[str, float]
) -> None:
    """On data in which the other method wins, and in which none does."""
    made_runs(tmp_path, noise, suites=("sts", "cxc"))
    made_run(tmp_path, "cls", None, noise=1.6)
    page = page_of(tmp_path)
    done = bench("compare", "--runs", tmp_path, COLUMNS="200")
    assert done.exit_code == 0, done.stderr
    assert joined(done.stdout).startswith(joined(page.answer))
    table = page.tables[0].table
    signs = {"better": SIGNS["better"], "worse": SIGNS["worse"], "equivalent": SIGNS["equivalent"]}
    wanted = {}
    for row in table.rows:
        cell = row.cells[-1]
        assert cell is not None and row.rank is not None
        verdict = cell.against.verdict if cell.against else None
        low, high = row.rank
        wanted[row.method] = (
            str(low) if low == high else f"{low}-{high}",
            f"{cell.mean:.2f}",
            signs.get(verdict or "", ""),
        )
    assert drawn(done.stdout, list(wanted)) == wanted


@pytest.mark.slow
def test_it_fits_a_screen_and_names_every_other_table_in_the_order_of_the_page(
    tmp_path: Path,
) -> None:
    made_runs(tmp_path, suites=("sts", "transfer", "clustering", "geometry", "cxc"))
    made_run(tmp_path, "pretrained", None, setting="none", backbone="all-MiniLM-L6-v2")
    shown = bench("compare", "--runs", tmp_path, COLUMNS="80").stdout
    lines = shown.splitlines()
    assert len(lines) <= SCREEN and max(map(len, lines)) <= 80, shown
    tables = page_of(tmp_path).tables
    others = shown.split("other tables")[1]
    listed = [line for line in others.split("\n\n")[0].splitlines()[1:] if not line.startswith(" ")]
    assert len(listed) == len(tables) - 1, "the one that is drawn is no other"
    places = [others.index(one.table.protocol, 0) for one in tables[1:]]
    assert places[:-1] == sorted(places[:-1]) and "all-MiniLM-L6-v2" in others
    assert bench("compare", "--runs", tmp_path, "--all").stdout.count("-") > shown.count("-")


@pytest.mark.slow
def test_the_commands_that_it_prints_show_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole_folder(tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    shown = bench("compare").stdout
    commands = re.findall(r"bench (compare --\w+(?: \w+)?)(?=;|\n|$)", shown)
    assert len(commands) == 2, shown
    everything, differences = (bench(*shlex.split(command)) for command in commands)
    for one in page_of(tmp_path / "runs").tables:
        assert one.table.protocol in everything.stdout
    assert (
        "less simcse" in differences.stdout and differences.exit_code == everything.exit_code == 0
    )


def test_runs_without_predictions_are_said_to_be_untested(tmp_path: Path) -> None:
    made_runs(tmp_path, {"simcse": 0.5, "promcse": 0.3}, keep_predictions=False)
    shown = joined(bench("compare", "--runs", tmp_path).stdout)
    assert "differences were not tested" in shown and "▲" not in shown and "no sign" not in shown
