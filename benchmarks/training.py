"""Steps per second of unsupervised SimCSE on the CPU: sentence-transformers' trainer and this harness, alternating in one process.

    python benchmarks/training.py [--corpus FILE] [--steps 25] [--repeat 3] [--threads 2]

Same backbone, batch (64), sentences (each side sees the same rows once), 32 tokens at most, float32, AdamW, linear decay,
clipping, CLS pooling. Peer: `SentenceTransformerTrainer` with `MultipleNegativesRankingLoss(scale=20)` on pairs (s, s), the
recipe of its own SimCSE example. Ours: `train` of the harness without dev scores; method `simcse`, which also has SimCSE's head
to train. Ours in bf16 stands beside it, marked. Clocked from the start of one step to the start of a later one, so that
reading, collating, forward, backward and update count on both sides; ours tokenises beforehand, and that time is added.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from machine import describe_machine

BATCH, LENGTH, WARM_UP = 64, 32, 5  # rows; tokens; steps at the start that are not clocked


def read_sentences(corpus: str, rows: int) -> list[str]:
    """The first distinct ``rows`` sentences of a corpus: equal ones would make pairs that are no negatives."""
    from bench.corpora import open_corpus

    sentences = list(islice(dict.fromkeys(row[0] for row in islice(open_corpus(corpus).rows(), 2 * rows)), rows))
    if len(sentences) < rows:
        raise SystemExit(
            f"{corpus} has only {len(sentences)} distinct sentences; {rows} are needed: fewer --steps, or a larger --corpus"
        )
    return sentences


def seconds_per_step(starts: Sequence[float]) -> float:
    """Mean seconds of the steps after the warm-up, from the times at which steps began."""
    return (starts[-1] - starts[WARM_UP]) / (len(starts) - 1 - WARM_UP)


def peer(folder: str, sentences: list[str], steps: int, scratch: str) -> float:
    """Seconds a step of sentence-transformers' trainer."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import TrainerCallback

    starts: list[float] = []

    class Clock(TrainerCallback):
        def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
            starts.append(time.perf_counter())

    encoder = Transformer(folder, max_seq_length=LENGTH)
    model = SentenceTransformer(modules=[encoder, Pooling(encoder.get_embedding_dimension(), "cls")], device="cpu")
    arguments = SentenceTransformerTrainingArguments(
        output_dir=scratch, per_device_train_batch_size=BATCH, max_steps=steps, learning_rate=1e-4, lr_scheduler_type="linear",
        weight_decay=0.0, max_grad_norm=1.0, use_cpu=True, bf16=False, fp16=False, save_strategy="no", eval_strategy="no",
        logging_strategy="no", report_to="none", disable_tqdm=True, seed=42, dataloader_pin_memory=False,
    )  # fmt: skip
    trainer = SentenceTransformerTrainer(
        model=model, args=arguments, train_dataset=Dataset.from_dict({"anchor": sentences, "positive": sentences}),
        loss=MultipleNegativesRankingLoss(model, scale=20.0), callbacks=[Clock()],
    )  # fmt: skip
    trainer.train()
    return seconds_per_step(starts)


def ours(folder: str, sentences: list[str], steps: int, scratch: str, precision: str) -> float:
    """Seconds a step of the harness: the training of `bench run --method simcse`, and the step's share of tokenising."""
    import torch

    from bench.backbones import load, resolve
    from bench.corpora import open_corpus, tokenised
    from bench.method import Context, seed_for
    from bench.recipes import merge
    from methods.simcse import SimCSE

    starts: list[float] = []

    def clock() -> bool:  # the loop asks at the start of every step whether to stop
        starts.append(time.perf_counter())
        return False

    method = SimCSE()
    method.context = Context(precision=precision, seed=42, folder=Path(scratch) / "run", should_stop=clock)
    changes = {"batch_size": str(BATCH), "max_steps": str(steps), "max_seq_length": str(LENGTH), "learning_rate": "1e-4"}
    torch.manual_seed(seed_for(42, "init"))
    method.build(load(resolve(folder)), merge(SimCSE, None, "", changes, trained=True))
    text = Path(scratch) / "corpus.txt"
    text.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
    began = time.perf_counter()
    corpus = tokenised(
        open_corpus(text, Path(scratch)), method.token_ids, "benchmark", len(method.backbone.tokenizer), Path(scratch)
    )
    tokenising = (time.perf_counter() - began) / steps
    method.train(corpus, method.context)
    return seconds_per_step(starts) + tokenising


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="builtin", help="sentences: a file, or builtin")
    parser.add_argument("--backbone", default="builtin")
    parser.add_argument(
        "--steps", type=int, default=25, help=f"steps of each side in each round, the first {WARM_UP} not clocked"
    )
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-bf16", action="store_true", help="leave out ours in bf16")
    parser.add_argument("--json", help="also write what was measured to this file")
    args = parser.parse_args()

    import torch

    from bench.backbones import builtin_folder, quiet
    from bench.devices import keep_freed_memory

    quiet()
    torch.set_num_threads(args.threads)
    keep_freed_memory()  # process-wide: the peer gains from it too
    folder = str(builtin_folder()) if args.backbone == "builtin" else args.backbone
    sentences = read_sentences(args.corpus, args.steps * BATCH)
    print(describe_machine())
    print(f"backbone {args.backbone}, {args.steps} steps of {BATCH} sentences, {args.threads} threads")

    seconds: dict[str, list[float]] = {}
    for i in range(args.repeat):
        for name, precision in {"sentence-transformers, float32": None, "bench, float32": "fp32", "bench, bf16": "bf16"}.items():
            if precision == "bf16" and args.no_bf16:
                continue
            with tempfile.TemporaryDirectory() as scratch:
                if precision is None:
                    took = peer(folder, sentences, args.steps, scratch)
                else:
                    took = ours(folder, sentences, args.steps, scratch, precision)
            seconds.setdefault(name, []).append(took)
            print(f"  round {i + 1}: {1 / took:7.3f} steps/s  {name}", flush=True)

    base = seconds["sentence-transformers, float32"]
    for name, taken in seconds.items():
        by_round = [theirs / our for theirs, our in zip(base, taken, strict=True)]
        median = 1 / statistics.median(taken)
        note = " (another precision: not a like-for-like comparison)" if "bf16" in name else ""
        print(f"{name:32} {median:7.3f} steps/s, {BATCH * median:7.1f} sentences/s   {statistics.median(by_round):.2f} x{note}")
    if args.json:
        content = {"machine": describe_machine(), "threads": args.threads, "steps": args.steps, "seconds_per_step": seconds}
        Path(args.json).write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
