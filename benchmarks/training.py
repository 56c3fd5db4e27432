"""Compare training of unsupervised SimCSE with the trainers of two other libraries.

    python benchmarks/training.py [--data DIR] [--corpus FILE] [--steps 25] [--repeat 3]
                                  [--threads 2] [--batch 64] [--device cpu]
                                  [--precision fp32] [--memory] [--share 0.1]

The peers are sentence-transformers' trainer, and transformers' Trainer as SimCSE's authors use it.
All sides have the same backbone, sentences (each sees the same rows once), batch, 32 tokens at
most, precision, fused AdamW, linear decay, clipping and CLS pooling, and take turns in one process.
Printed are, each as the median over rounds and as the peer's seconds divided by ours:

* steps: seconds from the start of one step to the start of a later one, so that reading, collating,
  forward, backward and update count on every side; if a side tokenises beforehand, that time is
  added;
* with evaluation (needs --data): 125 steps and the evaluation after them. The authors' script
  encodes train, dev and test of STS-B and SICK-R and uses STS-B dev; sentence-transformers runs its
  evaluator on STS-B dev; we encode the distinct sentences of STS-B dev;
* --memory: the peak memory of a process that does a few steps of one side, and nothing else.

The cached sides cut the batch into --chunk rows (CachedMultipleNegativesRankingLoss; ours: --chunk
of `bench run`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

from machine import describe_machine
from training_sides import SIDES, WARM_UP, Pair, Setup

EVERY = 125  # steps between two evaluations in the papers
SIMILARITY = Path("senteval-moses/downstream")


def read_sentences(corpus: str, rows: int) -> list[str]:
    """Read the first distinct ``rows`` sentences of a corpus.

    Equal sentences would make pairs that are no negatives.
    """
    from bench.data.corpora import open_corpus_file

    sentences = list(
        islice(
            dict.fromkeys(row[0] for row in islice(open_corpus_file(corpus).rows(), 2 * rows)), rows
        )
    )
    if len(sentences) < rows:
        raise SystemExit(
            f"{corpus} has only {len(sentences)} distinct sentences; {rows} are needed: fewer "
            "--steps, or a larger --corpus"
        )
    return sentences


def read_pairs(data: Path, share: float) -> tuple[list[Pair], list[list[Pair]]]:
    """Read STS-B dev, and all splits of STS-B and SICK-R, in SentEval's layout.

    Of each file every (1 / share)-th pair is kept.
    """
    stsb = [
        data / SIMILARITY / f"STS/STSBenchmark/sts-{split}.csv"
        for split in ("dev", "train", "test")
    ]
    sick = [
        data / SIMILARITY / f"SICK/SICK_{split}.txt"
        for split in ("train", "trial", "test_annotated")
    ]
    files = [_columns(path, 5, 6, 4, 0) for path in stsb] + [
        _columns(path, 1, 2, 3, 1) for path in sick
    ]
    some = [pairs[:: max(1, round(1 / share))] for pairs in files]
    return some[0], some


def _columns(path: Path, first: int, second: int, gold: int, header: int) -> list[Pair]:
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[header:]]
    return [(line[first], line[second], float(line[gold])) for line in lines]


def random_base() -> str:
    """Write a random BERT of base's shape with the built-in vocabulary, and return its folder.

    Random weights will do, because speed does not depend on them.
    """
    import tempfile

    from transformers import AutoTokenizer, BertConfig, BertModel

    from bench.backbones import builtin_folder

    folder = Path(tempfile.gettempdir()) / "bench-random-base"
    if not (folder / "config.json").is_file():
        tokenizer = AutoTokenizer.from_pretrained(builtin_folder())
        BertModel(BertConfig(vocab_size=len(tokenizer))).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return str(folder)


def weights_of_layers(folder: str) -> int:
    """Count the weights that each token is multiplied with: the layers, without embeddings."""
    from transformers import AutoModel

    return sum(p.numel() for p in AutoModel.from_pretrained(folder).encoder.parameters())


def peak_memory(args: argparse.Namespace, side: str) -> dict[str, int]:
    """Bytes that a process of its own needs for a few steps of one side."""
    options = [
        f"--{key}={getattr(args, key)}"
        for key in (
            "corpus",
            "backbone",
            "threads",
            "batch",
            "chunk",
            "length",
            "device",
            "precision",
        )
    ]
    done = subprocess.run(
        [sys.executable, __file__, "--one", side, "--steps=4", *options],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    args = arguments()
    import torch

    from bench.backbones import builtin_folder, silence_transformers
    from bench.base.devices import (
        choose_precision,
        host_memory_bytes,
        keep_freed_memory,
        peak_memory_bytes,
        reset_peak_memory,
    )

    silence_transformers()
    torch.set_num_threads(args.threads)
    choose_precision(args.precision, args.device)  # bf16 on a processor that traps on it is refused
    folder = str(builtin_folder()) if args.backbone == "builtin" else args.backbone
    dev, everything = read_pairs(Path(args.data), args.share) if args.data else ([], [])
    setup = Setup(
        folder,
        read_sentences(args.corpus, args.steps * args.batch),
        args.steps,
        args.batch,
        args.length,
        args.chunk,
        args.device,
        args.precision,
        dev,
        everything,
        now=time.process_time if args.processor else time.perf_counter,
    )
    if args.one:
        reset_peak_memory(args.device)
        SIDES[args.one](setup)
        print(json.dumps({"device": peak_memory_bytes(args.device), "host": host_memory_bytes()}))
        return
    keep_freed_memory()  # process-wide: the peers gain from it too
    print(describe_machine())
    print(
        f"backbone {args.backbone}, {args.steps} steps of {args.batch} sentences, {args.precision} "
        f"on {args.device}, {args.threads} threads"
    )
    names = [name for name in SIDES if args.cached or "cached" not in name]
    steps, evaluations = run_rounds(setup, names, args)
    show("steps alone", steps, args.batch)
    if args.data:
        whole = {
            name: [EVERY * s + e for s, e in zip(steps[name], evaluations[name], strict=True)]
            for name in names
            if evaluations[name]
        }
        show(f"{EVERY} steps and their evaluation", whole, EVERY * args.batch)
    memory = {name: peak_memory(args, name) for name in names} if args.memory else {}
    for name, peak in memory.items():
        host = f" (host {peak['host'] / 1e9:.2f} GB)" if args.device != "cpu" else ""
        print(f"  {peak['device'] / 1e9:7.2f} GB  {name}{host}")


def run_rounds(
    setup: Setup, names: list[str], args: argparse.Namespace
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Train each side in each round; return by side the seconds of a step and of an evaluation."""
    steps: dict[str, list[float]] = {name: [] for name in names}
    evaluations: dict[str, list[float]] = {name: [] for name in names}
    for i in range(args.repeat):
        for name in names:
            clock = SIDES[name](setup)
            steps[name].append(clock.seconds_per_step(args.steps))
            if clock.evaluation is not None:
                evaluations[name].append(clock.evaluation / args.share)
            print(
                f"  round {i + 1}: {args.batch / steps[name][-1]:7.1f} sentences/s  {name}",
                flush=True,
            )
    return steps, evaluations


def show(title: str, seconds: dict[str, list[float]], sentences: int) -> None:
    """Print for each side its speed, and how many times as fast we are.

    A cached side is compared with our cached side.
    """
    print(title)
    for name, taken in seconds.items():
        us = "bench, cached" if "cached" in name else "bench"
        by_round = [theirs / our for theirs, our in zip(taken, seconds[us], strict=True)]
        ratio = ""
        if name != us:
            times = statistics.median(by_round)
            spread = f"{min(by_round):.2f} to {max(by_round):.2f}"
            ratio = f"   bench is {times:.2f} x as fast ({spread})"
        median = statistics.median(taken)
        print(f"  {sentences / median:7.1f} sentences/s {median:8.2f} s  {name:30}{ratio}")


def arguments() -> Any:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", help="evaluation data with senteval-moses/ in it: for the times with evaluation")
    add(
        "--share",
        type=float,
        default=1.0,
        help="of the evaluation's pairs: every tenth for 0.1; times are scaled up",
    )
    add("--corpus", default="builtin", help="sentences: a file, or builtin")
    add("--backbone", default="builtin", help="builtin, or a folder")
    add(
        "--processor",
        action="store_true",
        help="clock the process's own processor time: for one thread on a busy machine",
    )
    add(
        "--steps",
        type=int,
        default=25,
        help=f"of each side in each round, the first {WARM_UP} not clocked",
    )
    add("--repeat", type=int, default=3)
    add("--threads", type=int, default=2)
    add("--batch", type=int, default=64)
    add("--chunk", type=int, default=16, help="rows at once, on the cached sides")
    add("--length", type=int, default=32)
    add("--device", default="cpu")
    add("--precision", default="fp32", choices=("fp32", "bf16"))
    add("--cached", action="store_true", help="the cached sides as well")
    add("--memory", action="store_true", help="peak memory too, each side in a process of its own")
    add("--one", choices=tuple(SIDES), help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
