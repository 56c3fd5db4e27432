"""Every method on a stand-in for a GPU (card.py): it trains, scores and resumes there, mixes no
devices, and hardly ever waits.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.nightly, pytest.mark.slow(seconds=200)]

SUPPORT = Path(__file__).parents[1] / "support"
MASKS = "transformers/masking_utils.py"  # one wait a pass of the encoder, in transformers' own code
# InferSent: the lengths of its LSTM's sequences, and a rate that follows dev scores; masked
# language modelling: how many tokens are masked, which are drawn on the card
WAITS = {
    **{"infersent": 5, "simcse": 1, "promcse": 1, "dcpcse": 1},
    **{"cot-bert": 3, "infocse": 1, "tsdae": 1},
    # masked tokens, as above; whether the scores of a batch differ at all
    **{"mntp": 1, "pcc-tuning": 1},
}
# profile needs a torch that was built for a card
LINES = ("right.steps", "memory.bert-base-64")


class Process:
    """on_card.py in a process of its own."""

    def __init__(self, guard: Path, folder: Path) -> None:
        command = [
            sys.executable,
            str(SUPPORT / "on_card.py"),
            str(guard),
            str(folder),
        ]
        self.log = folder / "log.txt"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )

    def answer(self, *question: Any) -> Any:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self.log.read_text()[-2000:]
        return json.loads(line)


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder = tmp_path_factory.mktemp("standin")
    build = "import sys, card, pathlib; card.build_guard(pathlib.Path(sys.argv[1]))"
    built = subprocess.run(
        [sys.executable, "-c", build, str(folder)],
        cwd=SUPPORT,
        capture_output=True,
        text=True,
    )
    if built.returncode:
        pytest.skip(f"the guard cannot be compiled here: {built.stderr.strip().splitlines()[-1]}")
    started = Process(folder / "standin_guard.so", folder)
    yield started
    started.process.kill()
    started.process.wait()


def test_the_stand_in_refuses_what_a_card_refuses(process: Process) -> None:
    assert process.answer("mixed") == ["add", "layer", "cat", "index", "numpy"]


def test_the_stand_in_counts_waits_and_uploads(process: Process) -> None:
    waits = ["_local_scalar_dense", "_to_copy", "index", "nonzero", "tolist"]
    assert process.answer("counted") == {"gradient": [2.0, 4.0], "waits": waits, "uploads": 2}


def test_every_case_trains_scores_and_resumes(process: Process, snapshot: Any) -> None:
    """The snapshot lists them, with the waits of one step and the tensors that are uploaded
    meanwhile.
    """
    lines, problems = [], []
    for case in process.answer("cases"):
        found = process.answer("method_on_card", *case)
        if "error" in found:
            problems.append((case, found["error"]))
            continue
        passes = sum(
            times
            for place, times in found["waits"].items()
            if place.split(" ")[1].startswith(MASKS)
        )
        waits, uploads = sum(found["waits"].values()) - passes, sum(found["uploads"].values())
        lines.append(
            f"{found['case']}: {found['steps']} steps, {passes} passes, "
            f"{waits} other waits, {uploads} uploads"
        )
        if waits > WAITS.get(case[0], 0):
            problems.append((case, found["waits"]))
        if found["steps"] and not (0 < found["resumed"] < found["steps"] and found["same"]):
            problems.append((case, "a resumed training ends otherwise"))
        if len(set(found["scores"])) > 1:
            problems.append((case, found["scores"]))
    assert not problems
    assert lines == snapshot


@pytest.mark.parametrize("name", LINES)
def test_lines_of_the_measurement_run(process: Process, name: str) -> None:
    found = process.answer("measurement", name)
    assert "Error" not in found["value"], found


def test_a_step_on_buffers_waits_for_nothing(process: Process) -> None:
    """And has the plain step's losses, but for a rate in float32; recorded, the host asks for next
    to nothing.
    """
    found = process.answer("steps_on_buffers", "simcse", 7)
    plain = found["eager"]
    for kind in ("static", "graph"):
        assert found[kind]["kind"] == kind
        assert found[kind]["waits"] == found[kind]["uploads"] == 0
        assert found[kind]["losses"] == pytest.approx(plain["losses"], rel=1e-5)
    assert found["graph"]["operations"] < plain["operations"] / 20


def test_counts_beside_the_peer() -> None:
    """benchmarks/card_counts.py: a step of ours waits for nothing, and gives a card less to do."""
    script = SUPPORT.parents[1] / "benchmarks" / "card_counts.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    if "cpp_extension" in done.stderr:
        pytest.skip("the guard cannot be compiled here")
    assert done.returncode == 0, done.stderr[-2000:]
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines() if " waits, " in line)
    ours = lines["ours"].split()
    assert ours[:4] == ["0", "waits,", "0", "uploads,"]
    assert lines["ours before"].startswith("1 waits")
    assert int(ours[4]) < int(lines["sentence-transformers"].split()[4])
