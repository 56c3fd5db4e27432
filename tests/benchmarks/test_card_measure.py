"""benchmarks/card.py measure: what it keeps, how it goes on, and its comparisons.

All of them run on the CPU: no test here shows how a GPU computes.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
MODULES = (
    *("cost", "lines", "measure", "memory", "models", "profile", "right", "speed", "steps"),
    "switches",
)


@pytest.fixture
def card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The modules of the measurement by their short names, and a tiny place on the CPU."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import importlib

    modules = {name: importlib.import_module(f"card_{name}") for name in MODULES}
    place = modules["models"].Place("cpu", True, tmp_path)
    yield SimpleNamespace(**modules, place=place)
    for name in MODULES:
        sys.modules.pop(f"card_{name}", None)


def test_right_and_speed_come_first_and_the_minutes_suffice(card: Any) -> None:
    lines = card.lines.LINES
    assert {line.table for line in lines[:4]} == {"right", "speed"}
    assert {line.table for line in lines} == set(card.lines.TABLES)
    first = lines[: [line.name for line in lines].index("right.demo") + 1]
    assert sum(line.seconds for line in first) <= 240


def test_a_failing_line_keeps_its_own_error(card: Any) -> None:
    def fail() -> Any:
        raise RuntimeError("no kernel image is available")

    result = card.lines.result_of(card.lines.LINES[0], fail)
    assert result["status"] == "failed"
    assert result["value"] == "RuntimeError: no kernel image is available"
    assert not result["lost"]


def test_a_lost_card_is_known(card: Any) -> None:
    def fail(text: str) -> Any:
        raise RuntimeError(text)

    line = card.lines.LINES[0]
    assert card.lines.result_of(line, lambda: fail("CUDA error: device-side assert"))["lost"]
    memory = "CUDA error: out of memory"
    assert not card.lines.result_of(line, lambda: fail(memory))["lost"]


def test_a_second_call_goes_on_with_what_is_missing_then_what_failed(
    card: Any, tmp_path: Path
) -> None:
    names = [line.name for line in card.lines.LINES]
    results = card.lines.Results(tmp_path)
    results.add(names[0], {"status": "failed", "value": "x", "asked": "", "detail": {}})
    results.add(names[1], {"status": "passed", "value": "y", "asked": "", "detail": {}})
    file = tmp_path / "lines.jsonl"
    file.write_bytes(file.read_bytes() + b'{"line": "right.st')  # killed while it wrote
    again = card.lines.Results(tmp_path)
    assert [line.name for line in again.remaining(card.lines.LINES)] == [*names[2:], names[0]]
    again.add(names[2], {"status": "passed", "value": "z", "asked": "", "detail": {}})
    assert set(card.lines.Results(tmp_path).lines) == set(names[:3])
    assert "Not measured yet" in (tmp_path / "tables.md").read_text()


CHILD = """\
import json, os, pathlib, sys
options = sys.argv
out = pathlib.Path(options[options.index("--out") + 1])
names, deadline = json.loads(options[options.index("--child") + 1])
(out / "environment.json").write_text(json.dumps(dict(os.environ)))
for name in names:
    (out / "started.json").write_text(json.dumps(name))
    if name == "profile.512":
        os._exit(9)
    result = {"line": name, "status": "passed", "value": "", "asked": "", "detail": {}}
    with (out / "lines.jsonl").open("a") as file:
        file.write(json.dumps(result) + "\\n")
"""


def test_a_process_that_dies_costs_its_line_alone(
    card: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The peer's tokenizer is not slowed down by this process's environment, either."""
    (tmp_path / "card.py").write_text(CHILD)
    monkeypatch.setattr(card.measure, "HERE", tmp_path)
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    order = card.measure.Order(tmp_path / "out", "cpu", True, 60.0, ("profile", "memory"))
    assert card.measure.measure(order) == 1
    lines = card.lines.Results(order.out).lines
    assert lines["profile.512"]["value"] == "its process ended with exit code 9"
    assert [name for name in lines if lines[name]["status"] == "passed"] == [
        *("profile.64", "memory.bert-base-64", "memory.bert-base-512"),
        "memory.roberta-large-512",
    ]
    assert "failed    profile.512" in capsys.readouterr().out
    environment = json.loads((order.out / "environment.json").read_text())
    assert "TOKENIZERS_PARALLELISM" not in environment


def test_an_unknown_line_is_refused(card: Any) -> None:
    with pytest.raises(ValueError, match=r"speed\.65: no such line"):
        card.measure.chosen_lines(("speed.65",))


def test_without_datasets_there_is_no_other_peer(
    card: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(card.speed, "find_spec", lambda name: None if name == "datasets" else name)
    with pytest.raises(card.speed.PeerMissing, match="needs datasets, which is not installed"):
        card.speed.speed(card.place, 64)


@pytest.mark.slow
def test_both_sides_read_the_same_batches_in_turn(
    card: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The peer gets worker processes and a compiled model; ours pays for its tokenisation."""
    import training_sides

    turns: list[str] = []
    setups: list[Any] = []

    def trained(setup: Any, cached: bool = False, callback: Any = None) -> None:
        setups.append(setup)
        for step in range(1, setup.steps + 1):
            time.sleep(0.001)
            before = len(turns)
            callback.on_step_end(None, SimpleNamespace(global_step=step), None)
            if len(turns) > before:
                turns.insert(before, "peer")

    real = card.steps.Training.seconds_per_step

    def seconds(training: Any, place: Any, count: int) -> float:
        turns.append("ours")
        assert training.method.recipe.batch_size == setups[0].batch
        return real(training, place, count)

    monkeypatch.setattr(training_sides, "sentence_transformers", trained)
    monkeypatch.setattr(card.steps.Training, "seconds_per_step", seconds)
    found = card.speed.speed(card.place, 64)
    assert turns == ["peer", "ours", "peer", "ours"]
    assert setups[0].workers > 0 and setups[0].length == card.steps.LENGTH
    assert len(set(setups[0].sentences)) == setups[0].steps * setups[0].batch
    assert min(found.detail["bench"]) > found.detail["tokenising"] > 0
    assert len(found.detail["peer"]) == len(found.detail["bench"]) == 2


def test_sentences_fill_the_length(card: Any) -> None:
    texts = card.steps.full_sentences(50)
    ids = card.models.tokenizer()(texts)["input_ids"]
    assert len(set(texts)) == 50 and min(map(len, ids)) >= card.steps.LENGTH


def first_loss(card: Any, case: Any) -> float:
    from bench.training.gradient import backward

    method = card.models.built(case, card.place, batch_size=4)
    method.train()
    corpus = card.models.corpus_of(case, method, 8)
    feed = card.models.feed_of(method, corpus)
    return float(backward(method, next(feed))["loss"])


@pytest.mark.parametrize("variant", ["", "gist"])
def test_guided_simcse_has_a_loss_to_compare(card: Any, variant: str) -> None:
    """An untrained guide finds all sentences alike: at its own thresholds no negative is left."""
    case = card.models.Case(card.models.methods_of("guided-simcse")[0], "supervised", variant)
    assert first_loss(card, case) > 0.01


def test_steps_are_compared_on_the_shape_of_real_runs(
    card: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels of attention are chosen by the size of a head, and dropout has to be seen."""
    asked = []
    real = card.right.random_backbone

    def asked_for(model: str, place: Any) -> Any:
        asked.append(model)
        return real(model, place)

    monkeypatch.setattr(card.right, "random_backbone", asked_for)
    method = card.right.base_method(card.place, 4)
    assert asked == ["bert-base"]
    shape = card.models.SHAPES["bert-base"]
    assert shape["hidden_size"] == 768 and shape["num_attention_heads"] == 12
    probabilities = {
        module.p for module in method.encoder.modules() if isinstance(module, torch.nn.Dropout)
    }
    assert probabilities == {0.0, 0.1}


def test_both_sides_of_an_evaluation_warm_up_and_count_alike(
    card: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither side's number is a cold pass, or the best of more rounds than the other's."""
    calls: list[tuple[str, int]] = []

    class Peer:
        max_seq_length = 0

        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def encode(self, texts: Sequence[str], batch_size: int) -> None:
            time.sleep(0.001)
            calls.append(("peer", len(texts)))

    class Ours:
        def encode(self, texts: Sequence[str]) -> None:
            time.sleep(0.001)
            calls.append(("ours", len(texts)))

    monkeypatch.setattr("sentence_transformers.SentenceTransformer", Peer)
    monkeypatch.setattr(card.right, "copied_untrained", lambda *_: Ours())
    found = card.speed.encoding(card.place)
    assert calls == [("ours", 4), ("peer", 4), *2 * [("ours", 40), ("peer", 40)]]
    assert len(found.detail["bench"]) == 2
    assert [len(taken) for taken in found.detail["peer"].values()] == [2]


def test_losses_of_zero_are_no_comparison(card: Any) -> None:
    steps = card.right.Steps([0.0, 0.0], [torch.zeros(2)])
    with pytest.raises(ValueError, match="exactly 0"):
        card.right.difference(steps, steps)


class Rounded(TorchDispatchMode):
    """The inputs of all float32 matrix products, rounded to TF32's 10 bits."""

    PRODUCTS = {getattr(torch.ops.aten, name).default for name in ("mm", "addmm", "bmm", "baddbmm")}

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function in self.PRODUCTS:
            rounded = []
            for one in args:
                is_matrix = isinstance(one, torch.Tensor) and one.ndim > 1
                rounded.append(self.cut(one) if is_matrix else one)
            args = tuple(rounded)
        return function(*args, **(kwargs or {}))

    @staticmethod
    def cut(given: torch.Tensor) -> torch.Tensor:
        bits = given.contiguous().view(torch.int32)
        return ((bits + 0x1000) & ~0x1FFF).view(torch.float32).view(given.shape)


@pytest.mark.slow
def test_rounding_is_within_the_bounds_and_a_mistake_outside(card: Any) -> None:
    right, place = card.right, card.place

    def steps() -> Any:
        return right.trained_steps(right.base_method(place, 4), right.STEPS)

    exact = steps()
    assert right.difference(exact, exact) == (0.0, 0.0)
    with Rounded():
        rounded = right.difference(exact, steps())
    for seen, bound in zip(rounded, right.BOUNDS["tf32"], strict=True):
        assert 0 < seen <= bound
    other = right.base_method(place, 4)
    for module in other.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    losses, gradients = right.difference(exact, right.trained_steps(other, right.STEPS))
    assert losses > right.BOUNDS["bf16"][0] or gradients > right.BOUNDS["bf16"][1]


def test_a_wrong_dropout_fails_its_line(card: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import bench.method.attention_dropout as module

    good = card.right.attention_dropout(card.place)
    assert good.good is True and good.detail["float32 guarded"]["backward"] < 1e-4
    monkeypatch.setattr(module, "measure_attention_dropout", lambda p, device, dtype: 0.125)
    assert card.right.attention_dropout(card.place).good is False


def test_the_measured_peak_is_of_random_numbers() -> None:
    """Products of ones take less power, and are faster than any real one."""
    from bench.run.cards import matrix_speed

    spreads = []

    class Watched(TorchDispatchMode):
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if function is torch.ops.aten.mm.default:
                spreads.append(float(args[0].std()))
            return function(*args, **(kwargs or {}))

    state = torch.random.get_rng_state()
    with Watched():
        matrix_speed.__wrapped__("fp32", "cpu")
    assert spreads and min(spreads) > 0.9
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.slow
def test_a_line_is_measured_for_real(card: Any, tmp_path: Path) -> None:
    order = card.measure.Order(tmp_path / "out", "cpu", True, 120.0, ("right.dropout",))
    assert card.measure.measure(order) == 0
    (line,) = card.lines.Results(order.out).lines.values()
    assert line["status"] == "passed" and line["machine"] and line["commit"]


@pytest.mark.slow
def test_switches_are_compared_with_the_plain_step(card: Any) -> None:
    found = card.switches.compared_steps(card.place, "graph")
    assert found.good is True and found.detail["on"]
    assert found.detail["eager"] == found.detail["graph"]
    timed = card.switches.step_time(card.place, 64, "graph")
    assert timed.detail["on"] and len(timed.detail["graph"]) == len(timed.detail["eager"]) == 2
    found = card.switches.compared_steps(card.place, "unpadded")
    assert found.good is True and found.detail["on"]
    assert found.detail["eager"] == pytest.approx(found.detail["unpadded"], rel=1e-4)


@pytest.mark.slow
def test_a_switch_that_fell_back_fails_its_line(card: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card.switches, "switched_context", lambda place, switch: {})
    found = card.switches.compared_steps(card.place, "graph")
    assert found.good is False and "fell back" in found.value


@pytest.mark.slow
def test_the_compiled_line_compiles(card: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It used to give ``compile`` as a recipe value, which no recipe has."""
    seen: list[Any] = []

    def begin(method: Any, corpus: Any) -> Any:
        seen.append(method.context.compiled)
        raise KeyError("enough")

    monkeypatch.setattr(card.speed, "Training", begin)
    with pytest.raises(KeyError):
        card.speed.speed(card.place, 64, compiled=True)
    assert seen == [True]
