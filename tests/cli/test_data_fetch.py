"""``bench data fetch``, and ``bench run`` that fetches what is missing, or opens no connection at
all.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shlex
import shutil
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from commands import argv, bench, error_line
from hub import StandInHub, send_requests_to

from bench.data.sets import DataFolder, Form, all_sources, data_set


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
    data, brought = tmp_path / "data", tmp_path / "brought"
    done = bench("data", "fetch", "sts", "--data", data)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.count(": found, in ") == 7
    lines = done.stderr.splitlines()
    assert lines[0] == f"fetched now, data into {data}:" and len(lines) == len(set(lines))
    assert lines[2].split()[:3] == ["STS12", "0.4", "research,"] and "6.1 MB in all" in lines[9]
    first = next(i for i, line in enumerate(lines) if line.startswith("fetching "))
    assert first > 10, "sizes and licences stand before the first byte"
    assert not cache.exists() or not (cache / "data").exists()
    data.rename(brought)
    checked = bench("data", "check", "STS-B", "--data", brought, HF_HUB_OFFLINE="1")
    asked = len(simcse.requests)
    again = bench("data", "fetch", "sts", "transfer", "--data", brought, "--json")
    assert checked.exit_code == again.exit_code == 0 and again.stderr == ""
    assert len(simcse.requests) == asked
    states = [json.loads(line) for line in again.stdout.splitlines()]
    assert len(states) == 14 and {state["status"] for state in states} == {"found"}


def test_a_damaged_file_is_found_and_fetched_again(
    simcse: StandInHub, cache: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    bench("data", "fetch", "TREC", "--data", folder)
    path = folder / "senteval-simcse/downstream/TREC/TREC_10.label"
    good = path.read_bytes()
    path.write_bytes(good[:1000])
    assert "damaged: TREC" in error_line(bench("data", "check", "TREC", "--data", folder))
    assert bench("data", "fetch", "TREC", "--data", folder).exit_code == 0
    assert path.read_bytes() == good


@pytest.mark.nightly
@pytest.mark.slow
def test_a_corpus_of_another_length_is_trained_on_and_the_record_says_so(
    hub: StandInHub, cache: Path, tmp_path: Path
) -> None:
    text = "".join(f"Sentence number {i} of the text.\n" for i in range(99)).encode()
    name = "princeton-nlp/datasets-for-simcse"
    revision = hub.add("dataset", name, {"wiki1m_for_simcse.txt": text})
    command = argv("run --method simcse --suite check --corpus wiki1m --device cpu")
    recipe = argv("--set max_steps=1 --set batch_size=4 --runs")
    done = bench(*command, *recipe, tmp_path / "runs")
    counted = "99 rows, where 1,000,000 were expected"
    assert done.exit_code == 0, done.stderr
    assert f"warning: wiki1m: wiki1m_for_simcse.txt has {counted}" in done.stderr
    (record,) = (tmp_path / "runs").glob("*/run.json")
    corpus = json.loads(record.read_text())["provenance"]["corpus"]
    assert corpus["warning"] == counted
    assert corpus["url"] == f"hf://datasets/{name}@{revision}/wiki1m_for_simcse.txt"
    assert corpus["sha256"] == hashlib.sha256(text).hexdigest()


def test_one_failure_does_not_stop_the_others(
    hub: StandInHub, cache: Path, tmp_path: Path, shared: Path
) -> None:
    source = all_sources()["clustering"]
    (path,) = source.files["AgNews.tsv"].paths
    data = (shared / "data/clustering/AgNews.tsv").read_bytes()
    hub.serve(f"raw.githubusercontent.com/{source.repo}/{source.revision}/{path}", data)
    done = bench("data", "fetch", "SearchSnippets", "AgNews", "--data", tmp_path / "data")
    assert done.exit_code == 2 and "error: SearchSnippets: " in done.stderr
    assert "AgNews: found" in done.stdout and "SearchSnippets: missing" in done.stdout


WORDS = argv("a the of in to is on and with for man woman dog two are at by from not")


def test_word_vectors_are_fetched_by_the_name_that_the_recipe_has(
    hub: StandInHub, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan names them and asks nobody; then they come, are checked, and are the run that a file
    of the same content is.
    """
    name, out = "glove.840B.300d", io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        rows = (f"{word} {i} {i * i % 7} 1\n" for i, word in enumerate(WORDS))
        archive.writestr(f"{name}.txt", "".join(rows))
    packed, wanted = out.getvalue(), data_set("glove-840b")
    form = {"any": Form(sha256=hashlib.sha256(packed).hexdigest(), bytes=len(packed))}
    small = replace(wanted, files=(replace(wanted.files[0], forms=form),))
    monkeypatch.setattr("bench.run.planner.data_sets", lambda: {"glove-840b": small})
    hub.serve(f"nlp.stanford.edu/data/{name}.zip", packed[:-1] + b"?")
    command = (*argv("run --method glove-avg --suite check --runs"), tmp_path / "runs")
    planned = bench(*command, "--dry-run")
    assert "glove-840b" in planned.stdout.partition("  download ")[2]
    assert planned.exit_code == 0 and hub.requests == []
    assert f"{name}.zip has the wrong checksum" in bench(*command).stderr
    assert not (cache / "data/vectors").exists()
    hub.serve(f"nlp.stanford.edu/data/{name}.zip", packed)
    assert bench(*command).exit_code == 0
    file = cache / f"data/vectors/{name}.zip"
    assert file.read_bytes() == packed and DataFolder(cache / "data").check(small).status == "found"
    asked = len(hub.requests)
    file.rename(tmp_path / "mine.zip")
    same = bench(*command, "--set", f"vectors={tmp_path / 'mine.zip'}", "--offline")
    assert same.exit_code == 0 and "nothing repeated" in same.stderr and len(hub.requests) == asked
    assert "bench data fetch glove-840b" in bench(*command, "--offline").stderr


@pytest.mark.slow
@pytest.mark.parametrize("place", ["nothing", "empty"])
def test_data_that_is_not_there_opens_no_connection(
    hub: StandInHub, no_network: list[object], cache: Path, tmp_path: Path, place: str
) -> None:
    """Neither for the sets, nor for the corpus, nor for a backbone that is not here."""
    (tmp_path / "empty").mkdir()
    folder, runs = tmp_path / place, tmp_path / "runs"
    said = {"nothing": "does not exist", "empty": "nor are 6 other sets"}
    for what in ("promcse --backbone roberta-large", "cls --backbone builtin"):
        command = (*argv(f"run --method {what} --runs"), runs)
        for done in (bench(*command, "--data", folder), bench(*command, BENCH_DATA=str(folder))):
            line = error_line(done)
            assert str(folder) in line and said[place] in line
    assert hub.requests == [] and no_network == [] and not runs.exists()


def test_a_plan_fetches_a_text_of_the_hub_by_no_command_for_sets(
    cache: Path, tmp_path: Path
) -> None:
    """``bench data fetch`` does not know its name."""
    words = argv("run simcse --corpus hub:owner/name:text --suite check --dry-run --data")
    done = bench(*words, tmp_path)
    assert done.exit_code == 0 and "hub:owner/name:text" in done.stdout
    assert "bench data fetch" not in done.stdout


def plan(folder: Path) -> Result:
    what = "run --method cls --backbone builtin --dry-run --device cpu --data"
    return bench(*argv(what), folder)


def lacking(done: Result) -> list[str]:
    """The sets that a plan names as not here, of a folder that the user gave, by the command that
    gets them; it is run.
    """
    (found,) = re.findall(r"bench data fetch .*? --data \S+", " ".join(done.stdout.split()))
    words = shlex.split(found)
    assert bench(*words[1:]).exit_code == 0
    return words[3:-2]


@pytest.mark.slow
def test_missing_sets_are_named_with_the_command_that_fetches_them_and_it_works(
    simcse: StandInHub, cache: Path, shared: Path, tmp_path: Path
) -> None:
    folder, place = tmp_path / "data", "senteval-moses/downstream/STS/STS12-en-test"
    shutil.copytree(shared / "data" / place, folder / place)
    done = plan(folder)
    assert done.exit_code == 0 and done.stderr == "" and simcse.requests == []
    assert lacking(done) == ["STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"]
    assert "bench data fetch" not in plan(folder).stdout


def test_without_a_network_that_is_one_line_at_once(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the hub nor any other server answers."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    send_requests_to("http://127.0.0.1:9", monkeypatch)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("it waits"))
    monkeypatch.chdir(tmp_path)
    for command in ("run --method promcse --backbone roberta-large", "data fetch sts"):
        done = bench(*argv(command))
        line = error_line(done)
        assert line.startswith("error: no network: 127.0.0.1:9")
        assert "cannot be reached (Connection refused)" in line
        assert str(cache / "data") in done.stderr.splitlines()[1]
        assert not (tmp_path / "runs").exists() and not (cache / "data").exists()
