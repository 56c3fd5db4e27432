"""The command that makes a row beside those of a board's main table."""

from __future__ import annotations

import shlex

import msgspec
from msgspec import Struct

from bench.base.text import value_text
from bench.board.board import Board
from bench.board.repeat import plan_text
from bench.compare.statistics.table import Row
from bench.records.run import Run

SHARED = ("batch_size", "max_seq_length", "eval_steps", "select_on")
"""Recipe values that the command sets if all trained rows of the main table have the same."""
SEEDS = "1-5"
FILE = "FILE.py"
FOLDER = "mine/runs"
"""The runs of a copy of the version, which a reader adds runs to."""


class PlanRun(Struct):
    """What the command takes from the plan of a run; a key that the plan leaves out is empty."""

    suites: list[str] = []
    setting: str = ""
    backbones: list[str] = []
    # what tables call the backbones, if they have other names there
    names: list[str] = []
    # a text, or several that are trained on together
    corpus: str | list[str] = []
    budget: str = ""
    precision: str = ""


class PlanFile(Struct):
    """The plan beside a run, as far as the command needs it."""

    run: list[PlanRun]


def command_for_row(board: Board) -> str:
    """Return the command that trains the method of ``FILE`` as the main table's rows were trained:
    on the same suites, backbone, text, length, precision and batch; "" if they have no plan."""
    table = board.main
    if table is None:
        return ""
    by_id = {run.record.run_id: run for run in board.runs}
    trained = [row for row in table.rows if by_id[row.runs[0]].record.training is not None]
    if not trained:
        return ""
    plan = _plan_of(by_id[_row_to_copy(trained).runs[0]])
    if plan is None:
        return ""
    words = ["bench", "run", FILE, "--seeds", SEEDS]
    for option, value in (
        ("--suite", ",".join(plan.suites)),
        ("--setting", plan.setting),
        ("--backbone", ",".join(_backbones(plan))),
        *(("--corpus", text) for text in _texts(plan)),
        ("--budget", plan.budget),
        ("--precision", plan.precision),
    ):
        if value:
            words += [option, value]
    for key, value in _shared_values(trained, by_id).items():
        words += ["--set", f"{key}={value}"]
    return shlex.join([*words, "--runs", FOLDER])


def _row_to_copy(trained: list[Row]) -> Row:
    """Return the baseline if it is trained, else the row of most seeds."""
    for row in trained:
        if row.is_baseline:
            return row
    return max(trained, key=lambda row: len(row.runs))


def _plan_of(run: Run) -> PlanRun | None:
    """Return the first run of the plan beside a run; None if there is none, or it cannot be read."""
    try:
        planned = msgspec.toml.decode(plan_text(run), type=PlanFile).run
    except (msgspec.MsgspecError, RecursionError):
        return None
    return planned[0] if planned else None


def _backbones(plan: PlanRun) -> list[str]:
    """Return the backbones as they are typed, with the names that tables have for them."""
    if len(plan.names) != len(plan.backbones):
        return plan.backbones
    return [f"{name}={place}" for name, place in zip(plan.names, plan.backbones, strict=True)]


def _texts(plan: PlanRun) -> list[str]:
    return [plan.corpus] if isinstance(plan.corpus, str) else plan.corpus


def _shared_values(trained: list[Row], by_id: dict[str, Run]) -> dict[str, str]:
    """Return the values of ``SHARED`` that are the same in every trained row."""
    recipes = [by_id[row.runs[0]].record.recipe for row in trained]
    shared = {}
    for key in SHARED:
        values = {value_text(recipe[key].value) if key in recipe else "" for recipe in recipes}
        if len(values) == 1 and (value := values.pop()):
            shared[key] = value
    return shared
