"""``bench data fetch``, and ``bench run`` that fetches what is missing, or opens no connection at all."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from commands import bench, error_line
from hub import StandInHub

from bench.datasets import data_set, sources

HERE = Path(__file__).resolve().parents[2]


@pytest.fixture
def simcse(hub: StandInHub, shared: Path) -> StandInHub:
    """SimCSE's data set of the hub, with the sets' real files."""
    moses, out = shared / "data/senteval-moses/downstream", io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path in sorted(moses.rglob("*")):
            if path.is_file():
                archive.add(path, arcname=str(path.relative_to(moses)))
    hub.add("dataset", "princeton-nlp/datasets-for-simcse", {"senteval.tar": out.getvalue()})
    return hub


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for a test, so that nothing is there that another test fetched."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_suite_is_fetched_into_a_folder_that_can_be_copied(simcse: StandInHub, cache: Path, tmp_path: Path) -> None:
    done = bench("data", "fetch", "sts", "--data", tmp_path / "data")
    assert done.exit_code == 0, done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines()][:2] == ["STS12", "STS13"]
    assert all(": found, in " in line for line in done.stdout.splitlines())
    said = done.stderr.splitlines()
    assert "STS13: 0.2 MB, licence: research" in said and any(
        line.startswith("terms of STS12, which you accept") for line in said
    )
    assert not cache.exists() or not (cache / "data").exists()
    (tmp_path / "data").rename(tmp_path / "brought")
    assert bench("data", "check", "STS-B", "--data", tmp_path / "brought", HF_HUB_OFFLINE="1").exit_code == 0
    asked = len(simcse.requests)
    again = bench("data", "fetch", "sts", "transfer", "--data", tmp_path / "brought", "--json")
    assert again.exit_code == 0 and len(simcse.requests) == asked and again.stderr == ""
    states = [json.loads(line) for line in again.stdout.splitlines()]
    assert len(states) == 14 and {state["status"] for state in states} == {"found"}
    assert states[0]["sources"][0]["note"].startswith("trust on first use")


def test_a_damaged_file_is_found_and_fetched_again(simcse: StandInHub, cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    bench("data", "fetch", "TREC", "--data", folder)
    path = folder / "senteval-simcse/downstream/TREC/TREC_10.label"
    good = path.read_bytes()
    path.write_bytes(good[:1000])
    damaged = bench("data", "check", "trec".upper(), "--data", folder)
    assert "damaged: TREC" in error_line(damaged) and str(path) in damaged.stdout.replace("\n", "").replace(" ", "")
    assert bench("data", "fetch", "TREC", "--data", folder).exit_code == 0 and path.read_bytes() == good


def test_one_failure_does_not_stop_the_others(hub: StandInHub, cache: Path, tmp_path: Path, shared: Path) -> None:
    source = sources()["clustering"]
    (path,) = source.files["AgNews.tsv"].paths
    data = (shared / "data/clustering/AgNews.tsv").read_bytes()
    assert hashlib.sha256(data).hexdigest() == data_set("AgNews").files[0].forms["any"].sha256
    hub.serve(f"raw.githubusercontent.com/{source.repo}/{source.revision}/{path}", data)
    done = bench("data", "fetch", "SearchSnippets", "AgNews", "--data", tmp_path / "data")
    assert done.exit_code == 2 and "AgNews: found" in done.stdout and "SearchSnippets: missing" in done.stdout
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "is not there (status 404)" in errors[0] and errors[1].startswith("error: not fetched: SearchSnippets")


def test_what_cannot_be_fetched_and_what_is_unknown(hub: StandInHub, cache: Path, tmp_path: Path) -> None:
    done = bench("data", "fetch", "nli_triplets", "--data", tmp_path)
    assert done.exit_code == 2 and "no source" in done.stderr and "any CSV with sent0,sent1,hard_neg serves" in done.stderr
    assert "nearest: STS16" in error_line(bench("data", "fetch", "STS21"))
    assert "HF_HUB_OFFLINE is set" in error_line(bench("data", "fetch", "STS12", HF_HUB_OFFLINE="1"))
    assert hub.requests == []


def test_the_list_says_where_a_set_comes_from(cache: Path) -> None:
    shown = " ".join(bench("data", "list", "wiki1m").stdout.split())
    assert "trust on first use" in shown and "hub data set princeton-nlp/datasets-for-simcse" in shown
    assert "nowhere: it has to be brought" in " ".join(bench("data", "list", "nli_triplets").stdout.split())


WORDS = [
    "a",
    "the",
    "of",
    "in",
    "to",
    "is",
    "on",
    "and",
    "with",
    "for",
    "man",
    "woman",
    "dog",
    "two",
    "are",
    "at",
    "by",
    "from",
    "not",
]


def test_a_run_fetches_what_it_needs_and_the_next_one_asks_for_nothing(simcse: StandInHub, cache: Path, tmp_path: Path) -> None:
    rows = np.random.default_rng(5).normal(size=(len(WORDS), 8))
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("".join(f"{word} {' '.join(f'{x:.4f}' for x in row)}\n" for word, row in zip(WORDS, rows, strict=True)))
    command = ("run", "--method", "glove-avg", "--set", f"vectors={vectors}", "--suite", "sts", "--runs", tmp_path / "runs")
    done = bench(*command)
    assert done.exit_code == 0, done.stderr
    assert "STS12: 0.4 MB, licence: research, MS terms" in done.stderr.splitlines()
    assert (cache / "data/senteval-simcse/downstream/STS").is_dir() and "sts Avg." in done.stderr
    asked = len(simcse.requests)
    assert bench(*command, "--fresh", "--offline").exit_code == 0 and len(simcse.requests) == asked


def test_a_dry_run_fetches_nothing(simcse: StandInHub, cache: Path, tmp_path: Path) -> None:
    done = bench("run", "--method", "pretrained", "--suite", "sts", "--dry-run", "--runs", tmp_path / "runs")
    assert simcse.requests == [] and "bench data fetch STS12" in done.output


NO_SOCKETS = """
import socket, sys
class Refused(socket.socket):
    def __init__(self, *arguments, **more):
        raise SystemExit("a socket was opened")
socket.socket = socket.SocketType = Refused
socket.create_connection = socket.getaddrinfo = lambda *a, **k: sys.exit("a connection was tried")
from bench.cli import main
main(sys.argv[1:])
"""


def without_sockets(arguments: list[object], tmp_path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """``bench`` in a process of its own, in which the first socket ends it."""
    clean = {key: value for key, value in os.environ.items() if key not in ("HF_HUB_OFFLINE", "HF_ENDPOINT", "BENCH_DATA")}
    env = {**clean, "BENCH_CACHE": str(tmp_path / "cache"), "HF_HOME": str(tmp_path / "hf"), "PYTHONPATH": str(HERE), **env}
    given = [sys.executable, "-c", NO_SOCKETS, *map(str, arguments)]
    return subprocess.run(given, capture_output=True, text=True, timeout=240, env=env, cwd=tmp_path)


@pytest.mark.slow
def test_an_offline_run_opens_no_socket(tmp_path: Path) -> None:
    """Trained, selected on its dev set, scored, shown."""
    common = ["--suite", "check", "--device", "cpu", "--runs", tmp_path / "runs", "--set", "batch_size=8", "--max-steps", "2"]
    done = without_sockets(
        ["run", "--method", "simcse", "--backbone", "builtin", "--corpus", "builtin", *common, "--offline"], tmp_path
    )
    assert done.returncode == 0 and "captions" in done.stdout and "socket" not in done.stderr, done.stderr


def test_the_net_of_that_test_catches_a_connection(tmp_path: Path) -> None:
    done = without_sockets(["data", "fetch", "STS12"], tmp_path)
    assert done.returncode != 0 and ("a socket was opened" in done.stderr or "a connection was tried" in done.stderr)


def test_an_offline_run_says_what_is_missing_and_how_to_bring_it(tmp_path: Path) -> None:
    arguments = [
        "run",
        "--method",
        "pretrained",
        "--backbone",
        "builtin",
        "--suite",
        "sts",
        "--runs",
        tmp_path / "runs",
        "--offline",
    ]
    done = without_sockets(arguments, tmp_path)
    assert done.returncode == 2 and "socket" not in done.stderr and "a connection was" not in done.stderr
    assert "STS12" in done.stderr and "bench data fetch STS12 --data DIR; copy DIR here" in done.stderr


def test_the_environment_can_say_offline_too(hub: StandInHub, cache: Path, tmp_path: Path) -> None:
    done = bench("run", "--method", "pretrained", "--suite", "sts", "--runs", tmp_path / "runs", HF_HUB_OFFLINE="1")
    assert "nothing is fetched (--offline" in error_line(done) and hub.requests == []
