"""Counts of a training step on the stand-in card, and its host time on a CPU, beside a peer's.

    python benchmarks/card_counts.py

SimCSE with 12 layers of width 64 in bf16; a step of ours and of sentence-transformers' trainer,
after some that are not counted. On the stand-in (tests/support/card.py, which needs g++): how often
the host waits for a card, how often it stands still while it copies to one, and how many operations
it gives to it, views not counted. "before" is ours with transformers' own mask. The host's time is
processor time of one thread, float32 on a CPU, 2 rows: nearly all of it is Python and torch's
dispatch. No GPU is needed, and nothing here says how fast one is.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import io
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

SUPPORT = Path(__file__).resolve().parents[1] / "tests" / "support"
LAYERS, ROWS, LENGTH, COUNTED = 12, 8, 32, 8
VIEWS = set(
    [
        "view",
        "transpose",
        "t",
        "expand",
        "unsqueeze",
        "slice",
        "select",
        "detach",
        "alias",
        "as_strided",
        "_unsafe_view",
        "permute",
        "squeeze",
        "unbind",
        "split",
        "split_with_sizes",
        "_reshape_alias",
        "lift_fresh",
        "empty",
        "empty_like",
        "new_empty",
        "empty_strided",
        "chunk",
        "diagonal",
        "narrow",
        "new_empty_strided",
        "record_stream",
        "resize_",
        "set_",
        "detach_",
        "unsqueeze_",
        "squeeze_",
        "transpose_",
        "_fused_sdp_choice",
        "is_pinned",
    ]
)
"""Operations that start no kernel on a card."""


def load_guard(folder: Path) -> None:
    """Compile the stand-in's library in another process, and load it before torch is imported."""
    build = "import sys, card, pathlib; card.build_guard(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", build, str(folder)], cwd=SUPPORT, check=True)
    found = importlib.util.find_spec("torch")
    assert found is not None and found.submodule_search_locations is not None
    libraries = Path(found.submodule_search_locations[0], "lib")
    for name in ("libc10.so", "libtorch_global_deps.so", "libtorch_cpu.so"):
        ctypes.CDLL(str(libraries / name), ctypes.RTLD_GLOBAL)
    ctypes.CDLL(str(folder / "standin_guard.so"))


class Counts:
    """The operations, waits and uploads since the last call of :meth:`restart`."""

    def __init__(self, card: Any) -> None:
        self.card = card
        self.operations: Counter[str] = Counter()
        self.real = card.compute

    def compute(self, func: Any, args: Any, kwargs: Any) -> Any:
        name = func._schema.name.removeprefix("aten::")
        if name not in VIEWS:
            self.operations[name] += 1
        return self.real(func, args, kwargs)

    def restart(self) -> None:
        self.operations.clear()
        self.card.WAITS.clear()
        self.card.UPLOADS.clear()

    def line(self) -> str:
        waits = sum(self.card.WAITS.values())
        uploads = sum(self.card.UPLOADS.values())
        return f"{waits} waits, {uploads} uploads, {sum(self.operations.values())} operations"


def our_training(place: Any, rows: int, steps: int) -> Any:
    from card_steps import Training, full_rows, ready_method

    return Training(ready_method(place, "simcse", "bert-base", rows), full_rows(rows * steps))


def count_ours(place: Any, counts: Counts) -> str:
    training = our_training(place, ROWS, COUNTED + 2)
    training.steps(COUNTED)
    counts.restart()
    training.steps(1)
    found = counts.line()
    training.close()
    return found


def setup_of(place: Any, rows: int, steps: int, precision: str, now: Any) -> Any:
    from card_models import base_folder
    from card_steps import full_sentences
    from training_sides import Setup

    texts = full_sentences(rows * steps)
    return Setup(
        base_folder(place), texts, steps, rows, LENGTH, rows, place.device, precision, now=now
    )


def count_peer(place: Any, counts: Counts) -> str:
    """Count the eighth step of sentence-transformers' trainer, from its beginning to its end."""
    from training_sides import sentence_transformers
    from transformers import TrainerCallback

    found = ""

    class Watch(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
            if state.global_step == COUNTED:
                counts.restart()

        def on_step_end(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
            nonlocal found
            if state.global_step == COUNTED + 1:
                found = counts.line()

    setup = setup_of(place, ROWS, COUNTED + 2, "bf16", time.perf_counter)
    with redirect_stdout(io.StringIO()):
        sentence_transformers(setup, callback=Watch())
    return found


def host_milliseconds(place: Any) -> dict[str, float]:
    """Return the processor time of a step of each side, the least of three times five steps."""
    from training_sides import sentence_transformers

    rows, steps = 2, 30
    least = {"ours": 1e9, "sentence-transformers": 1e9}
    for _ in range(3):
        with mock.patch("bench.method.torch_method.group_by_length", lambda _: []):
            training = our_training(place, rows, steps)
            starts = []
            for _ in range(steps):
                starts.append(time.process_time())
                training.steps(1)
            training.close()
        least["ours"] = min(least["ours"], least_of_five(starts))
        with redirect_stdout(io.StringIO()):
            peer = sentence_transformers(setup_of(place, rows, steps, "fp32", time.process_time))
        least["sentence-transformers"] = min(
            least["sentence-transformers"], least_of_five(peer.starts)
        )
    return least


def least_of_five(starts: list[float]) -> float:
    """Return the least mean milliseconds of five steps in a row, after six."""
    means = []
    for first in range(6, len(starts) - 5):
        means.append((starts[first + 5] - starts[first]) / 5)
    return 1000 * min(means)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        load_guard(Path(scratch))
        sys.path.insert(0, str(SUPPORT))
        import card
        import card_models
        import torch
        from machine import describe_machine

        # before there is a card: a library of theirs asks for what no build for CPUs has
        for name in ("transformers.trainer", "sentence_transformers.sentence_transformer.trainer"):
            importlib.import_module(name)
        torch.set_num_threads(1)
        card_models.TINY.update(num_hidden_layers=LAYERS)
        print(describe_machine())
        counts = Counts(card)
        place = card_models.Place("cuda", True, Path(scratch))
        unmasked = mock.patch(
            "bench.method.torch_method.with_whole_mask", lambda inputs, encoder: inputs
        )
        with card.present(), mock.patch.object(card, "compute", counts.compute):
            with unmasked:
                print(f"ours before: {count_ours(place, counts)}")
            print(f"ours: {count_ours(place, counts)}")
            print(f"sentence-transformers: {count_peer(place, counts)}")
        on_cpu = card_models.Place("cpu", True, Path(scratch) / "cpu")
        on_cpu.scratch.mkdir()
        for side, milliseconds in host_milliseconds(on_cpu).items():
            print(f"{side}: {milliseconds:.1f} ms of the host a step")


if __name__ == "__main__":
    main()
