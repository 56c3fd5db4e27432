"""Exports from backbones beyond BERT and RoBERTa: the same vectors, or the reason why there are
none.
"""

from __future__ import annotations

from pathlib import Path

import family_models
import pytest
from exports import TEXTS, Case, make

from bench.export.st_folder import st_vectors, write_st
from bench.export.vectors import relative_difference

FAMILIES = ("distilbert", "mpnet", "electra", "deberta", "modernbert", "xlm_roberta")
HEADED = Case("simcse", "supervised", values={"head_at_test": True}, backbone="one")
CASES = [
    HEADED,
    Case("first-last-avg", "none", backbone="one"),
    Case("promcse", "unsupervised", "input-layer", backbone="one"),
    Case("sncse", backbone="one"),
    Case("promptbert", "unsupervised", "no-debias", backbone="one"),
]


@pytest.mark.nightly
@pytest.mark.parametrize("family", FAMILIES)
def test_sentence_transformers_gives_the_methods_vectors(family: str, tmp_path: Path) -> None:
    backbones = {"one": family_models.written(getattr(family_models, family), tmp_path / family)}
    differences = {}
    for case in CASES:
        folder = tmp_path / case.id
        folder.mkdir()
        method = make(case, backbones, tmp_path)
        write_st(method.portable(), folder)
        differences[case.id] = relative_difference(method.encode(TEXTS), st_vectors(folder, TEXTS))
    assert {name: value for name, value in differences.items() if not value <= 1e-5} == {}
