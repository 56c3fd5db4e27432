"""``--set unpadded=true``: the states, gradients and losses of padded rows, without the padding.

The attention that a GPU takes is computed on the CPU here: none of these tests saw a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from models import Columns, built, sentences
from torch import Tensor, nn

from bench.base.errors import BenchError
from bench.method import Context, SilentReporter
from bench.method.attention_dropout import TOLERANCE
from bench.method.unpadded import (
    Packing,
    as_jagged,
    by_row,
    has_hooks,
    measure_packed_dropout,
    packed_states,
)
from bench.methods.simcse import SimCSE
from bench.records.curve import read_curve
from bench.run.config import Plan, RunConfig
from bench.training.loop import train_method

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")

MASKS = {
    "on the right": [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0]],
    "on the left": [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 1, 1, 1, 1]],
    "in the middle": [[1, 0, 1, 1, 0], [1, 1, 1, 1, 1], [0, 1, 0, 1, 0]],
    "none": [[1] * 5] * 3,
    "a whole row": [[1, 1, 0, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]],
}
SIZES: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"intermediate_size": 32, "vocab_size": 50, "max_position_embeddings": 12}
SIZES |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def encoder_of(family: str, **values: Any) -> Any:
    """A random encoder; its longest row is shorter than all rows together."""
    import transformers

    name = {"bert": "Bert", "roberta": "Roberta", "electra": "Electra"}[family]
    config = getattr(transformers, f"{name}Config")(**SIZES | {"embedding_size": 16} | values)
    more = {} if family == "electra" else {"add_pooling_layer": False}
    torch.manual_seed(1)
    encoder = getattr(transformers, f"{name}Model")(config, **more).train()
    for parameter in encoder.parameters():
        if parameter.ndim > 1:
            nn.init.normal_(parameter, std=0.3)
    return encoder.double()


def inputs(mask: list[list[int]], pad_id: int) -> dict[str, Tensor]:
    attended = torch.tensor(mask)
    ids = torch.arange(3, 3 + attended.numel()).view(attended.shape)
    return {"input_ids": ids.where(attended.bool(), pad_id), "attention_mask": attended}


def gradients(encoder: Any, states: Tensor, mask: Tensor) -> dict[str, Tensor]:
    encoder.zero_grad()
    (states * mask[:, :, None]).sin().sum().backward()
    return {name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("attend", [by_row, as_jagged], ids=["rows", "jagged"])
@pytest.mark.parametrize("where", MASKS)
@pytest.mark.parametrize("family", ["bert", "roberta", "electra"])
def test_states_and_gradients_are_those_of_padded_rows(
    family: str, where: str, attend: Callable[..., Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.method.unpadded.by_row", attend)
    encoder = encoder_of(family)
    given = inputs(MASKS[where], encoder.config.pad_token_id)
    mask = given["attention_mask"]
    padded = encoder(**given).last_hidden_state
    wanted = gradients(encoder, padded, mask)
    packed = packed_states(encoder, given)
    real = mask.bool()
    assert torch.allclose(packed[real], padded[real], atol=1e-12)
    assert not packed[~real].any()
    found = gradients(encoder, packed_states(encoder, given), mask)
    assert found.keys() == wanted.keys()
    for name, gradient in wanted.items():
        assert torch.allclose(found[name], gradient, atol=1e-10), name
    assert encoder.config._attn_implementation == "sdpa"


def test_embedded_inputs_positions_and_types_are_packed_too() -> None:
    for family in ("bert", "roberta"):
        encoder = encoder_of(family, type_vocab_size=2)
        given = inputs(MASKS["on the right"], encoder.config.pad_token_id)
        real = given["attention_mask"].bool()
        words = encoder.embeddings.word_embeddings(given.pop("input_ids"))
        given["inputs_embeds"] = words
        cases = [given, {**given, "token_type_ids": torch.tensor([[0, 1, 1, 0, 1]] * 3)}]
        cases.append({**given, "position_ids": torch.tensor([[6, 2, 3, 5, 7]] * 3)})
        for case in cases:
            padded = encoder(**case).last_hidden_state
            assert torch.allclose(packed_states(encoder, case)[real], padded[real], atol=1e-12)


@pytest.mark.parametrize("attend", [by_row, as_jagged], ids=["rows", "jagged"])
def test_attention_without_padding_draws_the_dropout_that_it_is_asked_for(
    attend: Callable[..., Tensor],
) -> None:
    state = torch.get_rng_state()
    drawn = measure_packed_dropout(0.1, torch.device("cpu"), torch.float32, attend)
    assert abs(drawn - 0.1) < TOLERANCE
    assert torch.equal(state, torch.get_rng_state())


class Notes(SilentReporter):
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.note = self.lines.append  # type: ignore[method-assign]


def test_what_needs_padded_rows_gets_them_with_one_line() -> None:
    from transformers import DistilBertConfig, DistilBertModel

    other, notes = DistilBertModel(DistilBertConfig(dim=16, n_heads=2, n_layers=1)), Notes()
    assert not Packing(other, notes.note).active
    (line,) = notes.lines
    assert line.startswith("unpadded: rows are padded, because distilbert was not tried")

    encoder, notes = encoder_of("bert"), Notes()
    packing = Packing(encoder, notes.note)
    given = inputs(MASKS["on the right"], 0)
    assert packing.states(given) is not None and packing.passes == 1
    layer = encoder.encoder.layer[0].register_forward_hook(lambda *_: None)
    assert has_hooks(encoder)
    assert packing.states(given) is packing.states(given) is None
    assert len(notes.lines) == 1 and "expects padded rows" in notes.lines[0]
    layer.remove()
    encoder.encoder.layer[1].gradient_checkpointing = True
    assert not Packing(encoder, notes.note).active


def trained(tiny: str, folder: Path, **context: Any) -> tuple[Any, dict[str, Tensor], list[str]]:
    notes = Notes()
    folder.mkdir()
    about = Context(seed=1, folder=folder, reporter=notes, **context)
    values = {"batch_size": 4, "max_steps": 6, "epochs": 3, "learning_rate": 1e-3, "dropout": 0.0}
    method = built(SimCSE, tiny, folder, setting="unsupervised", context=about, **values)
    rows = Columns(method.token_ids(sentences(16, seed=5)))
    report = train_method(method, rows, about)
    return report, method.training_state(), notes.lines


def test_a_training_without_padding_is_that_with_it(tiny: str, tmp_path: Path) -> None:
    _, wanted, _ = trained(tiny, tmp_path / "padded")
    report, found, notes = trained(tiny, tmp_path / "packed", unpadded=True, step="static")
    assert report.execution == {"unpadded": True}
    assert notes == [
        "step=static: the steps are eager, because unpadded rows have another shape in each step"
    ]
    losses = [read_curve(tmp_path / name)[-1]["loss"] for name in ("padded", "packed")]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for name, tensor in wanted.items():
        if not name.endswith("key.bias"):  # its gradient is 0 but for rounding
            assert torch.allclose(found[name], tensor, atol=1e-4), name


def test_it_does_not_go_with_compiling() -> None:
    with pytest.raises(BenchError, match="do not go together"):
        Plan((RunConfig(methods=("simcse",), compile=True, unpadded=True),))
