"""The method of a run and its weights: built, trained and saved."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from bench.backbones.adapters import without_adapters
from bench.backbones.dropout import dropout_in_use, own_dropout
from bench.base import devices
from bench.base.errors import RunFailed
from bench.base.hashes import folder_sha256
from bench.data.corpora import Corpus
from bench.data.corpora.token_cache import TokenisedCorpus, as_text, tokenise
from bench.data.sets.sts import STS_TASKS
from bench.method import Context, Method, TrainReport
from bench.method.checks import check_noise
from bench.method.config import RunConfig
from bench.method.context import Reporter
from bench.method.contract import how_fitted
from bench.method.own_vectors import own_backbone
from bench.records.names import CHECKPOINT
from bench.records.record import RunRecord, Training
from bench.records.selection import dev_test_pairs
from bench.run.planned import PlannedRun, learns
from bench.run.record_of import measure_cost, with_execution
from bench.run.scoring import advance_rows
from bench.run.vectors import dev_score

if TYPE_CHECKING:
    from bench.backbones.model import Backbone
    from bench.method.ranks import Ranks


def build_for_run(
    run: PlannedRun,
    config: RunConfig,
    reporter: Reporter,
    folder: Path,
    should_stop: Callable[[], bool] = lambda: False,
    ranks: Ranks | None = None,
) -> Method:
    """Build the method of a run on its backbone, with the initial weights of its seed."""
    from bench.method.building import build_method

    devices.keep_freed_memory()
    devices.reset_peak_memory(config.device)
    cls = run.plugin.cls
    context = Context(
        config=replace(config, precision=run.precision),
        seed=run.seed or 0,
        folder=folder,
        dev_score=None if run.dev is None else partial(dev_score, run.dev),
        reporter=reporter,
        should_stop=should_stop,
        ranks=None if how_fitted(cls) == "pass" else ranks,  # one process fits it
    )
    method = build_method(cls, run.backbone, run.recipe, context, learns=learns(cls, run.setting))
    if own_backbone(cls) is None:
        # a note is about token ids that are not the tokenizer's own: it is always shown
        reporter.note(method.backbone.report(), detail=not method.backbone.note)
    return method


def check_measured_noise(method: Any, run: PlannedRun) -> None:
    """Raise BenchError as :func:`check_noise`, if the backbone's config names no dropout: its class
    may have some all the same.
    """
    if run.setting not in type(method).by_dropout or own_dropout(run.backbone.config()) is not None:
        return
    try:
        with without_adapters(method.encoder):
            used = dropout_in_use(method.encoder)
    except Exception:  # an encoder that reads no token ids
        return
    noise = max(set[float]().union(*used.values()), default=0.0)
    check_noise(type(method), run.setting, run.recipe, run.backbone.name, dropout=noise)


def prepare_training(method: Method, run: PlannedRun) -> Callable[[], TrainReport]:
    """Prepare the training of a run on its corpus, as token ids or as text.

    Raises Interrupted.
    """
    from bench.method.torch_method import TorchMethod
    from bench.training import loop

    assert isinstance(method, TorchMethod) and run.corpus is not None
    context = method.context
    check_measured_noise(method, run)

    progress = partial(
        advance_rows,
        context.reporter,
        context.should_stop,
        "stopped while tokenising the corpus; the same command starts that again",
    )
    context.reporter.phase("tokenise")
    if method.trains_on == "text":
        corpus = as_text(run.corpus, progress=progress)
    else:
        corpus = tokenise_for(run.corpus, method.backbone, progress)
    return partial(loop.train_method, method, corpus, context)


def tokenise_for(
    corpus: Corpus, backbone: Backbone, progress: Callable[..., None] | None = None
) -> TokenisedCorpus:
    """Return the corpus as token ids, from the cache if it was tokenised before with the same
    tokenizer.
    """
    tokenizer = backbone.tokenizer
    description = json.loads(tokenizer.backend_tokenizer.to_str())
    for setting_of_a_call in ("truncation", "padding"):
        description.pop(setting_of_a_call, None)
    key = hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()
    return tokenise(corpus, backbone.ids, key, len(tokenizer), progress=progress)


def save_weights(method: Method, folder: Path, record: RunRecord) -> RunRecord:
    """Save weights that need no training; return the record with its cost and checkpoint hashes."""
    from bench.training.checkpoints import replace_folder

    replace_folder(folder / CHECKPOINT, method.save)
    return replace(
        record,
        cost=measure_cost(method, folder, trained=False),
        checkpoint=folder_sha256(folder / CHECKPOINT),
    )


def train_weights(
    method: Method, run: PlannedRun, folder: Path, record: RunRecord, ranks: Ranks | None
) -> RunRecord:
    """Train, and return the record with ``training``, ``cost`` and the hashes of the checkpoint."""
    train = prepare_training(method, run)
    if ranks is None or method.context.ranks is None:  # only this process fits the method
        report = train()
    else:
        ranks.share(str(folder))
        report = end_together(train, ranks)
    dev = run.dev
    tested = dev_test_pairs(dev.name, dev.sha256, STS_TASKS) if dev else None
    record = replace(
        record,
        cost=replace(
            measure_cost(method, folder, trained=True),
            train_seconds=round(report.train_seconds, 2),
            dev_seconds=round(report.dev_seconds, 2),
            train_sentences_per_second=round(report.sentences_per_second, 1),
            train_tokens_per_second=round(report.tokens_per_second, 1) if report.tokens else None,
            peak_memory_bytes=devices.peak_memory_bytes(method.context.device),
            host_memory_bytes=devices.host_memory_bytes(),
        ),
        training=Training(
            steps=report.steps,
            best_step=report.best_step,
            dev_score=report.dev_score,
            sentences=report.sentences,
            tokens=report.tokens or None,
            dev_task=str(run.recipe["select_on"]) if dev else "none",
            dev_pairs=dev.n if dev else None,
            dev_test_pairs=tested[0] if tested else None,
        ),
        checkpoint=folder_sha256(folder / CHECKPOINT),
        scores=(),
    )
    return with_execution(record, report.execution)


def end_together(work: Callable[[], Any], ranks: Ranks) -> Any:
    """Do ``work``, and return or raise its outcome once all ranks have ended it.

    If one does not get there, ``ranks.broken`` is set.
    """
    try:
        value = work()
    except (Exception, SystemExit) as error:  # a plugin may call sys.exit
        ranks.settle(error)
        raise
    if not ranks.settle(None):
        raise RunFailed(
            "another rank ended before the training did",
            "the same command goes on from the last saved state",
        )
    return value
