"""What runs on GitHub: forms and workflows are valid, pinned and of least rights, and each step is a script that runs here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import bench
from scored_run import finished_run

from bench.runs import RunsFolder

ROOT = Path(__file__).resolve().parents[1]
GITHUB, CI = ROOT / ".github", ROOT / ".ci"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
ME = [f"-c{one}" for one in ("user.name=Ada", "user.email=ada@example.org")]
ME += ["-cinit.defaultBranch=main", "-ccommit.gpgsign=false"]


def tool(module: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).parent / module, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )


def jobs(file: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    yield from ((workflow, job) for job in workflow["jobs"].values())


CONFIG = GITHUB / "ISSUE_TEMPLATE/config.yml"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-workflows", WORKFLOWS),
        ("vendor.github-issue-forms", sorted({*CONFIG.parent.glob("*.yml")} - {CONFIG})),
        ("vendor.github-issue-config", [CONFIG]),
        ("vendor.citation-file-format", [ROOT / "CITATION.cff"]),
    ],
)
def test_the_published_schemas_hold(schema: str, files: list[Path]) -> None:
    assert files
    done = tool("check-jsonschema", "--builtin-schema", schema, *files)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_zizmor_finds_nothing() -> None:
    """Injection, rights, unpinned actions, credentials that stay: https://docs.zizmor.sh"""
    done = tool("zizmor", "--offline", "--no-progress", "--format", "plain", GITHUB / "workflows")
    assert done.returncode == 0, done.stdout


def test_actions_are_pinned_rights_are_said_and_steps_are_scripts() -> None:
    used = [
        line
        for file in WORKFLOWS
        for line in file.read_text().splitlines()
        if re.match(r"\s*(- )?uses: ", line)
    ]
    loose = [
        line
        for line in used
        if not re.search(
            r"uses: (actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+|\./\.github/workflows/\S+)", line
        )
    ]
    assert used and loose == []
    assert len({tuple(re.findall(r"(actions/\S+)@\S+ # (\S+)", line)) for line in used}) == len(
        {re.findall(r"uses: (\S+?)(?:@| )", line)[0] for line in used}
    ), "one version an action"
    for workflow, job in (one for file in WORKFLOWS for one in jobs(file)):
        assert workflow["permissions"] == {"contents": "read"}
        assert "timeout-minutes" in job or "uses" in job
        for step in job.get("steps", ()):
            said = step.get("run", "")
            assert (
                not said
                or re.match(r"(base/)?\.ci/[\w-]+|python -m (pip install|twine upload) ", said)
                and "\n" not in said
            ), said
            for script in re.findall(r"\.ci/([\w-]+)", said):
                assert os.access(CI / script, os.X_OK), script


def test_strangers_get_no_secret_and_no_right() -> None:
    for file in WORKFLOWS:
        text = file.read_text()
        assert "secrets." not in text and "pull_request_target" not in text
        for workflow, job in jobs(file):
            if "pull_request" in workflow[True]:  # `on` is a truth value in YAML 1.1
                rights = job.get("permissions", {"contents": "read"})
                assert (
                    rights == {"contents": "read"}
                    or job["if"] == "github.event_name != 'pull_request'"
                )


def git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *ME, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """A repository with a board of one run, as its keeper has it."""
    if shutil.which("git") is None:
        pytest.skip("no git here: apt-get install git")
    base = tmp_path / "base"
    finished_run(RunsFolder(tmp_path / "own"), seed=1)
    assert (
        bench("publish", "--runs", tmp_path / "own", "--out", base / "leaderboards").exit_code == 0
    )
    git(base, "init", "--quiet")
    git(base, "add", ".")
    git(base, "commit", "--quiet", "-m", "a board")
    return base


@pytest.mark.slow
def test_published_versions_are_guarded(board: Path) -> None:
    first, guard = git(board, "rev-parse", "HEAD").strip(), board / ".ci" / "guard"
    guard.parent.mkdir()
    shutil.copy(CI / "guard", guard)

    def guarded() -> subprocess.CompletedProcess[str]:
        how = {"capture_output": True, "text": True, "timeout": 120}
        return subprocess.run([guard, first], env=os.environ | {"PATH": PATH}, **how)

    assert guarded().returncode == 0, guarded().stderr
    with (board / "leaderboards" / "v1" / "README.md").open("a") as file:
        file.write("better\n")
    done = guarded()
    assert done.returncode == 1 and "README.md" in done.stderr
    assert "leaderboards/v1 was published and has been changed" in done.stderr
