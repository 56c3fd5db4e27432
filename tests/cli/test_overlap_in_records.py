"""The overlap of a training text with the evaluation data, in a record and on the page."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from commands import SMALL, argv, bench, the_run
from models import sentences

from bench.score.suites.check import SUITE


@pytest.fixture(scope="module")
def known() -> list[str]:
    """Three sentences that the suite check scores, of six words and more, with no other one near
    them.
    """
    from bench.data.sets import DataFolder

    loaded = SUITE.tasks[0].load(DataFolder(None))
    sets = {
        s: set(s.lower().rstrip(".").replace(",", "").split())
        for s in dict.fromkeys(loaded.sentences)
    }
    lonely = (
        s
        for s, a in sets.items()
        if len(a) >= 6 and sum(len(a & b) >= 0.7 * len(a | b) for b in sets.values()) == 1
    )
    return list(itertools.islice(lonely, 3))


@pytest.fixture(scope="module")
def corpus(known: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty sentences of random words, two that are scored (one twice), and one that is scored but
    for a word more.
    """
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    lines = [*sentences(60, seed=8), known[0].upper(), known[1], known[0], f"{known[2]} indeed"]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.nightly
def test_a_run_records_it_and_a_page_shows_it(corpus: Path, tiny: str, tmp_path: Path) -> None:
    what = f"run --method simcse --backbone {tiny} --suite check --device cpu --corpus"
    done = bench(*argv(what), corpus, *SMALL, "--runs", tmp_path)
    assert done.exit_code == 0, done.stderr
    record = json.loads((the_run(tmp_path) / "run.json").read_text())
    kept = record["provenance"]["corpus"]["overlap"]
    assert kept["rule"] == "overlap/1"
    (task,) = kept["tasks"]
    assert (task["suite"], task["exact"], task["near"], task["rows"]) == ("check", 2, 1, 4)
    bench("compare", the_run(tmp_path), "--html", tmp_path / "page.html")
    page = " ".join((tmp_path / "page.html").read_text().split())
    assert "sentences of the evaluation sets that stand in the corpus" in page
