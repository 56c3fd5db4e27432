"""A run has one owner between machines, whatever a file system's locks are worth."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from finished_runs import finished
from forked import server, work

from bench.base import lease
from bench.base.errors import OwnershipLost, RunLocked
from bench.base.files import write_whole
from bench.runs import RunsFolder


def refuse(handle: int, operation: int) -> None:
    raise OSError(errno.ENOLCK, "No locks available")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "TAKEN_AFTER", 0.4)
    monkeypatch.setattr(lease, "RENEWED_EVERY", 0.05)


@pytest.mark.parametrize("locks", ["refused", "local"])
def test_the_run_of_another_machine_is_taken_once_it_stood_still(
    locks: str, quick: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never while it is renewed; and who lost it writes nothing more, neither a file nor into a folder that it had open."""
    monkeypatch.setattr(
        fcntl, "flock", refuse if locks == "refused" else lambda handle, operation: None
    )
    store, said = RunsFolder(tmp_path), list[str]()
    monkeypatch.setattr(lease, "place", lambda: "machine a")
    first = store.lock("run")
    first.__enter__()
    owner = lease.lease_of(tmp_path / "run")
    assert owner is not None
    monkeypatch.setattr(lease, "place", lambda: "machine b")
    began = time.monotonic()
    with pytest.raises(RunLocked, match=f"process {os.getpid()} on "), store.lock("run", 0.0):
        pass
    assert time.monotonic() - began < 0.4, "it is renewed: nobody waits for it to die"
    owner._end.set()  # it stands still
    owner._thread.join()
    with store.lock("run", 0.0, said.append):
        assert time.monotonic() - began > 0.4 and "nothing is heard" in "".join(said)
        new = lease.lease_of(tmp_path / "run")
        assert new is not None and new.place.name == ".owner-2"
        with pytest.raises(OwnershipLost, match="was taken over"):
            owner.check()
        monkeypatch.setitem(
            lease._held, owner.folder, owner
        )  # as in the process of the former owner
        with pytest.raises(OwnershipLost):
            write_whole(tmp_path / "run" / "run.json", b"{}")
        monkeypatch.setitem(lease._held, owner.folder, new)
        write_whole(tmp_path / "run" / "run.json", b"new")
        owner.renew()
        assert owner.lost
    assert (tmp_path / "run" / "run.json").read_bytes() == b"new"
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [".lock", "run.json"]


def test_a_dead_process_of_this_machine_is_not_waited_for(tmp_path: Path) -> None:
    code = f"from pathlib import Path; from bench.base.lease import take; import os; take(Path({str(tmp_path)!r}), alone=False); os._exit(9)"
    assert (
        subprocess.run([sys.executable, "-c", code]).returncode == 9
        and (tmp_path / ".owner-1").is_dir()
    )
    began = time.monotonic()
    lease.take(tmp_path, alone=False).release()
    assert time.monotonic() - began < 5 and not list(tmp_path.iterdir())


@pytest.mark.slow
def test_two_hundred_random_stops_and_never_a_write_by_a_former_owner(tmp_path: Path) -> None:
    """Until there were as many stops, and fifteen of them cost the owner its folder: how long that takes is up to the machine."""
    draw, stops, until_latest = random.Random(5), 0, time.monotonic() + 500
    folder, end = tmp_path / "run", tmp_path / "end"
    folder.mkdir()
    losses = end.with_suffix(".lost")
    losses.touch()
    processes = [
        subprocess.Popen(
            [
                sys.executable,
                str(Path(__file__).with_name("lease_worker.py")),
                str(folder),
                f"machine {i}",
                str(i),
                str(end),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(3)
    ]
    until: dict[int, float] = {}
    try:
        while (
            stops < 200 or losses.read_text().count("\n") < 15
        ) and time.monotonic() < until_latest:
            time.sleep(0.01)
            for i, process in enumerate(processes):
                now = time.monotonic()
                if i in until and now > until[i]:
                    process.send_signal(signal.SIGCONT)
                    del until[i]
                elif i not in until and draw.random() < 0.2:
                    process.send_signal(signal.SIGSTOP)
                    stops, until[i] = stops + 1, now + draw.choice([0.05, 0.1, 0.8]) * draw.random()
    finally:
        end.touch()
        for process in processes:
            process.send_signal(signal.SIGCONT)
    told = [json.loads(process.communicate(timeout=60)[0]) for process in processes]
    total = {key: sum(one[key] for one in told) for key in told[0]}
    assert stops >= 200 and total["lost"] >= 15 and total["writes"] > 300, (stops, told)
    assert total["foreign"] == 0, told


def test_who_stood_still_while_it_made_its_lease_does_not_share_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between making the folder and writing into it the lease was taken over, released, and its number came again."""
    write, stopped = Path.write_bytes, list[Path]()

    def stand_still(path: Path, content: bytes) -> int:
        if not stopped:
            stopped.append(path)
            lease._move_away(path.parent)  # another takes it over, and lets go
            stopped.append(lease.take(tmp_path, alone=False).place)  # a third makes it again
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", stand_still)
    assert lease._make(tmp_path, 1) is None
    (_, third) = stopped
    assert [path.name for path in tmp_path.iterdir()] == [third.name] and len(
        list(third.iterdir())
    ) == 1
    owner = lease.lease_of(tmp_path / "record")
    assert owner is not None
    owner.check()
    owner.release()


@pytest.mark.slow
def test_a_training_that_was_frozen_ends_when_another_machine_has_finished_it(
    plan: tuple[str, ...], tmp_path: Path
) -> None:
    """Its file system refuses locks. One record, and the checkpoint that belongs to it, byte by byte that of a quiet run."""

    def begin(runs: Path, name: str, place: str) -> Any:
        (tmp_path / name).mkdir(exist_ok=True)
        before = (
            "import fcntl, errno, bench.base.lease as lease\n"
            "def refuse(handle, operation): raise OSError(errno.ENOLCK, 'No locks')\n"
            f"fcntl.flock = refuse; lease.TAKEN_AFTER, lease.RENEWED_EVERY = 1.0, 0.1; lease.place = lambda: {place!r}\n"
        )
        environment = {**os.environ, "BENCH_SAVE_SECONDS": "0"}
        arguments = [
            *plan,
            "--set",
            "epochs=6",
            "--device",
            "cpu",
            "--precision",
            "fp32",
            "--plain",
            "--runs",
            str(runs),
        ]
        process = server().Process(
            target=work, args=(arguments, str(tmp_path), environment, str(tmp_path / name), before)
        )
        process.start()
        return process

    first = begin(tmp_path / "runs", "first", "machine a")
    until = time.monotonic() + 60
    while not list((tmp_path / "runs").glob("*/state/step-*.pt")) and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(first.pid, signal.SIGSTOP)
    second = begin(tmp_path / "runs", "second", "machine b")
    second.join(120)
    assert second.exitcode == 0, (tmp_path / "second" / "err").read_text()
    assert "goes on from step" in (tmp_path / "second" / "err").read_text()
    now = finished(tmp_path / "runs")
    os.kill(first.pid, signal.SIGCONT)
    first.join(60)
    assert (
        first.exitcode == 130
        and "was taken over by another process" in (tmp_path / "first" / "err").read_text()
    )
    quiet = begin(tmp_path / "quiet", "quiet", "machine a")
    quiet.join(120)
    assert finished(tmp_path / "runs") == now == finished(tmp_path / "quiet")
    (folder,) = [path for path in (tmp_path / "runs").iterdir() if not path.name.startswith(".")]
    assert not list(folder.glob(".owner-*")) and not (folder / "state").exists()


MOUNTS = """\
overlay / overlay rw 0 0
srv:/a /shared nfs4 rw,vers=4.2,local_lock=none 0 0
srv:/b /home nfs rw,vers=3,nolock,local_lock=all 0 0
x@tcp:/fs /scratch lustre rw,localflock 0 0
user@host: /mnt/with\\040blank fuse.sshfs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("/tmp/x", None),
        ("/shared/runs", None),
        ("/home/ada/runs", "locks of nfs stay on this machine"),
        ("/scratch", "locks of lustre"),
        ("/mnt/with blank/runs", "fuse.sshfs may keep locks to this machine"),
    ],
)
def test_the_probe_says_what_locks_are_worth(
    folder: str, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = lease.probe(Path(folder), MOUNTS)
    assert (
        line is None if said is None else (said in (line or "") and "after 120 s" in (line or ""))
    )


def test_the_probe_finds_a_file_system_that_refuses_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lease.probe(tmp_path) is None
    monkeypatch.setattr(fcntl, "flock", refuse)
    assert "refuses locks (No locks available)" in (lease.probe(tmp_path) or "") and not list(
        tmp_path.iterdir()
    )
