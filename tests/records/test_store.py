"""The runs folder: whole records or none, damaged ones named, one process per run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from factories import record

from bench.base.errors import (
    BenchError,
    DataDamaged,
    DataMissing,
    RecordDamaged,
    RunLocked,
    UnknownName,
)
from bench.base.files import write_or_fail
from bench.method.config import RunConfig
from bench.records import RunsFolder, Score
from bench.records.arrays import read_arrays
from bench.records.record import read_record
from bench.run.plan_toml import Plan


@pytest.fixture
def store(tmp_path: Path) -> RunsFolder:
    return RunsFolder(tmp_path / "runs")


def test_a_run_is_found_by_id_prefix_and_path(
    store: RunsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = record("simcse", 1), record("simcse", 2)
    file = store.write(one)
    store.write(two)
    for reference in (one.run_id, one.run_id[:-3], str(file), str(file.parent), f"{file.parent}/"):
        assert read_record(store.record_file(reference)) == one
    with pytest.raises(BenchError, match="means 2 runs"):
        store.record_file("simcse")
    assert len(store.record_files("simcse")) == 2
    with pytest.raises(UnknownName, match="nearest: simcse-builtin-s1"):
        store.record_file("simsce-builtin-s1-00000000")
    monkeypatch.chdir(store.path)
    assert read_record(store.record_file(f"./{two.run_id}")) == two


@pytest.mark.parametrize("run_id", ["../x", "", "a/b", "a\n"])
def test_an_id_cannot_lead_out_of_the_folder(store: RunsFolder, run_id: str) -> None:
    with pytest.raises(BenchError, match="not a run id"):
        store.folder(run_id)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        *((content, "not JSON") for content in (b"", b"{", b"\xff\xfe\x00", b"[" * 100_000)),
        (b'{"schema": "bench.run/5", "seed": NaN}', "not JSON"),
        (b"[]", "the record is not a JSON object"),
        (b'{"schema": "bench.run/9"}', "schema: bench.run/9, and this"),
        (b'{"schema": "bench.run/5", "\\u001b[2J": 1}', "unknown field '\\x1b[2J'"),
    ],
)
def test_a_damaged_record_is_named_and_not_fatal(
    store: RunsFolder, content: bytes, said: str
) -> None:
    kept = record()
    store.write(kept)
    file = store.path / "broken" / "run.json"
    write_or_fail(file, content)
    records, (error,) = store.records()
    assert records == [kept] and str(file) in error.message and said in error.message
    assert error.message.isprintable()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_record_that_cannot_be_read_back_is_not_written(store: RunsFolder, value: float) -> None:
    first = record()
    store.write(first)
    cell = {"suite": "sts", "task": "STS12", "protocol": "p/1", "metric": "m", "n": 1}
    for detail, number, place in (
        ({}, value, "scores[0].value"),
        ({"deep": [1, {"x": value}]}, 1.0, "scores[0].detail: a number beyond"),
    ):
        bad = record(scores=(Score(**cell, value=number, detail=detail),))
        assert bad.run_id == first.run_id
        with pytest.raises(RecordDamaged) as caught:
            store.write(bad)
        assert place in caught.value.message
    assert store.read(first.run_id) == first


def test_a_name_of_a_file_that_is_not_utf8_is_refused_before_it_is_recorded(
    store: RunsFolder, tmp_path: Path
) -> None:
    """JSON cannot hold it: the record could not be read, and the run would be made again."""
    name = os.fsdecode(b"caf\xe9.txt")
    made = record(error=f"no row of '{name}' has any text")
    with pytest.raises(BenchError, match=r"^'caf\\udce9.txt' is not UTF-8"):
        store.write(made)
    with pytest.raises(BenchError, match=r"^'caf\\udce9.txt' is not UTF-8"):
        Plan((RunConfig(corpus=name),)).write(tmp_path / "plan.toml")
    assert not store.ids() and not (tmp_path / "plan.toml").exists()
    store.write(record(error="no row of 'café 😀' has any text"))


def test_numpy_numbers_become_plain_ones(store: RunsFolder) -> None:
    cell: Any = {"suite": "sts", "task": "STS12", "protocol": "p/1", "metric": "m"}
    made = Score(**cell, value=np.float32(1.5), n=np.int64(3), detail={"x": np.arange(2)})
    store.write(record(scores=(made,)))
    (read,) = store.read(record().run_id).scores
    assert (read.value, read.n, read.detail) == (1.5, 3, {"x": [0, 1]})


WRITER = """
import sys; sys.path[:0] = [{support!r}]
from factories import record, sts_scores
from bench.records import RunsFolder
store = RunsFolder({runs!r})
i = 0
while True:
    store.write(record(seed=7, error="x" * 200_000 + str(i)))
    i += 1
    if i == 2:
        print("writing", flush=True)
"""


@pytest.mark.nightly
def test_kill_9_at_any_moment_leaves_a_whole_record(store: RunsFolder) -> None:
    code = WRITER.format(support=str(Path(__file__).parents[1] / "support"), runs=str(store.path))
    drawn = random.Random(3)
    run_id = record(seed=7).run_id
    for _ in range(12):
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert child.stdout is not None and child.stdout.readline() == b"writing\n"
        time.sleep(drawn.uniform(0, 0.05))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        assert (store.read(run_id).error or "").startswith("x" * 200_000), "the record is whole"
        records, damaged = store.records()
        assert len(records) == 1 and not damaged, "nothing that was left over is taken for a record"


def test_a_failing_write_keeps_the_previous_record(
    store: RunsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = record()
    store.write(first)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BenchError, match="No space left on device"):
        store.write(record(status="failed"))
    assert store.read(first.run_id) == first
    assert [path.name for path in store.folder(first.run_id).iterdir()] == ["run.json"]


HOLDER = """
import sys, time
from bench.records import RunsFolder
with RunsFolder({runs!r}).lock("one"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_two_processes_on_one_run(store: RunsFolder) -> None:
    code = [sys.executable, "-c", HOLDER.format(runs=str(store.path))]
    with subprocess.Popen(code, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        with pytest.raises(RunLocked, match=f"locked by .*:{holder.pid}"), store.lock("one"):
            pass
        with store.lock("another"):
            pass
        began = time.monotonic()
        with pytest.raises(RunLocked), store.lock("one", wait_seconds=0.3):
            pass
        assert time.monotonic() - began >= 0.3
        holder.kill()
    with store.lock("one", wait_seconds=5):  # the kernel let go of it
        pass


def test_predictions_survive_and_objects_are_refused(store: RunsFolder) -> None:
    subset = np.array(["a", "b", "b", "ä", ""])
    arrays = {"prediction": np.linspace(0, 1, 5), "gold": np.arange(5.0), "subset": subset}
    for protocol, name in (
        ("senteval-all/1", "STS12.npz"),
        ("senteval-all-raw/1", "STS12@raw.npz"),
        ("own-pairs-04ae9cf3/1", "STS12@04ae9cf3.npz"),
        ("senteval-all-raw/1", "STS12@raw.npz"),
    ):
        path = store.write_predictions("one", "STS12", protocol, arrays)
        assert path == store.path / "one" / "predictions" / name
    first = path.read_bytes()
    read = read_arrays(store.predictions_path("one", "STS12", "senteval-all-raw/1"))
    assert read.keys() == arrays.keys()
    for key, array in arrays.items():
        np.testing.assert_array_equal(read[key], array)
    time.sleep(0.01)
    again = store.write_predictions("one", "STS12", "senteval-all-raw/1", arrays).read_bytes()
    assert again == first, "same arrays, same bytes"
    objects = {"x": np.array([{}, None], dtype=object)}
    uneven = {"prediction": np.zeros(2), "gold": np.zeros(3), "other": np.zeros(9)}
    for bad, said in ((objects, "Python objects"), (uneven, "rows differ")):
        with pytest.raises(ValueError, match=said):
            store.write_predictions("one", "STS12", "senteval-all/1", bad)
    assert store.write_predictions("one", "../../x", "senteval-all/1", arrays).parent == path.parent


def test_damaged_predictions_are_named_and_never_unpickled(
    store: RunsFolder, tmp_path: Path
) -> None:
    with pytest.raises(DataMissing, match="there is no file"):
        read_arrays(store.predictions_path("one", "STS12", "senteval-all/1"))
    path = store.write_predictions("one", "STS12", "senteval-all/1", {"x": np.zeros(3)})
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataDamaged, match="STS12.npz"):
        read_arrays(store.predictions_path("one", "STS12", "senteval-all/1"))
    np.savez(path, x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataDamaged, match="STS12.npz"):
        read_arrays(store.predictions_path("one", "STS12", "senteval-all/1"))
