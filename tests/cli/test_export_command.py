"""``bench export``: what it writes and says, its model card, and a user's mistakes."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from commands import bench, error_line, the_run, tree

from bench.runs import RunsFolder

sys.path.insert(0, str(Path(__file__).parents[1] / "export"))
from exports import outside  # noqa: E402

Finished = tuple[Path, Result]


@pytest.fixture(scope="module")
def made(finished: Finished, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """The finished run as an mteb folder, which is a sentence-transformers folder too."""
    to = tmp_path_factory.mktemp("made") / "my-model"
    return to, bench("export", "simcse", "--runs", finished[0], "--to", to, "--format", "mteb")


@pytest.mark.slow
def test_what_it_says_and_writes(made: tuple[Path, Result], finished: Finished) -> None:
    to, done = made
    assert done.exit_code == 0, done.output
    assert done.stdout == f"{to}\n"
    assert (
        f"{the_run(finished[0]).name} as mteb: 32 dimensions, loaded again, largest difference"
        in done.stderr
    )
    assert {path.name for path in to.iterdir()} >= {
        "README.md",
        "modules.json",
        "model.safetensors",
        "tokenizer.json",
        "mteb_model.py",
    }
    assert [path.name for path in to.parent.iterdir()] == ["my-model"]  # nothing is left beside it


@pytest.mark.slow
def test_mteb_itself_evaluates_it(
    made: tuple[Path, Result], finished: Finished, tmp_path: Path
) -> None:
    from scipy.stats import spearmanr

    from bench.run.trained_run import find_run, load_run

    texts = [
        "a man plays",
        "the dog runs in the park",
        "woman reads a book",
        "market prices fell",
        "a child sleeps",
        "oil and gas",
    ]
    found = outside("mteb", made[0], tmp_path, texts)
    vectors = load_run(find_run("simcse", RunsFolder(finished[0]))).encode(texts)
    a, b = vectors[:-1], vectors[1:]
    cosines = (a * b).sum(1) / (a * a).sum(1) ** 0.5 / (b * b).sum(1) ** 0.5
    assert found["score"] == pytest.approx(spearmanr(cosines, range(5)).statistic, abs=1e-6)


def test_the_card_has_scores_recipe_provenance_and_licence(
    made: tuple[Path, Result], finished: Finished, tiny: str
) -> None:
    record = RunsFolder(finished[0]).find("simcse")
    text = (made[0] / "README.md").read_text(encoding="utf-8")
    _, front, body = text.split("---\n", 2)
    about = {
        line.split(": ", 1)[0]: json.loads(line.split(": ", 1)[1]) for line in front.splitlines()
    }
    assert (
        about["library_name"] == "sentence-transformers"
        and about["model-index"][0]["name"] == record.run_id
    )
    score = record.scores[0]
    low, high = next(
        (float(m[1]), float(m[2]))
        for m in re.finditer(rf"\| {score.task} \| .* \| ([-\d.]+) to ([-\d.]+) \|", body)
    )
    assert (
        f"| {score.task} | {score.value:.2f} | {score.n:,} |" in body and low < score.value < high
    )
    for key, one in record.recipe.items():
        assert f"| {key} | ".replace("_", "\\_") in body, (key, one)
    assert (
        record.fingerprint in body
        and record.provenance.corpus is not None
        and record.provenance.corpus["sha256"] in body
    )
    assert "## Licence" in body and "is not one that bench knows" in body
    assert str(Path(tiny).parent) not in text  # a path of this machine has no place in it


@pytest.mark.slow
def test_the_interval_is_that_of_a_plain_bootstrap(finished: Finished) -> None:
    import numpy as np
    from scipy.stats import spearmanr

    from bench.export.card import _interval

    store = RunsFolder(finished[0])
    record = store.find("simcse")
    score = record.scores[0]
    stored = store.read_predictions(record.run_id, score.task, score.text, score.suite)
    rng = np.random.default_rng(11)
    rows = [rng.integers(score.n, size=score.n) for _ in range(2000)]
    plain = np.percentile(
        [100 * spearmanr(stored["prediction"][r], stored["gold"][r]).statistic for r in rows],
        [2.5, 97.5],
    )
    found = _interval((record, store.folder(record.run_id)), score)
    assert found is not None and np.abs(np.array(found) - plain).max() < 0.1 * np.ptp(plain)


def test_json(finished: Finished, tmp_path: Path) -> None:
    done = bench(
        "export",
        "simcse",
        "--runs",
        finished[0],
        "--to",
        tmp_path / "new" / "model",
        "--format",
        "transformers",
        "--json",
    )
    facts = json.loads(done.stdout)
    assert facts["dimensions"] == 32 and facts["difference"] <= 1e-5 and facts["module_files"] == []
    readme = (tmp_path / "new" / "model" / "README.md").read_text(encoding="utf-8")
    code = re.findall("```python\n(.*?)```", readme, re.S)[0].replace(
        'folder = "model"', f'folder = "{tmp_path}/new/model"'
    )
    names: dict[str, Any] = {}
    exec(code, names)
    assert tuple(names["vectors"].shape) == (2, 32)


def test_mistakes_leave_nothing_behind(finished: Finished, tmp_path: Path) -> None:
    runs = finished[0]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    before, kept = tree(tmp_path), tree(runs)
    wrong = [
        (("--to", tmp_path / "full"), "is a folder with files in it; nothing was written"),
        (("--to", tmp_path / "file"), "is there already and is no folder"),
        (("--to", tmp_path / "file" / "below"), "no folder can be made in"),
        (("--to", tmp_path / "new", "--format", "tensorflow"), "unknown format 'tensorflow'"),
        (
            ("--to", tmp_path / "new", "--format", "sentence-transformer"),
            "nearest: sentence-transformers",
        ),
    ]
    for arguments, said in wrong:
        assert said in error_line(bench("export", "simcse", "--runs", runs, *arguments))
    assert "unknown run 'nothing'" in error_line(
        bench("export", "nothing", "--runs", runs, "--to", tmp_path / "new")
    )
    assert "Missing option '--to'" in error_line(bench("export", "simcse", "--runs", runs))
    assert tree(tmp_path) == before and tree(runs) == kept


def test_a_run_that_is_not_finished(finished: Finished, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(the_run(finished[0]), tmp_path / the_run(finished[0]).name)
    file = tmp_path / the_run(finished[0]).name / "run.json"
    file.write_text(file.read_text().replace('"status": "finished"', '"status": "interrupted"'))
    line = error_line(bench("export", "simcse", "--runs", tmp_path, "--to", tmp_path / "new"))
    assert "is not finished (status interrupted)" in line and not (tmp_path / "new").exists()


def test_a_folder_that_gives_other_vectors_is_not_left_behind(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.export import st_folder

    monkeypatch.setitem(st_folder.POOLINGS, "cls", "pooling_mode_mean_tokens")
    monkeypatch.setitem(st_folder.POOLINGS, "mean", "pooling_mode_cls_token")
    done = bench("export", "simcse", "--runs", finished[0], "--to", tmp_path / "new")
    assert done.exit_code == 1 and "gives other vectors than simcse" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk(finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.export import st_folder

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(st_folder, "write_json", full)
    line = error_line(bench("export", "simcse", "--runs", finished[0], "--to", tmp_path / "new"))
    assert (
        "new cannot be written: No space left on device" in line and list(tmp_path.iterdir()) == []
    )


def test_other_seeds_stand_in_the_card(finished: Finished, tmp_path: Path) -> None:
    import shutil

    from msgspec.structs import replace

    from bench.export.card import of_all_seeds

    shutil.copytree(finished[0], tmp_path / "runs")
    store = RunsFolder(tmp_path / "runs")
    one = store.find("simcse")
    scores = tuple(replace(score, value=score.value + 2) for score in one.scores)
    store.write(replace(one, run_id="simcse-tiny-s43-00000000", seed=43, scores=scores))
    score = one.scores[0]
    words = of_all_seeds(one, store)[score.suite, score.protocol, score.text, score.task]
    assert words == f"{score.value + 1:.2f} ± 1.41 (2)"  # sd of two values 2 apart: sqrt(2)
