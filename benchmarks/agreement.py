"""Encode ready-made encoders on the STS sets in two ways and score them in three.

    python benchmarks/agreement.py FOLDER [FOLDER ...] --data DIR
                                   [--prefix "query: "] [--runs DIR]

The harness encodes the folder; sentence-transformers' own ``encode`` encodes the same model as a
live object, in its own batches; mteb's code then scores the object's vectors on STS12 to STS16 (it
hosts other text of STS-B and SICK-R). Each side encodes a sentence once. With ``--runs``, a
finished run of a folder is not repeated. Prints the scores of each set and the largest difference
from the folder's.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine

OTHER_TEXT = ("STS-B", "SICK-R")
"""Sets of which mteb hosts another text."""


def mteb(name: str, data: Any, vectors: Callable[[Sequence[str]], np.ndarray]) -> float:
    """Score with mteb's own code, on the user's files.

    `bench.score.suites.mteb_data` has shown that they hold the text that mteb hosts.
    """
    from bench.score.suites import suite

    (task,) = suite(f"mteb:{name}").tasks
    return float(task.load(data).score(vectors).value)


def remember(model: Any) -> None:
    """Cache what ``encode`` returns by sentence, so that two scorers pay for one encoding."""
    encode, known = model.encode, dict[str, np.ndarray]()

    def remembering(sentences: Sequence[str], **options: Any) -> np.ndarray:
        new = list(dict.fromkeys(one for one in sentences if one not in known))
        if new:
            known.update(zip(new, np.asarray(encode(new, **options)), strict=True))
        return np.stack([known[one] for one in sentences])

    model.encode = remembering


def scores(folder: str, data: Path, prefix: str, runs: str) -> dict[str, dict[str, float]]:
    """Side -> set -> Spearman x 100."""
    from sentence_transformers import SentenceTransformer

    import bench
    from bench.data.sets import DataFolder
    from bench.data.sets.sts import STS_TASKS

    model = SentenceTransformer(folder, device="cpu", local_files_only=True)
    remember(model)
    found = {}
    for side, what in (("folder", folder), ("object", model)):
        result = bench.evaluate(
            what,
            suites=["sts"],
            data=data,
            name=Path(folder).name,
            prefix=prefix,
            runs=runs,
            device="cpu",
            progress=False,
        )
        found[side] = {name: result[name].value for name in (*STS_TASKS, "Avg.")}
    here = DataFolder(data)
    found["mteb"] = {
        name: mteb(name, here, lambda sentences: model.encode([prefix + one for one in sentences]))
        for name in STS_TASKS
        if name not in OTHER_TEXT
    }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--prefix", default="")
    parser.add_argument("--runs")
    args = parser.parse_args()
    print(describe_machine(), flush=True)
    with tempfile.TemporaryDirectory() as aside:
        for folder in args.folders:
            sides = scores(folder, args.data, args.prefix, args.runs or aside)
            print(f"\n{Path(folder).name:28}" + "".join(f"{name:>9}" for name in sides["folder"]))
            for side, found in sides.items():
                print(
                    f"{side:28}"
                    + "".join(
                        f"{found[name]:9.4f}" if name in found else " " * 9
                        for name in sides["folder"]
                    )
                )
            apart = max(
                abs(found[name] - sides["folder"][name])
                for found in sides.values()
                for name in found
            )
            print(f"most apart: {apart:.5f}", flush=True)


if __name__ == "__main__":
    main()
