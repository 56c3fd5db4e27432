"""Processes that begin with the libraries loaded: forked from a server that has imported them.

Of the five seconds of a process that trains a tiny encoder, four are imports of torch and
transformers. Nothing of bench is in the server: a process loads that anew.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

READ_AT_IMPORT = ("HF_", "OMP_", "PYTHON", "TOKENIZERS_")
"""How the names of variables begin that Python and the libraries look at as they start."""

SERVER = """
import atexit, gc, json, multiprocessing, os, sys, types
from importlib.metadata import entry_points

import accelerate, jinja2, pandas, peft, rich, scipy.stats, sentence_transformers, sklearn, torch
from transformers import AutoModel, AutoTokenizer, BertModel

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
            (command,) = entry_points(group="console_scripts", name="bench")
            sys.exit(command.load()())
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(asked["script"], "<string>", "exec"), vars(main))
    finally:
        atexit._run_exitfuncs()

gc.freeze()  # what is shared with the processes is not looked at by their collectors
context = multiprocessing.get_context("fork")
for line in sys.stdin:
    child = context.Process(target=work, args=(json.loads(line),))
    child.start()
    print(child.pid, flush=True)
    child.join()
    print(child.exitcode, flush=True)
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


def fits(environment: Mapping[str, str]) -> bool:
    """Tell whether a process with these variables can begin with what the server has loaded."""

    def read_at_import(variables: Mapping[str, str]) -> dict[str, str]:
        return {name: one for name, one in variables.items() if name.startswith(READ_AT_IMPORT)}

    return read_at_import(environment) == read_at_import(_server()[1])


@functools.cache
def _server() -> tuple[subprocess.Popen[str], Mapping[str, str]]:
    """Start the server of this process, which ends with it; return the variables that it has."""
    variables = environment()
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )
    atexit.register(server.communicate)  # which closes its input, and waits for its end
    return server, variables


def run(
    argv: list[str], script: str | None, cwd: Path, environment: Mapping[str, str], seconds: float
) -> tuple[int, str, str]:
    """Run ``bench`` (the first of ``argv``), or a script, and return exit code, output and errors.

    It is killed after so many seconds, and subprocess.TimeoutExpired is raised.
    """
    server, _ = _server()
    assert server.stdin is not None and server.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        for path in (out, err):
            path.touch()
        asked = {"argv": argv, "script": script, "cwd": str(cwd), "out": str(out), "err": str(err)}
        print(json.dumps(asked | {"environment": dict(environment)}), file=server.stdin, flush=True)
        child = int(server.stdout.readline())
        try:
            if not select.select([server.stdout], [], [], seconds)[0]:
                raise subprocess.TimeoutExpired(argv, seconds)
        except BaseException:
            os.killpg(child, signal.SIGKILL)
            server.stdout.readline()
            raise
        code = int(server.stdout.readline())
        return code, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8")
