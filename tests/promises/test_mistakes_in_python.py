"""A user's mistake in Python: a ``bench.BenchError`` of one line, and nothing is written."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from in_a_row import in_a_row
from started import error_line, python

CALLS = """
import json, sys
from pathlib import Path
import numpy as np
import bench

short = dict(backbone="tiny", corpus="corpus.txt", suites="pairs.tsv", budget="2steps",
             batch_size=8, select_on="last", progress=False)

def train(method="simcse", **changed):
    return bench.train(method, **short | changed)

def evaluate(model, **changed):
    return bench.evaluate(model, **dict(suites="pairs.tsv", progress=False) | changed)

def here():
    return sorted((str(path), path.stat().st_size, path.stat().st_mtime_ns)
                  for path in [Path(), *Path().rglob("*")])

said, before = [], here()
for call in json.loads(Path(sys.argv[1]).read_text()):
    kind, message = "nothing was wrong", ""
    try:
        eval(call)
    except bench.BenchError as error:
        kind, message = "BenchError", str(error)
    except BaseException as error:
        kind, message = type(error).__name__, str(error)
    now = here()
    said.append([kind, message, now == before])
    before = now
print(json.dumps(said))
"""

BAD_CALLS = {
    'train("simsce")': ["simsce", "simcse"],
    "train(int)": ["int", "method"],
    "train([])": ["method"],
    "train(batchsize=8)": ["batchsize", "batch_size"],
    "train(temprature=1)": ["temprature", "temperature"],
    'train(batch_size="many")': ["batch_size", "many", "whole number"],
    "train(batch_size=0)": ["batch_size", "0"],
    'train(temperature=float("nan"))': ["temperature", "nan"],
    "train(temperature=-1.0)": ["temperature", "-1"],
    'train(budget="soon")': ["budget", "soon", "steps"],
    "train(budget=-1)": ["budget", "-1"],
    'train(seeds="a")': ["seeds", "a"],
    "train(seeds=[1.5])": ["seeds", "1.5"],
    "train(seeds=[])": ["seeds"],
    "train(settings={1: 2})": ["settings", "1", "names"],
    'train(backbone="/nothing")': ["backbone", "/nothing"],
    "train(backbone=3)": ["backbone", "3"],
    'train(corpus="nothing.txt")': ["corpus", "nothing.txt"],
    "train(corpus=[])": ["corpus", "no rows"],
    'train(corpus=["a", 3])': ["corpus", "row 2", "3"],
    'train(corpus=[("a", "b"), ("c",)])': ["corpus", "row 2", "2"],
    "train(corpus=7)": ["corpus", "7"],
    'train(suites="chek")': ["suite", "chek", "check"],
    'train(suites="nan.tsv")': ["nan.tsv", "line 6", "nan"],
    "train(suites=3)": ["suites", "3"],
    'train(setting="zero")': ["setting", "zero", "unsupervised"],
    'train(device="tpu")': ["device=tpu"],
    'train(device="cuda:99")': ["device", "cuda:99"],
    'train(precision="int8")': ["precision='int8'", "bf16"],
    'train(chunk="many")': ["chunk", "many"],
    "train(chunk=0)": ["chunk=0", "whole number"],
    'train(runs="file")': ["file"],
    'train(data="file")': ["data", "file"],
    'evaluate("/nope")': ["/nope"],
    "evaluate(3)": ["int", "model"],
    'evaluate("")': ["model", "empty"],
    'evaluate("tiny", suites="stss")': ["stss", "sts"],
    'evaluate("tiny", pooling="maen")': ["pooling", "maen"],
    'evaluate("tiny", nam="x")': ["nam", "name"],
    'evaluate("tiny", prompts={1: "x"})': ["prompts", "1", "names"],
    'evaluate("tiny", prompts={"pairs": 2})': ["prompts['pairs']=2", "text"],
    'evaluate("tiny", dimensions="few")': ["dimensions", "few", "64"],
    'evaluate("tiny", precision=None)': ["precision", "None", "int8"],
    'evaluate(lambda texts: np.ones((1, 4)), name="one-row")': ["one-row", "(1, 4)"],
    'evaluate(lambda texts: np.full((len(texts), 4), np.nan), name="nan")': ["nan", "NaN"],
    'evaluate(lambda texts: "text", name="text")': ["text", "numbers"],
    'evaluate(lambda texts: 1 / 0, name="fails")': ["fails", "ZeroDivisionError"],
    'bench.compare_runs("nobody", runs="kept")': ["nobody", "kept"],
    "bench.compare_runs([3])": ["3", "run"],
    'bench.compare_runs(bench.load_runs("kept"), baseline="nobody")': ["nobody", "simcse"],
    'bench.compare_runs(bench.load_runs("kept"), baseline=5)': ["baseline=5", "text"],
    'bench.load_runs("kept")[0][0]': ["task '0'", "pairs"],
    'bench.load_runs("kept")[0].plot(task=5)': ["task '5'", "pairs"],
    'bench.load_run("nobody", runs="kept")': ["nobody", "kept"],
    'bench.load_run("simcse-tiny-s1", runs="kept", device=0)': ["device=0", "text"],
    'bench.load_run("simcse-tiny-s1", runs="kept").encode(5)': ["list of sentences"],
    'bench.verify_runs("nobody", runs="kept")': ["nobody", "kept"],
    'bench.publish_runs(runs="nowhere", out="boards")': ["nowhere"],
    'bench.publish_runs(runs="kept", out="boards", baseline="nobody")': ["nobody", "simcse"],
    'bench.publish_runs(runs="kept", out="file")': ["file"],
    'bench.publish_runs(runs="kept", out="boards", leave_out=None)': ["leave_out", "None", "text"],
    'bench.publish_runs(runs="kept", out="boards", title=5)': ["title=5", "text"],
    'bench.export_run("nobody", "new", runs="kept")': ["nobody", "kept"],
}
"""Calls, and the words that the message must have."""


@pytest.fixture(scope="module")
def said(found_once: Any, wrong: Path) -> dict[str, Any]:
    """Return what each call raised: the kind of error, its message, whether nothing changed."""

    def call(folder: Path) -> list[Any]:
        return called(list(BAD_CALLS), shutil.copytree(wrong, folder / "place"))

    return dict(zip(BAD_CALLS, found_once("calls", call), strict=True))


def called(calls: list[str], place: Path) -> list[Any]:
    """Return what each of these calls raised in a folder."""
    listed = place.parent / "calls.json"
    listed.write_text(json.dumps(calls))
    return list(json.loads(python(CALLS, listed, cwd=place).out.splitlines()[-1]))


@pytest.mark.promise(28)
@pytest.mark.promise(29)
@pytest.mark.parametrize("call", BAD_CALLS)
def test_a_mistake_in_python_is_an_error_of_one_line_that_writes_nothing(
    call: str, said: dict[str, Any]
) -> None:
    kind, message, unchanged = said[call]
    assert kind == "BenchError", message
    assert [word for word in BAD_CALLS[call] if word not in message] == [], message
    assert "\n" not in message
    assert unchanged


@pytest.mark.promise(28)
@pytest.mark.promise(29)
def test_a_mistake_in_python_is_said_in_terms_of_the_argument(said: dict[str, Any]) -> None:
    """... but for the options of a command that it says to try."""
    messages = [re.sub(r"\bbench [a-z].*?(;|\)|, or|$)", "", text) for _, text, _ in said.values()]
    assert [text for text in messages if re.search(r"(^|\s)--[a-z]", text)] == []


ALIKE = {
    "--chunk 0": ("chunk = 0", "chunk=0"),
    "--chunk many": ('chunk = "many"', 'chunk="many"'),
    "--chunk 1.5": ("chunk = 1.5", "chunk=1.5"),
    "--seeds a": ('seeds = "a"', 'seeds="a"'),
    "--seeds 5-1": ('seeds = "5-1"', 'seeds="5-1"'),
    "--precision int8": ('precision = "int8"', 'precision="int8"'),
    "--budget 10parsecs": ('budget = "10parsecs"', 'budget="10parsecs"'),
    "--setting zero": ('setting = "zero"', 'setting="zero"'),
    "--set batch_size=many": ('set = { batch_size = "many" }', 'batch_size="many"'),
    "--set batch_size=3.5": ("set = { batch_size = 3.5 }", "batch_size=3.5"),
    "--set max_steps=true": ("set = { max_steps = true }", "max_steps=True"),
    "--set learning_rate=nan": ("set = { learning_rate = nan }", 'learning_rate=float("nan")'),
    "--set patience=inf": ("set = { patience = inf }", 'patience=float("inf")'),
    "--set dropout=7": ("set = { dropout = 7 }", "dropout=7"),
}
"""An option with a mistake, the same one in a plan, and the same one in Python."""
PLAN = """
[[run]]
methods = ["simcse"]
backbones = ["tiny"]
corpus = "corpus.txt"
suites = ["pairs.tsv"]
"""


def fault(text: str) -> str:
    """Return what is wrong, without the place that it was typed in, and without the hint."""
    return re.sub(r"^.*?(?=expected|unknown)", "", text).partition(" (try: ")[0]


@pytest.mark.promise(28)
@pytest.mark.promise(29)
def test_a_mistake_has_the_same_words_as_an_option_in_a_plan_and_in_python(
    wrong: Path, copied: Any
) -> None:
    place = copied(wrong)
    run = ["run", "simcse", "--backbone", "tiny", "--corpus", "corpus.txt", "--suite", "pairs.tsv"]
    commands = [[*run, *option.split()] for option in ALIKE]
    for number, (line, _) in enumerate(ALIKE.values()):
        plan = place.parent / f"plan-{number}.toml"
        plan.write_text(f"{PLAN}{line}\n")
        commands.append(["run", "--plan", str(plan)])
    ends = in_a_row(commands, place)
    assert {end.code for end in ends} == {2}
    calls = called([f"train({argument})" for _, argument in ALIKE.values()], place)
    lines = [error_line(end) for end in ends]
    typed, planned = lines[: len(ALIKE)], lines[len(ALIKE) :]
    for option, plan_line, (_, message, _) in zip(typed, planned, calls, strict=True):
        assert fault(option) == fault(plan_line) == fault(message) != ""
