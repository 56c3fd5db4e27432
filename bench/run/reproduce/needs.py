"""What a run needs before it can start, and which of it is not on this machine. Judged by name and size, nothing is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.backbones import resolve
from bench.base.errors import BenchError
from bench.data.sets.sts import STS_TASKS
from bench.method.budget import STEPS, budget_of
from bench.run.corpus_choice import RECIPE_CORPORA, TARGET, corpus_file
from bench.run.plan import learns
from bench.run.plugins import Registry
from bench.run.reproduce.wanted import WantedRun, recipe
from bench.training.horizon import total_steps

if TYPE_CHECKING:
    from bench.data.sets import DataFolder
    from bench.method import Method, Recipe


BUILTIN = "builtin"
DEV_SETS = {"STS-B dev": ("STS-B",), "sts-dev-clean": STS_TASKS}
"""Selection set -> the data sets that it is made of."""


@dataclass(frozen=True)
class Need:
    kind: str  # "data", "corpus", "weights" or "file"
    name: str
    here: bool
    what: str = ""  # where it is, or what gets it

    @property
    def fetched(self) -> bool:
        """Not here, but ``bench run`` fetches it by itself."""
        return not self.here and self.what.startswith(FETCHED)


FETCHED = "not here yet; fetched from the hub"


def needs(run: WantedRun, registry: Registry, data: DataFolder, corpora: Mapping[str, str], text: str) -> list[Need]:
    """Everything that a run needs. ``corpora``: the user's files by the name of the recipe's corpus, "" for all."""
    merged, entry, _ = recipe(run, registry)
    cls = registry[run.method].cls
    found = list(_data(run, merged, data, text))
    if learns(cls, run.setting):
        found.append(_corpus(asked_corpus(entry.corpus if entry else None, corpora), entry.corpus if entry else None, data))
    if not cls.own_backbone:
        found.append(_model("weights", run.backbone, data))
    for key in cls.places:
        if run.on is not None and run.on_as == key:
            continue  # a run that is done before
        value = merged.get(key)
        if value is None:
            found.append(Need("file", key, False, f"--set {key}=PATH"))
        elif Path(str(value)).expanduser().is_file():
            found.append(Need("file", key, True, str(value)))
        else:
            found.append(_model("weights", str(value), data))
    return found


def asked_corpus(name: str | None, corpora: Mapping[str, str]) -> str | None:
    """The user's file for a recipe's corpus, where there is one."""
    return corpora.get(name or "") or corpora.get("")


def _data(run: WantedRun, merged: Recipe, data: DataFolder, text: str) -> Iterator[Need]:
    from bench.data.sets import data_set
    from bench.score.suites import suite

    names = [name for one in run.suites for task in suite(one).tasks for name in getattr(task, "data", ())]
    names += DEV_SETS.get(str(merged.get("select_on")), ())
    for name in dict.fromkeys(names):
        wanted = data_set(name)
        state = data.look(wanted)
        form = not wanted.forms or text in ("any", *state.forms) or "any" in state.forms or "tokenised" not in wanted.forms
        here = state.status == "unread" or (state.status == "found" and form)
        yield Need("data", name, here, ", ".join(state.places) if here else f"bench data list {name}")


def _corpus(asked: str | None, own: str | None, data: DataFolder) -> Need:
    name = asked or (RECIPE_CORPORA.get(own, own) if own else "training text")
    if asked:
        here = asked in (BUILTIN, TARGET) or Path(asked).expanduser().is_file()
        return Need("corpus", asked, here, "" if here else "no such file")
    try:
        return Need("corpus", str(name), True, corpus_file(own, data))
    except BenchError:
        return Need("corpus", str(name), False, f"--corpus {own or ''}{'=' if own else ''}FILE")


def _model(kind: str, name: str, data: DataFolder) -> Need:
    try:
        found = resolve(name)
    except BenchError as error:
        return Need(kind, name, False, error.message)
    if found.path is not None:
        return Need(kind, name, True, str(found.path))
    return Need(kind, name, False, "not here, and nothing may be fetched" if data.offline else FETCHED)


# --- what a run would take on a GPU: arithmetic from shapes and step counts, no measurement ---

GPU_SPEED = 100e12
"""Floating point operations a second: a third of what an A100 can do in half precision. Assumed; no GPU was measured."""
STEP_SECONDS = 0.015
"""The least that a training step takes, however small: starting its kernels. Assumed."""
ASSUMED = "arithmetic for one GPU that reaches 100 TFLOP/s and takes 15 ms a step at least; none was measured, scoring is not in it"

ROWS = {
    "wiki1m": (1_000_000, 2),
    "nli": (275_601, 3),
    "nli-labelled": (942_000, 2),
    "target": (89_192, 2),
    "builtin": (10_000, 2),
}
"""Rows of the recipes' corpora, and sentences that a step encodes of each: two views of one, or three of a triplet."""
DEV_SENTENCES = 3_000  # of STS-B dev, scored every ``eval_steps``


def gpu_hours(cls: type[Method], recipe: Recipe, backbone: str, corpus: str | None, rows: int | None = None) -> float | None:
    """Hours of one training, dev scores included; None where nothing is trained or the backbone's shape is not known.

    ``rows``: of the corpus, where it is another one than the recipe's own.
    """
    shape = _shape(backbone)
    known, views = ROWS.get(corpus or "", (None, 2))
    budget = budget_of(recipe)
    limit = budget.amount if budget is not None and budget.unit == STEPS else recipe.get("max_steps")
    rows = rows or known or (int(limit * recipe["batch_size"]) if limit else None)
    if shape is None or rows is None or "max_seq_length" not in recipe:
        return None
    layers, hidden, inner = shape
    parameters = layers * (4 * hidden * hidden + 2 * hidden * inner)
    tokens = views * recipe.max_seq_length
    if cls.fitted == "pass":
        return 2 * parameters * rows * tokens / GPU_SPEED / 3600
    if budget is not None and budget.timed:
        return budget.amount / 3600
    steps = total_steps(recipe, rows)
    if steps is None:  # as long as a number of tokens lasts
        return None
    training = 6 * parameters * steps * recipe.batch_size * tokens / GPU_SPEED
    scoring = 0.0
    if recipe.select_on != "last":
        scoring = steps / recipe.eval_steps * 2 * parameters * DEV_SENTENCES * recipe.max_seq_length / GPU_SPEED
    return (max(training, steps * STEP_SECONDS) + scoring) / 3600


def _shape(backbone: str) -> tuple[int, int, int] | None:
    try:
        config = resolve(backbone).sizes()
    except (BenchError, OSError, ValueError):
        config = {}
    if "num_hidden_layers" in config and "hidden_size" in config:
        hidden = int(config["hidden_size"])
        return int(config["num_hidden_layers"]), hidden, int(config.get("intermediate_size", 4 * hidden))
    return None
