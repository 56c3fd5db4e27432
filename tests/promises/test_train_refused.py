"""Promise 6: a backbone that cannot work is refused before the first step, in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made import tiny_encoder
from started import bench, error_line, record, run_folders

SHORT = ["--budget", "12steps", "--set", "batch_size=16", "--set", "select_on=last", "--plain"]
SHORT += ["--device", "cpu", "--precision", "fp32"]


def without_dropout(folder: Path) -> Path:
    return tiny_encoder(folder / "dry", dropout=0.0)


def decoder(folder: Path) -> Path:
    return tiny_encoder(folder / "llama", "llama")


def lacking(folder: Path) -> Path:
    """Write a model whose weights lack a layer's output."""
    from safetensors.torch import load_file, save_file

    model = tiny_encoder(folder / "lacking")
    weights = load_file(model / "model.safetensors")
    fewer = {name: one for name, one in weights.items() if "layer.1.output.dense" not in name}
    save_file(fewer, model / "model.safetensors", metadata={"format": "pt"})
    return model


def whole(folder: Path) -> Path:
    return tiny_encoder(folder / "whole")


LONG_PROMPT = ["--set", "prompt_length=64"]
REFUSED: dict[str, tuple[Callable[[Path], Path], list[str], list[str], list[str]]] = {
    # what: its backbone, method and values, words of the line, values that would work
    "no dropout": (without_dropout, ["simcse"], ["dropout", "dry"], ["--set dropout=0.1"]),
    "a first token that sees nothing": (
        decoder,
        ["simcse", "--set", "dropout=0.1"],
        ["first token", "llama", "causal"],
        ["--set pooling=avg"],
    ),
    "a prompt that does not fit": (whole, ["promcse", *LONG_PROMPT], ["prompt_length", "64"], []),
    "a head that no mask trained": (
        decoder,
        ["simcse", "--set", "mlm=true", "--set", "pooling=avg", "--set", "dropout=0.1"],
        ["MLM", "llama"],
        [],
    ),
    "missing weights": (
        lacking,
        ["simcse"],
        ["lacking", "2 weights", "encoder.layer.1.output.dense"],
        [],
    ),
    "a vocabulary without a mask": (decoder, ["promptbert"], ["llama", "mask"], []),
}


def refused(what: str, inputs: Path, folder: Path) -> Any:
    """Run what cannot work in a folder."""
    make, method, *_ = REFUSED[what]
    words: list[str | Path] = ["run", *method, "--backbone", make(folder), *SHORT]
    words += ["--corpus", inputs / "corpus.txt", "--suite", inputs / "pairs.tsv"]
    return bench(*words, "--runs", folder / "runs", cwd=folder, code=None)


@pytest.mark.promise(6, 29)
@pytest.mark.parametrize(
    "what",
    [pytest.param(what, marks=pytest.mark.nightly if "head" in what else ()) for what in REFUSED],
)
def test_what_cannot_work_is_refused_before_the_first_step(
    what: str, inputs: Path, tmp_path: Path
) -> None:
    done = refused(what, inputs, tmp_path)
    line = error_line(done)
    _, _, words, tries = REFUSED[what]
    assert [word for word in words if word not in line] == []
    assert [word for word in tries if word not in done.err] == []
    assert done.code == 2
    assert run_folders(tmp_path / "runs") == []


def score(runs: Path, backbone: str) -> float | None:
    """Return the score of the finished run of a backbone, if there is one."""
    records = [record(run) for run in run_folders(runs)]
    found = [one for one in records if Path(one["backbone"]).name == backbone and one["scores"]]
    return float(found[0]["scores"][0]["value"]) if found else None


@pytest.mark.promise(6, 29)
@pytest.mark.nightly
def test_weights_under_the_names_that_torch_compile_gives_are_read_or_named(
    shared: Path, tmp_path: Path
) -> None:
    case = shared / "cases" / "load-hints"
    words: list[str | Path] = ["run", "last-avg", "--suite", case / "pairs.tsv", "--plain"]
    words += ["--runs", tmp_path / "runs", "--backbone"]
    bench(*words, case / "base", cwd=tmp_path)
    assert score(tmp_path / "runs", "base") == pytest.approx(-29.29, abs=0.01)
    done = bench(*words, case / "pre-_orig_mod", cwd=tmp_path, code=None)
    read = score(tmp_path / "runs", "pre-_orig_mod")
    same = read == pytest.approx(-29.29, abs=0.01)
    assert same or "_orig_mod." in done.err, "the prefix of all names is not mentioned"
