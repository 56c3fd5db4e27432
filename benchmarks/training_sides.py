"""The sides of training.py: one training of unsupervised SimCSE each, timed step by step.

Nothing is measured on import.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

WARM_UP = 5  # steps at the start that are not clocked
SENTEVAL_BATCH = 128  # SentEval's default, which the authors' script leaves
Pair = tuple[str, str, float]


@dataclass(frozen=True)
class Setup:
    """The settings that all sides share."""

    folder: str  # the backbone
    sentences: Sequence[str]  # distinct, batch x steps of them
    steps: int
    batch: int
    length: int  # tokens at most
    chunk: int  # rows at once, on the sides that cut a batch
    device: str
    precision: str  # fp32 or bf16
    dev: Sequence[Pair] = ()  # STS-B dev: what selects the checkpoint
    everything: Sequence[
        Sequence[Pair]
    ] = ()  # the splits of STS-B and SICK-R, which the authors' script encodes
    rate: float = 1e-4
    now: Callable[[], float] = time.perf_counter


@dataclass
class Clock:
    """When steps began, and seconds of one evaluation."""

    now: Callable[[], float]
    device: str = "cpu"
    tokens: int | None = None  # without padding, of one view of all sentences
    starts: list[float] = field(default_factory=list)
    evaluation: float | None = None
    before: float = 0.0  # tokenising all that the steps read
    events: list[Any] = field(default_factory=list)

    def tick(self) -> None:
        """Note the start of a step.

        A GPU's queue runs behind the host: there a mark is put into the queue, and nothing waits
        for it.
        """
        if self.device != "cpu":
            import torch

            self.events.append(torch.cuda.Event(enable_timing=True))
            self.events[-1].record()
        else:
            self.starts.append(self.now())

    def seconds_per_step(self, steps: int) -> float:
        """Return the mean seconds from step to step after the warm-up.

        A step's share of the work before the first step is included.
        """
        if self.events:
            self.events[-1].synchronize()
            self.starts = [self.events[0].elapsed_time(event) / 1000 for event in self.events]
        skipped = min(WARM_UP, steps - 2)
        starts = self.starts[:steps]
        return (starts[-1] - starts[skipped]) / (len(starts) - 1 - skipped) + self.before / steps


def sentence_transformers(setup: Setup, cached: bool = False) -> Clock:
    """Train with `SentenceTransformerTrainer` on pairs (s, s), as in its own SimCSE example.

    Its evaluator scores STS-B dev.
    """
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
    from sentence_transformers.sentence_transformer.losses import (
        CachedMultipleNegativesRankingLoss,
        MultipleNegativesRankingLoss,
    )
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    clock = Clock(setup.now, setup.device)
    encoder = Transformer(setup.folder, max_seq_length=setup.length)
    model = SentenceTransformer(
        modules=[encoder, Pooling(encoder.get_embedding_dimension(), "cls")], device=setup.device
    )
    loss = (
        CachedMultipleNegativesRankingLoss(model, scale=20.0, mini_batch_size=setup.chunk)
        if cached
        else MultipleNegativesRankingLoss(model, scale=20.0)
    )
    with tempfile.TemporaryDirectory() as scratch:
        arguments = SentenceTransformerTrainingArguments(**_arguments(setup, scratch))
        trainer = SentenceTransformerTrainer(
            model=model,
            args=arguments,
            loss=loss,
            callbacks=[_ticking(clock)],
            train_dataset=Dataset.from_dict(
                {"anchor": setup.sentences, "positive": setup.sentences}
            ),
        )
        trainer.train()
    if setup.dev and not cached:
        first, second, gold = zip(*setup.dev, strict=True)
        evaluator = EmbeddingSimilarityEvaluator(
            list(first), list(second), list(gold), batch_size=128, write_csv=False
        )
        began = setup.now()
        evaluator(model)
        clock.evaluation = setup.now() - began
    return clock


def authors_script(setup: Setup) -> Clock:
    """Train with transformers' `Trainer` as SimCSE's `train.py` does.

    `evaluate` is overridden as by the script's trainer.
    """
    from transformers import Trainer, TrainingArguments

    script = _Script(setup)
    with tempfile.TemporaryDirectory() as scratch:
        trainer = Trainer(
            model=script.model,
            args=TrainingArguments(**_arguments(setup, scratch), remove_unused_columns=False),
            train_dataset=script.rows,
            data_collator=script.collate,
            callbacks=[_ticking(script.clock)],
        )
        trainer.train()
    script.evaluate()
    return script.clock


class _Script:
    """The training and evaluation of SimCSE's authors' script.

    Sentences are tokenised beforehand; both views of a row go through the encoder in one pass; a
    head over CLS, cosines divided by 0.05.
    """

    def __init__(self, setup: Setup) -> None:
        import torch
        from transformers import AutoModel, AutoTokenizer

        self.setup, self.clock = setup, Clock(setup.now, setup.device)
        self.tokenizer = AutoTokenizer.from_pretrained(setup.folder)
        began = setup.now()
        ids = self.tokenizer(list(setup.sentences), max_length=setup.length, truncation=True)
        self.rows = [(one, one) for one in ids["input_ids"]]
        self.clock.before = setup.now() - began

        class Model(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.encoder = AutoModel.from_pretrained(setup.folder, dtype=torch.float32)
                width = self.encoder.config.hidden_size
                self.head = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.Tanh())

            def forward(self, input_ids: Any, attention_mask: Any) -> Any:
                flat = {
                    "input_ids": input_ids.flatten(0, 1),
                    "attention_mask": attention_mask.flatten(0, 1),
                }  # (2n, T)
                cls = self.head(self.encoder(**flat).last_hidden_state[:, 0])
                z1, z2 = cls.view(len(input_ids), 2, -1).unbind(1)
                logits = torch.cosine_similarity(z1[:, None], z2[None], dim=-1) / 0.05
                return {
                    "loss": torch.nn.functional.cross_entropy(
                        logits, torch.arange(len(z1), device=logits.device)
                    )
                }

        self.model = Model()

    def collate(self, rows: list[tuple[Any, ...]]) -> dict[str, Any]:
        flat = [{"input_ids": ids} for row in rows for ids in row]
        padded = self.tokenizer.pad(flat, padding=True, return_tensors="pt")
        return {key: padded[key].view(len(rows), 2, -1) for key in ("input_ids", "attention_mask")}

    def evaluate(self) -> None:
        import torch

        setup, model = self.setup, self.model
        if not setup.everything:
            return

        def batcher(sentences: Sequence[str]) -> Any:
            batch = self.tokenizer(list(sentences), return_tensors="pt", padding=True).to(
                setup.device
            )
            with torch.no_grad():
                hidden = model.encoder(
                    batch["input_ids"],
                    attention_mask=batch["attention_mask"],
                    output_hidden_states=True,
                )
                return hidden.last_hidden_state[:, 0].cpu().numpy()

        model.eval()
        began = setup.now()
        senteval(setup.everything, batcher)
        self.clock.evaluation = setup.now() - began


def senteval(
    splits: Sequence[Sequence[Pair]], batcher: Callable[[Sequence[str]], Any]
) -> list[float]:
    """Score STS-B and SICK-R as SentEval does.

    In the files' order, a batch of first sentences and then one of second ones, one cosine at a
    time.
    """
    from scipy.stats import spearmanr

    correlations = []
    for pairs in splits:
        scores: list[float] = []
        for start in range(0, len(pairs), SENTEVAL_BATCH):
            first, second, _ = zip(*pairs[start : start + SENTEVAL_BATCH], strict=True)
            for a, b in zip(batcher(first), batcher(second), strict=True):
                scores.append(
                    float(np.nan_to_num(np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b))))
                )
        correlations.append(float(spearmanr(scores, [gold for _, _, gold in pairs])[0]))
    return correlations


def _score_dev_pairs(setup: Setup, method: Any) -> float:
    """Return Spearman x 100 on STS-B dev; each distinct sentence is encoded once."""
    from scipy.stats import spearmanr

    from bench.score.encoding import VectorStore

    vectors = VectorStore()
    vectors.add([s for a, b, _ in setup.dev for s in (a, b)], method.encode)
    a, b = (vectors([pair[i] for pair in setup.dev]).astype(np.float64) for i in (0, 1))
    cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    return 100 * float(spearmanr(cosines, [gold for _, _, gold in setup.dev])[0])


def ours(setup: Setup, cut: bool = False) -> Clock:
    """Train as `bench run --method simcse` does, and score the distinct sentences of STS-B dev.

    ``cut``: with --chunk.
    """
    import torch

    from bench.backbones import load, resolve
    from bench.data.corpora import open_corpus_file
    from bench.data.corpora.token_cache import tokenise
    from bench.method import Context, seed_for
    from bench.method.config import RunConfig
    from bench.method.recipes import merge_recipe
    from bench.methods.simcse import SimCSE
    from bench.training.loop import train_method

    clock = Clock(setup.now, setup.device)
    scoring = False

    def asked() -> bool:  # the loop asks once before every step whether to stop; encoding asks too
        if not scoring:
            clock.tick()
        return False

    def dev_score(method: Any) -> float:
        nonlocal scoring
        scoring = True
        began = setup.now()
        score = _score_dev_pairs(setup, method)
        clock.evaluation = setup.now() - began
        scoring = False
        return score

    method = SimCSE()
    with tempfile.TemporaryDirectory() as scratch:
        config = RunConfig(
            device=setup.device,
            precision=setup.precision,
            save_seconds=1e9,
            chunk=setup.chunk if cut else None,
        )
        method.context = Context(
            config,
            seed=42,
            folder=Path(scratch) / "run",
            should_stop=asked,
            dev_score=dev_score if setup.dev else None,
        )
        values = {
            "batch_size": setup.batch,
            "max_steps": setup.steps,
            "max_seq_length": setup.length,
            "learning_rate": setup.rate,
            "eval_steps": setup.steps,
        }
        torch.manual_seed(seed_for(42, "init"))
        recipe = merge_recipe(
            SimCSE, None, "", {key: str(value) for key, value in values.items()}, trained=True
        )
        method.build(load(resolve(setup.folder)), recipe)
        text = Path(scratch) / "corpus.txt"
        text.write_text("".join(f"{sentence}\n" for sentence in setup.sentences), encoding="utf-8")
        began = setup.now()
        corpus = tokenise(
            open_corpus_file(text, Path(scratch)),
            method.token_ids,
            "benchmark",
            len(method.backbone.tokenizer),
            Path(scratch),
        )
        clock.before = setup.now() - began
        clock.tokens = train_method(method, corpus, method.context).tokens
    return clock


def _ticking(clock: Clock) -> Any:
    from transformers import TrainerCallback

    class Ticking(TrainerCallback):
        def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
            clock.tick()

    return Ticking()


def _arguments(setup: Setup, scratch: str) -> dict[str, Any]:
    """Return the arguments of either Trainer: the harness's recipe, and nothing that costs extra
    time.
    """
    return dict(
        output_dir=scratch,
        per_device_train_batch_size=setup.batch,
        max_steps=setup.steps,
        learning_rate=setup.rate,
        lr_scheduler_type="linear",
        weight_decay=0.0,
        max_grad_norm=1.0,
        use_cpu=setup.device == "cpu",
        bf16=setup.precision == "bf16",
        fp16=False,
        save_strategy="no",
        eval_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        seed=42,
        dataloader_pin_memory=setup.device != "cpu",
    )


SIDES: dict[str, Callable[[Setup], Clock]] = {
    "sentence-transformers": sentence_transformers,
    "Trainer as SimCSE's script": authors_script,
    "bench": ours,
    "sentence-transformers, cached": lambda setup: sentence_transformers(setup, cached=True),
    "bench, cached": lambda setup: ours(setup, cut=True),
}
