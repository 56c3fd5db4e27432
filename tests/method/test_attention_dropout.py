"""The dropout of fused attention: measured, refused if a kernel rounds it, and kept from cuDNN."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from models import toy
from transformers import BertConfig, BertModel

from bench.base.errors import RunFailed
from bench.method import Context, attention_dropout
from bench.method.attention_dropout import (
    attention_dropouts,
    check_attention_dropout,
    describe_attention_dropout,
    measure_attention_dropout,
    without_rounded_dropout,
)
from bench.training import loop
from bench.training.loop import keep_attention_dropout

CPU = torch.device("cpu")
HONEST = torch.nn.functional.scaled_dot_product_attention


def rounding_to_sixteenths(*tensors: Any, dropout_p: float = 0.0, **kwargs: Any) -> torch.Tensor:
    """Stand in for cuDNN's kernels."""
    return HONEST(*tensors, dropout_p=round(dropout_p * 16) / 16, **kwargs)


@pytest.fixture
def rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = SimpleNamespace(scaled_dot_product_attention=rounding_to_sixteenths)
    monkeypatch.setattr(attention_dropout, "F", kernels)


@pytest.fixture
def encoder() -> Any:
    """Return a BERT of one layer with attention dropout 0.1."""
    config = BertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        hidden_dropout_prob=0.3,
        attention_probs_dropout_prob=0.1,
    )
    return BertModel(config)


def test_the_dropout_probability_is_measured_without_a_draw() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    assert measure_attention_dropout(0.1, CPU, torch.float32) == pytest.approx(0.1, abs=0.002)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.usefixtures("rounded")
def test_a_kernel_that_rounds_is_seen() -> None:
    assert measure_attention_dropout(0.1, CPU, torch.float32) == pytest.approx(0.125, abs=0.002)
    assert measure_attention_dropout(0.125, CPU, torch.float32) == pytest.approx(0.125, abs=0.002)


def test_an_encoder_with_its_dropout_is_trained(encoder: Any) -> None:
    assert attention_dropouts(encoder) == {0.1}
    check_attention_dropout(attention_dropouts(encoder), CPU, torch.float32)


@pytest.mark.usefixtures("rounded")
def test_a_training_with_another_dropout_does_not_start(encoder: Any) -> None:
    with pytest.raises(RunFailed, match=r"drops 0\.12\d+ of its weights, not 0\.1"):
        check_attention_dropout(attention_dropouts(encoder), CPU, torch.float32)


def test_an_encoder_that_cannot_be_watched_has_the_largest_dropout_of_its_config(
    encoder: Any,
) -> None:
    def refuse(**inputs: Any) -> None:
        raise ValueError("wants an image")

    encoder.forward = refuse
    assert attention_dropouts(encoder) == {0.3}


def test_an_encoder_without_attention_has_none(tmp_path: Path) -> None:
    assert attention_dropouts(toy(tmp_path).encoder) == set()


@pytest.mark.parametrize(("p", "kept"), [(0.1, False), (0.125, True), (0.0, True)])
def test_cudnn_is_left_out_if_it_would_round(p: float, kept: bool) -> None:
    assert torch.backends.cuda.cudnn_sdp_enabled()
    with without_rounded_dropout([p]):
        assert torch.backends.cuda.cudnn_sdp_enabled() == kept
    assert torch.backends.cuda.cudnn_sdp_enabled()


def test_cudnn_is_left_out_for_as_long_as_the_training_takes(tmp_path: Path, encoder: Any) -> None:
    method = toy(tmp_path)
    method.encoder = encoder
    with ExitStack() as stack:
        keep_attention_dropout(method, Context("cpu", 1, tmp_path), stack)
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert torch.backends.cuda.cudnn_sdp_enabled()


@pytest.fixture
def elsewhere(tmp_path: Path, encoder: Any, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return if cuDNN's attention was on, for each training that began."""
    seen: list[bool] = []

    def begin(*_: Any) -> None:
        seen.append(torch.backends.cuda.cudnn_sdp_enabled())

    monkeypatch.setattr(loop, "run_loop", begin)
    return seen


def train_elsewhere(folder: Path, encoder: Any) -> None:
    """Begin a training on a device that is not called "cpu", as a GPU is not."""
    method = toy(folder)
    method.encoder = encoder
    loop.train_method(method, object(), Context("cpu:0", seed=1, folder=folder))


def test_a_training_on_a_gpu_keeps_attention_from_cudnn(
    tmp_path: Path, encoder: Any, elsewhere: list[bool]
) -> None:
    train_elsewhere(tmp_path, encoder)
    assert elsewhere == [False] and torch.backends.cuda.cudnn_sdp_enabled()


@pytest.mark.usefixtures("rounded")
def test_a_training_on_a_gpu_that_rounds_is_refused(
    tmp_path: Path, encoder: Any, elsewhere: list[bool]
) -> None:
    with pytest.raises(RunFailed, match=r"drops 0\.12\d+ of its weights, not 0\.1"):
        train_elsewhere(tmp_path, encoder)
    assert elsewhere == []


def test_an_encoder_is_asked_for_its_dropout_once(tmp_path: Path, encoder: Any) -> None:
    """At the start of a training; it takes a pass of the encoder."""
    passes: list[None] = []
    encoder.register_forward_hook(lambda *_: passes.append(None))
    attention_dropouts(encoder)
    once = len(passes)
    method = toy(tmp_path)
    method.encoder = encoder
    with ExitStack() as stack:
        keep_attention_dropout(method, Context("cpu", 1, tmp_path), stack)
    assert once and len(passes) == 2 * once


def test_a_description_names_dropout_and_kernel() -> None:
    said = describe_attention_dropout(0.1, torch.device("cpu"), torch.float32)
    assert re.fullmatch(r"0\.(099|100)\d drawn for 0\.1 \((math|flash)\)", said)


def test_doctor_says_what_a_gpu_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU it does not measure: nothing rounds there."""
    from bench.cli import doctor

    assert "attention dropout" not in doctor.diagnose_machine(None, None)
    monkeypatch.setattr(doctor.devices, "choose_device", lambda text: "cuda")
    monkeypatch.setattr(doctor.devices, "device_name", lambda device: "a card")
    monkeypatch.setattr(doctor.devices, "choose_precision", lambda text, device: "bf16")
    asked = []

    def measured(p: float, device: torch.device, dtype: torch.dtype) -> str:
        asked.append((p, str(device), dtype))
        return "0.1250 drawn for 0.1 (cudnn)"

    module = "bench.method.attention_dropout.describe_attention_dropout"
    monkeypatch.setattr(module, measured)
    facts = doctor.diagnose_machine(None, None)
    assert facts["attention dropout"] == "0.1250 drawn for 0.1 (cudnn)"
    assert asked == [(0.1, "cuda", torch.bfloat16)]
