"""Small correct files of every kind, which are then changed at random."""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from factories import record

from bench import methods
from bench.records.packed import NAME, Packed

NEW_IN_3 = (
    "cost.train_tokens_per_second",
    "cost.host_memory_bytes",
    "training.dev_pairs",
    "training.dev_test_pairs",
    "training.tokens",
    "provenance.execution",
)
"""Fields of a record that version 3 of the schema added."""
ROWS = [
    ("A man plays.", "A man is playing .", "4.5"),
    ('Say "hi", now', "x\u2028y", "0"),
    ("", "é", "2.25"),
]
TSV = ("sent0\tsent1\thard_neg\n" + "".join("\t".join(row) + "\n" for row in ROWS)).encode()
CSV = b'sent0,sent1\n"a, ""b""",c\n"d\ne",f\n' * 2
JSONL = b"".join(json.dumps({"sent0": a, "sent1": b}).encode() + b"\n" for a, b, _ in ROWS)
RECIPES = (
    (Path(methods.__file__).parent / "recipes" / "simcse.toml")
    .read_bytes()[:2500]
    .rsplit(b"[[", 1)[0]
)
VERSION = {
    "date": "2026-01-01",
    "title": "T",
    "answer": "A",
    "note": None,
    "left_out": [],
    "runs": [{"run_id": "a-s1-0", "method": "simcse", "submitted_by": None}],
}
HASHES = {
    "files": {"a.txt": "0" * 64, "runs/a/run.json": {"sha256": "1" * 64}},
    "older": {"v1": {"b": "2" * 64}},
}
ELSEWHERE = {"files": {}, "predictions_url": {"url": "https://x/y", "sha256": "0" * 64, "bytes": 5}}
INDEX = {"metadata": {}, "weight_map": {"encoder.w": "model-1.safetensors"}}


def text(content: object) -> tuple[bytes, ...]:
    return (json.dumps(content).encode(),)


def older(version: int) -> bytes:
    """Return a record of an older schema, with three scores."""
    content = json.loads(json.dumps(record().to_json())) | {"schema": f"bench.run/{version}"}
    if version < 3:
        for path in NEW_IN_3:
            part, key = path.split(".")
            del content[part][key]
    content["scores"] = content["scores"][:3]
    return json.dumps(content, indent=1).encode()


def arrays(compressed: bool) -> bytes:
    file, draw = io.BytesIO(), np.random.default_rng(1)
    values = {
        "prediction": draw.normal(size=30),
        "gold": np.arange(30),
        "subset": np.array(["a", "bé"] * 15),
    }
    (np.savez_compressed if compressed else np.savez)(file, **values)  # type: ignore[arg-type]
    return file.getvalue()


def tensors() -> bytes:
    header = {
        "__metadata__": {"format": "pt"},
        "encoder.w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
    }
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(16)


def parquet() -> bytes:
    import numpy as np

    packed = Packed()
    for run in "ab":
        values = {"gold": np.arange(300) / 7, "subset": np.array(["a", "b"] * 150)}
        packed.add(f"runs/{run}/predictions/STS12.npz", values)
    with tempfile.TemporaryDirectory() as folder:
        packed.write(Path(folder) / NAME)
        return (Path(folder) / NAME).read_bytes()


def zipped(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return file.getvalue()


def tarred(compression: str) -> bytes:
    file = io.BytesIO()
    mode: Any = f"w:{compression}"
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for name, data in {"d/a.txt": b"a" * 700, "d/b.txt": b"b"}.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def sentence_vectors() -> bytes:
    file = io.BytesIO()
    np.savez(
        file,
        sentences=np.array(["a man", "a dog"]),
        vectors=np.array([[0.5, 1.0], [2.0, 3.0]], dtype=np.float32),
    )
    return file.getvalue()
