"""The common part of the parity scripts: run the authors' code and ours on the same tiny models.

Both halves have the same weights and sentences. The authors' runs in an interpreter of its own
(``peer.py``, transformers 4.2.1) and leaves tensors in files; ours runs here. The weights go from
our method to theirs by name (``Repository.names``), so a parameter that one side lacks is an error.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from cases import COLUMNS, Case, Repository
from ours import build, tensors
from table import TOLERANCE, differences, heading, lines
from tiny import SCORED, tiny_backbones

from bench.method import TorchMethod


@dataclass
class Pair:
    """A case on one backbone: our method, and the files through which the two halves talk."""

    case: Case
    family: str
    backbone: str
    method: TorchMethod
    weights: Path
    out: Path

    def entry(self) -> dict[str, object]:
        """Return the job of the authors' half for this case."""
        case, recipe = self.case, self.method.recipe
        embeddings = [
            {
                "name": e.name,
                "by": e.by,
                "arguments": dict(e.arguments),
                "whole_model": e.whole_model,
            }
            for e in case.embeddings
        ]
        return {
            "name": case.name,
            "family": self.family,
            "backbone": self.backbone,
            "weights": str(self.weights),
            "seed": 7,
            "out": str(self.out),
            "arguments": dict(case.arguments),
            "columns": list(COLUMNS[case.setting].values()),
            "max_seq_length": recipe.max_seq_length,
            "learning_rate": recipe.learning_rate,
            "step": case.step,
            "processes": case.processes,
            "sentences": SCORED,
            "embeddings": embeddings,
        }


def run(repository: Repository, cases: Sequence[Case]) -> None:
    """Run the command: compare every case on both backbones and print a table.

    Exits with 1 if a difference is too large.
    """
    parser = argparse.ArgumentParser(
        description=f"{repository.name}: the authors' code and ours, number by number."
    )
    parser.add_argument(
        "--checkout", type=Path, required=True, help=f"folder of a clone of {repository.name}"
    )
    parser.add_argument(
        "--peer-python",
        required=True,
        help="interpreter with torch and transformers 4.2.1, see README.md",
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=TOLERANCE,
        help="largest difference allowed (default %(default)g)",
    )
    parser.add_argument("--only", default="", help="only cases whose name begins so")
    parser.add_argument(
        "--all", action="store_true", help="a line for every tensor, not only the worst of a kind"
    )
    options = parser.parse_args()
    if not (options.checkout / repository.package / "models.py").is_file():
        parser.error(
            f"{options.checkout} is no checkout of {repository.name}: it has no "
            f"{repository.package}/models.py"
        )
    cases = [case for case in cases if case.name.startswith(options.only)]
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        good = compare(repository, cases, options, Path(folder))
    sys.exit(0 if good else 1)


def compare(
    repository: Repository, cases: Sequence[Case], options: argparse.Namespace, folder: Path
) -> bool:
    backbones = tiny_backbones(folder)
    pairs = []
    for case in cases:
        for family in case.families:
            weights, out = (folder / f"{who}{len(pairs)}.npz" for who in ("ours", "theirs"))
            method = build(case, backbones[family], folder)
            state = {
                repository.theirs(n, family): p.detach().numpy()
                for n, p in method.named_parameters()
            }
            np.savez(weights, **state)
            pairs.append(Pair(case, family, backbones[family], method, weights, out))
    theirs_of = ask_peer(
        options.peer_python, options.checkout.resolve(), repository.package, pairs, folder
    )
    print(
        f"{repository.name} {commit_of(options.checkout)}, {theirs_of}; ours: transformers "
        f"{version('transformers')}, "
        f"torch {torch.__version__}. float64, tolerance {options.tolerance:g}\n\n{heading()}"
    )
    good = True
    for pair in pairs:
        with np.load(pair.out) as file:
            theirs = dict(file)
        ours = tensors(
            pair.case, pair.method, theirs, partial(repository.theirs, family=pair.family), folder
        )
        found = {name: value for name, value in theirs.items() if not name.startswith("batch/")}
        found |= {name: np.array(0.0) for name in ours if name.startswith("tokens/")}
        compared = differences(found, ours)
        good &= all(difference.within(options.tolerance) for difference in compared)
        print(
            *lines(f"{pair.case.name}, {pair.family}", compared, options.tolerance, options.all),
            sep="\n",
            flush=True,
        )
    return good


def ask_peer(python: str, checkout: Path, package: str, pairs: Sequence[Pair], folder: Path) -> str:
    """Runs their half on all cases; returns its versions in words."""
    job, said = folder / "job.json", folder / "versions.json"
    content = {
        "checkout": str(checkout),
        "package": package,
        "dtype": "float64",
        "versions": str(said),
    }
    job.write_text(
        json.dumps(content | {"cases": [pair.entry() for pair in pairs]}), encoding="utf-8"
    )
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {
        "TRANSFORMERS_OFFLINE": "1"
    }
    command = [python, str(Path(__file__).with_name("peer.py")), str(job)]
    try:
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    except OSError as error:
        raise SystemExit(f"--peer-python {python} cannot be started: {error}") from None
    if done.returncode:
        raise SystemExit(f"the authors' half stopped:\n{done.stdout[-1000:]}{done.stderr[-3000:]}")
    return ", ".join(
        f"{name} {value}" for name, value in json.loads(said.read_text(encoding="utf-8")).items()
    )


def commit_of(checkout: Path) -> str:
    """The commit of a clone, short."""
    command = ["git", "-C", str(checkout), "rev-parse", "--short=7", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else "(no git clone)"
