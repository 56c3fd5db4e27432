"""A real Slurm on this machine: munged, one controller, two nodes; no accounting, no systemd, no
GPU.

As root, up in some seconds.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NEEDED = ("slurmctld", "slurmd", "sbatch", "squeue", "scancel", "munged")


def why_not() -> str | None:
    """Say why no Slurm can be started here; None if it can."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    lacking = [name for name in NEEDED if shutil.which(name, path=path) is None]
    if lacking:
        return f"no {', '.join(lacking)}: apt-get install slurmctld slurmd slurm-client munge"
    return None if os.geteuid() == 0 else "Slurm's daemons are started as root"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class SlurmCluster:
    """A Slurm to start and stop; ``environment`` has the variables that its commands need."""

    def __init__(self, nodes: int = 2) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-"))
        self.names = [f"n{i + 1}" for i in range(nodes)]
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = {
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin",
        }
        host = socket.gethostname().partition(".")[0]
        ports = [free_port() for _ in range(nodes + 1)]
        for name in ("state", "log", *(f"spool-{node}" for node in self.names)):
            (self.folder / name).mkdir()
        text = (
            Path(__file__)
            .with_name("slurm.conf")
            .read_text()
            .format(folder=self.folder, host=host, port=ports[0])
        )
        for node, port in zip(self.names, ports[1:], strict=True):
            text += f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port}"
            text += " CPUs=1 RealMemory=4000\n"
        nodes_of_all = ",".join(self.names)
        text += f"PartitionName=all Nodes={nodes_of_all} Default=YES MaxTime=INFINITE State=UP\n"
        (self.folder / "slurm.conf").write_text(text)
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")

    def start(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        os.chmod(self.folder, 0o755)
        munge = f"munged --foreground --force --socket={self.folder}/munge.socket --key-file={key}"
        munge += f" --pid-file={self.folder}/munged.pid --log-file={self.folder}/log/munged.log"
        self.spawn("munged", f"{munge} --seed-file={self.folder}/munge.seed".split())
        self.wait_for(lambda: (self.folder / "munge.socket").exists(), "munged")
        self.start_controller()
        for node in self.names:
            self.start_node(node)
        self.wait_for(lambda: self.idle() == len(self.names), "the nodes", 40)

    def spawn(self, name: str, command: list[str]) -> None:
        with open(self.folder / "log" / f"{name}.out", "ab") as out:
            streams = {"stdout": out, "stderr": out, "stdin": subprocess.DEVNULL}
            env = {**os.environ, **self.environment}
            self.processes[name] = subprocess.Popen(
                command, env=env, start_new_session=True, **streams
            )

    def start_controller(self) -> None:
        self.spawn("slurmctld", ["slurmctld", "-D", "-i"])

    def start_node(self, node: str) -> None:
        self.spawn(node, ["slurmd", "-D", "-N", node])

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        process = self.processes[name]
        process.send_signal(number)
        if number == signal.SIGKILL:
            process.wait()

    def call(self, *command: str) -> str:
        env = {**os.environ, **self.environment}
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
        return done.stdout

    def idle(self) -> int:
        return self.call("sinfo", "-h", "-N", "-o", "%T").split().count("idle")

    def queue(self) -> list[str]:
        return self.call("squeue", "-h", "--array", "-o", "%i %T").splitlines()

    def wait_for(self, what: Callable[[], Any], name: str, seconds: float = 20) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if what():
                return
            time.sleep(0.2)
        files = sorted((self.folder / "log").iterdir())
        logs = "\n".join(f"--- {file.name}\n{file.read_text()[-2000:]}" for file in files)
        raise AssertionError(f"{name}: not within {seconds} s\n{logs}")

    def stop(self) -> None:
        for _name, process in reversed(self.processes.items()):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
