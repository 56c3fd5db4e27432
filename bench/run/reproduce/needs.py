"""What a run needs before it can start, and which of it is not on this machine. Judged by name and size, nothing is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.backbones import resolve
from bench.base.errors import BenchError
from bench.data.sets.sts import STS_TASKS
from bench.run.corpus_choice import RECIPE_CORPORA, TARGET, corpus_file
from bench.run.plan import learns
from bench.run.plugins import Registry
from bench.run.reproduce.wanted import WantedRun, recipe

if TYPE_CHECKING:
    from bench.data.sets import DataFolder
    from bench.method import Recipe

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
