"""Which methods a plain transformers checkpoint has a place for, and the reasons of the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from exports import CASES, PLAIN, TEXTS, WITH_HEAD, Case, make

from bench.base.errors import BenchError
from bench.conformance.methods import tiny_backbone
from bench.export.transformers_folder import transformers_vectors, write_transformers
from bench.export.vectors import relative_difference

FITTING = [*PLAIN, *WITH_HEAD]
REFUSED = [case for case in CASES if case not in FITTING and case.backbone != "st-folder"]


@pytest.fixture(scope="module")
def backbones(
    tiny: str, tiny_roberta: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    prefixed = tiny_backbone(tmp_path_factory.mktemp("models") / "prefixed", prefix=5)
    return {"tiny": tiny, "roberta": tiny_roberta, "prefixed": prefixed, "": ""}


@pytest.mark.nightly
@pytest.mark.parametrize("case", FITTING, ids=lambda case: case.id)
def test_the_example_of_the_readme_gives_the_methods_vectors(
    case: Case, backbones: dict[str, str], tmp_path: Path
) -> None:
    method = make(case, backbones, tmp_path)
    folder = tmp_path / "export"
    folder.mkdir()
    write_transformers(method.portable(), folder, method.name)
    found = transformers_vectors(folder, TEXTS)
    assert relative_difference(method.encode(TEXTS), found) <= 1e-5
    assert {file.suffix for file in folder.iterdir()} <= {".json", ".safetensors", ".txt"}


def test_pooler_output_is_where_the_simcse_authors_have_it(
    backbones: dict[str, str], tmp_path: Path
) -> None:
    """``pooler_output`` of AutoModel, as their README takes it; and `bench` reads the folder."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder, text = tmp_path / "export", ["a man plays"]
    folder.mkdir()
    method = make(WITH_HEAD[0], backbones, tmp_path)
    write_transformers(method.portable(), folder, "simcse")
    tokenizer, model = (cls.from_pretrained(folder) for cls in (AutoTokenizer, AutoModel))
    with torch.no_grad():
        output = model.eval()(**tokenizer(text, return_tensors="pt")).pooler_output.numpy()
    assert relative_difference(method.encode(text), output) <= 1e-5
    read = Case("pretrained", "none", values={"pooling": "mlp"}, backbone="export")
    assert make(read, {"export": str(folder)}, tmp_path).encode(text).shape == output.shape


@pytest.mark.nightly
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_a_method_that_a_plain_checkpoint_cannot_hold_is_refused_with_the_reason(
    case: Case, backbones: dict[str, str], tmp_path: Path
) -> None:
    parts = make(case, backbones, tmp_path).portable()
    with pytest.raises(
        BenchError, match=f"{case.name}: a plain transformers checkpoint can hold only an encoder"
    ) as refused:
        write_transformers(parts, tmp_path / "export", case.name)
    assert (
        refused.value.hint == "--format sentence-transformers"
        and not (tmp_path / "export").exists()
    )
