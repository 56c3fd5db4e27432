"""How runs are executed, and what each is made of: its method on its backbone, and the corpus as the method trains on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.base import devices
from bench.base.errors import Interrupted
from bench.method import Context, Method, Reporter
from bench.run import provenance
from bench.run.executors.scoring import dev_scorer
from bench.run.plan import PlannedRun, learns
from bench.run.plugins import build_method

if TYPE_CHECKING:
    from bench.data.corpora import Corpus
    from bench.data.corpora.token_cache import TokenisedCorpus
    from bench.method.ranks import Alone
    from bench.method.torch_method import TorchMethod


@dataclass(frozen=True)
class Options:
    """How runs are executed. None of it changes what a run is: its fingerprint knows nothing of them."""

    device: str = "cpu"
    offline: bool = False
    fresh: bool = False
    cache: Path | None = None
    wait_seconds: float = 0.0
    save_seconds: float = 60.0
    chunk: int | None = None  # rows of a batch whose activations are held at once while training
    auto_batch: bool = False  # hold fewer rows at once where a batch does not fit into memory
    compiled: bool = False  # torch compiles the encoder while training
    ranks: Alone | None = None  # the processes that train together
    job: Mapping[str, Any] | None = (
        None  # the engine, job, node and attempt that it is executed in; None: of no engine
    )
    command: str | None = None  # what the record says made it; None: this process's command line


def build(
    run: PlannedRun,
    options: Options,
    reporter: Reporter,
    folder: Path,
    should_stop: Callable[[], bool] = lambda: False,
) -> Method:
    """The method of a run on its backbone, with initial weights that the seed fixes."""
    devices.keep_freed_memory()
    devices.reset_peak_memory(options.device)
    context = Context(
        device=options.device,
        precision=run.precision,
        seed=run.seed or 0,
        folder=folder,
        dev_score=None if run.dev is None else dev_scorer(run.dev),
        reporter=reporter,
        should_stop=should_stop,
        offline=options.offline,
        chunk=options.chunk,
        ranks=options.ranks if trains_in_steps(run.plugin.cls) else None,
        auto_batch=options.auto_batch,
        compiled=options.compiled,
        save_seconds=options.save_seconds,
    )
    method = build_method(
        run.plugin.cls,
        run.backbone,
        run.recipe,
        context,
        learns=learns(run.plugin.cls, run.setting),
    )
    if run.plugin.cls.own_backbone is None:
        reporter.note(method.backbone.report())
    return method


def trains_in_steps(cls: type[Method]) -> bool:
    """Does the training loop train it, so that several processes can? Else it is fitted by one."""
    from bench.method.torch_method import TorchMethod

    return cls.fit is TorchMethod.fit or cls.fitted == "steps"


def training_corpus(corpus: Corpus, method: TorchMethod, options: Options) -> TokenisedCorpus:
    """The corpus as the method trains on it: as token ids, or as text."""
    from bench.data.corpora.token_cache import as_text, tokenise

    context, backbone = method.context, method.backbone

    def progress(done: int, total: int | None = None) -> None:
        if context.should_stop():
            raise Interrupted(
                "stopped while tokenising the corpus; the same command begins that again"
            )
        context.reporter.advance(done, total=total)

    context.reporter.phase("tokenise")
    if method.trains_on == "text":
        return as_text(corpus, options.cache, progress)
    return tokenise(
        corpus,
        backbone.ids,
        provenance.tokenizer_key(backbone.tokenizer),
        len(backbone.tokenizer),
        options.cache,
        progress,
    )
