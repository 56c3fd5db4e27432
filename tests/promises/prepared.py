"""Processes that begin with all imported: forked from a server that has loaded bench and libraries.

Of the five seconds of a process that trains a tiny encoder, four are imports of torch and
transformers, and most of one is that of bench and its methods. The server imports, and calls
nothing of bench.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path

READ_AT_IMPORT = ("HF_", "OMP_", "PYTHON", "TOKENIZERS_")
"""How the names of variables begin that Python and the libraries look at as they start."""

SERVER = """
import atexit, gc, importlib, json, multiprocessing, os, pkgutil, sys, types
from importlib.metadata import entry_points

import accelerate, jinja2, matplotlib.backends.backend_svg, pandas, peft, pyarrow.parquet, rich
import scipy.stats, sentence_transformers, sklearn, torch
from transformers import AutoModel, AutoTokenizer, BertModel

import bench

(command,) = entry_points(group="console_scripts", name="bench")
main = command.load()
for method in entry_points(group="bench.methods"):
    method.load()
for module in pkgutil.walk_packages(bench.__path__[:1], "bench."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)

def work(asked):
    os.setsid()
    for number, name in ((1, asked["out"]), (2, asked["err"])):
        file = os.open(name, os.O_WRONLY)
        os.dup2(file, number)
        os.close(file)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = asked["argv"]
    try:
        if asked["script"] is None:
            sys.path[0] = os.path.dirname(sys.argv[0])
            sys.exit(main())
        script = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(asked["script"], "<string>", "exec"), vars(script))
    finally:
        atexit._run_exitfuncs()

gc.freeze()  # what is shared with the processes is not looked at by their collectors
context = multiprocessing.get_context("fork")
trial = context.Process(target=os.getpid)
trial.start()
trial.join()
print("ready", flush=True)
children = {}
for line in sys.stdin:
    asked = json.loads(line)
    if "child" in asked:
        child = children[asked["child"]]
        child.join(asked["seconds"])
        print(json.dumps(child.exitcode), flush=True)
    else:
        child = context.Process(target=work, args=(asked,))
        child.start()
        children[child.pid] = child
        print(child.pid, flush=True)
"""


def environment(**variables: str) -> dict[str, str]:
    """Return the variables of a process: those of the tests, no folder of the user's, one thread."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BENCH_")}
    kept |= {
        "BENCH_CACHE": os.environ.get("BENCH_CACHE", ""),
        "COLUMNS": "200",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "default",
    }
    return kept | variables


class ServerEnded(Exception):
    """The server has ended, and says why; the next process gets a new one."""


class Server:
    """A process that has imported bench and its libraries, and forks those of bench."""

    def __init__(self) -> None:
        self.variables = environment()
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            env=self.variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,  # what is asked is sent at once
            start_new_session=True,
        )
        atexit.register(self.process.communicate)  # which closes its input, and waits for its end
        self.answer()

    def ask(self, asked: Mapping[str, object]) -> None:
        """Have the server start a process, or wait for one; it answers in a line."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(asked).encode() + b"\n")
        except BrokenPipeError:
            raise self.ended() from None

    def answer(self) -> str:
        """Return the next line that the server says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        if not line:
            raise self.ended()
        return line

    def ended(self) -> ServerEnded:
        """Return an error with what the server printed as it ended."""
        said = self.process.communicate()[1].decode(errors="replace")[-4000:]
        return ServerEnded(f"the server of processes ended with {self.process.returncode}: {said}")


def fits(environment: Mapping[str, str]) -> bool:
    """Tell whether a process with these variables can begin with what a server has loaded."""

    def read_at_import(variables: Mapping[str, str]) -> dict[str, str]:
        return {name: one for name, one in variables.items() if name.startswith(READ_AT_IMPORT)}

    server = _server()
    return server is not None and read_at_import(environment) == read_at_import(server.variables)


def _server() -> Server | None:
    """Return the server of this process, a new one if it has ended; None where none can start."""
    server = _started()
    if server is None or server.process.poll() is None:
        return server
    warnings.warn(f"a new one is started: {server.ended()}", stacklevel=2)
    _started.cache_clear()
    return _started()


@functools.cache
def _started() -> Server | None:
    try:
        return Server()
    except ServerEnded as error:
        warnings.warn(f"each process loads the libraries itself: {error}", stacklevel=2)
        return None


class Child:
    """A process that the server forks: what tests use of subprocess.Popen, in its words.

    ``argv`` are the words of ``bench``, of which it is the first, or those of a script. ServerEnded
    is raised if the server ends before it.
    """

    def __init__(
        self, argv: list[str], script: str | None, cwd: Path, environment: Mapping[str, str]
    ) -> None:
        server = _server()
        assert server is not None, "see fits"
        self.server, self.argv = server, argv
        self.returncode: int | None = None
        self.folder = tempfile.TemporaryDirectory()
        self.out, self.err = (Path(self.folder.name, name) for name in ("out", "err"))
        self.out.touch()
        self.err.touch()
        asked = {"argv": argv, "script": script, "cwd": str(cwd)}
        asked |= {"out": str(self.out), "err": str(self.err), "environment": dict(environment)}
        server.ask(asked)
        self.pid = int(server.answer())

    def poll(self) -> int | None:
        """Return its exit code, None while it is at work."""
        return self._ended_within(0)

    def _ended_within(self, seconds: float | None) -> int | None:
        if self.returncode is None:
            self.server.ask({"child": self.pid, "seconds": seconds})
            try:
                answer = self.server.answer()
            except ServerEnded:
                raise
            except BaseException:
                os.killpg(self.pid, signal.SIGKILL)
                self.server.answer()
                raise
            self.returncode = json.loads(answer)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for its end, and return output and errors."""
        if self._ended_within(timeout) is None:
            raise subprocess.TimeoutExpired(self.argv, timeout or 0)
        out, err = (path.read_text(encoding="utf-8") for path in (self.out, self.err))
        self.folder.cleanup()
        return out, err

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)
