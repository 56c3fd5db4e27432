"""The STS suite: what becomes of vectors, against a second computation on the real data."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from click.testing import CliRunner
from msgspec.structs import replace

from bench.base.errors import DataMissing, RunFailed, UnknownName
from bench.cli.suites import suites
from bench.data.sets import STS_TASKS, DataFolder, SentencePairs, read_sts
from bench.run.plan import dev_task as selection
from bench.runs.record import dev_words
from bench.score.suites import TaskResult, TaskScore, average, suite, suite_names
from bench.score.suites.sts import (
    PROTOCOL,
    LoadedPairs,
    clean_dev_task,
    cosines,
    dev_task,
    pair_key,
    score_predictions,
)
from bench.verify.scores import known_hashes


def bag_of_hashes(sentences):
    """A stand-in for a model: words hashed into 64 dimensions. Empty sentences become zero vectors."""
    vectors = np.zeros((len(sentences), 64), dtype=np.float32)
    for row, sentence in enumerate(sentences):
        for word in sentence.lower().split():
            vectors[row, int(hashlib.md5(word.encode()).hexdigest(), 16) % 64] += 1
    return vectors


def made_up(sentences1, sentences2, gold, subset=None) -> LoadedPairs:
    pairs = SentencePairs(
        "STS12",
        sentences1,
        sentences2,
        np.array(gold, float),
        subset or ["a"] * len(gold),
        "test",
        "raw",
        "0" * 64,
    )
    return LoadedPairs(suite("sts").task("STS12"), pairs)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["STS12", "STS15", "SICK-R"])
def test_a_task_agrees_with_scipy_on_the_real_pairs(shared, name):
    data = DataFolder(shared / "data")
    result = suite("sts").task(name).load(data, "tokenised").score(bag_of_hashes)
    pairs = read_sts(data, name)
    a, b = (
        bag_of_hashes(pairs.sentences1).astype(float),
        bag_of_hashes(pairs.sentences2).astype(float),
    )
    with np.errstate(
        invalid="ignore"
    ):  # a punctuation-only sentence is no zero vector here, but be like the papers' code
        cosine = np.nan_to_num(
            (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        )
    cosine = np.where(
        [x == y for x, y in zip(pairs.sentences1, pairs.sentences2, strict=True)], 1.0, cosine
    )
    stored = result.predictions
    assert stored["prediction"].dtype == np.float32 and stored["prediction"] == pytest.approx(
        cosine, abs=1e-7
    )
    assert result.value == pytest.approx(
        100 * scipy.stats.spearmanr(stored["prediction"], pairs.gold).statistic, abs=1e-9
    )
    each, sizes = [], []
    for subset in dict.fromkeys(pairs.subset):
        rows = np.array(pairs.subset) == subset
        each.append(
            100 * scipy.stats.spearmanr(stored["prediction"][rows], pairs.gold[rows]).statistic
        )
        sizes.append(int(rows.sum()))
        assert result.detail["subsets"][subset] == {
            "spearman": pytest.approx(each[-1], abs=1e-9),
            "pearson": pytest.approx(
                100 * scipy.stats.pearsonr(stored["prediction"][rows], pairs.gold[rows]).statistic,
                abs=1e-9,
            ),
            "n": sizes[-1],
        }
    assert result.detail["mean"] == pytest.approx(sum(each) / len(each), abs=1e-9)
    assert result.detail["wmean"] == pytest.approx(
        sum(e * n for e, n in zip(each, sizes, strict=True)) / sum(sizes), abs=1e-9
    )
    assert (result.n, result.text, result.protocol, result.metric) == (
        len(pairs),
        "tokenised",
        "senteval-all/1",
        "spearman",
    )
    json.dumps(result.detail)


def test_identical_sentences_score_exactly_one_even_where_the_encoder_is_noisy(shared):
    rng = np.random.default_rng(0)

    def noisy(sentences):
        return bag_of_hashes(sentences) + rng.normal(scale=1e-6, size=(len(sentences), 64)).astype(
            np.float32
        )

    loaded = suite("sts").task("STS12").load(DataFolder(shared / "data"), "tokenised")
    same = np.array(
        [a == b for a, b in zip(loaded.data.sentences1, loaded.data.sentences2, strict=True)]
    )
    prediction = loaded.score(noisy).predictions["prediction"]
    assert same.sum() == 79 and (prediction[same] == 1.0).all()


def test_sick_is_also_scored_over_all_its_pairs(shared, tmp_path):
    loaded = suite("sts").task("SICK-R").load(DataFolder(shared / "data"), "raw")
    result = loaded.score(bag_of_hashes)
    assert result.n == len(result.predictions["prediction"]) == 4927
    whole = read_sts(DataFolder(shared / "data"), "SICK-R", text="raw", split="all")
    assert result.detail["all_splits"]["n"] == len(whole) == 9927
    want = scipy.stats.spearmanr(result.predictions["all_splits_prediction"], whole.gold).statistic
    assert result.detail["all_splits"]["spearman"] == pytest.approx(100 * want, abs=1e-9)
    assert set(whole.sentences1 + whole.sentences2) == set(loaded.sentences)
    # With the test split alone, the protocol's own number is the same and nothing else is claimed.
    folder = tmp_path / "downstream" / "SICK"
    folder.mkdir(parents=True)
    shutil.copyfile(
        shared / "data/senteval/downstream/SICK/SICK_test_annotated.txt",
        folder / "SICK_test_annotated.txt",
    )
    alone = suite("sts").task("SICK-R").load(DataFolder(tmp_path), "raw").score(bag_of_hashes)
    assert alone.value == result.value and "all_splits" not in alone.detail


def test_scoring_again_from_the_predictions_gives_the_same_number(shared):
    result = (
        suite("sts")
        .task("SICK-R")
        .load(DataFolder(shared / "data"), "tokenised")
        .score(bag_of_hashes)
    )
    assert score_predictions(result.predictions, "SICK-R") == TaskScore(
        result.value, result.n, detail=result.detail
    )


@pytest.mark.slow
def test_sentences_holds_all_that_scoring_asks_for(shared):
    for task in suite("sts").tasks:
        loaded = task.load(DataFolder(shared / "data"), "tokenised")
        known = set(loaded.sentences)

        def vectors(sentences, known=known):
            assert known.issuperset(sentences)
            return bag_of_hashes(sentences)

        assert loaded.score(vectors).n == task.n == loaded.n


def test_dev_is_sts_b_dev_tokenised_first(shared, tmp_path):
    dev = dev_task(DataFolder(shared / "data"))
    assert (dev.n, dev.form, dev.data.split) == (1500, "tokenised", "dev")
    assert math.isfinite(dev.score(bag_of_hashes).value)
    folder = tmp_path / "senteval" / "downstream" / "STS" / "STSBenchmark"
    folder.mkdir(parents=True)
    shutil.copyfile(
        shared / "data/senteval/downstream/STS/STSBenchmark/sts-dev.csv", folder / "sts-dev.csv"
    )
    assert dev_task(DataFolder(tmp_path)).form == "raw"


def test_vectors_that_cannot_be_scored_name_the_task_and_the_sentence():
    loaded = made_up(["a", "b", "c"], ["d", "e", "f"], [1, 2, 3])

    def nan_for_e(sentences):
        return np.array([[math.nan if s == "e" else 1.0, 2.0] for s in sentences], dtype=np.float32)

    with pytest.raises(RunFailed, match="STS12: 1 of 3 vectors hold NaN.*'e'"):
        loaded.score(nan_for_e)
    for bad in (
        lambda s: np.ones((2, 4), np.float32),
        lambda s: np.ones(3, np.float32),
        lambda s: np.ones((3, 4), int),
    ):
        with pytest.raises(RunFailed, match="STS12: vectors of"):
            loaded.score(bad)
    with pytest.raises(RunFailed, match="constant"):
        loaded.score(lambda s: np.ones((len(s), 4), np.float32))


def test_a_zero_vector_scores_zero():
    loaded = made_up(["", "a b", "a"], ["x", "a b", "a c"], [0, 5, 3])
    assert loaded.score(bag_of_hashes).predictions["prediction"][:2].tolist() == [0, 1]


def results(values, **changes):
    one = TaskResult(
        suite="sts", task="", protocol=PROTOCOL, metric="spearman", value=0, n=10, text="tokenised"
    )
    return [
        replace(one, task=task, value=value, **changes)
        for task, value in zip(STS_TASKS, values, strict=False)
    ]


def test_average_rounds_as_the_papers_print():
    # SimCSE's table prints each task with two decimals and averages what it printed.
    values = [68.40499, 82.41499, 74.38499, 80.91499, 78.55499, 76.84499, 72.23499]
    averaged = average(results(values))
    assert averaged is not None and averaged.task == "Avg."
    assert (
        averaged.value
        == round((68.40 + 82.41 + 74.38 + 80.91 + 78.55 + 76.84 + 72.23) / 7, 2)
        == 76.25
    )
    assert averaged.n == 70 and averaged.predictions == {}


def test_no_average_over_missing_tasks_protocols_or_two_known_forms():
    whole = results(range(70, 77))
    assert average(whole) is not None
    assert average(whole[:-1]) is None and average([]) is None
    assert average([*whole[:-1], replace(whole[-1], protocol="other/1")]) is None
    assert average([*whole[:-1], replace(whole[-1], text="raw")]) is None
    other = average([*whole[:-1], replace(whole[-1], text="other-12345678")])
    assert other is not None and str(other.text).startswith("other-")


def test_the_registry():
    assert "sts" in suite_names()
    sts = suite("sts")
    assert tuple(task.name for task in sts.tasks) == STS_TASKS == sts.average
    assert sts.task("STS-B") is sts.tasks[5]
    with pytest.raises(UnknownName, match="nearest: sts"):
        suite("stss")
    with pytest.raises(UnknownName, match="STS-B"):
        sts.task("STSB")


def test_bench_suites_tells_everything_about_one():
    result = CliRunner().invoke(suites, ["sts"])
    assert result.exit_code == 0, result.output
    assert max(len(line) for line in result.output.splitlines()) <= 80
    words = " ".join(result.output.split())
    for needle in (
        "senteval-all/1",
        "spearman",
        "3,108",
        "1,186",
        "MSRpar 750",
        "question-question 209",
        "Avg.",
    ):
        assert needle in words
    told = json.loads(CliRunner().invoke(suites, ["sts", "--json"]).output)
    assert told["average"] == list(STS_TASKS) and sum(task["n"] for task in told["tasks"]) == 18850
    assert told["tasks"][1]["subsets"] == {"FNWN": 189, "headlines": 750, "OnWN": 561}


def test_the_page_about_the_suite_states_the_same_counts():
    page = (Path(__file__).parents[2] / "docs" / suite("sts").docs).read_text(encoding="utf-8")
    for task in suite("sts").tasks:
        row = next(line for line in page.splitlines() if line.startswith(f"| {task.name} | "))
        assert f"| {task.n:,} |" in row
        if len(task.subsets) > 1:
            assert ", ".join(f"{name} {n}" for name, n in task.subsets.items()) in row
    assert PROTOCOL in page


# --- a selection set that no test set has ---


def letters(first: str, second: str) -> frozenset[str]:
    return frozenset("".join(c for c in one.lower() if c.isalnum()) for one in (first, second))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["tokenised", "raw"])
def test_the_clean_dev_set_has_no_scored_pair(shared, form):
    """Told apart by a second computation: sets of letters, over all seven test splits."""
    data = DataFolder(shared / "data")
    tested = {
        letters(a, b)
        for name in STS_TASKS
        for one in [read_sts(data, name, text=form)]
        for a, b in zip(one.sentences1, one.sentences2, strict=True)
    }
    clean = clean_dev_task(data, form)
    pairs = [
        letters(a, b)
        for part in clean.parts
        for a, b in zip(part.sentences1, part.sentences2, strict=True)
    ]
    assert (
        len(pairs) == clean.n == 849
        and [len(part) for part in clean.parts] == [363, 486]
        and clean.dropped == (1137, 14)
    )
    assert not tested & set(pairs) and clean.sha256 == known_hashes().dev[f"sts-dev-clean, {form}"]
    whole = dev_task(data, form).data
    among = [
        letters(a, b) in tested for a, b in zip(whole.sentences1, whole.sentences2, strict=True)
    ]
    assert sum(among) == 1137, "what STS-B dev has"


@pytest.mark.slow
def test_the_clean_dev_set_is_scored_by_the_mean_of_its_parts(shared):
    clean = clean_dev_task(DataFolder(shared / "data"))
    result = clean.score(bag_of_hashes)
    each = [
        100
        * scipy.stats.spearmanr(
            cosines(p.sentences1, p.sentences2, bag_of_hashes, ""), p.gold
        ).statistic
        for p in clean.parts
    ]
    assert result.value == pytest.approx(sum(each) / 2) and result.n == 849
    with pytest.raises(RunFailed, match="sts-dev-clean"):
        clean.score(lambda sentences: np.ones((len(sentences), 2), np.float32))


def test_the_clean_dev_set_needs_what_is_scored(shared, tmp_path):
    shutil.copytree(
        shared / "data" / "senteval" / "downstream" / "STS" / "STSBenchmark",
        tmp_path / "downstream" / "STS" / "STSBenchmark",
    )
    with pytest.raises(DataMissing, match="STS12"):
        selection("sts-dev-clean", DataFolder(tmp_path, offline=True))


def test_pairs_are_told_by_letters_and_digits():
    assert (
        pair_key("A man's  dog!", "No. 7")
        == pair_key("no 7", "a mans dog")
        != pair_key("no 8", "a mans dog")
    )


def test_how_many_dev_pairs_are_scored_is_said_of_old_records_too():
    from factories import record

    old = record("simcse", 1)
    assert dev_words(old).startswith(
        "how many pairs of STS-B dev are test pairs of the scored sets is not known"
    )
    sha256 = known_hashes().dev["STS-B dev, tokenised"]
    old = replace(old, provenance=replace(old.provenance, determines={"dev": sha256}))
    assert (
        dev_words(old) == "1,137 of the 1,500 pairs of STS-B dev are test pairs of the scored sets"
    )
    five = replace(old, scores=tuple(one for one in old.scores if one.task in STS_TASKS[:5]))
    assert dev_words(five).startswith("1,131 of the 1,500")
    clean = replace(
        old,
        training=replace(old.training, dev_task="sts-dev-clean"),
        provenance=replace(
            old.provenance, determines={"dev": known_hashes().dev["sts-dev-clean, raw"]}
        ),
    )
    assert (
        dev_words(clean)
        == "none of the 849 pairs of sts-dev-clean is a test pair of the scored sets"
    )
    lied = replace(clean, provenance=replace(old.provenance, determines={"dev": sha256}))
    assert "not known" in dev_words(lied), "a name alone says nothing"
    assert dev_words(replace(old, training=None)) == "" == dev_words(replace(old, scores=()))
