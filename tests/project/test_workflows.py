"""Forms and workflows on GitHub are valid, pinned and have the least rights, and each step is a
script that runs here.
"""

from __future__ import annotations

import json
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

from bench.records import RunsFolder

ROOT = Path(__file__).resolve().parents[2]
GITHUB, CI = ROOT / ".github", ROOT / ".ci"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
ADA = ("user.name=Ada", "user.email=ada@example.org", "init.defaultBranch=main")
ME = [word for one in (*ADA, "commit.gpgsign=false") for word in ("-c", one)]


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


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_zizmor_finds_nothing() -> None:
    """Injection, rights, unpinned actions, credentials that stay: https://docs.zizmor.sh"""
    done = tool("zizmor", "--offline", "--no-progress", "--format", "plain", GITHUB / "workflows")
    assert done.returncode == 0, done.stdout


def test_actions_are_pinned_rights_are_said_and_steps_are_scripts() -> None:
    lines = "\n".join(file.read_text() for file in WORKFLOWS).splitlines()
    used = [line for line in lines if re.match(r"\s*(- )?uses: ", line)]
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


@pytest.fixture
def fork(board: Path, tmp_path: Path) -> Path:
    """A stranger's copy of it, with a submitted run."""
    fork = tmp_path / "fork"
    git(tmp_path, "clone", "--quiet", str(board), "fork")
    run = finished_run(RunsFolder(tmp_path / "theirs"), seed=2)
    to = fork / "leaderboards" / "submissions"
    done = bench("submit", run.run_id, "--runs", tmp_path / "theirs", "--to", to, "--by", "Ada")
    assert done.exit_code == 0, done.output
    return fork


def commit(folder: Path) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "a change")


def script(name: str, *arguments: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PATH": PATH, "COLUMNS": "200"}
    return subprocess.run(
        [CI / name, *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.nightly
def test_a_submission_is_checked_shown_merged_and_published(
    board: Path, fork: Path, tmp_path: Path
) -> None:
    commit(fork)
    before = {
        path: path.read_bytes()
        for path in (board / "leaderboards" / "v1").rglob("*")
        if path.is_file()
    }
    done = script("submission", board, fork, tmp_path / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(tmp_path) not in (tmp_path / "out" / "report.md").read_text()
    page = (tmp_path / "out" / "board" / "preview" / "index.html").read_text()
    assert "simcse-builtin-s2" in page and not (board / "leaderboards" / "preview").exists()

    git(board, "pull", "--quiet", str(fork), "main")
    done = script("next-version", board)
    assert done.returncode == 0, done.stdout + done.stderr
    version = board / "leaderboards" / "v2"
    assert "Ada" in (version / "README.md").read_text()
    assert bench("verify", version).exit_code == 0
    senders = {
        run["run_id"][:17]: run["submitted_by"]
        for run in json.loads((version / "tables.json").read_bytes())["runs"]
    }
    assert senders == {"simcse-builtin-s1": None, "simcse-builtin-s2": "Ada"}
    assert {path: path.read_bytes() for path in before} == before
    (board / ".ci").mkdir()
    shutil.copy(CI / "push-version", board / ".ci")
    git(tmp_path, "clone", "--quiet", "--bare", str(board), "host.git")
    git(board, "remote", "add", "origin", str(tmp_path / "host.git"))
    git(board, "push", "--quiet", "--set-upstream", "origin", "main")
    for said in ("", "no new version\n"):
        pushed = subprocess.run(
            [board / ".ci" / "push-version"], capture_output=True, text=True, timeout=60
        )
        assert (pushed.returncode, pushed.stdout) == (0, said), pushed.stderr
    assert git(tmp_path / "host.git", "log", "-1", "--format=%s", "main") == "v2: submitted runs\n"
    assert "leaderboards/v2/index.html" in git(
        tmp_path / "host.git", "ls-tree", "-r", "--name-only", "main"
    )
    again = script("next-version", board)
    assert (
        again.returncode == 0
        and "nothing is new" in again.stdout
        and not (board / "leaderboards" / "v3").exists()
    )


@pytest.mark.nightly
def test_a_submission_that_is_wrong_is_refused(board: Path, fork: Path, tmp_path: Path) -> None:
    (record,) = (fork / "leaderboards" / "submissions").glob("*/run.json")
    content = json.loads(record.read_bytes())
    content["scores"][0]["value"] += 1
    record.write_text(json.dumps(content))
    commit(fork)
    done = script("submission", board, fork, tmp_path / "out")
    assert done.returncode == 1 and "refused: check CHECK" in done.stdout


def test_a_pull_request_with_anything_else_is_refused(
    board: Path, fork: Path, tmp_path: Path
) -> None:
    def refused() -> str:
        commit(fork)
        done = script("submission", board, fork, tmp_path / "out")
        assert done.returncode == 2 and not (tmp_path / "out" / "report.md").exists()
        return done.stderr

    (fork / "leaderboards" / "v1" / "new.json").write_text("{}")
    assert "not: leaderboards/v1/new.json" in refused()
    git(fork, "reset", "--quiet", "--hard", "HEAD~1")
    assert "no new file" in script("submission", board, fork, tmp_path / "out").stderr
    (fork / "leaderboards" / "submissions" / "a").mkdir(parents=True)
    (fork / "leaderboards" / "submissions" / "a" / "run.json").symlink_to("/etc/passwd")
    assert "not: leaderboards/submissions/a/run.json" in refused()


@pytest.mark.nightly
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
    assert (
        done.returncode == 1
        and "leaderboards/v1 was published and has been changed" in done.stderr
        and "README.md" in done.stderr
    )
    shutil.rmtree(board / "leaderboards" / "v1")
    assert "ERRATA.md does not name it" in guarded().stderr


def test_ci_hides_engines_and_nothing_else(tmp_path: Path) -> None:
    """Programs that a newcomer's machine lacks are not on the PATH with which CI runs the tests."""
    engines = tmp_path / "engines"
    engines.mkdir()
    for name in ("sbatch", "srun", "squeue", "torchrun", "mpirun", "sbatches"):
        (engines / name).write_text("#!/bin/sh\n")
        (engines / name).chmod(0o755)
    found = {"PATH": f"{engines}:{os.environ['PATH']}"}
    subprocess.run([CI / "newcomer-path", tmp_path / "bin"], check=True, env=found)
    names = {file.name for file in (tmp_path / "bin").iterdir()}
    assert {"sh", "env", "sbatches"} <= names
    assert not names & {"sbatch", "srun", "squeue", "torchrun", "mpirun"}
    run = (CI / "run").read_text()
    assert 'PATH=$folder/bin "$folder/venv/bin/tox" run' in run
