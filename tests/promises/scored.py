"""An encoder that a test knows exactly, and what bench's record says of its scores."""

from __future__ import annotations

import inspect
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats
from started import python, record, run_folders


def words_in(sentences: Sequence[str]) -> np.ndarray:
    """Encode without a model: the sum of a fixed random vector for every word, 64 numbers."""
    words = {word for sentence in sentences for word in sentence.split()}
    known = {w: np.random.default_rng(zlib.crc32(w.encode())).normal(size=64) for w in words}
    sums = [sum((known[w] for w in one.split()), np.zeros(64)) for one in sentences]
    return np.array(sums, dtype=np.float32).reshape(-1, 64)


IMPORTS = """
from __future__ import annotations
import json, sys, zlib
from collections.abc import Sequence
import numpy as np
import bench
"""
SCORE = f"""{IMPORTS}
{inspect.getsource(words_in)}
bench.evaluate(words_in, runs="runs", name="words", progress=False, **json.loads(sys.argv[1]))
"""
SCORE_EACH = f"""{IMPORTS}
{inspect.getsource(words_in)}
answers = []
for number, suite in enumerate(json.loads(sys.argv[1])):
    try:
        result = bench.evaluate(
            words_in, suites=[suite], runs=f"runs/{{number}}", name="words", progress=False
        )
        answers.append(result.frame()["value"].tolist()[0])
    except bench.BenchError as error:
        answers.append(str(error))
print(json.dumps(answers))
"""


def score_words_in(cwd: Path, suites: Sequence[str], **options: Any) -> dict[str, dict[str, Any]]:
    """Let bench score :func:`words_in` in a folder.

    Returns task and protocol -> the entry of the record: ``scores["STS12 senteval-all/1"]``.
    """
    python(SCORE, json.dumps({"suites": [*suites], **options}), cwd=cwd, seconds=3000)
    (run,) = run_folders(cwd / "runs")
    return {f"{one['task']} {one['protocol']}": one for one in record(run)["scores"]}


def score_each(cwd: Path, suites: Sequence[str]) -> dict[str, Any]:
    """Let bench score :func:`words_in` on each suite: suite -> its value, or what bench says."""
    done = python(SCORE_EACH, json.dumps([*suites]), cwd=cwd, seconds=3000)
    return dict(zip(suites, json.loads(done.out.splitlines()[-1]), strict=True))


def arrays(cwd: Path, task: str) -> dict[str, np.ndarray]:
    """Read what the one run of a folder predicted for a task: "prediction", "gold" and others."""
    found = [*cwd.glob(f"runs/*/predictions/{task}.npz")]
    found += cwd.glob(f"runs/*/predictions/{task}@*.npz")
    (file,) = found
    with np.load(file, allow_pickle=False) as stored:
        return dict(stored)


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the cosine of each pair of rows; that of a vector of zeros is 0."""
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    sizes = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return (a * b).sum(axis=1) / np.where(sizes == 0, 1, sizes)


def spearman(predicted: Any, gold: Any) -> float:
    """Spearman's correlation x 100 by scipy; rounding does not tell equal cosines apart."""
    return float(100 * scipy.stats.spearmanr(np.float32(predicted), gold).statistic)
