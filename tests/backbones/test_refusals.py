"""Folders that cannot be loaded: one true line each, which names the file or the tensor."""

from __future__ import annotations

from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from st_folders import bert_folder, edit_json

from bench.backbones import load, resolve
from bench.base.errors import NotAModel

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 438000000\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return bert_folder(tmp_path / "model")


def message(folder: Path) -> str:
    with pytest.raises(NotAModel) as caught:
        load(resolve(str(folder)))
    assert "\n" not in str(caught.value)
    return f"{caught.value.message} / {caught.value.hint}"


def test_a_git_lfs_pointer(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_text(POINTER)
    assert f"{file} is a Git LFS pointer, not the file itself / git lfs" in message(folder)


def test_a_part_of_the_weights_that_is_missing(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    save_file(tensors, folder / "model-00001-of-00002.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").unlink()
    names = dict.fromkeys(tensors, "model-00001-of-00002.safetensors")
    names[next(iter(names))] = "model-00002-of-00002.safetensors"
    edit_json(folder / "model.safetensors.index.json", weight_map=names)
    assert (
        "model-00002-of-00002.safetensors is missing, which model.safetensors.index.json names"
        in message(folder)
    )


@pytest.mark.parametrize(
    ("key", "size", "why"),
    [
        ("num_hidden_layers", 10**6, "but its weights hold"),
        ("vocab_size", 10**9, "more than any model has"),
    ],
)
def test_sizes_beyond_the_weights_are_refused_before_anything_is_built(
    key: str, size: int, why: str, folder: Path
) -> None:
    edit_json(folder / "config.json", **{key: size})
    assert f"{key} is {size:,} in {folder / 'config.json'}, {why}" in message(folder)
