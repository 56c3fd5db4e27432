"""The data of an mteb task: the user's data folder, mteb's own cache on this machine, or the hub.

The folder has the seven STS sets in exactly the text that mteb hosts, with the files' white space.
A record names the source.
"""

from __future__ import annotations

import contextlib
import copy
import logging
import random
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.base.errors import DataMissing, one_line
from bench.data.fetching import endpoint, offline_now
from bench.data.sets import ON_ITS_PAGE, DataFolder, NotFetchedYet, Pending
from bench.data.sets.sts import SentencePairs, read_sts

# mteb's task -> (our set, its text form, its split)
FROM_FOLDER = {
    **{name: (name, "tokenised", "test") for name in ("STS12", "STS13", "STS14", "STS15", "STS16")},
    "STSBenchmark": ("STS-B", "raw", "test"),
    "SICK-R": ("SICK-R", "raw", "all"),
}


@dataclass(frozen=True)
class MtebSource:
    """The place that the data of an mteb task comes from."""

    # its words in records
    text: str
    # the pairs, if the user's folder has them; None: the revision on the hub that mteb asks for
    pairs: SentencePairs | None = None

    @property
    def sha256(self) -> str | None:
        """The hash of the folder's files; None for data of the hub."""
        return None if self.pairs is None else self.pairs.sha256

    def fill(self, task: Any) -> None:
        """Put the folder's pairs into an STS task of mteb, under a revision "local-SHA256"."""
        if self.pairs is None:
            return
        task.dataset = as_dataset(self.pairs)
        dataset = {**task.metadata.dataset, "revision": f"local-{self.sha256}"}
        task.metadata = task.metadata.model_copy(update={"dataset": dataset})
        task.data_loaded = True


def as_dataset(pairs: SentencePairs) -> Any:
    """Return the pairs as mteb's STS tasks hold their test split."""
    from datasets import Dataset, DatasetDict

    columns = {
        "sentence1": pairs.sentences1,
        "sentence2": pairs.sentences2,
        "score": pairs.gold.tolist(),
    }
    return DatasetDict({"test": Dataset.from_dict(columns)})


def leaves(task: Any) -> list[Any]:
    """Return the tasks that have data: the task itself, or the parts of an aggregate."""
    parts = getattr(task.metadata, "tasks", None)
    return [leaf for part in parts for leaf in leaves(part)] if parts else [task]


def source_of(task: Any, data: DataFolder) -> MtebSource:
    """Find the data of a task: the user's folder if it has exactly this text, otherwise the hub.

    Data of the hub is fetched now, unless it is in the cache or ``data`` is offline. Raises
    DataMissing if neither has it, DataDamaged if the folder's copy is damaged.
    """
    name = task.metadata.name
    if name in FROM_FOLDER and data.roots and _hosted(task):
        ours, form, split = FROM_FOLDER[name]
        with contextlib.suppress(DataMissing):
            pairs = read_sts(data.as_it_is, ours, text=form, split=split, keep_spaces=True)
            return MtebSource(f"data folder, {form} text of {ours}, {split} split", pairs)
    for leaf in leaves(task):
        if not _hosted(leaf) or leaf.data_loaded or _cached(leaf.metadata.dataset):
            continue
        if data.later is not None:
            data.later.note(
                Pending(
                    name=f"mteb:{name}",
                    kind="data",
                    where=f"hub data set {leaf.metadata.dataset['path']}",
                    urls=(f"{endpoint()}/datasets/{leaf.metadata.dataset['path']}",),
                    licence=leaf.metadata.license or ON_ITS_PAGE,
                )
            )
            raise NotFetchedYet(name)
        if data.offline or offline_now():
            raise missing_data(leaf)
        try:
            copy.deepcopy(leaf).load_data()
        except Exception as error:  # datasets, huggingface_hub and httpx each have their own
            raise missing_data(leaf, error) from None
    return MtebSource(
        "hub, at the revision that mteb asks for" if _hosted(task) else "the task itself"
    )


def missing_data(task: Any, error: Exception | None = None) -> DataMissing:
    """Make the error for missing data, with the command that fetches it."""
    name, wanted = task.metadata.name, task.metadata.dataset
    why = f" ({one_line(error, 160)})" if error else ""
    folder = ""
    if name in FROM_FOLDER:
        folder = "; --data DIR with the STS sets serves it too"
    data = f"{wanted['path']} at revision {wanted['revision'][:12]}"
    command = f"import mteb; mteb.get_task('{name}').load_data()"
    return DataMissing(
        f"{name}: {data} is not in the local cache {_cache()}{why}",
        f'with a connection: python -c "{command}"{folder}',
    )


def load_data(task: Any, offline: bool) -> None:
    """Load the data of a task.

    Raises DataMissing if it is missing, or if the cache has another revision than mteb asks for:
    offline, ``datasets`` takes the newest copy that it has, of any revision.
    """
    if task.data_loaded:
        return
    try:
        task.load_data()
    except (ConnectionError, FileNotFoundError, ValueError) as error:
        raise missing_data(task, error) from None
    if offline or offline_now():
        revisions = {Path(file["filename"]).parent.name for file in _cache_files(task.dataset)}
        if _hosted(task) and revisions and task.metadata.dataset["revision"] not in revisions:
            stored = ", ".join(sorted(revision[:12] for revision in revisions))
            raise missing_data(task, ValueError(f"revision {stored} is there"))


def _cache_files(dataset: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(dataset, Mapping):
        for split in dataset.values():
            yield from _cache_files(split)
    else:
        yield from getattr(dataset, "cache_files", ())


def _hosted(task: Any) -> bool:
    """Return True if mteb's own code loads the task from the hub; a user's class may bring its
    data.
    """
    return type(task).__module__.split(".")[0] == "mteb"


def _cache() -> Path:
    from datasets import config

    return Path(config.HF_DATASETS_CACHE)


def _cached(dataset: Mapping[str, Any]) -> bool:
    """Return True if a copy of this revision is prepared in the cache. Reads no file."""
    from datasets.naming import camelcase_to_snakecase

    owner, slash, name = str(dataset["path"]).rpartition("/")
    folder = (f"{owner}___" if slash else "") + camelcase_to_snakecase(name)
    return any((_cache() / folder).glob(f"*/*/{dataset['revision']}"))


@contextlib.contextmanager
def quiet_mteb(offline: bool = False) -> Iterator[None]:
    """Run mteb and ``datasets`` without progress bars, log lines and side effects.

    mteb seeds the global random states; they are restored. With ``offline`` no connection is
    opened.
    """
    import datasets
    import huggingface_hub.constants as hub
    from datasets.utils import are_progress_bars_disabled

    with contextlib.ExitStack() as afterwards, warnings.catch_warnings():
        afterwards.callback(random.setstate, random.getstate())
        afterwards.callback(np.random.set_state, np.random.get_state())
        if (torch := sys.modules.get("torch")) is not None:
            afterwards.callback(torch.set_rng_state, torch.get_rng_state())
        if not are_progress_bars_disabled():
            afterwards.callback(datasets.enable_progress_bars)
        datasets.disable_progress_bars()
        for name in ("mteb", "datasets", "huggingface_hub"):
            logger = logging.getLogger(name)
            afterwards.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL)
        modules: tuple[Any, ...] = (hub, datasets.config) if offline else ()
        for module in modules:
            afterwards.callback(setattr, module, "HF_HUB_OFFLINE", module.HF_HUB_OFFLINE)
            module.HF_HUB_OFFLINE = True
        random.seed(0)
        np.random.seed(0)
        warnings.simplefilter("ignore")
        yield
