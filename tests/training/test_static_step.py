"""``--set step=static`` and ``step=graph``: the step on static buffers gives the plain step's bytes,
and what no graph can follow is eager, with one line.

Graphs are recorded by a stand-in (recorded_graph.py): none of these tests saw a GPU.
"""

from __future__ import annotations

import io
import warnings
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from models import TOY_ROWS, Columns, Toy, built, sentences, toy_recipe
from recorded_graph import Asked, RecordedGraphs, Tape, graphs_present
from torch.utils._python_dispatch import _get_current_dispatch_mode

from bench.base.errors import Interrupted
from bench.method import Context, Loss, SilentReporter, UncorrectedAdamW, torch_method
from bench.method.batch import Batch
from bench.method.masks import whole_mask
from bench.methods.esimcse import ESimCSE
from bench.methods.simcse import SimCSE
from bench.methods.unsee import UNSEE
from bench.records.curve import read_curve
from bench.training import loop, states, static_step
from bench.training.cuda_graphs import CudaGraphs
from bench.training.static_step import WARM_UP, StaticStep
from bench.training.trainer import Trainer

VALUES: dict[str, Any] = {"batch_size": 4, "max_steps": 14, "epochs": 9, "eval_steps": 5}
VALUES["learning_rate"] = 1e-3


class Notes(SilentReporter):
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.note = self.lines.append  # type: ignore[method-assign]


class Outcome:
    """A training's report, notes, curve, weights, and the bytes of the state at its end."""

    def __init__(self, method: Any, corpus: Any, **context: Any) -> None:
        self.notes = Notes()
        method.context = replace(method.context, reporter=self.notes, **context)
        contents: list[Any] = []
        check = Trainer.finish

        def finish(trainer: Trainer) -> Any:
            for key in ("train_seconds", "device_seconds", "dev_seconds"):
                setattr(trainer.progress, key, 0.0)
            contents.append(states.content_of(trainer, [states.rng_state(trainer.device)]))
            self.trainer = trainer
            return check(trainer)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Trainer, "finish", finish)
            patch.setattr(states, "save_is_due", lambda trainer: False)
            self.report = loop.train_method(method, corpus, method.context)
        written = io.BytesIO()
        torch.save(contents[0], written)
        self.state = written.getvalue()
        self.curve = read_curve(method.context.folder)
        for entry in self.curve:
            entry.pop("sentences_per_second", None)
        self.weights = {name: one.clone() for name, one in method.training_state().items()}

    def same(self, other: Outcome) -> bool:
        """Say if everything is equal to the byte."""
        return self.state == other.state and self.same_numbers(other)

    def same_numbers(self, other: Outcome) -> bool:
        """Say if weights, moments and the curve are equal: a state that was read is pickled in
        another order.
        """
        if self.curve != other.curve:
            return False
        mine, theirs = (self.weights | self.moments(), other.weights | other.moments())
        return all(torch.equal(one, theirs[name]) for name, one in mine.items())

    def moments(self) -> dict[str, torch.Tensor]:
        found = {}
        for number, state in self.trainer.optimizer.state_dict()["state"].items():
            for key, value in state.items():
                found[f"{number} {key}"] = value
        return found


def simcse(tiny: str, folder: Path, **values: Any) -> tuple[SimCSE, Columns]:
    method = built(SimCSE, tiny, folder, setting="unsupervised", **VALUES | values)
    return method, Columns(method.token_ids(sentences(30, seed=5, longest=4)))


def score(method: Any) -> float:
    return float(method.encode(sentences(6, seed=9))[:, 0].mean())


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> RecordedGraphs:
    """Records on the CPU in the place of a GPU's graphs.

    As on a GPU, all lengths go through the encoder in one pass, under a mask of four dimensions.
    """
    recorder = RecordedGraphs()
    first = Trainer.__init__

    def made(trainer: Trainer, method: Any, corpus: Any, context: Context) -> None:
        wanted = "static" if context.step == "graph" else context.step
        first(trainer, method, corpus, replace(context, step=wanted))
        if context.step == "graph" and trainer.static is not None:
            trainer.static.recorder = recorder

    monkeypatch.setattr(Trainer, "__init__", made)
    monkeypatch.setattr(torch_method, "group_by_length", lambda mask: [])

    def with_mask(inputs: Any, encoder: Any) -> Any:
        return {**inputs, "attention_mask": whole_mask(inputs["attention_mask"])}

    monkeypatch.setattr(torch_method, "with_whole_mask", with_mask)
    return recorder


def test_the_static_step_gives_the_plain_steps_bytes(tiny: str, tmp_path: Path) -> None:
    method, corpus = simcse(tiny, tmp_path / "plain")
    plain = Outcome(method, corpus, dev_score=score)
    method, corpus = simcse(tiny, tmp_path / "static")
    static = Outcome(method, corpus, dev_score=score, step="static")
    assert static.same(plain) and len(plain.curve) >= 3
    assert static.notes.lines == plain.notes.lines
    assert static.report.execution == {"step": "static"} and plain.report.execution == {}
    assert len(static.trainer.static.buckets) > 1


def test_a_recorded_step_gives_the_plain_steps_bytes(
    tiny: str, tmp_path: Path, graphs: RecordedGraphs
) -> None:
    """Dropout draws anew in each replay, and the rate falls: both would stand still in a record
    that holds them as numbers.
    """
    method, corpus = simcse(tiny, tmp_path / "plain")
    plain = Outcome(method, corpus, dev_score=score)
    method, corpus = simcse(tiny, tmp_path / "graph")
    graph = Outcome(method, corpus, dev_score=score, step="graph")
    assert graph.same(plain) and graph.notes.lines == plain.notes.lines
    assert graph.report.execution == {"step": "graph"}
    static = graph.trainer.static
    assert graphs.records >= 1 and static.replayed == 14 - sum(
        min(WARM_UP, bucket.steps) for bucket in static.buckets.values()
    )


def test_a_number_that_python_holds_stands_still_in_a_record(
    tiny: str, tmp_path: Path, graphs: RecordedGraphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stand-in would notice a rate that is no tensor."""
    method, corpus = simcse(tiny, tmp_path / "plain")
    plain = Outcome(method, corpus)
    # the option that is recorded stays; the rate is left as a number
    with_option = static_step.option_of_groups

    def without_rate(optimizer, name, value):
        return nullcontext() if name == "lr" else with_option(optimizer, name, value)

    monkeypatch.setattr(static_step, "option_of_groups", without_rate)
    method, corpus = simcse(tiny, tmp_path / "graph")
    assert not Outcome(method, corpus, step="graph").same(plain)


@pytest.mark.parametrize("kinds", [("static", "eager"), ("graph", "graph"), ("eager", "graph")])
def test_a_resumed_training_ends_as_a_whole_one(
    tiny: str, tmp_path: Path, graphs: RecordedGraphs, kinds: tuple[str, str]
) -> None:
    method, corpus = simcse(tiny, tmp_path / "plain")
    plain = Outcome(method, corpus)
    first, second = kinds
    asked = iter([False] * 9 + [True])
    method, corpus = simcse(tiny, tmp_path / "cut")
    with pytest.raises(Interrupted):
        Outcome(method, corpus, step=first, should_stop=lambda: next(asked))
    method, corpus = simcse(tiny, tmp_path / "cut")
    assert Outcome(method, corpus, step=second).same_numbers(plain)


class Watched(Toy):
    """Toy without its list of rows, which is one of the things that no graph follows."""

    def forward(self, batch: Batch) -> Loss:
        loss = super().forward(batch)
        self.seen.clear()
        return Loss(loss.total)


class ReadsStep(Watched):
    def forward(self, batch: Batch) -> Loss:
        return Loss(super().forward(batch).total * (1 + batch.step))


class Counts(Watched):
    count = 0

    def forward(self, batch: Batch) -> Loss:
        self.count += 1
        return Loss(super().forward(batch).total * self.count)


class DrawsOnHost(Watched):
    def forward(self, batch: Batch) -> Loss:
        return Loss(super().forward(batch).total * (1 + np.random.random()))


class Asks(Watched):
    def forward(self, batch: Batch) -> Loss:
        total = super().forward(batch).total
        return Loss(total * (1 if total.item() > 0 else 2))


REASONS = {
    ReadsStep: "the loss reads batch.step, which differs from step to step",
    Counts: "the loss changes count, which is no tensor",
    DrawsOnHost: "the loss draws random numbers on the CPU",
    Asks: "the step asks the device for a number",
}


@pytest.mark.parametrize("cls", REASONS, ids=lambda cls: cls.__name__)
def test_what_no_graph_follows_is_eager_with_one_line(
    cls: type[Toy], tmp_path: Path, graphs: RecordedGraphs
) -> None:
    def trained(step: str) -> Outcome:
        method = cls()
        method.build(recipe=toy_recipe(batch_size=4, max_steps=9, epochs=9))
        method.context = Context(folder=tmp_path / step)
        np.random.seed(4)
        return Outcome(method, Columns([[1]] * 4 + [[2]] * 4), step=step)

    plain, graph = trained("eager"), trained("graph")
    assert graph.same(plain)
    assert graph.notes.lines == [f"step=graph: the steps are eager, because {REASONS[cls]}"]
    assert graph.report.execution == {"step": "static"}


def test_a_record_that_fails_costs_no_step(
    tiny: str, tmp_path: Path, graphs: RecordedGraphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails in the middle: with gradients, before the optimiser."""
    method, corpus = simcse(tiny, tmp_path / "plain")
    plain = Outcome(method, corpus)
    real = torch.nn.utils.clip_grad_norm_

    def clip(parameters: Any, norm: float) -> Any:
        if isinstance(_get_current_dispatch_mode(), Tape):
            raise RuntimeError("CUDA error: unspecified\nmore of it")
        return real(parameters, norm)

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", clip)
    method, corpus = simcse(tiny, tmp_path / "graph")
    graph = Outcome(method, corpus, step="graph")
    assert graph.same(plain)
    wanted = "step=graph: the steps are eager, because recording failed: CUDA error: unspecified"
    assert graph.notes.lines == [wanted]


def cuda_graphs() -> CudaGraphs:
    return CudaGraphs(torch.device("cuda", 0))


def test_the_warm_up_of_a_gpu_notices_a_wait() -> None:
    """And hands on all other warnings."""

    def ask() -> None:
        torch.ones(()).item()

    def warn() -> None:
        warnings.warn("another one", stacklevel=1)

    with graphs_present(), Asked():
        assert cuda_graphs().warm_up(ask) is True
        assert cuda_graphs().warm_up(lambda: None) is False
        with pytest.warns(UserWarning, match="another one"):
            assert cuda_graphs().warm_up(warn) is False


class Generator:
    """In the place of torch's, whose class cannot be changed."""

    def __init__(self, *_: Any) -> None:
        self.drawn: Any = None

    def set_state(self, drawn: Any) -> None:
        self.drawn = drawn

    def graphsafe_get_state(self) -> Any:
        return self.drawn

    graphsafe_set_state = set_state


def test_a_failed_record_leaves_stream_and_generator_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else dropout would raise "Offset increment outside graph capture" from then on."""
    generator, streams, drawn = Generator(), list[Any](), torch.zeros(3)

    def fail() -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(torch, "Generator", Generator)
    monkeypatch.setattr(torch.cuda, "default_generators", (generator,))
    with graphs_present():
        monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: drawn)
        monkeypatch.setattr(torch.cuda, "set_stream", streams.append)
        with pytest.raises(RuntimeError, match="no"):
            cuda_graphs().record(fail)
    assert generator.drawn is drawn and len(streams) == 1


def refused(method: Any, **context: Any) -> str:
    notes = Notes()
    context = {"reporter": notes, "step": "static", **context}
    method.context = replace(method.context, **context)
    trainer = Trainer(method, Columns(TOY_ROWS), method.context)
    assert trainer.static is None
    (line,) = notes.lines
    return line.removeprefix(f"step={context['step']}: the steps are eager, because ")


class Uncorrected(Toy):
    def optimizer(self) -> torch.optim.Optimizer:
        return UncorrectedAdamW(self.parameters(), lr=1e-3, fused=True)


class Plain(Toy):
    def optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=1e-3)


def test_options_and_optimisers_that_go_with_no_graph(tmp_path: Path) -> None:
    def of(cls: type[Toy], **context: Any) -> str:
        method = cls()
        method.build(recipe=toy_recipe())
        method.context = Context(folder=tmp_path)
        return refused(method, **context)

    assert of(Toy, chunk=2) == of(Toy, auto_batch=True) == "--chunk computes a batch in slices"
    assert of(Toy, precision="fp16").startswith("fp16's scaler decides")
    assert of(Toy, step="graph") == "device cpu has no CUDA graphs"
    assert of(Uncorrected).startswith("UncorrectedAdamW computes on the CPU")
    assert of(Plain) == "SGD is not fused"


@pytest.mark.parametrize(
    ("cls", "reason"),
    [
        (UNSEE, "unsee changes itself before each batch (prepare)"),
        (ESimCSE, "esimcse changes itself before each batch (prepare)"),
    ],
)
def test_momentum_copies_and_queues_go_with_no_graph(
    cls: Any, reason: str, tiny: str, tmp_path: Path
) -> None:
    method = built(cls, tiny, tmp_path, setting="unsupervised", batch_size=4, max_steps=2)
    assert refused(method) == reason
    if cls is ESimCSE:
        from bench.training.step_choice import untrained_state

        assert str(untrained_state(method)).partition(".")[0] in ("momentum", "queue")


def test_a_weight_that_moved_is_recorded_anew(
    tiny: str, tmp_path: Path, graphs: RecordedGraphs
) -> None:
    method, corpus = simcse(tiny, tmp_path)
    trainer = Trainer(method, corpus, replace(method.context, step="graph"))
    static = trainer.static
    assert isinstance(static, StaticStep)
    feed = repeated(method)
    for _ in range(WARM_UP + 1):
        trainer.step(feed)
    assert static.replayed == 1 and graphs.records == 1
    for parameter in trainer.trained:
        parameter.data = parameter.data.clone()
    before = trainer.trained[0].clone()
    for _ in range(WARM_UP + 1):
        trainer.step(feed)
    assert static.replayed == 2 and graphs.records == 2
    assert not torch.equal(before, trainer.trained[0])


def repeated(method: Any) -> Any:
    """The same batch without end."""
    from bench.training.batches import batch_of

    rows = Columns(method.token_ids(sentences(4)))
    while True:
        yield batch_of(method, rows, 0, np.arange(4), 0)
