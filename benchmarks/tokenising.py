"""Compare tokenising the sentences of the seven STS sets with transformers' ``tokenizer(...)``.

    python benchmarks/tokenising.py --data DIR [--backbone builtin ...] [--repeat 5]

Ours calls the library beneath that tokenizer. Both sides take turns on the same sentences in the
same batches as ``bench run --suite sts`` makes of them, in processor time, so that a busy machine
changes little. Exits with 1 if the ids differ.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence

from encoding import minilm_folder, test_sentences
from machine import describe_machine

SETS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
Ids = list[list[int]]


def timed(tokenise: Callable[[list[str]], Ids], sentences: Sequence[str]) -> tuple[float, Ids]:
    from bench.score.encoding import TOKENISE_AT_ONCE

    began = time.process_time()
    ids = [
        row
        for start in range(0, len(sentences), TOKENISE_AT_ONCE)
        for row in tokenise(list(sentences[start : start + TOKENISE_AT_ONCE]))
    ]
    return time.process_time() - began, ids


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data",
        required=True,
        help="folder with senteval-moses/ (or another form of the STS files)",
    )
    parser.add_argument(
        "--backbone",
        action="append",
        help="a folder or builtin; may be repeated  [default: all-MiniLM-L6-v2, builtin]",
    )
    parser.add_argument("--repeat", type=int, default=5, help="how often each side runs")
    args = parser.parse_args()

    from bench.backbones import load, resolve, silence_transformers

    silence_transformers()
    sentences = test_sentences(args.data, SETS, None)
    print(describe_machine())
    print(f"{len(sentences):,} distinct sentences")
    named = {name: name for name in args.backbone or []} or {
        "all-MiniLM-L6-v2": minilm_folder(),
        "builtin": "builtin",
    }
    for name, place in named.items():
        backbone = load(resolve(place))

        def peer(
            texts: list[str], tokenizer: Callable[..., dict[str, Ids]] = backbone.tokenizer
        ) -> Ids:
            return tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]

        taken: list[tuple[float, float]] = []
        for _ in range(args.repeat):
            (theirs, wanted), (ours, ids) = timed(peer, sentences), timed(backbone.ids, sentences)
            taken.append((theirs, ours))
            if ids != wanted:
                sys.exit(f"{name}: the two sides give different ids")
        theirs, ours = (statistics.median(side) for side in zip(*taken, strict=True))
        ratio = statistics.median(a / b for a, b in taken)
        print(f"{name}: transformers {theirs:.2f} s, bench {ours:.2f} s: {ratio:.2f} x as fast")


if __name__ == "__main__":
    main()
