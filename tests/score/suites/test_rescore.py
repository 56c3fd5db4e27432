"""One way from stored arrays to a score, against other people's arithmetic; and arrays that are not
what they should be.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from bench.base.errors import DataDamaged
from bench.score.suites import rescore

N = 60
DRAW = np.random.default_rng(3)
COSINES = {
    "prediction": DRAW.normal(size=N),
    "gold": DRAW.integers(0, 6, N).astype(float),
    "subset": np.array(["a", "b", "b"] * (N // 3)),
}


def test_pairs() -> None:
    found = rescore(("sts", "STS12", "senteval-all/1"), COSINES)
    assert found is not None and (found.n, found.std) == (N, None)
    assert found.value == pytest.approx(
        100 * spearmanr(COSINES["prediction"], COSINES["gold"]).statistic, abs=1e-10
    )
    assert rescore(("check", "captions", "check/2"), COSINES) == found
    assert rescore(("check", "CHECK", "check/1"), COSINES) == found, "of an earlier bench"


ODD = {
    "missing": lambda a: {key: value for key, value in a.items() if key != "gold"},
    "short": lambda a: a | {"gold": a["gold"][:-1]},
    "text": lambda a: a | {"prediction": np.array(["x"] * N)},
    "not a number": lambda a: a | {"prediction": np.full(N, np.nan)},
    "deep": lambda a: a | {"prediction": np.zeros((2, 2, 2))},
}
KEYS = [
    ("sts", "STS12", "senteval-all/1"),
    ("cxc", "CxC-STS", "cxc-parekh/1"),
    ("transfer", "MRPC", "senteval-probe/1"),
    ("fewshot", "MR-16", "senteval-fewshot/1"),
    ("clustering", "AgNews", "sccl-kmeans/1"),
    ("geometry", "alignment", "geometry-stsb/1"),
    ("geometry", "uniformity", "geometry-stsb/1"),
    ("mteb", "x", "mteb/2"),
]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(("suite", "task", "protocol"), KEYS, ids=[f"{a} {b}" for a, b, _ in KEYS])
def test_arrays_that_are_something_else_never_give_a_score_that_is_no_number(
    suite, task, protocol, odd
):
    more = {"fold": np.zeros(N, dtype=int), "image": np.arange(N), "caption1": np.arange(N)}
    arrays = ODD[odd](COSINES | more | {"inertia": np.ones(10)})
    try:
        found = rescore((suite, task, protocol), arrays, "cosine_spearman")
    except DataDamaged as error:
        assert task in error.message or "prediction" in error.message
        assert error.message.isprintable()
    else:
        assert found is None or np.isfinite(found.value)
