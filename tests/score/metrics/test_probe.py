"""The probe against the authors' own results, scikit-learn's folds, and a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from probe_sequential import fit_sequential
from sklearn.model_selection import StratifiedKFold

from bench.score.metrics import probe_batched
from bench.score.metrics.probe import (
    FitJob,
    Orders,
    Settings,
    Split,
    holdout,
    initial_weights,
    inner_kfold,
    stratified_folds,
)
from bench.score.metrics.probe_batched import fit_batched

FITTERS = pytest.mark.parametrize(
    "fitter", [fit_batched, pytest.param(fit_sequential, marks=pytest.mark.nightly)]
)


@pytest.fixture(scope="module")
def authors(reference):
    """60 items, 4 dimensions, and what SentEval's classes returned."""
    return reference["senteval_classifier"]


def config(authors) -> Settings:
    given_ = authors["config"]
    return Settings(batch_size=given_["batch_size"], folds=given_["kfold"])


def data(authors):
    return np.array(authors["X"], dtype=np.float32), np.array(authors["y"])


def test_initial_weights_and_first_permutation_are_the_authors(authors):
    before = torch.random.get_rng_state()
    weight, bias = initial_weights(4, 2, 1111)
    assert weight.tolist() == authors["initial_weight_seed_1111_dim4_classes2"]
    assert bias.tolist() == authors["initial_bias"]
    assert torch.equal(torch.random.get_rng_state(), before)
    rows = np.arange(10)
    found = Orders(1111)(FitJob(rows, rows, (1e-5,)), 0).tolist()
    assert found == authors["first_permutation_of_10_after_seed_1111"]


@pytest.mark.slow
@FITTERS
def test_nested_cross_validation_gives_the_authors_numbers(authors, fitter):
    x, y = data(authors)
    want = authors["inner_kfold_whole_set"]
    seen = []

    def noted(*arguments):
        seen.append(fitter(*arguments))
        return seen[-1]

    probe = inner_kfold(x, y, np.arange(60), 2, noted, config(authors))
    assert [fold.dev for fold in probe.folds] == want["dev_per_fold"]
    assert [fold.test for fold in probe.folds] == want["test_per_fold"]
    assert (probe.dev, probe.test, probe.fits) == (want["dev"], want["test"], want["fits"])
    epochs = [seen[0][inner][0].epochs for inner in range(3)]
    assert epochs == want["first_outer_fold_l2_1e-5_epochs"]
    assert probe.folds[0].penalty == want["first_outer_fold_chosen_l2"]
    for fold, starts in enumerate(authors["outer_test_index_starts"]):
        assert np.flatnonzero(probe.fold == fold)[: len(starts)].tolist() == starts
        member = probe.fold == fold
        right = float(np.mean(probe.predicted[member] == y[member]))
        assert round(100 * right, 2) == want["test_per_fold"][fold]


@FITTERS
def test_cross_validation_and_dev_split_give_the_authors_numbers(authors, fitter):
    x, y = data(authors)
    rows = np.arange(60)
    crossed = holdout(x, y, Split(rows[:40], rows[40:]), 2, fitter, config(authors))
    want = authors["kfold_first40_train_last20_test"]
    assert (crossed.dev, crossed.test, crossed.fits) == (want["dev"], want["test"], 13)
    split = Split(rows[:40], rows[50:], rows[40:50])
    divided = holdout(x, y, split, 2, fitter, config(authors))
    want = authors["split_40_10_10"]
    assert (divided.dev, divided.test) == (want["dev"], want["test"])
    first = divided.folds[0]
    assert (first.penalty, first.epochs) == (want["chosen_l2"], want["epochs_every_fit"])
    assert divided.predicted.shape == (10,) and (divided.fold == 0).all()


@given(
    counts=st.lists(st.integers(1, 30), min_size=1, max_size=5).map(lambda counts: [*counts, 4]),
    folds=st.integers(2, 4),
    seed=st.integers(0, 2**32 - 1),
    shuffle=st.randoms(use_true_random=False),
)
@settings(max_examples=50)
@pytest.mark.filterwarnings("ignore:The least populated class")
def test_folds_are_those_of_scikit_learn(counts, folds, seed, shuffle):
    y = [c for c, n in enumerate(counts) for _ in range(n)]
    shuffle.shuffle(y)
    want = np.empty(len(y), dtype=int)
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    for number, (_, test) in enumerate(splitter.split(np.zeros(len(y)), y)):
        want[test] = number
    assert stratified_folds(np.array(y), folds, seed).tolist() == want.tolist()


def problem(classes: int, n: int = 150, dimensions: int = 7, noise: float = 2.0):
    rng = np.random.default_rng(classes)
    x = rng.normal(size=(n, dimensions))
    means = x @ rng.normal(size=(dimensions, classes))
    return x, (means + noise * rng.normal(size=(n, classes))).argmax(1)


def jobs_of_all_kinds(n: int) -> list[FitJob]:
    """Sizes on both sides of a multiple of the batch, a size that divides by it, one penalty or
    several, a stream begun earlier.
    """
    rng = np.random.default_rng(0)
    jobs = []
    for train, penalties, drawn in (
        (96, (1e-5, 1e-2), None),
        (95, (1e-3,), None),
        (97, (0.1, 1e-4, 1e-2), 110),
        (112, (1e-4,), 118),
    ):
        rows = rng.permutation(n)
        jobs.append(FitJob(rows[:train], rows[train : train + 30], penalties, drawn))
    return jobs


@pytest.mark.slow
@pytest.mark.matrix(every=4)
@pytest.mark.parametrize("chunk_bytes", [1, 1 << 12, 1 << 20])
@pytest.mark.parametrize("classes", [2, 6])
def test_all_at_once_is_one_after_the_other(classes, chunk_bytes, monkeypatch):
    """Equal in float64 to the last digits: weights, dev accuracies and epochs, however the jobs are
    packed.
    """
    monkeypatch.setitem(probe_batched.CHUNK_BYTES, "cpu", chunk_bytes)
    x, y = problem(classes)
    settings_ = Settings(batch_size=16, learning_rate=0.02, max_epochs=80)
    jobs = jobs_of_all_kinds(len(x))
    together, apart = (fit(x, y, classes, jobs, settings_) for fit in (fit_batched, fit_sequential))
    epochs = []
    for found, want in zip(together, apart, strict=True):
        for one, other in zip(found, want, strict=True):
            assert (one.dev_accuracy, one.epochs) == (other.dev_accuracy, other.epochs)
            assert one.weight_CD == pytest.approx(other.weight_CD, abs=1e-10)
            assert one.bias_C == pytest.approx(other.bias_C, abs=1e-10)
            epochs.append(one.epochs)
    assert len(set(epochs)) > 1  # the packing must cope with fits that stop at different times


def test_a_fit_stops_at_the_look_after_its_tenacity_is_used_up_and_never_later_than_the_limit():
    rows = np.arange(40)
    x, y = np.random.default_rng(0).normal(size=(40, 3)), np.zeros(40, dtype=np.int64)
    job = [FitJob(rows, rows, (1e-5,))]
    for fitter in (fit_batched, fit_sequential):
        # One class: all is right at the first look, so that six more looks do not improve it.
        (stopped,), (limited,) = (
            fitter(x, y, 2, job, Settings(max_epochs=limit, learning_rate=1.0))[0]
            for limit in (200, 10)
        )
        assert (stopped.dev_accuracy, stopped.epochs) == (1.0, 4 * 7)
        assert limited.epochs == 12  # a round of epochs is begun as long as the limit is not passed
