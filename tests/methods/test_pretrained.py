"""Ready-made encoders: the same vectors as the library that they were made for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from models import built, sentences

from bench.methods.pretrained import Pretrained

TEXTS = [*sentences(12, seed=9), "guitar " * 40, "A Man , 42 % ; naïve", ""]


def of_an_early_version(folder: Path, source: str) -> Path:
    """Write a folder as sentence-transformers 2 did: its transformer is in a folder of its own."""

    def write(file: str, content: Any) -> None:
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(json.dumps(content))

    shutil.copytree(source, folder / "0_Transformer")
    modules = [("0_Transformer", "Transformer"), ("1_Pooling", "Pooling"), ("2_Norm", "Normalize")]
    kind = "sentence_transformers.models."
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": kind + name}
        for i, (path, name) in enumerate(modules)
    ]
    write("modules.json", listed)
    pooling = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": False}
    pooling |= {"word_embedding_dimension": 32, "pooling_mode_max_tokens": True}
    write("1_Pooling/config.json", pooling)
    (folder / "2_Norm").mkdir()
    lengths = {"max_seq_length": 9, "do_lower_case": False}
    write("0_Transformer/sentence_bert_config.json", lengths)
    return folder


def theirs(folder: Path, texts: list[str]) -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    return model.encode(texts, batch_size=4)


def test_a_folder_of_an_early_version_gives_what_its_library_gives(tiny, tmp_path):
    folder = of_an_early_version(tmp_path / "model", tiny)
    found = built(Pretrained, str(folder), tmp_path).encode(TEXTS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, theirs(folder, TEXTS), rtol=0, atol=1e-5)
