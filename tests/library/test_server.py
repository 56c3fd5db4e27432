"""Vectors from a real server on this machine: the object's scores, and nothing paid twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bags import Scripted, serving
from commands import bench as command
from commands import error_line
from evaluated import CHECK, SUITE

import bench
from bench.external import server as server_module


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    """With a cache of its own, and waits that last no time."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    for name in (
        "BENCH_API_KEY",
        "OPENAI_API_KEY",
        "http_proxy",
        "HTTP_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)
    with serving() as one:
        yield one


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(
        server_module.ServerModel, "_sleep", lambda self, seconds: found.append(seconds)
    )
    return found


def test_a_server_has_the_score_of_the_object_and_is_asked_for_each_sentence_once(
    server: Scripted, plain_score: float, captions: list[str], tmp_path: Path
) -> None:
    one = ("evaluate", server.address, "--model", "bag-48", "--batch", "500", *SUITE, "--runs")
    foretold = command(*one, tmp_path / "r", "--dry-run")
    assert foretold.exit_code == 0 and not server.requests, foretold.stderr
    letters, requests = sum(map(len, captions)), -(-len(captions) // 500)
    for said in (f"{len(captions):,} sentences, {letters:,} characters", f"{requests:,} requests"):
        assert said in foretold.stderr
    assert not (tmp_path / "r").exists()

    done = command(*one, tmp_path / "r")
    assert done.exit_code == 0, done.stderr
    (found,) = bench.load_runs(tmp_path / "r")
    assert (
        found["captions"].value == pytest.approx(plain_score, abs=1e-4) and found.name == "bag-48"
    )
    assert sorted(server.asked) == sorted(captions) and len(server.requests) == requests
    sizes = {len(request["input"]) for request in server.requests}
    assert server.requests[0]["model"] == "bag-48" and max(sizes) == 500
    assert set(server.keys) == {None} and found.model["address"] == server.address

    server.requests.clear()
    other = command(*one, tmp_path / "elsewhere")
    assert other.exit_code == 0 and "0 requests" in other.stderr and not server.requests
    prompted = command(*one, tmp_path / "r", "--prefix", "q: ")
    assert prompted.exit_code == 0 and all(text.startswith("q: ") for text in server.asked[1:])


@pytest.mark.slow
def test_it_waits_as_long_as_the_server_says_and_asks_again(
    server: Scripted, plain_score: float, waits: list[float], tmp_path: Path
) -> None:
    server.script = [(429, {"Retry-After": "7"}), 500, "half", None, (503, {"Retry-After": "0"})]
    found = bench.evaluate(
        server.address, server={"model": "m", "batch": 2000}, runs=tmp_path / "r", **CHECK
    )
    assert found["captions"].value == pytest.approx(plain_score, abs=1e-4)
    assert waits == [7.0, 2.0, 4.0, 0.0]


@pytest.mark.slow
def test_the_key_comes_from_the_environment_and_is_seen_nowhere_else(
    server: Scripted, waits: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-very-secret-0123456789"
    monkeypatch.setenv("MY_KEY", secret)

    def run(model: str, key: str = "MY_KEY") -> Any:
        more = ("--key-env", key, *SUITE, "--runs", tmp_path / "r", "--plain")
        return command("evaluate", server.address, "--model", model, *more)

    server.script = [500]  # with a body that repeats the header
    done = run("m")
    assert done.exit_code == 0 and set(server.keys) == {f"Bearer {secret}"}
    assert "no: Bearer ***" in done.stderr and secret not in done.output + done.stderr
    for status in (401, 403, 400):
        server.script = [status]
        refused = run(f"m{status}")
        assert str(status) in error_line(refused, 1)
        assert secret not in refused.output + refused.stderr
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert secret.encode() not in written
    assert "the environment has no such variable" in error_line(run("m", "NO_KEY"))


@pytest.mark.slow
def test_a_server_error_is_one_line_and_paid_vectors_are_kept(
    server: Scripted,
    plain_score: float,
    captions: list[str],
    waits: list[float],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = ("evaluate", server.address, "--model", "m", "--batch", "1000", *SUITE, "--plain")
    arguments = (*one, "--runs", tmp_path / "r")
    rows = [{"index": i, "embedding": [1.0]} for i in range(3)]
    for turn, said in (
        ([401], "answered 401"),
        ([404], "answered 404"),
        ([(307, {"Location": "http://127.0.0.1:9/"})], "answered 307"),
        ([(429, {"Retry-After": "9000"})], "Retry-After: 9000"),
        ([500] * 6, "answered 500"),
        (["half"] * 6, "6 times"),
        (["nothing"] * 6, "6 times"),
        ([{"data": rows}], "answered 200 without embeddings of 1000 sentences"),
        ([{"hello": 1}], "hello"),
    ):
        server.script = list(turn)
        patience = 0.3 if "nothing" in turn else 120.0  # a busy machine is no silent server
        monkeypatch.setattr(server_module, "SECONDS", patience)
        assert said in error_line(command(*arguments), 1)
    assert not server.asked or len(set(server.asked)) <= 1000

    server.requests.clear()
    server.script, server.fails_after = [], 3
    assert "answered 500" in error_line(command(*arguments), 1)
    kept = len(server.asked)
    assert kept == 3000
    server.fails_after = None
    assert command(*arguments).exit_code == 0
    paid, before = server.asked[kept:], set(server.asked[:kept])
    assert len(set(paid) & before) == 1, "but for the one that is asked to compare"
    assert len(paid) == len(captions) - kept + 1
    (found,) = [run for run in bench.load_runs(tmp_path / "r") if run.record.status == "finished"]
    assert found["captions"].value == pytest.approx(plain_score, abs=1e-4)
