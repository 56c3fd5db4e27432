"""The device of a command: a GPU that torch cannot use is an error, or for ``auto`` a warning;
nothing falls back without a line.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bench.base.devices import choose_device, choose_precision
from bench.base.errors import BenchError
from bench.method.passes import float32_products


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a machine with a driver that lists one card."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA A100-SXM4-80GB, 535.104.05'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.parametrize(
    "cuda, reason, hint",
    [
        (None, "was built without CUDA", "from PyPI"),
        (
            "13.0",
            "driver 535.104.05, and torch .* needs driver 580",
            "download.pytorch.org/whl/cu126",
        ),
        ("12.6", "needs driver 525", "update the driver"),
    ],
)
def test_a_card_that_torch_does_not_see(
    driver: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    cuda: str | None,
    reason: str,
    hint: str,
) -> None:
    monkeypatch.setattr("torch.version.cuda", cuda)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(BenchError, match=f"NVIDIA A100-SXM4-80GB is here.*{reason}") as caught:
        choose_device("cuda")
    assert hint in str(caught.value.hint) and capsys.readouterr().err == ""
    assert choose_device("auto") == "cpu"
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"warning: {caught.value.message}; this command uses the CPU"
    assert second == f"try: {caught.value.hint}"
    assert choose_device("cpu") == "cpu" and capsys.readouterr().err == ""


@pytest.mark.parametrize("hidden", ["", "-1"])
def test_cards_that_the_user_hid(
    driver: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], hidden: str
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert choose_device("auto") == "cpu" and capsys.readouterr().err == ""
    with pytest.raises(BenchError, match="not available here"):
        choose_device("cuda")


def test_a_machine_without_a_driver(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setenv("PATH", "")
    assert choose_device("auto") == "cpu" and capsys.readouterr().err == ""


@pytest.fixture
def volta(monkeypatch: pytest.MonkeyPatch) -> None:
    """A card that torch sees, and that this build has no kernels for: computing on it raises."""

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("CUDA error: no kernel image is available for execution on the device")

    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda device: "Tesla V100")
    monkeypatch.setattr("torch.cuda.get_device_capability", lambda device: (7, 0))
    monkeypatch.setattr("torch.ones", refuse)


def test_a_card_without_kernels(volta: None, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BenchError, match=r"Tesla V100 \(compute capability 7.0\)") as caught:
        choose_device("cuda")
    assert "no kernel image" in caught.value.message and "cu126" in str(caught.value.hint)
    assert choose_device("auto") == "cpu"
    assert capsys.readouterr().err.startswith("warning: Tesla V100")


def test_the_number_of_a_card_is_checked(volta: None) -> None:
    with pytest.raises(BenchError, match="--device cuda:7: the last GPU here is cuda:1"):
        choose_device("cuda:7")


@pytest.mark.parametrize(
    "bf16, capability, expected",
    [
        (True, (8, 0), "bf16"),
        (False, (7, 5), "fp16"),
        (False, (7, 0), "fp16"),
        (False, (6, 1), "fp32"),
    ],
)
def test_auto_is_the_fastest_precision_that_a_card_has(
    monkeypatch: pytest.MonkeyPatch, bf16: bool, capability: tuple[int, int], expected: str
) -> None:
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda including_emulation: bf16)
    monkeypatch.setattr("torch.cuda.get_device_capability", lambda device: capability)
    assert choose_precision("auto", "cuda") == expected
    assert choose_precision("auto", "cpu") == "fp32"
    assert choose_precision("fp32", "cuda") == "fp32"
    monkeypatch.setattr("torch.cuda.get_device_name", lambda device: "Tesla T4")
    if not bf16:
        with pytest.raises(BenchError, match="--precision bf16: Tesla T4 does not support it"):
            choose_precision("bf16", "cuda")


@pytest.mark.parametrize("tf32", [False, True])
def test_float32_is_float32_in_convolutions_too(tf32: bool) -> None:
    """Torch's switch for matrix products leaves cuDNN's convolutions and LSTMs in TF32."""
    cudnn = torch.backends.cudnn
    before = cudnn.allow_tf32, torch.get_float32_matmul_precision()
    with float32_products(tf32=tf32):
        assert cudnn.allow_tf32 is tf32
        assert torch.get_float32_matmul_precision() == ("high" if tf32 else "highest")
    assert (cudnn.allow_tf32, torch.get_float32_matmul_precision()) == before
