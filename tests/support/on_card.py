"""One process on the stand-in card: a line of input names a question, a line of output answers as
JSON.

    python on_card.py GUARD FOLDER

GUARD: the library that card.build_guard makes. FOLDER: for files of its own.

Torch asks for a card once, while it is imported: so the guard is loaded before it, and in a process
of its own.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import sys
import traceback
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock


def load_guard(guard: str) -> None:
    libraries = Path(importlib.util.find_spec("torch").submodule_search_locations[0], "lib")
    for name in ("libc10.so", "libtorch_global_deps.so", "libtorch_cpu.so"):
        ctypes.CDLL(str(libraries / name), ctypes.RTLD_GLOBAL)
    ctypes.CDLL(guard)


if __name__ == "__main__":
    load_guard(sys.argv[1])
    # behind this folder: it has a card.py, too
    sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import card  # noqa: E402
import card_models  # noqa: E402
import torch  # noqa: E402

STEPS, STOP_AFTER, ROWS = 6, 3, 24
VALUES = {"batch_size": 4, "max_steps": STEPS, "eval_steps": 2, "max_seq_length": 32}


def cases(place: card_models.Place) -> list[tuple[str, int]]:
    """Return every method with every setting and variant, as an entry point and a place in it."""
    entries = [
        entry for entry in card_models.entry_points() if entry != "stored-prefix"
    ]  # it reads another's checkpoint
    return [(entry, i) for entry in entries for i in range(len(card_models.cases_of(entry)))]


def method_on_card(place: card_models.Place, entry: str, number: int) -> dict[str, Any]:
    """Train, score and resume one case; return how often a step waits and uploads, and where."""
    case = card_models.cases_of(entry)[number]
    method = card_models.built(case, place, **VALUES)
    corpus = card_models.corpus_of(case, method, ROWS) if case.trained else None
    texts = card_models.sentences(6)

    def score(one: Any) -> float:
        return float(one.encode(texts)[:, 0].sum())

    def on_card(**context: Any) -> Any:
        return card_models.copied(method, place, "cuda", "bf16", dev_score=score, **context)

    one = on_card()
    if not case.in_the_loop:
        if case.trained:
            one.fit(corpus, one.context)
        return {"case": str(case), "steps": 0, "scores": [score(one)], "waits": {}, "uploads": {}}
    steps = watched_training(one, corpus)
    stopped = on_card(should_stop=after(STOP_AFTER))
    folder = stopped.context.folder
    watched_training(stopped, corpus)
    again = on_card()
    again.context = replace(again.context, folder=folder)
    resumed = watched_training(again, corpus)
    ends = [training_state(made) for made in (one, again)]
    return {
        "case": str(case),
        "steps": len(steps),
        "resumed": len(resumed),
        "same": all(torch.equal(ends[0][name], tensor) for name, tensor in ends[1].items()),
        "scores": [score(one), score(again)],
        "waits": steps[1][0],
        "uploads": steps[1][1],
    }


def watched_training(method: Any, corpus: Any) -> list[tuple[dict[str, int], dict[str, int]]]:
    """Train to the end, or until the training is stopped.

    Returns the waits and the uploads of each step, by place.
    """
    from bench.method import Interrupted
    from bench.training import loop
    from bench.training.trainer import Trainer

    seen, real = [], Trainer.step

    def step(trainer: Any, feed: Any) -> None:
        card.WAITS.clear()
        card.UPLOADS.clear()
        real(trainer, feed)
        seen.append((dict(card.WAITS), dict(card.UPLOADS)))

    with mock.patch.object(Trainer, "step", step), suppress(Interrupted):
        loop.train_method(method, corpus, method.context)
    return seen


def steps_on_buffers(place: card_models.Place, entry: str, steps: int) -> dict[str, Any]:
    """Train some steps in each way; return the losses, and of the last step the waits, the uploads
    and how many operations the host hands to the card.
    """
    from recorded_graph import graphs_present

    from bench.training.host_watch import HostWatch

    case = card_models.Case(card_models.methods_of(entry)[0], "unsupervised", "")
    method = card_models.built(case, place, **VALUES | {"epochs": 9, "max_steps": 100})
    # sentences of one length: a single bucket
    corpus = card_models.Rows(("sentence",), [[[i % 50 + 5] * 6 for i in range(4 * steps)]])
    found: dict[str, Any] = {}
    for kind in ("eager", "static", "graph"):
        one = card_models.copied(method, place, "cuda", "bf16", step=kind)
        # the stand-in draws with the CPU's generator
        with graphs_present(), mock.patch.object(HostWatch, "_draws", lambda watch: ()):
            found[kind] = counted_steps(one, corpus, steps)
    return found


def counted_steps(method: Any, corpus: Any, steps: int) -> dict[str, Any]:
    """Do steps of the trainer; of the last one, count."""
    from recorded_graph import Tape

    from bench.method import SilentReporter
    from bench.training.trainer import Trainer

    reporter, notes = SilentReporter(), list[str]()
    reporter.note = notes.append  # type: ignore[method-assign]
    method.context = replace(method.context, reporter=reporter)
    trainer = Trainer(method, corpus, method.context)
    feed = card_models.feed_of(method, corpus)
    asked = [0]
    real, real_replay = card.compute, Tape.replay

    def compute(*arguments: Any) -> Any:
        asked[0] += 1
        return real(*arguments)

    def replay(tape: Any) -> None:
        before = asked[0]
        real_replay(tape)
        asked[0] = before + 1

    for _ in range(steps - 1):
        trainer.step(feed)
    card.WAITS.clear()
    card.UPLOADS.clear()
    with mock.patch.object(card, "compute", compute), mock.patch.object(Tape, "replay", replay):
        trainer.step(feed)
    found = {"waits": sum(card.WAITS.values()), "uploads": sum(card.UPLOADS.values())}
    losses = [float(losses["loss"].cpu()) for losses in trainer.window]
    kind = trainer.static and trainer.static.describe()
    return {**found, "operations": asked[0], "losses": losses, "kind": kind, "notes": notes}


def after(steps: int) -> Any:
    """Return a ``should_stop`` that says yes after so many steps."""
    asked = iter(range(steps))
    return lambda: next(asked, None) is None


def training_state(method: Any) -> dict[str, Any]:
    return {name: tensor.detach().cpu() for name, tensor in method.training_state().items()}


def mixed(place: card_models.Place) -> list[str]:
    """Return the card's answers to operations that mix its tensors with the CPU's or numpy's."""
    here, there = torch.ones(4), torch.ones(4, device="cuda")
    layer = torch.nn.Linear(4, 4).to("cuda")
    mistakes = {
        "add": lambda: there + here,
        "layer": lambda: layer(here),
        "cat": lambda: torch.cat([here, there]),
        "index": lambda: here[there.long()],
        "numpy": lambda: there.numpy(),
    }
    return [name for name, mistake in mistakes.items() if raises(mistake)]


def raises(call: Any) -> bool:
    try:
        call()
    except (RuntimeError, TypeError):
        return True
    return False


def counted(place: card_models.Place) -> dict[str, Any]:
    """Count the waits and uploads of a few lines, each once, and compute a gradient."""
    card.WAITS.clear()
    card.UPLOADS.clear()
    x = torch.tensor([1.0, 2.0], device="cuda", requires_grad=True)
    with torch.autocast("cuda", torch.bfloat16):
        (x * x).sum().backward()
    (x > 1).nonzero(), x[x > 1], x.sum().item(), x.cpu(), x.tolist()
    torch.ones(2).to("cuda"), torch.ones(2).to("cuda", non_blocking=True)
    return {
        "gradient": x.grad.tolist(),
        "waits": sorted(place.split()[0] for place in card.WAITS),
        "uploads": sum(card.UPLOADS.values()),
    }


def measurement(place: card_models.Place, name: str) -> dict[str, Any]:
    """Measure one line of benchmarks/card.py."""
    import card_lines

    line = next(line for line in card_lines.LINES if line.name == name)
    return card_lines.result_of(line, lambda: card_lines.measure_line(place, name))


def main() -> None:
    place = card_models.Place("cuda", True, Path(sys.argv[2]))
    torch.set_num_threads(1)
    for line in sys.stdin:
        function, *arguments = json.loads(line)
        try:
            with card.present():
                answer = globals()[function](place, *arguments)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
