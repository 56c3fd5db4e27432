"""A hub that announces names that lead out of its cache, lists in another form, or other bytes than
it sends.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from hub import StandInHub

from bench.backbones import fetch_backbone, resolve
from bench.backbones.folder import (
    card_title,
    module_folders,
    read_config,
    weight_files,
)
from bench.base.errors import DataDamaged, NotAModel
from bench.data.hub import check_bytes

NAME = "someone/tiny-bert"


def files_of(folder: str) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in Path(folder).iterdir() if file.is_file()}


def test_hashes_of_files(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"hello\n")
    check_bytes(file, "ce013625030ba8dba906f756967f9e9ca394464a", "file")  # as git names it
    check_bytes(file, "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03", "file")
    check_bytes(file, "no hash", "file")
    with pytest.raises(DataDamaged, match="other bytes than the hub announced"):
        check_bytes(file, "0" * 64, "file")
    assert not file.exists()


def test_other_bytes_of_the_announced_size_are_not_cached(hub: StandInHub, tiny: str) -> None:
    file = "model.safetensors"
    files = files_of(tiny)
    hub.add("model", NAME, files)
    other = bytearray(files[file])
    other[-9] ^= 1
    hub.fault(f"/{file}", wrong=bytes(other), times=None)
    with pytest.raises(NotAModel, match="other bytes"):
        fetch_backbone(resolve(NAME), offline=False)
    hub.faults.clear()
    assert resolve(NAME).path is None  # nothing of it is taken for the model
    fetched = fetch_backbone(resolve(NAME), offline=False)
    assert fetched.path is not None and (fetched.path / file).read_bytes() == files[file]


def test_a_module_outside_of_its_folder(tiny: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny, tmp_path / "st"))
    modules = [{"idx": 0, "path": "", "type": "x"}, {"idx": 1, "path": "../other", "type": "y"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(NotAModel, match="outside of the folder"):
        resolve(str(folder))


@pytest.mark.parametrize("part", ["../w.safetensors", "/dev/zero", 1])
def test_weights_in_several_files_are_in_the_folder(part: object, tmp_path: Path) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"w": part}}))
    with pytest.raises(NotAModel, match="are not in its folder"):
        weight_files(tmp_path)


def test_settings_of_a_size_that_none_has(tmp_path: Path) -> None:
    (tmp_path / "blob").touch()
    os.truncate(tmp_path / "blob", 20 << 30)  # a sparse file: no room is needed
    for name in ("config.json", "modules.json", "model.safetensors.index.json", "README.md"):
        (tmp_path / name).symlink_to("blob")
    for read in (read_config, module_folders, weight_files):
        with pytest.raises(NotAModel, match="too large"):
            read(tmp_path)
    assert card_title(tmp_path) == ""
