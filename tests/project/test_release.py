"""Releases: made from a tag, the same bytes twice, complete, working in an empty environment."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / ".ci" / "release"


def release(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    given = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    return subprocess.run(
        [RELEASE, *words],
        env=given | {"PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build wheel and sdist; the script builds twice, and fails if a byte differs."""
    out = tmp_path_factory.mktemp("dist")
    done = release("build", out)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2  # twine check
    return out


@pytest.mark.nightly
def test_the_wheel_and_the_sdist_hold_what_is_needed_and_nothing_else(built: Path) -> None:
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    version = wheel.name.split("-")[1]
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        assert f'__version__ = "{version}"' in archive.read("bench/_version.py").decode()
        times = {info.date_time for info in archive.infolist()}
    assert len(times) == 1, "one time, that of the commit"
    tracked = subprocess.run(
        ["git", "ls-files", "bench", "methods"], cwd=ROOT, capture_output=True, text=True
    )
    if tracked.returncode == 0:  # a copy without git has no list
        about = {name for name in names if ".dist-info/" in name}
        installed = {
            "bench/" + name if name.startswith("methods/") else name
            for name in tracked.stdout.split()
        }
        assert names - about == {*installed, "bench/_version.py"}
    assert {
        "bench/py.typed",
        "bench/methods/py.typed",
        "bench/builtin/README.md",
        "bench/methods/recipes/simcse.toml",
    } <= names
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    code = {name for name in names if ".dist-info/" not in name}
    of_sdist = {
        name.removeprefix("bench/") if name.startswith("bench/methods/") else name for name in code
    }
    assert of_sdist <= held
    assert {"CHANGES.md", "LICENSE", "README.md", "pyproject.toml", "constraints.txt"} <= held
    assert not [name for name in held if name.startswith(("tests", "leaderboards", "docs"))]


@pytest.mark.nightly
def test_the_wheel_works_in_an_empty_environment(built: Path) -> None:
    """It has no torch and one Python here; the workflow has torch, and three Pythons."""
    (wheel,) = built.glob("*.whl")
    done = release("try", wheel, BENCH_NO_DEPS="1")
    if "No matching distribution" in done.stderr or "NewConnectionError" in done.stderr:
        pytest.skip("no package index to install click from")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"bench {wheel.name.split('-')[1]} works with Python 3." in done.stdout


@pytest.fixture
def with_methods(tmp_path: Path) -> Path:
    """Return a folder of a user that has a package ``methods``."""
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "__init__.py").write_text("raise SystemExit('the wrong folder')")
    return tmp_path


@pytest.mark.slow
def test_a_users_folder_methods_hides_nothing(with_methods: Path) -> None:
    """Python looks in the working directory first."""
    code = "import bench.methods; print(bench.methods.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=with_methods
    )
    assert done.returncode == 0, done.stderr
    assert not Path(done.stdout.strip()).is_relative_to(with_methods)


@pytest.mark.nightly
@pytest.mark.parametrize("from_wheel", [True, False])
def test_a_plugin_finds_our_methods_beside_a_users_folder_methods(
    request: pytest.FixtureRequest, from_wheel: bool, with_methods: Path
) -> None:
    """Of a wheel that is built here, and of what is installed: in tox a wheel, else the clone."""
    (with_methods / "mine.py").write_text(
        "from pathlib import Path\n\nfrom bench.methods import simcse\n\n"
        "Path('place.txt').write_text(simcse.__file__)\n\n\n"
        "class Mine(simcse.SimCSE):\n    name = 'mine'\n"
    )
    environment = dict(os.environ)
    if from_wheel:
        built: Path = request.getfixturevalue("built")
        (wheel,) = built.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(with_methods / "site")
        environment["PYTHONPATH"] = str(with_methods / "site")
    done = subprocess.run(
        [sys.executable, "-m", "bench", "methods", "mine", "--plugin", "mine.py", "--json"],
        capture_output=True,
        text=True,
        cwd=with_methods,
        env=environment,
    )
    assert done.returncode == 0 and '"mine"' in done.stdout, done.stderr
    place = Path((with_methods / "place.txt").read_text())
    assert place.is_relative_to(with_methods / "site") is from_wheel
