"""Begin: README's two commands that set all up, a quick ``bench --help``, and what ``bench doctor`` says."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import version as installed
from pathlib import Path

import pytest
from started import Done, bench, python, record, run_folders

ROOT = Path(__file__).parents[2]
UNTRAINED = {"first-last-avg", "last-avg", "embedding-last-avg", "cls"}
VERDICT = re.compile(r"\b(better|worse|inconclusive)\b")

NO_NETWORK = """
import os, socket

def refuse(self, address, *_):
    if self.family != socket.AF_UNIX:
        with open(os.environ["CONNECTIONS"], "a") as file:
            print(address, file=file)
        raise OSError("this test allows no connection")

socket.socket.connect = socket.socket.connect_ex = refuse
"""


@pytest.fixture
def no_network(tmp_path: Path) -> dict[str, str]:
    """Return the variables of a process that may open no connection, and writes each that it tries.

    No setting says so: nothing but the process itself keeps it from the network.
    """
    folder = tmp_path / "hook"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(NO_NETWORK)
    return {
        "CONNECTIONS": str(tmp_path / "connections"),
        "PYTHONPATH": str(folder),
        "HF_HUB_OFFLINE": "0",
    }


def connections(folder: Path) -> str:
    """Return the addresses to which processes tried to connect."""
    file = folder / "connections"
    return file.read_text() if file.exists() else ""


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """Return a folder with nothing in it."""
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


def readme_commands() -> list[str]:
    """Return the commands of README that make an environment, each in one line."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = []
    for block in re.findall(r"^```sh\n(.*?)^```$", text, flags=re.M | re.S):
        lines = [line.strip(" \\") for line in block.splitlines() if not line.startswith("#")]
        if " -m venv " in block:
            found.append(" ".join(lines))
    return found


@pytest.mark.promise(1)
def test_the_two_commands_of_readme_are_a_demo_and_all_tests() -> None:
    first, second = readme_commands()
    assert shlex.split(first)[-2:] == [".venv/bin/bench", "demo"]
    assert shlex.split(second)[-1:] == [".venv/bin/tox"]
    for command in (first, second):
        words = shlex.split(command)
        assert (ROOT / words[words.index("-c") + 1]).is_file(), "what pins the versions is there"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extra = re.search(r"\.\[(\w+)\]", first)
    assert extra is not None and extra[1] in project["optional-dependencies"]
    assert "bench" in project["scripts"]


@pytest.mark.promise(1)
def test_tox_alone_runs_the_tests_without_hub_engine_or_what_is_nightly() -> None:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    listed = [name.strip() for name in tox["tox"]["env_list"].split(",")]
    assert "tests" in listed
    for name in listed:
        assert f"testenv:{name}" in tox, name
    assert "HF_HUB_OFFLINE = 1" in tox["testenv"]["set_env"].splitlines()
    (command,) = [
        line for line in tox["testenv:tests"]["commands"].splitlines() if line.startswith("pytest")
    ]
    assert "not nightly" in command


@pytest.mark.promise(1)
def test_a_process_that_connects_is_found(tmp_path: Path, no_network: dict[str, str]) -> None:
    """What the tests below rely on."""
    script = "import socket; socket.create_connection(('192.0.2.1', 80))"
    assert "allows no connection" in python(script, cwd=tmp_path, code=1, env=no_network).err
    assert "192.0.2.1" in connections(tmp_path)


@pytest.mark.promise(1)
@pytest.mark.nightly
def test_the_demo_ends_with_a_verdict_a_page_and_commands_that_run(
    empty: Path, tmp_path: Path, no_network: dict[str, str]
) -> None:
    words = ["demo", "--steps", "2", "--seeds", "1-3", "--plain"]
    done = bench(*words, cwd=empty, env=no_network)
    runs = [record(run) for run in run_folders(empty / "bench-demo" / "runs")]
    assert {one["status"] for one in runs} == {"finished"}
    assert {one["method"] for one in runs} == {*UNTRAINED, "simcse"}
    values = {one["method"]: one["scores"][0]["value"] for one in runs}
    # bench/builtin/README.md: the best pooling is seven points above the first token
    assert values["first-last-avg"] - values["cls"] == pytest.approx(7.0, abs=0.5)
    table = done.out.partition("\nmethod ")[2].partition("\n\n")[0].splitlines()
    rows = {line.split()[0]: line for line in table}
    assert VERDICT.search(rows["SimCSE"]) and "for scale" in rows["CLS"], done.out
    page = (empty / "bench-demo" / "index.html").read_text(encoding="utf-8")
    names = ("CLS", "SimCSE", "first-last avg")
    assert VERDICT.search(page) and all(name in page for name in names)

    again = bench(*words, cwd=empty, env=no_network)
    assert again.out == done.out, "nothing finished is done twice, and the same comes out"
    shown = next(one for one in commands_in(done.out) if "runs" in one[1:2])
    assert "simcse" in bench(*shown[1:], cwd=empty, env=no_network).out.lower()
    assert not connections(tmp_path)


def commands_in(text: str) -> Iterator[list[str]]:
    """Yield the commands of a text, as words, without what is said about them in brackets."""
    for line in text.splitlines():
        found = re.search(r"(?:^|: |\s)(bench [a-z].*?)(?:\s{2,}|\s\(|$)", line)
        if found:
            yield shlex.split(found[1])


def loaded(script: str, cwd: Path) -> set[str]:
    """Return the packages that a script has loaded at its end."""
    script += (
        "\nimport json, sys; print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    )
    return set(json.loads(python(script, cwd=cwd, alone=True).out))


HEAVY = {"torch", "transformers", "sentence_transformers", "datasets", "sklearn", "scipy", "pandas"}


@pytest.mark.promise(2)
def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    done = bench("--help", cwd=tmp_path, env={"PYTHONPROFILEIMPORTTIME": "1"})
    names = {line.rpartition("|")[2].strip() for line in done.err.splitlines()}
    packages = {name.split(".")[0] for name in names}
    assert "bench" in packages, "what was loaded is known"
    assert packages & {*HEAVY, "numpy"} == set()
    for verb in ("run", "compare", "publish", "verify", "export", "doctor", "demo", "methods"):
        assert re.search(rf"^\s+{verb}\s", done.out, re.MULTILINE), verb


@pytest.mark.promise(2)
@pytest.mark.promise(28)
def test_import_bench_loads_no_torch_and_names_what_it_has(tmp_path: Path) -> None:
    assert loaded("import bench", tmp_path) & HEAVY == set()
    assert "numpy" in loaded("import numpy", tmp_path), "what is loaded is seen"
    listed = python("import bench; print(*dir(bench))", cwd=tmp_path).out.split()
    assert {"train", "evaluate", "compare_runs", "BenchError"} <= set(listed)


def next_command(done: Done) -> list[str]:
    """Return the words of the command that ``bench doctor`` ends with."""
    line = done.out.rstrip().splitlines()[-1]
    assert "next" in line.lower(), done.out
    (words,) = commands_in(line)
    return words[1:]


@pytest.mark.promise(3)
def test_doctor_says_versions_device_and_data_and_the_demo_is_next_in_an_empty_folder(
    empty: Path, tmp_path: Path, no_network: dict[str, str]
) -> None:
    done = bench("doctor", cwd=empty, env=no_network)
    assert f"torch {installed('torch')}" in done.out
    assert "Python {}.{}.{}".format(*sys.version_info[:3]) in done.out
    assert re.search(r"\b(CPU|cpu|cuda|mps)\b", done.out)
    (missing,) = [line for line in done.out.splitlines() if line.startswith("missing")]
    assert {"sts", "cxc", "transfer"} <= set(re.findall(r"[\w-]+", missing))
    fetch = next(one for one in commands_in(done.out) if one[1:3] == ["data", "fetch"])
    bench(*fetch[1:], "--help", cwd=empty)
    assert "bench doctor --data DIR" in done.out, "somebody has the data in another folder"
    assert next_command(done) == ["demo"]
    bench("demo", "--help", cwd=empty)
    assert list(empty.iterdir()) == [] and not connections(tmp_path)


@pytest.mark.promise(3)
def test_doctor_names_the_versions_that_are_installed_as_json(empty: Path) -> None:
    facts = bench("doctor", "--json", cwd=empty).json
    for package in ("torch", "transformers", "sentence-transformers", "numpy", "scikit-learn"):
        assert facts["packages"][package] == installed(package)
    assert facts["device"].startswith(("cpu", "cuda", "mps"))


@pytest.mark.promise(3)
def test_what_doctor_names_next_runs_with_data_and_with_runs(
    empty: Path, shared: Path, ten_runs: Path
) -> None:
    with_data = bench("doctor", "--data", shared / "data", cwd=empty)
    assert "missing" not in with_data.out
    assert {"sts", "cxc", "transfer"} <= set(re.findall(r"[\w-]+", with_data.out))
    command = next_command(with_data)
    assert command[0] == "run" and str(shared / "data") in command
    planned = bench(*command, "--dry-run", cwd=empty)
    assert "STS" in planned.out + planned.err or "sts" in planned.out + planned.err
    with_runs = bench("doctor", "--runs", ten_runs, cwd=empty)
    assert re.search(r"\b10 runs\b", with_runs.out)
    command = next_command(with_runs)
    assert command[0] == "compare"
    assert "PromCSE" in bench(*command, cwd=empty).out
    assert list(empty.iterdir()) == []
