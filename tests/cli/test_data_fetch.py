"""``bench data fetch``, and ``bench run`` that fetches what is missing, or opens no connection at all."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from commands import argv, bench, error_line
from hub import StandInHub

from bench.data.sets import DataFolder, data_set, sources
from bench.data.sets.manifest import Form

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


def test_a_suite_is_fetched_into_a_folder_that_can_be_copied(
    simcse: StandInHub, cache: Path, tmp_path: Path
) -> None:
    done = bench("data", "fetch", "sts", "--data", tmp_path / "data")
    assert done.exit_code == 0, done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines()][:2] == ["STS12", "STS13"]
    assert all(": found, in " in line for line in done.stdout.splitlines())
    said = done.stderr.splitlines()
    assert said[0] == f"fetched now, data into {tmp_path / 'data'}:" and said[1].split() == [
        "MB",
        "licence",
        "from",
    ]
    rows = [line.split()[:3] for line in said[2:9]]
    assert (
        rows[:2] == [["STS12", "0.4", "research,"], ["STS13", "0.2", "research"]]
        and rows[6][0] == "SICK-R"
    )
    assert said[9] == "  about 6 MB in all" and said[10].startswith(
        "  terms of STS12, which you accept by fetching: MSRpar"
    )
    assert len(said) == len(set(said)), "nothing is said twice"
    assert (
        "  senteval.tar brings MR, CR, SUBJ, MPQA, SST-2, TREC, MRPC along (bench data list NAME: their licences)"
        in said
    )
    first = next(i for i, line in enumerate(said) if line.startswith("fetching from"))
    assert first > 10 and "licence" not in "".join(said[first:]), "all of it before the first byte"
    assert not cache.exists() or not (cache / "data").exists()
    (tmp_path / "data").rename(tmp_path / "brought")
    assert (
        bench(
            "data", "check", "STS-B", "--data", tmp_path / "brought", HF_HUB_OFFLINE="1"
        ).exit_code
        == 0
    )
    asked = len(simcse.requests)
    again = bench("data", "fetch", "sts", "transfer", "--data", tmp_path / "brought", "--json")
    assert again.exit_code == 0 and len(simcse.requests) == asked and again.stderr == ""
    states = [json.loads(line) for line in again.stdout.splitlines()]
    assert len(states) == 14 and {state["status"] for state in states} == {"found"}
    assert states[0]["sources"][0]["note"].startswith("trust on first use")


def test_a_damaged_file_is_found_and_fetched_again(
    simcse: StandInHub, cache: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    bench("data", "fetch", "TREC", "--data", folder)
    path = folder / "senteval-simcse/downstream/TREC/TREC_10.label"
    good = path.read_bytes()
    path.write_bytes(good[:1000])
    damaged = bench("data", "check", "trec".upper(), "--data", folder)
    assert "damaged: TREC" in error_line(damaged) and str(path) in damaged.stdout.replace(
        "\n", ""
    ).replace(" ", "")
    assert (
        bench("data", "fetch", "TREC", "--data", folder).exit_code == 0
        and path.read_bytes() == good
    )


def test_one_failure_does_not_stop_the_others(
    hub: StandInHub, cache: Path, tmp_path: Path, shared: Path
) -> None:
    source = sources()["clustering"]
    (path,) = source.files["AgNews.tsv"].paths
    data = (shared / "data/clustering/AgNews.tsv").read_bytes()
    assert hashlib.sha256(data).hexdigest() == data_set("AgNews").files[0].forms["any"].sha256
    hub.serve(f"raw.githubusercontent.com/{source.repo}/{source.revision}/{path}", data)
    done = bench("data", "fetch", "SearchSnippets", "AgNews", "--data", tmp_path / "data")
    assert (
        done.exit_code == 2
        and "AgNews: found" in done.stdout
        and "SearchSnippets: missing" in done.stdout
    )
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "is not there (status 404)" in errors[0] and errors[1].startswith(
        "error: not fetched: SearchSnippets"
    )


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


def test_word_vectors_are_fetched_by_the_name_that_the_recipe_has(
    hub: StandInHub, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan names them and asks nobody; then they come, are checked, and are the run that a file of the same content is."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(
            "glove.840B.300d.txt",
            "".join(f"{word} {i} {i * i % 7} 1\n" for i, word in enumerate(WORDS)),
        )
    packed, wanted = out.getvalue(), data_set("glove-840b")
    form = {"any": Form(sha256=hashlib.sha256(packed).hexdigest(), bytes=len(packed))}
    small = replace(wanted, files=(replace(wanted.files[0], forms=form),))
    monkeypatch.setattr("bench.run.plan.data_sets", lambda: {"glove-840b": small})
    hub.serve("nlp.stanford.edu/data/glove.840B.300d.zip", packed[:-1] + b"?")
    command = ("run", "--method", "glove-avg", "--suite", "check", "--runs", tmp_path / "runs")
    planned = bench(*command, "--dry-run")
    assert (
        planned.exit_code == 0
        and "glove-840b" in planned.stdout.partition("this is fetched first")[2]
        and hub.requests == []
    )
    damaged = bench(*command)
    assert (
        "glove.840B.300d.zip is not what it should be" in damaged.stderr
        and not (cache / "data/vectors").exists()
    )
    hub.serve("nlp.stanford.edu/data/glove.840B.300d.zip", packed)
    assert bench(*command).exit_code == 0
    file = cache / "data/vectors/glove.840B.300d.zip"
    assert file.read_bytes() == packed and DataFolder(cache / "data").check(small).status == "found"
    asked = len(hub.requests)
    file.rename(tmp_path / "mine.zip")
    same = bench(*command, "--set", f"vectors={tmp_path / 'mine.zip'}", "--offline")
    assert same.exit_code == 0 and "nothing repeated" in same.stderr and len(hub.requests) == asked
    assert "bench data fetch glove-840b" in bench(*command, "--offline").stderr
    file.write_bytes(packed[:-1] + b"?")
    assert DataFolder(cache / "data").check(small).status == "damaged"


def test_a_dry_run_shows_the_plan_of_what_is_not_here_and_asks_nobody(
    hub: StandInHub, cache: Path, tmp_path: Path
) -> None:
    command = (
        *argv("run --method promcse --backbone roberta-large --setting supervised --runs"),
        tmp_path / "runs",
        "--dry-run",
        "--device",
        "cpu",
    )
    done = bench(*command)
    assert (
        done.exit_code == 0
        and done.stderr == ""
        and hub.requests == []
        and not (tmp_path / "runs").exists()
    )
    shown = done.stdout
    assert (
        "nli_for_simcse.csv, 275,601 rows" in shown
        and "STS12, STS13, STS14, STS15, STS16, STS-B, SICK-R" in shown
    )
    batch, epochs = 512, 10
    assert f" {epochs * -(-275_601 // batch):,} " in shown
    rows = {
        line.split()[0]: line.split()[1]
        for line in shown.partition("not on this machine;")[2].splitlines()
        if line.startswith("  ")
    }
    assert {"STS12": "0.4", "SICK-R": "1.1", "nli": "48.0"}.items() <= rows.items()
    assert 1_420 < float(rows["roberta-large"].replace(",", "")) < 1_430, (
        "355.4 million parameters of four bytes"
    )
    (one,) = [json.loads(line) for line in bench(*command, "--json").stdout.splitlines()]
    assert (one["run_id"], one["fingerprint"], one["estimate"]["steps"]) == (None, None, 5390)
    licences = {each["name"]: (each["kind"], each["licence"]) for each in one["to_fetch"]}
    assert (
        licences["roberta-large"] == ("backbone", "MIT")
        and licences["nli"] == ("corpus", "CC BY-SA; MNLI mixed")
        and len(licences) == 9
    )
    offline = bench(*command, "--offline")
    assert (
        "nli: not on this machine, and --offline" in error_line(offline)
        and "275,601 rows" in offline.stdout
        and hub.requests == []
    )


def test_two_backbones_that_are_not_here_are_two_runs(
    hub: StandInHub, cache: Path, tmp_path: Path
) -> None:
    done = bench(
        *argv("run --method cls --backbone a/model,b/model --suite check --dry-run --json"),
        *argv("--runs"),
        tmp_path,
    )
    assert [json.loads(line)["backbone"] for line in done.stdout.splitlines()] == [
        "a/model",
        "b/model",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["option", "environment"])
@pytest.mark.parametrize("place", ["nothing", "file", "empty"])
def test_data_that_is_not_there_opens_no_connection(
    hub: StandInHub, no_network: list[object], cache: Path, tmp_path: Path, place: str, how: str
) -> None:
    """Neither for the sets, nor for the corpus, nor for a backbone that is not here."""
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    folder = tmp_path / place
    given = ("--data", folder) if how == "option" else ()
    env = {} if how == "option" else {"BENCH_DATA": str(folder)}
    for what in (("promcse", "roberta-large"), ("cls", "builtin")):
        done = bench(
            "run",
            "--method",
            what[0],
            "--backbone",
            what[1],
            *given,
            "--runs",
            tmp_path / "runs",
            **env,
        )
        line = error_line(done)
        assert (
            str(folder) in line
            and {"nothing": "does not exist", "file": "is a file", "empty": "nor are 6 other sets"}[
                place
            ]
            in line
        )
        assert len(done.stderr.splitlines()) == 2 and "accept" not in done.stderr
    assert hub.requests == [] and no_network == [] and not (tmp_path / "runs").exists()


def plan(*arguments: str | Path) -> Result:
    return bench(*argv("run --method cls --backbone builtin --dry-run --device cpu"), *arguments)


def lacking(done: Result) -> list[str]:
    """The sets that a plan names as not here, of a folder that the user gave, by the command that gets them; it is run."""
    (found,) = re.findall(r"bench data fetch .*? --data \S+", " ".join(done.stdout.split()))
    words = shlex.split(found)
    assert bench(*words[1:]).exit_code == 0
    return words[3:-2]


@pytest.mark.slow
def test_what_the_folder_lacks_is_named_with_what_gets_it_and_that_helps(
    simcse: StandInHub, cache: Path, shared: Path, tmp_path: Path
) -> None:
    folder, place = tmp_path / "data", "senteval-moses/downstream/STS/STS12-en-test"
    shutil.copytree(shared / "data" / place, folder / place)
    done = plan("--data", folder)
    assert done.exit_code == 0 and done.stderr == "" and simcse.requests == []
    assert lacking(done) == ["STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"]
    whole = plan("--data", folder)
    assert whole.exit_code == 0 and whole.stderr == "" and "bench data fetch" not in whole.stdout


@pytest.mark.parametrize(
    "command",
    [("run", "--method", "promcse", "--backbone", "roberta-large"), ("data", "fetch", "sts")],
)
def test_without_a_network_that_is_one_line_at_once(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """A hub, and a mirror for the rest, that nobody serves."""
    for name in ("HF_ENDPOINT", "BENCH_MIRROR"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("it waits"))
    monkeypatch.chdir(tmp_path)
    began = time.monotonic()
    done = bench(*command)
    line = error_line(done)
    assert line.startswith(
        "error: no network: 127.0.0.1:9 cannot be reached (Connection refused); not on this machine: STS12, "
    )
    assert len(done.stderr.splitlines()) == 2 and time.monotonic() - began < 20, (
        "two lines, and no time but that of the imports"
    )
    hint = done.stderr.splitlines()[1]
    assert hint.startswith(
        "try: where there is a network: bench data fetch STS12 STS13 STS14 STS15 STS16 STS-B SICK-R"
    )
    assert ("bench backbones roberta-large --fetch" in hint) is (command[0] == "run")
    assert not (tmp_path / "runs").exists() and not (cache / "data").exists()


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


def without_sockets(
    arguments: list[object], tmp_path: Path, **env: str
) -> subprocess.CompletedProcess[str]:
    """``bench`` in a process of its own, in which the first socket ends it."""
    clean = {
        key: value
        for key, value in os.environ.items()
        if key not in ("HF_HUB_OFFLINE", "HF_ENDPOINT", "BENCH_DATA")
    }
    env = {
        **clean,
        "BENCH_CACHE": str(tmp_path / "cache"),
        "HF_HOME": str(tmp_path / "hf"),
        "PYTHONPATH": str(HERE),
        **env,
    }
    given = [sys.executable, "-c", NO_SOCKETS, *map(str, arguments)]
    return subprocess.run(given, capture_output=True, text=True, timeout=240, env=env, cwd=tmp_path)


@pytest.mark.slow
def test_an_offline_run_opens_no_socket(tmp_path: Path) -> None:
    """Trained, selected on its dev set, scored, shown."""
    common = [
        *argv("--suite check --device cpu --runs"),
        tmp_path / "runs",
        *argv("--set batch_size=8 --max-steps 2"),
    ]
    done = without_sockets(
        [*argv("run --method simcse --backbone builtin --corpus builtin"), *common, "--offline"],
        tmp_path,
    )
    assert done.returncode == 0 and "captions" in done.stdout and "socket" not in done.stderr, (
        done.stderr
    )


@pytest.mark.slow
def test_the_net_of_that_test_catches_a_connection(tmp_path: Path) -> None:
    done = without_sockets(["data", "fetch", "STS12"], tmp_path)
    assert done.returncode != 0 and (
        "a socket was opened" in done.stderr or "a connection was tried" in done.stderr
    )
