"""Convert pickles in the modules of a sentence-transformers folder, such as 2_Dense.

sentence-transformers reads ``2_Dense/pytorch_model.bin`` without being asked. Here it is converted
once, with ``--allow-pickle``, into a copy of the folder in the cache that holds safetensors only.
Without the option such a folder is refused.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path, PurePosixPath

from bench.backbones.folder import PICKLES, WEIGHTS, readable
from bench.backbones.pickles import read_pickled_tensors
from bench.base.cache import build_folder, default_cache
from bench.base.errors import NotAModel
from bench.base.hashes import files_sha256
from bench.base.reading import read_settings_text

PICKLE, SAFE = PICKLES[0], WEIGHTS[0]
ALLOW = "--allow-pickle reads only the tensors in it and stores them as safetensors"


def convert_modules(path: Path, *, allow_pickle: bool) -> Path:
    """Return the folder itself, or a copy of it with safetensors for the modules' pickles.

    Raises NotAModel if there is no copy yet and ``allow_pickle`` is not given, if a pickle holds
    more than tensors, or if the copy cannot be written.
    """
    pickles = find_pickles(path)
    if not pickles:
        return path
    copy = default_cache() / "converted" / _content(path)[:32]
    if not (copy / "modules.json").is_file():
        if not allow_pickle:
            name = pickles[0].relative_to(path)
            raise NotAModel(f"{path}: {name} is a pickle, which could run code", ALLOW)
        try:
            build_folder(
                copy,
                lambda aside: _copy(path, pickles, aside),
                (copy / "modules.json").is_file,
            )
        except OSError as error:
            raise NotAModel(
                f"{path}: the converted modules cannot be written to {copy}: "
                f"{error.strerror or error}",
                "set BENCH_CACHE to a folder with space",
            ) from None
    return copy


def find_pickles(path: Path) -> list[Path]:
    """Return the pickles of modules that have no safetensors file next to them.

    Raises NotAModel if modules.json is damaged, or names a folder outside of this one.
    """
    file = path / "modules.json"
    if not file.is_file():
        return []
    with readable(file):
        names = [str(module["path"]) for module in json.loads(read_settings_text(file))]
    found: set[Path] = set()
    for name in names:
        module = PurePosixPath(name)
        if module.is_absolute() or ".." in module.parts:
            raise NotAModel(f"{file}: the module {name!r} is outside of the folder")
        # the folder itself also holds what is no module, such as the states of a training
        found.update((path / name).rglob(PICKLE) if module.parts else [path / PICKLE])
    return sorted(
        pickle
        for pickle in found
        if pickle.is_file() and not any((pickle.parent / name).is_file() for name in WEIGHTS)
    )


def pickled_modules(files: Iterable[str]) -> list[str]:
    """Return the pickles of modules in a listing, such as "2_Dense/pytorch_model.bin".

    Those with a safetensors file next to them are left out.
    """
    names = set(files)
    found: list[str] = []
    for name in sorted(names):
        file = PurePosixPath(name)
        number = file.parent.name.partition("_")[0]
        is_in_module = len(file.parts) == 2 and number.isdigit()
        if is_in_module and file.name == PICKLE and f"{file.parent}/{SAFE}" not in names:
            found.append(name)
    return found


@cache
def _content(path: Path) -> str:
    return files_sha256((file for file in path.rglob("*") if file.is_file()), path)


def _copy(path: Path, pickles: list[Path], to: Path) -> None:
    from safetensors.torch import save_file

    for file in sorted(path.rglob("*")):
        if not file.is_file() or file.name in PICKLES:
            continue
        target = to / file.relative_to(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    for file in pickles:
        target = to / file.relative_to(path).with_name(SAFE)
        target.parent.mkdir(parents=True, exist_ok=True)
        tensors = read_pickled_tensors(file)
        save_file(
            {name: tensor.clone().contiguous() for name, tensor in tensors.items()},
            target,
            metadata={"format": "pt"},
        )
