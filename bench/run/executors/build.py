"""What a run is made of: its method on its backbone, and the corpus as the method trains on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bench.base import devices
from bench.base.errors import Interrupted
from bench.method import Context, Method, Reporter
from bench.run import provenance
from bench.run.config import RunConfig
from bench.run.executors.scoring import dev_scorer
from bench.run.plan import PlannedRun, learns

if TYPE_CHECKING:
    from bench.backbones.model import Backbone
    from bench.data.corpora import Corpus
    from bench.data.corpora.token_cache import TokenisedCorpus
    from bench.method.ranks import Alone
    from bench.method.torch_method import TorchMethod


def build(
    run: PlannedRun,
    config: RunConfig,
    reporter: Reporter,
    folder: Path,
    should_stop: Callable[[], bool] = lambda: False,
    ranks: Alone | None = None,
) -> Method:
    """The method of a run on its backbone, with initial weights that the seed fixes."""
    from bench.method.torch_method import build_method

    devices.keep_freed_memory()
    devices.reset_peak_memory(config.device)
    context = Context(
        device=config.device,
        precision=run.precision,
        seed=run.seed or 0,
        folder=folder,
        dev_score=None if run.dev is None else dev_scorer(run.dev),
        reporter=reporter,
        should_stop=should_stop,
        offline=config.offline,
        chunk=config.chunk if isinstance(config.chunk, int) else None,
        ranks=ranks if trains_in_steps(run.plugin.cls) else None,
        auto_batch=config.chunk == "auto",
        compiled=config.compile,
        save_seconds=config.save_seconds,
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


def training_corpus(corpus: Corpus, method: TorchMethod) -> TokenisedCorpus:
    """The corpus as the method trains on it: as token ids, or as text."""
    from bench.data.corpora.token_cache import as_text

    context, backbone = method.context, method.backbone

    def progress(done: int, total: int | None = None) -> None:
        if context.should_stop():
            raise Interrupted(
                "stopped while tokenising the corpus; the same command begins that again"
            )
        context.reporter.advance(done, total=total)

    context.reporter.phase("tokenise")
    if method.trains_on == "text":
        return as_text(corpus, progress=progress)
    return tokenised(corpus, backbone, progress)


def tokenised(
    corpus: Corpus, backbone: Backbone, progress: Callable[..., None] | None = None
) -> TokenisedCorpus:
    """The corpus as token ids, from the cache where it was tokenised before."""
    from bench.data.corpora.token_cache import tokenise

    tokenizer = backbone.tokenizer
    key = provenance.tokenizer_key(tokenizer)
    return tokenise(corpus, backbone.ids, key, len(tokenizer), progress=progress)
