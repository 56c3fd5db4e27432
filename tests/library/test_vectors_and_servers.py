"""Vectors from a file, and from a real server on this machine: the same scores as the object that they come from, and nothing paid twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bags import Scripted, bag, serving
from commands import argv, bench as command
from commands import error_line

import bench
from bench.run.models import server as server_module

CHECK: dict[str, Any] = {"suites": ["check"], "progress": False, "device": "cpu"}
SUITE = ("--suite", "check", "--device", "cpu")


@pytest.fixture(scope="module")
def value(tmp_path_factory: pytest.TempPathFactory) -> float:
    return float(
        bench.evaluate(bag, runs=tmp_path_factory.mktemp("plain"), **CHECK)["captions"].value
    )


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    file = tmp_path_factory.mktemp("listed") / "s.jsonl"
    done = command("evaluate", "--list-sentences", file, "--suite", "check")
    found = [json.loads(line)["sentence"] for line in file.read_text(encoding="utf-8").splitlines()]
    assert (
        done.exit_code == 0
        and f"{len(found):,} sentences" in done.stdout
        and len(set(found)) == len(found)
    )
    return found


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
    monkeypatch.setattr(server_module.Client, "_sleep", lambda self, seconds: found.append(seconds))
    return found


# --- a file ---


def test_vectors_of_a_file_or_a_mapping_have_the_score_of_the_object(
    value: float, sentences: list[str], tmp_path: Path
) -> None:
    np.savez(tmp_path / "bags.npz", sentences=np.array(sentences), vectors=bag(sentences))
    done = command("evaluate", f"vectors:{tmp_path / 'bags.npz'}", *SUITE, "--runs", tmp_path / "r")
    assert done.exit_code == 0, done.stderr
    (found,) = bench.runs(tmp_path / "r")
    assert found["captions"].value == pytest.approx(value, abs=1e-4) and found.name == "bags"
    assert (
        found.model["kind"] == "vectors"
        and found.model["dimension"] == 48
        and str(tmp_path) not in json.dumps(found.record.provenance.backbone)
    )
    mapping = bench.evaluate(
        dict(zip(sentences, bag(sentences), strict=True)), name="m", runs=tmp_path / "r", **CHECK
    )
    assert mapping["captions"].value == found["captions"].value
    assert (
        mapping.record.provenance.backbone["revision"]
        == found.record.provenance.backbone["revision"]
    )  # type: ignore[index]
    assert command("verify", found.folder).exit_code == 0


def test_what_bench_encode_writes_can_be_scored(
    value: float, sentences: list[str], tmp_path: Path
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table({"sentence": sentences, "vector": list(bag(sentences))}), tmp_path / "v.parquet"
    )
    found = bench.evaluate(f"vectors:{tmp_path / 'v.parquet'}", runs=tmp_path / "r", **CHECK)
    assert found["captions"].value == pytest.approx(value, abs=1e-4)


def test_a_file_that_cannot_be_scored_is_one_line_and_nothing_is_written(
    sentences: list[str], tmp_path: Path
) -> None:
    vectors = bag(sentences)
    bad = vectors.copy()
    bad[3, 0] = np.nan
    cases: list[tuple[dict[str, Any], str]] = [
        (
            {"sentences": np.array(sentences[2:]), "vectors": vectors[2:]},
            f"lacks 2 of {len(sentences):,} sentences: '{sentences[0][:20]}",
        ),
        (
            {"sentences": np.array(sentences), "vectors": vectors[1:]},
            f"holds shape ({len(sentences) - 1}, 48) for {len(sentences)} sentences",
        ),
        ({"sentences": np.array(sentences), "vectors": bad}, "holds NaN or infinity for 1 of"),
        (
            {"sentences": np.array(sentences), "vectors": vectors.astype(str)},
            "holds text, not numbers",
        ),
        (
            {
                "sentences": np.array([*sentences, sentences[0]]),
                "vectors": np.vstack([vectors, vectors[1:2]]),
            },
            "two different vectors for",
        ),
        ({"texts": np.array(sentences), "vectors": vectors}, "has no array 'sentences'"),
        ({"sentences": np.array(sentences, dtype=object), "vectors": vectors}, "cannot be read"),
    ]
    for i, (arrays, said) in enumerate(cases):
        np.savez(tmp_path / f"{i}.npz", **arrays)
        line = error_line(
            command(
                "evaluate", f"vectors:{tmp_path / f'{i}.npz'}", *SUITE, "--runs", tmp_path / "r"
            )
        )
        assert said in line, line
    (tmp_path / "cut.npz").write_bytes((tmp_path / "0.npz").read_bytes()[:1000])
    assert "cannot be read" in error_line(
        command("evaluate", f"vectors:{tmp_path / 'cut.npz'}", *SUITE, "--runs", tmp_path / "r")
    )
    assert not (tmp_path / "r").exists()


# --- a server ---


def test_a_server_has_the_score_of_the_object_and_is_asked_for_each_sentence_once(
    server: Scripted, value: float, sentences: list[str], tmp_path: Path
) -> None:
    arguments = (
        "evaluate",
        server.address,
        *argv("--model bag-48 --batch 500"),
        *SUITE,
        "--runs",
        tmp_path / "r",
    )
    foretold = command(*arguments, "--dry-run")
    assert foretold.exit_code == 0 and not server.requests, foretold.stderr
    letters, requests = sum(map(len, sentences)), -(-len(sentences) // 500)
    said = f"{len(sentences):,} sentences, {letters:,} characters (some {letters // 4:,} tokens, if 4 characters are one), {requests:,} requests"
    assert said in foretold.stderr and not (tmp_path / "r").exists()

    done = command(*arguments)
    assert done.exit_code == 0 and said in done.stderr, done.stderr
    (found,) = bench.runs(tmp_path / "r")
    assert found["captions"].value == pytest.approx(value, abs=1e-4) and found.name == "bag-48"
    assert sorted(server.asked) == sorted(sentences) and len(server.requests) == requests
    assert (
        server.requests[0]["model"] == "bag-48"
        and max(len(one["input"]) for one in server.requests) == 500
        and set(server.keys) == {None}
    )
    assert (
        found.model["kind"] == "server"
        and found.model["address"] == server.address
        and found.model["model"] == "bag-48"
    )

    server.requests.clear()
    other = command(*arguments[:-1], tmp_path / "elsewhere")
    assert other.exit_code == 0 and "nothing is asked" in other.stderr and not server.requests
    prompted = command(*arguments, "--prefix", "q: ")
    assert prompted.exit_code == 0 and all(text.startswith("q: ") for text in server.asked[1:])


@pytest.mark.slow
def test_it_waits_as_long_as_the_server_says_and_asks_again(
    server: Scripted, value: float, waits: list[float], tmp_path: Path
) -> None:
    server.script = [(429, {"Retry-After": "7"}), 500, "half", None, (503, {"Retry-After": "0"})]
    found = bench.evaluate(
        server.address, server={"model": "m", "batch": 2000}, runs=tmp_path / "r", **CHECK
    )
    assert found["captions"].value == pytest.approx(value, abs=1e-4)
    assert waits == [7.0, 2.0, 4.0, 0.0]


@pytest.mark.slow
def test_the_key_comes_from_the_environment_and_is_seen_nowhere_else(
    server: Scripted, waits: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-very-secret-0123456789"
    monkeypatch.setenv("MY_KEY", secret)
    server.script = [500]  # whose body repeats the header
    done = command(
        "evaluate",
        server.address,
        *argv("--model m --key-env MY_KEY"),
        *SUITE,
        "--runs",
        tmp_path / "r",
        "--plain",
    )
    assert done.exit_code == 0 and set(server.keys) == {f"Bearer {secret}"}
    assert "no: Bearer ***" in done.stderr
    refused = [401, 403, 400]
    for status in refused:
        server.script = [status]
        refusal = command(
            "evaluate",
            server.address,
            "--model",
            f"m{status}",
            "--key-env",
            "MY_KEY",
            *SUITE,
            "--runs",
            tmp_path / "r",
            "--plain",
        )
        assert str(status) in error_line(refusal, 1)
        assert secret not in refusal.output + refusal.stderr
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert secret.encode() not in written and secret not in done.output + done.stderr
    assert "nothing of that name is in the environment" in error_line(
        command("evaluate", server.address, "--model", "m", "--key-env", "NO_KEY", *SUITE)
    )


@pytest.mark.slow
def test_what_goes_wrong_is_one_line_and_what_was_paid_for_is_kept(
    server: Scripted,
    value: float,
    sentences: list[str],
    waits: list[float],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = (
        "evaluate",
        server.address,
        *argv("--model m --batch 1000"),
        *SUITE,
        "--runs",
        tmp_path / "r",
        "--plain",
    )
    rows = [{"index": i, "embedding": [1.0]} for i in range(3)]
    for turn, said in (
        ([401], "refuses us with status 401: no key is in $BENCH_API_KEY"),
        ([404], "answered 404"),
        ([(429, {"Retry-After": "9000"})], "asks to wait 9,000 s"),
        ([500] * 6, "answered 500"),
        (["half"] * 6, "broke off in the middle of an answer, 6 times"),
        (["nothing"] * 6, "6 times"),
        ([{"data": rows}], "returned 3 vectors for 1000 sentences"),
        ([{"hello": 1}], "answered what are no embeddings"),
        ([[]], "no embeddings"),
    ):
        server.script = list(turn)
        monkeypatch.setattr(
            server_module, "SECONDS", 0.3 if "nothing" in turn else 120.0
        )  # a busy machine is no silent server
        assert said in error_line(command(*arguments), 1)
    assert not server.asked or len(set(server.asked)) <= 1000

    server.requests.clear()
    server.script, server.fails_after = [], 3
    assert "answered 500" in error_line(command(*arguments), 1)
    kept = len(server.asked)
    assert kept == 3000
    server.fails_after = None
    assert command(*arguments).exit_code == 0
    paid = server.asked[kept:]
    assert (
        len(set(paid) & set(server.asked[:kept])) == 1 and len(paid) == len(sentences) - kept + 1
    ), "but for the one that is asked to compare"
    (found,) = [one for one in bench.runs(tmp_path / "r") if one.record.status == "finished"]
    assert found["captions"].value == pytest.approx(value, abs=1e-4)


@pytest.mark.slow
def test_another_model_behind_the_same_name_is_found_out(
    server: Scripted, waits: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = (
        "evaluate",
        server.address,
        *argv("--model m --batch 1000"),
        *SUITE,
        "--runs",
        tmp_path / "r",
    )
    server.fails_after = 2
    assert command(*arguments).exit_code == 1
    server.fails_after = None
    monkeypatch.setattr("bags.bag", lambda texts, dim=48: bag(texts, dim)[:, ::-1])
    assert "answers otherwise than when the cache was filled" in error_line(command(*arguments), 1)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://user:pw@127.0.0.1:1/v1/embeddings", "has more than a host and a path"),
        ("https://h/v1/embeddings?api-key=x", "has more than"),
        ("http:///v1", "is no address"),
        ("http://127.0.0.1:1/v1/embeddings", "which model?"),
    ],
)
def test_addresses_with_secrets_and_without_a_model_are_refused(address: str, said: str) -> None:
    named = () if said == "which model?" else ("--model", "m")
    line = error_line(command("evaluate", address, *named, *SUITE))
    assert said in line and "pw@" not in line and "api-key=x" not in line
