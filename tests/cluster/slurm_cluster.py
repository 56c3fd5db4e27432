"""A real Slurm on this machine: munged, one controller, two nodes; no accounting, no systemd, no GPU. As root, up in some seconds."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

NEEDED = ("slurmctld", "slurmd", "sbatch", "squeue", "scancel", "munged")


def why_not() -> str | None:
    """Why no Slurm can be started here; None where it can."""
    lacking = [
        name
        for name in NEEDED
        if shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None
    ]
    if lacking:
        return f"no {', '.join(lacking)}: apt-get install slurmctld slurmd slurm-client munge"
    return None if os.geteuid() == 0 else "Slurm's daemons are started as root"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class SlurmCluster:
    """``start`` and ``stop``; ``environment`` is what a command needs to talk to it."""

    def __init__(self, nodes: int = 2, largest_array: int = 1001) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-"))
        self.names = [f"n{i + 1}" for i in range(nodes)]
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = {
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin",
        }
        host, ports = (
            socket.gethostname().partition(".")[0],
            [free_port() for _ in range(nodes + 1)],
        )
        for name in ("state", "log", *(f"spool-{node}" for node in self.names)):
            (self.folder / name).mkdir()
        lines = [
            "ClusterName=test",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={ports[0]}",
            "SlurmUser=root",
            "SlurmdUser=root",
            "AuthType=auth/munge",
            f"AuthInfo=socket={self.folder}/munge.socket,cred_expire=5",
            "CryptoType=crypto/munge",
            f"StateSaveLocation={self.folder}/state",
            f"SlurmdSpoolDir={self.folder}/spool-%n",
            f"SlurmctldPidFile={self.folder}/ctld.pid",
            f"SlurmdPidFile={self.folder}/slurmd-%n.pid",
            f"SlurmctldLogFile={self.folder}/log/ctld.log",
            f"SlurmdLogFile={self.folder}/log/slurmd-%n.log",
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_CPU",
            "SchedulerType=sched/backfill",
            "SchedulerParameters=sched_min_interval=100000,bf_interval=2,batch_sched_delay=0,defer_batch",
            "SlurmdTimeout=20",
            "SlurmctldTimeout=20",
            f"MaxArraySize={largest_array}",
            "MaxJobCount=20000",
            "ReturnToService=2",
            "KillWait=30",
            "InactiveLimit=0",
            "MinJobAge=60",
            "OverTimeLimit=0",
            "AccountingStorageType=accounting_storage/none",
            "JobAcctGatherType=jobacct_gather/none",
            "MailProg=/bin/true",
            "JobCompType=jobcomp/none",
            *(
                f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=4000"
                for node, port in zip(self.names, ports[1:], strict=True)
            ),
            f"PartitionName=all Nodes={','.join(self.names)} Default=YES MaxTime=INFINITE State=UP",
        ]
        (self.folder / "slurm.conf").write_text("\n".join(lines) + "\n")
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")

    def start(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        os.chmod(self.folder, 0o755)
        self.spawn(
            "munged",
            [
                "munged",
                "--foreground",
                "--force",
                f"--socket={self.folder}/munge.socket",
                f"--key-file={key}",
                f"--pid-file={self.folder}/munged.pid",
                f"--log-file={self.folder}/log/munged.log",
                f"--seed-file={self.folder}/munge.seed",
            ],
        )
        self.wait_for(lambda: (self.folder / "munge.socket").exists(), "munged")
        self.start_controller()
        for node in self.names:
            self.start_node(node)
        self.wait_for(lambda: self.idle() == len(self.names), "the nodes", 40)

    def spawn(self, name: str, command: list[str]) -> None:
        with open(self.folder / "log" / f"{name}.out", "ab") as out:
            self.processes[name] = subprocess.Popen(
                command,
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **self.environment},
                start_new_session=True,
            )

    def start_controller(self) -> None:
        self.spawn("slurmctld", ["slurmctld", "-D", "-i"])

    def start_node(self, node: str, blind_to: Path | None = None) -> None:
        """``blind_to``: a folder in whose place the node sees an empty one."""
        command = ["slurmd", "-D", "-N", node]
        hide = [
            "unshare",
            "--mount",
            "sh",
            "-c",
            'mount -t tmpfs none "$0" && exec "$@"',
            str(blind_to),
        ]
        self.spawn(node, command if blind_to is None else [*hide, *command])

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        process = self.processes[name]
        process.send_signal(number)
        if number == signal.SIGKILL:
            process.wait()

    def call(self, *command: str) -> str:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, **self.environment},
        )
        return done.stdout

    def idle(self) -> int:
        return self.call("sinfo", "-h", "-N", "-o", "%T").split().count("idle")

    def queue(self) -> list[str]:
        return self.call("squeue", "-h", "--array", "-o", "%i %T").splitlines()

    def wait_for(self, what, name: str, seconds: float = 20) -> None:  # type: ignore[no-untyped-def]
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if what():
                return
            time.sleep(0.2)
        logs = "\n".join(
            f"--- {log.name}\n{log.read_text(errors='replace')[-2000:]}"
            for log in sorted((self.folder / "log").iterdir())
        )
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
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
