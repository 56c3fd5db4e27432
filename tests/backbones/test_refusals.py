"""Folders that cannot be loaded: one true line each, which names the file or the tensor."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from st_folders import bert_folder, edit_json, st_folder

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


@pytest.mark.parametrize(
    "file", ["model.safetensors", "tokenizer.json", "config.json", "pytorch_model.bin"]
)
def test_a_git_lfs_pointer(file: str, folder: Path) -> None:
    (folder / file).write_text(POINTER)
    assert f"{folder / file} is a Git LFS pointer, not the file itself / git lfs" in message(folder)


def test_a_git_lfs_pointer_in_a_module_of_a_sentence_transformers_folder(
    folder: Path, tmp_path: Path
) -> None:
    whole = st_folder(tmp_path / "st", folder)
    (whole / "1_Pooling" / "model.safetensors").write_text(POINTER)
    assert "1_Pooling/model.safetensors is a Git LFS pointer" in message(whole)


@pytest.mark.parametrize("with_model", [False, True])
def test_an_adapter(with_model: bool, folder: Path, tmp_path: Path) -> None:
    place = folder if with_model else tmp_path / "adapter"
    place.mkdir(exist_ok=True)
    edit_json(place / "adapter_config.json", peft_type="LORA", base_model_name_or_path="some/base")
    assert "is an adapter of some/base without adapter_model.safetensors / save it" in message(
        place
    )


def test_weights_of_other_sizes_are_named_with_both_shapes(folder: Path) -> None:
    edit_json(folder / "config.json", max_position_embeddings=48)
    assert (
        "embeddings.position_embeddings.weight has shape (64, 16) in its weights, and (48, 16) by "
        "its config.json" in message(folder)
    )


@pytest.mark.parametrize("content", [b"", b"{}", b"<html>not found</html>" * 100, "cut"])
def test_weights_that_are_damaged(content: bytes | str, folder: Path) -> None:
    file = folder / "model.safetensors"
    if isinstance(content, str):
        content = file.read_bytes()[:-100]
    file.write_bytes(content)
    assert f"{file} is damaged or cut off ({len(content):,} bytes)" in message(folder)


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


def test_a_dense_layer_of_other_sizes(folder: Path, tmp_path: Path) -> None:
    from models import built
    from sentence_transformers.sentence_transformer.modules import Dense

    from bench.methods.pretrained import Pretrained

    whole = st_folder(tmp_path / "st", folder, change=lambda model: model.append(Dense(16, 4)))
    edit_json(whole / "2_Dense" / "config.json", out_features=5)
    with pytest.raises(NotAModel, match=r"cannot be loaded as an encoder: .*size mismatch"):
        built(Pretrained, str(whole), tmp_path)


def test_missing_weights_of_the_encoder_are_not_made_up(folder: Path, tmp_path: Path) -> None:
    from models import built

    from bench.methods.pretrained import Pretrained

    whole = st_folder(tmp_path / "st", folder)
    tensors = load_file(whole / "model.safetensors")
    tensors = {name: tensor for name, tensor in tensors.items() if "layer.1.output" not in name}
    save_file(tensors, whole / "model.safetensors", metadata={"format": "pt"})
    torch.manual_seed(0)
    with pytest.raises(
        NotAModel, match="lacks .* weights of its encoder, the first is encoder.layer.1.output"
    ):
        built(Pretrained, str(whole), tmp_path)


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module."])
def test_names_of_a_wrapped_model_are_named_and_the_hint_takes_them_off(
    prefix: str, folder: Path
) -> None:
    file = folder / "model.safetensors"
    tensors = load_file(file)
    wrapped = {f"{prefix}{name}": tensor for name, tensor in tensors.items()}
    save_file(wrapped, file, metadata={"format": "pt"})
    with pytest.raises(
        NotAModel, match=f"every name in its weights begins with {prefix}"
    ) as caught:
        load(resolve(str(folder)))
    words = shlex.split(str(caught.value.hint).removeprefix("take it off: "))
    subprocess.run([sys.executable, *words[1:]], check=True)
    assert load_file(file).keys() == tensors.keys()
    load(resolve(str(folder)))


@pytest.mark.parametrize(
    ("key", "size", "why"),
    [
        ("num_hidden_layers", 10**6, "but its weights hold"),
        ("vocab_size", 10**9, "more than any model has"),
        ("intermediate_size", 10**12, "more than any model has"),
    ],
)
def test_sizes_beyond_the_weights_are_refused_before_anything_is_built(
    key: str, size: int, why: str, folder: Path
) -> None:
    edit_json(folder / "config.json", **{key: size})
    assert f"{key} is {size:,} in {folder / 'config.json'}, {why}" in message(folder)
