"""What a planned run is made of: its method on its backbone, and the corpus as the method trains on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.backbones import load as load_backbone
from bench.base import devices
from bench.base.errors import Interrupted
from bench.method import Context, Method, Reporter, seed_for
from bench.run import provenance
from bench.run.executors.options import Options
from bench.run.plan import NOT_TRAINED, PlannedRun

if TYPE_CHECKING:
    from bench.data.corpora import Corpus
    from bench.data.corpora.token_cache import TokenisedCorpus
    from bench.method.torch_method import TorchMethod


def build(run: PlannedRun, options: Options, reporter: Reporter, folder: Path) -> Method:
    """The method of a run on its backbone, with initial weights that the seed fixes."""
    import torch

    devices.keep_freed_memory()
    devices.reset_peak_memory(options.device)
    method = run.plugin.cls()
    method.context = Context(
        device=options.device,
        precision=run.precision,
        seed=run.seed or 0,
        folder=folder,
        reporter=reporter,
        offline=options.offline,
        save_seconds=options.save_seconds,
        chunk=options.chunk,
        auto_batch=options.auto_batch,
        ranks=options.ranks,
    )
    backbone = (
        None
        if run.plugin.cls.own_backbone
        else load_backbone(run.backbone, dropout=run.recipe.get("dropout"), offline=options.offline)
    )
    if backbone is not None:
        reporter.note(backbone.report())
    torch.manual_seed(seed_for(run.seed or 0, "init"))
    method.build(backbone if backbone is not None else run.backbone, run.recipe)
    if isinstance(method, torch.nn.Module):
        if run.setting == NOT_TRAINED and not method.fitted:
            method.requires_grad_(False)
        method.to(options.device)
        method.eval()
    return method


def prepared(corpus: Corpus, method: TorchMethod, options: Options, reporter: Reporter) -> TokenisedCorpus:
    """The corpus as the method trains on it: as token ids, or as text."""
    from bench.data.corpora.token_cache import as_text, tokenise

    def progress(done: int, total: int | None = None) -> None:
        if method.context.should_stop():
            raise Interrupted("stopped while tokenising the corpus; the same command begins that again")
        reporter.advance(done, total=total)

    reporter.phase("tokenise")
    if method.trains_on == "text":
        return as_text(corpus, options.cache, progress)
    backbone = method.backbone
    return tokenise(
        corpus, backbone.ids, provenance.tokenizer_key(backbone.tokenizer), len(backbone.tokenizer), options.cache, progress
    )
