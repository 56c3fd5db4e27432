"""Weights that are a pickle: never opened unasked, converted once, and what is no weights is not
read.
"""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from bench.backbones import load, resolve
from bench.base.errors import NotAModel


@pytest.fixture
def folder(tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    copy = Path(shutil.copytree(tiny, tmp_path / "pickled"))
    torch.save(load_file(copy / "model.safetensors"), copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    return copy


def test_a_folder_is_converted_once_and_then_needs_no_leave(
    folder: Path, tiny: str, tmp_path: Path
) -> None:
    with pytest.raises(NotAModel, match="weights are a pickle") as caught:
        resolve(str(folder))
    assert "--allow-pickle" in str(caught.value.hint)
    assert not (tmp_path / "cache" / "converted").exists()
    reference = resolve(str(folder), allow_pickle=True)
    assert reference.name == str(folder) and reference.path != folder
    torch.testing.assert_close(
        load(reference).encoder.state_dict(),
        load(resolve(tiny)).encoder.state_dict(),
        rtol=0,
        atol=0,
    )
    assert resolve(str(folder)) == reference
    assert load(reference).mlm_head() is not None, "the heads come along"


def test_weights_in_parts(folder: Path, tiny: str) -> None:
    state = torch.load(folder / "pytorch_model.bin", weights_only=True)
    names = sorted(state)
    index = {}
    for part, some in (
        ("pytorch_model-00001-of-00002.bin", names[::2]),
        ("pytorch_model-00002-of-00002.bin", names[1::2]),
    ):
        torch.save({name: state[name] for name in some}, folder / part)
        index |= dict.fromkeys(some, part)
    (folder / "pytorch_model.bin").unlink()
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": index}))
    reference = resolve(str(folder), allow_pickle=True)
    torch.testing.assert_close(
        load(reference).encoder.state_dict(),
        load(resolve(tiny)).encoder.state_dict(),
        rtol=0,
        atol=0,
    )


class Touches:
    """A hostile pickle: it holds a call."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("content", ["code", "noise", "empty", "list"])
def test_files_that_are_no_weights_are_not_read(folder: Path, tmp_path: Path, content: str) -> None:
    file, mark = folder / "pytorch_model.bin", tmp_path / "executed"
    if content == "code":
        torch.save({"a": torch.zeros(1), "b": Touches(mark)}, file)
    else:
        file.write_bytes(
            {"noise": b"x" * 999, "empty": b"", "list": pickle.dumps([1, 2], protocol=2)}[content]
        )
    with pytest.raises(
        NotAModel, match="pytorch_model.bin (is not read|holds no tensors)"
    ) as caught:
        resolve(str(folder), allow_pickle=True)
    assert "\n" not in caught.value.message and not mark.exists()
    assert not [f for f in (tmp_path / "cache" / "converted").iterdir() if f.is_dir()], (
        "nothing half-made stays"
    )


def test_a_torch_that_a_pickle_can_harm_reads_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "__version__", "2.9.1+cu128")
    with pytest.raises(NotAModel, match="CVE-2026-24747"):
        resolve(str(folder), allow_pickle=True)
