"""Weights that are a pickle: never opened unasked, and what is no weights is not read."""

from __future__ import annotations

import pickle
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from st_folders import st_folder

from bench.backbones import load, resolve
from bench.base.errors import NotAModel


@pytest.fixture
def folder(tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    copy = Path(shutil.copytree(tiny, tmp_path / "pickled"))
    torch.save(load_file(copy / "model.safetensors"), copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    return copy


def test_a_folder_is_allowed_once_and_stays_as_it_is(folder: Path, tiny: str) -> None:
    before = sorted(folder.iterdir())
    with pytest.raises(NotAModel, match="pytorch_model.bin is a pickle") as caught:
        resolve(str(folder))
    assert "--allow-pickle" in str(caught.value.hint)
    reference = resolve(str(folder), allow_pickle=True)
    assert reference.path == folder and sorted(folder.iterdir()) == before
    torch.testing.assert_close(
        load(reference).encoder.state_dict(),
        load(resolve(tiny)).encoder.state_dict(),
        rtol=0,
        atol=0,
    )
    assert resolve(str(folder)) == reference
    assert load(reference).mlm_head() is not None, "the heads come along"


def test_other_bytes_are_another_backbone_and_need_leave_again(folder: Path) -> None:
    file = folder / "pytorch_model.bin"
    before = resolve(str(folder), allow_pickle=True).revision
    state = torch.load(file, weights_only=True)
    torch.save({name: tensor + 1 for name, tensor in state.items()}, file)
    with pytest.raises(NotAModel, match="is a pickle"):
        resolve(str(folder))
    assert resolve(str(folder), allow_pickle=True).revision != before


def test_a_module_with_a_pickle_is_read_by_its_own_library(tiny: str, folder: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense

    dense = Dense(32, 8)
    place = st_folder(folder.parent / "st", Path(tiny), change=lambda model: model.append(dense))
    wanted = SentenceTransformer(str(place), device="cpu").encode(["a man"])
    torch.save(dense.state_dict(), place / "2_Dense" / "pytorch_model.bin")
    (place / "2_Dense" / "model.safetensors").unlink()
    with pytest.raises(NotAModel, match="2_Dense/pytorch_model.bin is a pickle"):
        resolve(str(place))
    path = resolve(str(place), allow_pickle=True).path
    found = SentenceTransformer(str(path), device="cpu", local_files_only=True).encode(["a man"])
    torch.testing.assert_close(torch.tensor(found), torch.tensor(wanted), rtol=0, atol=1e-6)


class Touches:
    """A hostile pickle: it holds a call."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("content", ["code", "list"])
def test_files_that_are_no_weights_are_not_read(folder: Path, tmp_path: Path, content: str) -> None:
    file, mark = folder / "pytorch_model.bin", tmp_path / "executed"
    if content == "code":
        torch.save({"a": torch.zeros(1), "b": Touches(mark)}, file)
    else:
        file.write_bytes(pickle.dumps([1, 2], protocol=2))
    with pytest.raises(
        NotAModel, match="pytorch_model.bin (is not read|holds no tensors)"
    ) as caught:
        resolve(str(folder), allow_pickle=True)
    assert "\n" not in caught.value.message and not mark.exists()
    assert not (tmp_path / "cache").exists(), "nothing is allowed"


@pytest.mark.filterwarnings("ignore:Sparse CSR:UserWarning")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda values: values.to_sparse(), "not dense"),
        (lambda values: torch.zeros(1).expand(100_000, 100_000), "its file less"),
    ],
    ids=["sparse", "strided"],
)
def test_what_is_no_dense_tensor_is_not_read(change: Any, words: str, folder: Path) -> None:
    torch.save({"w": change(torch.ones(2, 2))}, folder / "pytorch_model.bin")
    with pytest.raises(NotAModel, match=words):
        resolve(str(folder), allow_pickle=True)


def test_an_archive_that_unpacks_to_more_than_its_size(folder: Path) -> None:
    file, packed = folder / "pytorch_model.bin", folder / "packed"
    torch.save({"w": torch.zeros(1_000_000)}, file)
    with zipfile.ZipFile(file) as whole, zipfile.ZipFile(packed, "w") as archive:
        for name in whole.namelist():
            archive.writestr(name, whole.read(name), zipfile.ZIP_DEFLATED)
    packed.replace(file)
    with pytest.raises(NotAModel, match="unpacks to 4,"):
        resolve(str(folder), allow_pickle=True)
