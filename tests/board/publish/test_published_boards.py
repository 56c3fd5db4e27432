"""This project's own published versions: unaltered, a run's scores recomputed from the stored
predictions, and no larger than stated.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from commands import bench, error_line

PUBLISHED = Path(__file__).parents[3] / "leaderboards"
VERSIONS = sorted(path.parent for path in PUBLISHED.glob("v*/MANIFEST.json"))
# one of each version; nightly, all of them (tests/golden)
SAMPLE = [min((version / "runs").glob("simcse-builtin-*")) for version in VERSIONS]
TREE_MEGABYTES = 64


def test_nothing_published_was_altered() -> None:
    done = bench("publish", "--check", "--out", PUBLISHED)
    assert done.exit_code == 0 and VERSIONS, done.output
    assert re.search(rf"^{VERSIONS[-1].name} +agrees +\d", done.output, flags=re.M), done.output


@pytest.mark.slow
@pytest.mark.parametrize("run", SAMPLE, ids=lambda path: path.name)
def test_every_score_follows_from_its_predictions(
    run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # nothing but the published folder is at hand
    done = bench("verify", run, "--json")
    (report,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.exit_code == 0 and report["agree"] > 10, done.output


def test_each_version_that_has_left_the_tree_is_in_the_commit_that_verify_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(PUBLISHED.parent)
    numbers = [int(version.name[1:]) for version in VERSIONS]
    gone = [f"v{n}" for n in range(1, max(numbers)) if n not in numbers]
    for name in gone:
        for place in (name, f"leaderboards/{name}"):
            line = error_line(bench("verify", place))
            assert line.startswith(f"error: leaderboards/{name} is no longer in the tree"), line
        commit = line.split("commit ")[1].split()[0]
        words = ["git", "cat-file", "-e", f"{commit}:leaderboards/{name}"]
        if subprocess.run(["git", "cat-file", "-e", commit], capture_output=True).returncode:
            pytest.skip("no git checkout with the commits of earlier versions")
        assert subprocess.run(words, capture_output=True).returncode == 0, words


def test_the_whole_tree_is_small_enough_for_a_repository() -> None:
    """A clone stays a matter of seconds, whatever boards are added."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=PUBLISHED.parent, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout: which files are the repository's is not known")
    files = [PUBLISHED.parent / name for name in listed.stdout.split("\0") if name]
    assert sum(path.stat().st_size for path in files if path.is_file()) < TREE_MEGABYTES * 1e6
