"""One run on several ranks: the first does all that one process does, and calls the others when there is something to train.

Between two trainings, while rank 0 reads, scores and writes, the others wait for its word: the name of the next run to train, or
that there is none.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from bench.base.errors import RunFailed
from bench.base.signals import stop_signals
from bench.method import SilentReporter, TrainReport
from bench.method.ranks import Alone, Ranks

if TYPE_CHECKING:
    from bench.data.corpora.token_cache import TokenisedCorpus
    from bench.method.torch_method import TorchMethod
    from bench.run.config import RunConfig
    from bench.run.plan import PlannedRun
    from bench.runs import RunsFolder

T = TypeVar("T")


def train_on_all(
    method: TorchMethod, corpus: TokenisedCorpus, run: PlannedRun, ranks: Alone | None
) -> TrainReport:
    """``bench.training.loop.train`` on all ranks; called on rank 0, or where there is only one. A method that the training loop does not
    train is fitted here alone."""
    from bench.training.loop import train

    if not isinstance(ranks, Ranks):
        return train(method, corpus, method.context)
    if method.context.ranks is None:
        method.context.reporter.note(
            f"{run.method} is fitted by one process; the other {ranks.count - 1} wait"
        )
        return train(method, corpus, method.context)
    ranks.share(run.run_id)
    return settle(lambda: train(method, corpus, method.context), ranks)


def settle(work: Callable[[], T], ranks: Ranks) -> T:
    """What ``work`` returns or raises, once all ranks are at its end. Where they do not come there, ``ranks.broken`` is set."""
    try:
        value = work()
    except (Exception, SystemExit) as error:  # a plugin may call sys.exit
        ranks.settle(error)
        raise
    if not ranks.settle(None):
        raise RunFailed(
            "another rank ended before the training did",
            "the same command goes on from the last state",
        )
    return value


def follow(
    find: Callable[[str], tuple[PlannedRun, RunsFolder]], config: RunConfig, ranks: Ranks
) -> int:
    """What every rank but the first does: train what rank 0 names, until it names nothing. Returns the exit code.

    ``find`` says what a named run is, and in which folder. A failure that all ranks have is told by rank 0. One of this rank alone is
    raised: the process has to end.
    """
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # while waiting: rank 0 gets them, too, and says when to end
        signal.signal(number, signal.SIG_IGN)
    while True:
        run_id: str | None = ranks.share(None)
        if run_id is None:
            return 0
        try:
            settle(partial(_train_here, find, run_id, config, ranks), ranks)
        except (Exception, SystemExit):
            if ranks.broken:
                raise


def _train_here(
    find: Callable[[str], tuple[PlannedRun, RunsFolder]],
    run_id: str,
    config: RunConfig,
    ranks: Ranks,
) -> None:
    from bench.method.torch_method import TorchMethod
    from bench.run.executors.build import build, training_corpus
    from bench.training.loop import train

    run, store = find(run_id)
    with stop_signals(insistent=False) as should_stop:
        method = build(run, config, SilentReporter(), store.folder(run_id), should_stop, ranks)
        assert isinstance(method, TorchMethod) and run.corpus is not None
        train(method, training_corpus(run.corpus, method), method.context)
