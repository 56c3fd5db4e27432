"""Compare the transfer suite's classifiers with SentEval's own code, on the same vectors.

    python benchmarks/transfer.py --senteval CHECKOUT --data DIR [--tasks CR,TREC] [--outer 1]
                                  [--threads 2] [--vectors random:384]

Vectors are made (or read) once, before the clock starts, and both sides get the same array, in one
process. The peer is SentEval's own `validation.py` and `classifier.py`, from the checkout, in its
full configuration; code that no longer runs on today's Python or without a GPU is patched from
outside (`inspect.getargspec`, `.cuda()`). Ours does what `--suite transfer` does after encoding.

MR, CR, SUBJ and MPQA take SentEval 410 fits each: `--outer K` gives it the first K of the ten outer
folds. Its dev and test accuracies of those folds are compared fold by fold, and its time is
multiplied by 10 / K, as the output says; without `--outer` it does everything. Ours always does
everything.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import logging
import resource
import sys
import time
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from encoding import minilm_folder, ours
from machine import describe_machine

FULL = {
    "nhid": 0,
    "optim": "adam",
    "batch_size": 64,
    "tenacity": 5,
    "epoch_size": 4,
}  # SimCSE's --mode test
OUTER = 10


def made(sentences: list[str], how: str) -> np.ndarray:
    """Make vectors: "minilm", or "random:WIDTH" for sums of random word vectors, which can be
    learned.
    """
    if how == "minilm":
        return ours(minilm_folder())(sentences)
    width = int(how.partition(":")[2])
    words = {
        word: i for i, word in enumerate(sorted({word for s in sentences for word in s.split()}))
    }
    table = np.random.default_rng(0).normal(size=(len(words) + 1, width)).astype(np.float32)
    return np.stack([table[[words[w] for w in s.split()] or [-1]].mean(axis=0) for s in sentences])


def vectors_of(sentences: list[str], how: str, keep: str | None) -> Any:
    """Return a function from sentences to vectors.

    With ``keep`` the distinct vectors are read from that .npy file, or written to it.
    """
    distinct = list(dict.fromkeys(sentences))
    if keep and Path(keep).exists():
        table = np.load(keep)
        if len(table) != len(distinct):
            raise SystemExit(
                f"{keep}: {len(table)} vectors, {len(distinct)} sentences: of other data? delete it"
            )
    else:
        table = made(distinct, how).astype(np.float32)
        if keep:
            np.save(keep, table)
    row = {sentence: i for i, sentence in enumerate(distinct)}
    return lambda asked: table[[row[s] for s in asked]]


@contextlib.contextmanager
def senteval(checkout: str, outer: int) -> Iterator[Any]:
    """Give SentEval's validation module, patched to run here.

    Its files are not touched, and nothing stays patched.
    """
    import torch

    class OnCpu(types.ModuleType):
        """torch, but a device is always the CPU."""

        device = staticmethod(lambda *_: torch.empty(0).device)

        def __getattr__(self, name: str) -> Any:
            return getattr(torch, name)

    with contextlib.ExitStack() as stack:
        if not hasattr(inspect, "getargspec"):
            stack.enter_context(
                mock.patch.object(inspect, "getargspec", inspect.getfullargspec, create=True)
            )
        stack.enter_context(mock.patch.object(torch.Tensor, "cuda", lambda self, *_, **__: self))
        stack.enter_context(mock.patch.object(torch.nn.Module, "cuda", lambda self, *_, **__: self))
        stack.enter_context(mock.patch.object(sys, "path", [checkout, *sys.path]))
        validation = importlib.import_module("senteval.tools.validation")
        classifier = importlib.import_module("senteval.tools.classifier")
        stack.enter_context(mock.patch.object(classifier, "torch", OnCpu("torch")))
        if outer < OUTER:
            whole = validation.StratifiedKFold
            made: list[Any] = []

            def first_folds(**arguments: Any) -> Any:
                folds = whole(**arguments)
                made.append(folds)
                if len(made) == 1:  # the outer one is made first
                    return types.SimpleNamespace(split=lambda x, y: list(folds.split(x, y))[:outer])
                return folds

            stack.enter_context(mock.patch.object(validation, "StratifiedKFold", first_folds))
        yield validation


def peer(
    validation: Any, texts: Any, x: np.ndarray
) -> tuple[float, float, list[float], list[float]]:
    """(dev, test, dev per outer fold, test per outer fold) by SentEval's own class for the task."""
    y = texts.labels
    config = {
        "nclasses": len(texts.classes),
        "seed": 1111,
        "usepytorch": True,
        "classifier": FULL,
        "kfold": OUTER,
    }
    part = {name: texts.rows(name) for name in ("train", "dev", "test")}
    xs, ys = {k: x[rows] for k, rows in part.items()}, {k: y[rows] for k, rows in part.items()}
    if not len(part["train"]):
        nested = validation.InnerKFoldClassifier(xs["test"], ys["test"], config)
        dev, test = nested.run()
        return dev, test, list(nested.devresults), list(nested.testresults)
    if not len(part["dev"]):
        sides = [{"X": xs[name], "y": ys[name]} for name in ("train", "test")]
        dev, test, _ = validation.KFoldClassifier(*sides, config).run()
    else:
        for one in (xs, ys):
            one["valid"] = one["dev"]
        dev, test = validation.SplitClassifier(X=xs, y=ys, config=config).run()
    return dev, test, [dev], [test]


@contextlib.contextmanager
def clock() -> Iterator[dict[str, float]]:
    """Fills in wall-clock and processor seconds of the block."""
    taken: dict[str, float] = {}
    wall, cpu = time.perf_counter(), time.process_time()
    yield taken
    taken.update(wall=time.perf_counter() - wall, cpu=time.process_time() - cpu)


def compare_folds(
    folds: list[dict[str, float]], devs: list[float], tests: list[float]
) -> tuple[float, int]:
    """Return the largest difference of our folds from theirs, and how many folds are equal."""
    apart = 0.0
    same = 0
    for fold, dev, test in zip(folds, devs, tests, strict=True):
        apart = max(apart, abs(fold["dev"] - dev), abs(fold["test"] - test))
        if (fold["dev"], fold["test"]) == (dev, test):
            same += 1
    return apart, same


def compare(name: str, texts: Any, x: np.ndarray, args: argparse.Namespace) -> dict[str, Any]:
    import torch

    from bench.score.suites.transfer import classify, score_folds

    torch.set_num_threads(args.threads)
    with clock() as taken:
        predicted, fold, detail = classify(texts, x, "cpu")
    gold = texts.labels[texts.split == "test"]
    value = score_folds({"prediction": predicted, "gold": gold, "fold": fold}, name).value
    row = {
        "task": name,
        "bench": value,
        "bench_wall": taken["wall"],
        "bench_cpu": taken["cpu"],
    }
    print(
        f"{name:6} bench     dev {detail['dev']:6.2f}  test {value:6.2f}   {taken['wall']:8.1f} s "
        f"wall {taken['cpu']:8.1f} s CPU",
        flush=True,
    )
    if args.senteval is None:
        return row
    nested = len(detail["folds"]) > 1
    outer = min(args.outer, OUTER) if nested else OUTER
    torch.set_num_threads(args.peer_threads or args.threads)
    with senteval(args.senteval, outer if nested else OUTER) as validation, clock() as theirs:
        dev, test, devs, tests = peer(validation, texts, x)
    scale = OUTER / outer
    wall, cpu = (theirs[k] * scale for k in ("wall", "cpu"))
    said = (
        f" ({theirs['wall']:.1f} s for {outer} of {OUTER} outer folds, times {scale:g})"
        if scale > 1
        else ""
    )
    print(
        f"{name:6} SentEval  dev {dev:6.2f}  test {test:6.2f}   {wall:8.1f} s wall {cpu:8.1f} s "
        f"CPU{said}"
    )
    apart, same = compare_folds(detail["folds"][: len(tests)], devs, tests)
    ratio = {k: t / taken[k] for k, t in (("wall", wall), ("cpu", cpu))}
    print(
        f"{'':6} bench is {ratio['wall']:.1f} x as fast by wall-clock, {ratio['cpu']:.1f} x by CPU "
        "seconds; folds compared: "
        f"{len(tests)}, equal in dev and test: {same}, largest difference {apart:.2f}",
        flush=True,
    )
    return {**row, "senteval_wall": wall, "senteval_cpu": cpu, "ratio": ratio}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--senteval", help="a checkout of facebookresearch/SentEval; without it only ours runs"
    )
    parser.add_argument("--data", required=True, help="folder with senteval-moses/")
    parser.add_argument("--tasks", default="MR,CR,SUBJ,MPQA,SST-2,TREC,MRPC")
    parser.add_argument(
        "--outer",
        type=int,
        default=OUTER,
        help="outer folds that SentEval gets of MR, CR, SUBJ and MPQA",
    )
    parser.add_argument(
        "--rows",
        type=int,
        help="only so many rows of each split, drawn at random: to try the script",
    )
    parser.add_argument("--vectors", default="minilm", help="minilm, or random:WIDTH")
    parser.add_argument(
        "--keep",
        help=".npy file for the vectors of all seven sets: read where it exists, else written",
    )
    parser.add_argument("--threads", type=int, default=2, help="torch's threads, for both")
    parser.add_argument(
        "--peer-threads", type=int, help="another number for SentEval, where that suits it better"
    )
    return parser.parse_args()


def main() -> None:
    args = arguments()

    import torch

    from bench.backbones import silence_transformers
    from bench.data.sets import DataFolder
    from bench.data.sets.transfer import read_transfer
    from bench.score.suites.transfer import SETS, features

    silence_transformers()
    logging.disable(logging.INFO)
    torch.set_num_threads(args.threads)
    print(describe_machine())
    names = args.tasks.split(",")
    loaded = {name: fewer(read_transfer(DataFolder(args.data), name), args.rows) for name in names}
    sentences = all_sentences(loaded.values())
    encoded = sentences
    if args.keep:  # kept vectors serve every choice of tasks
        encoded = all_sentences(read_transfer(DataFolder(args.data), name) for name in SETS)
    vectors = vectors_of(encoded, args.vectors, args.keep)
    width = vectors(sentences[:1]).shape[1]
    print(
        f"{len(sentences):,} sentences, {len(set(sentences)):,} of them distinct; vectors: "
        f"{args.vectors}, {width} wide; {args.threads} threads"
    )
    rows = [
        compare(name, texts, features(texts, vectors, name), args) for name, texts in loaded.items()
    ]
    summary(rows)
    print(
        f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB, "
        "vectors and libraries included"
    )


def all_sentences(tasks: Iterable[Any]) -> list[str]:
    """Return the sentences of all sides of these tasks' texts."""
    sentences = []
    for texts in tasks:
        for side in texts.texts:
            sentences += side
    return sentences


def fewer(texts: Any, rows: int | None) -> Any:
    """At most so many rows of each split."""
    if rows is None:
        return texts
    from dataclasses import replace

    draw = np.random.default_rng(0)
    parts = [np.flatnonzero(texts.split == name) for name in ("train", "dev", "test")]
    some = np.sort(np.concatenate([draw.permutation(part)[:rows] for part in parts]))
    return replace(
        texts,
        texts=tuple([side[i] for i in some] for side in texts.texts),
        labels=texts.labels[some],
        split=texts.split[some],
    )


def summary(rows: list[dict[str, Any]]) -> None:
    mean = sum(row["bench"] for row in rows) / len(rows)
    wall, cpu = (sum(row[f"bench_{k}"] for row in rows) for k in ("wall", "cpu"))
    print(f"bench, {len(rows)} tasks: mean {mean:.2f}, {wall:.1f} s wall, {cpu:.1f} s CPU")
    both = [row for row in rows if "ratio" in row]
    if both:
        ratios = [
            sum(r[f"senteval_{k}"] for r in both) / sum(r[f"bench_{k}"] for r in both)
            for k in ("wall", "cpu")
        ]
        least = min(both, key=lambda row: row["ratio"]["wall"])
        print(
            f"SentEval, {len(both)} tasks: {sum(r['senteval_wall'] for r in both):.1f} s wall; "
            f"bench is {ratios[0]:.1f} x as fast in all "
            f"({ratios[1]:.1f} x by CPU seconds), least on {least['task']} "
            f"({least['ratio']['wall']:.1f} x)"
        )


if __name__ == "__main__":
    main()
