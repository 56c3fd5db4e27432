"""ONNX graphs: what onnxruntime gives with the folder's own tokenizer, and which methods have none."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch
from exports import MASKED_PADDING, PLAIN, PROMPTED, TEMPLATED, TEXTS, WITH_HEAD, WORDS, Case, make

from bench.base.errors import BenchError
from bench.export import onnx_graph, relative

WITHOUT_GRAPH = [*TEMPLATED, *WORDS]
HAS_ONNX = all(importlib.util.find_spec(name) for name in onnx_graph.PACKAGES)


@pytest.fixture(scope="module")
def backbones(tiny: str, tiny_roberta: str) -> dict[str, str]:
    return {"tiny": tiny, "roberta": tiny_roberta, "": ""}


@pytest.mark.parametrize("case", WITHOUT_GRAPH, ids=lambda case: case.id)
def test_a_graph_is_refused_where_tokens_are_not_all(case: Case, backbones: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"reads more than the tokens of a sentence|is no torch model"):
        onnx_graph.limits(make(case, backbones, tmp_path))


def test_packages_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_graph.importlib.util, "find_spec", lambda name: None if name == "onnxscript" else object())
    with pytest.raises(BenchError, match="--format onnx needs onnxscript, not installed here") as missing:
        onnx_graph.check_packages()
    assert missing.value.hint == "pip install onnxscript"


@pytest.mark.skipif(not HAS_ONNX, reason="needs onnx, onnxscript and onnxruntime")
@pytest.mark.slow
@pytest.mark.parametrize("case", [PLAIN[0], WITH_HEAD[1], PROMPTED[1], MASKED_PADDING], ids=lambda case: case.id)
def test_onnxruntime_gives_the_methods_vectors(case: Case, backbones: dict[str, str], tmp_path: Path) -> None:
    if torch.__version__.startswith("2.6.") and case.id == PLAIN[0].id:
        pytest.skip("torch 2.6 cannot make a graph of it")
    method = make(case, backbones, tmp_path)
    mine = method.encode(TEXTS)
    (tmp_path / "export").mkdir()
    onnx_graph.write(method, tmp_path / "export")
    assert relative(mine, onnx_graph.vectors(tmp_path / "export", TEXTS)) <= 1e-5
