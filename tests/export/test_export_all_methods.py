"""Every method as a sentence-transformers folder, loaded in a process that has neither bench nor
methods.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exports import CASES, FOLDER, REGISTRY, TEXTS, Case, make, outside
from outside import SAVED_AGAIN

from bench.base.errors import BenchError
from bench.export.st_folder import write_st
from bench.export.vectors import relative_difference
from bench.method import TorchMethod
from bench.run.conformance.methods import tiny_backbone

pytestmark = pytest.mark.nightly  # over 60 models are written, and loaded by another process


@pytest.fixture(scope="module")
def backbones(
    tiny: str, tiny_roberta: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """A BERT, a RoBERTa, and a sentence-transformers folder with normalisation and a prompt of its
    own.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    folder = tmp_path_factory.mktemp("st") / "finished"
    prompts: Any = {"prompts": {"own": "a word before: "}, "default_prompt_name": "own"}
    modules = [Transformer(tiny), Pooling(32, "mean"), Normalize()]
    model = SentenceTransformer(modules=modules, device="cpu", **prompts)
    model.save(str(folder), create_model_card=False)
    prefixed = tiny_backbone(folder.parent / "prefixed", prefix=5)
    made = {"tiny": tiny, "roberta": tiny_roberta, "st-folder": str(folder), "prefixed": prefixed}
    return {**made, "": ""}


@pytest.fixture(scope="module")
def exported(
    backbones: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, np.ndarray]]:
    """The folder of all exports, and each method's own vectors."""
    place = tmp_path_factory.mktemp("exports")
    mine = {}
    (place / "all").mkdir()
    for case in CASES:
        folder = place / "all" / case.id
        folder.mkdir()
        method = make(case, backbones, place)
        files = write_st(method.portable(), folder)
        assert sorted(file.name for file in files) == sorted(
            path.name for path in folder.glob("*.py")
        ), case.id
        mine[case.id] = method.encode(TEXTS)
    return place / "all", mine


@pytest.fixture(scope="module")
def theirs(
    exported: tuple[Path, dict[str, np.ndarray]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, np.ndarray]:
    return outside(exported[0], tmp_path_factory.mktemp("elsewhere"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_stranger_gets_the_methods_own_vectors(
    case: Case, exported: Any, theirs: dict[str, np.ndarray]
) -> None:
    refused = {"truncated", "token-prepending", "contrastive-prompting"}
    refused |= {"glove-avg", "infersent", "is-bert"}
    assert {one.name for one in CASES} == set(REGISTRY) - refused
    mine, found = exported[1][case.id], theirs[case.id]
    assert mine.shape == found.shape and np.ptp(mine, axis=0).max() > 0.01
    assert relative_difference(mine, found) <= 1e-5


@pytest.mark.parametrize("name", SAVED_AGAIN)
def test_sentence_transformers_can_save_it_again(
    name: str, exported: Any, theirs: dict[str, np.ndarray]
) -> None:
    assert relative_difference(exported[1][name], theirs[f"again {name}"]) <= 1e-5


def test_a_finished_folder_keeps_its_prompt_and_gets_the_runs_length(exported: Any) -> None:
    folder = exported[0] / FOLDER.id
    config = json.loads((folder / "config_sentence_transformers.json").read_text())
    assert config["prompts"]["own"] == "a word before: " and config["default_prompt_name"] == "own"
    assert json.loads((folder / "tokenizer_config.json").read_text())["model_max_length"] == 8


def test_a_method_that_does_not_say_what_it_does_is_refused() -> None:
    class Mine(TorchMethod):
        name, settings = "mine", ("unsupervised",)

    said = r"mine does not say what computes its vectors .* docs/evaluate\.md"
    with pytest.raises(BenchError, match=said):
        Mine().portable()
