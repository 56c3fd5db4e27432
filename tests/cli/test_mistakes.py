"""Mistakes at the command line, verb by verb: each is one line and a hint, ends with exit code 2
and writes nothing.

``pytest --snapshot-update`` accepts other words; read the difference as a user would.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from commands import argv, bench, error_line, tree
from factories import record
from huggingface_hub import constants

from bench.records import RunsFolder

RUN = "run --suite check --corpus builtin --device cpu --method"
MISTAKES = {
    "run": f"""
        run
        run simsce --suite check
        run nothing.py --suite check
        {RUN} simcse --backbone /nothing
        {RUN} simcse --backbone empty
        {RUN} simcse --backbone a:b
        {RUN} simcse --backbone nobody/nothing-of-that-name --offline
        {RUN} simcse --suite chek
        run simcse --suite sts --corpus builtin --device cpu
        {RUN} simcse+energy
        {RUN} simcse --setting zero-shot
        {RUN} simcse --setting supervised
        {RUN} simcse --set temprature=1
        {RUN} simcse --set lr=1e-5
        {RUN} simcse --set seed=3
        {RUN} simcse --set zzz=1
        {RUN} simcse --set batch_size
        {RUN} simcse --set batch_size=many
        {RUN} simcse --set temperature=0
        {RUN} simcse --set temperature=0,05
        {RUN} simcse --set dropout=7
        {RUN} simcse --set select_on=STSB
        {RUN} simcse --lr 1e-4
        {RUN} simcse --batch-size 32
        {RUN} simcse --seed 1
        {RUN} simcse --no-such-option
        {RUN} simcse --seeds a
        {RUN} simcse --seeds 5-1
        {RUN} simcse --seeds 1-99999999
        {RUN} simcse --budget soon
        {RUN} simcse --budget 2gpu-h
        {RUN} simcse --set max_steps=0
        {RUN} simcse --chunk many
        {RUN} simcse --suite sts:senteval-all-shouted/1
        {RUN} simcse --precision int8
        {RUN} simcse --corpus /nothing.txt
        {RUN} simcse --corpus /
        {RUN} simcse --corpus wiki
        {RUN} simcse --data file
        {RUN} simcse --plugin /nothing.py
        {RUN} simcse --runs file
    """,
    "evaluate": """
        evaluate
        evaluate /nope
        evaluate file
        evaluate a:b
        evaluate vectors:no.npz
        evaluate http://h/v1/embeddings
        evaluate http://user:pw@127.0.0.1:1/v1/embeddings --model m
        evaluate https://h/v1/embeddings?api-key=x --model m
        evaluate a/b --suite stss
        evaluate a/b c/d --name one
        evaluate a/b --prompt STS21 x
        evaluate builtin --pooling mean
        evaluate builtin --data file
    """,
    "runs": """
        compare simsce-builtin --runs kept
        compare zzzz --runs kept
        verify simsce-builtin --runs kept
        export simsce-builtin --to new --runs kept
        export any-run --to new
        verify --runs nowhere
    """,
    "data": """
        data fetch STS21
        data fetch nli_triplets --data empty
        data list STS21
        data check STS12 --data empty
        data overlap no.txt
        data overlap text.txt --suite stss
        data overlap text.txt --suite check --matches m.csv
    """,
    "others": """
        runn
        methods simsce
        check no.py
        suites stss
        references simcsee
        demo --seeds x --out demo
        demo --steps 0 --out demo
    """,
}


@pytest.mark.parametrize("verb", MISTAKES)
def test_a_mistake_is_one_line_and_a_hint_and_nothing_is_written(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "text.txt").write_text("a line\n")
    (tmp_path / "empty").mkdir()
    RunsFolder(tmp_path / "kept").write(record("simcse", 1))
    before, said = tree(tmp_path), []
    for line in filter(None, map(str.strip, MISTAKES[verb].splitlines())):
        done = bench(*argv(line))
        assert done.exit_code == 2 and "Traceback" not in done.output, line
        lines = [one for one in done.stderr.splitlines() if one.startswith(("error: ", "try: "))]
        assert [one[:3] for one in lines] in (["err"], ["err", "try"]), done.stderr
        assert tree(tmp_path) == before, line
        said += [f"$ bench {line}", *lines]
    text = "\n".join(said).replace(str(tmp_path), "FOLDER").replace(constants.HF_HUB_CACHE, "CACHE")
    assert re.sub(r"(-s\d+)-[0-9a-f]{8}\b", r"\1-ID", text) == snapshot


PLUGIN = """
import numpy as np
from bench.method import Method

class A(Method):
    name = "first-of-file"
    def encode(self, sentences):
        return np.array([[len(s), 1] for s in sentences], dtype=np.float32)

class B(A):
    name = "second-of-file"
"""


@pytest.mark.parametrize(
    ("line", "methods"),
    [
        ("cls last-avg", "cls last-avg"),
        ("last-avg --method cls", "cls last-avg"),
        ("mine.py cls", "first-of-file second-of-file cls"),
        ("mine.py --method second-of-file", "second-of-file"),
        ("--seeds 1 mine.py --backbone builtin cls", "first-of-file second-of-file cls"),
    ],
)
def test_methods_and_files_need_no_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, methods: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(PLUGIN)
    done = bench(*argv(f"run {line} --suite check --dry-run --json"))
    assert done.exit_code == 0, done.stderr
    ids = [json.loads(plan)["run_id"] for plan in done.stdout.splitlines()]
    assert [one.partition("-builtin")[0] for one in ids] == methods.split()


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("temperature", "0.03,0.05"),
        ("temperature", "0,1,2"),
        ("batch_size", "10,20"),
        ("mlm", "0,1"),
    ],
)
def test_a_series_stays_a_series(key: str, values: str) -> None:
    from bench.method.plugins import discover
    from bench.method.recipe_checks import check_overrides
    from bench.run.options import combinations_of

    check_overrides({key: values}, [discover()["simcse"].cls], True)
    assert [overrides[key] for overrides in combinations_of({key: values})] == values.split(",")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.txt", b"", "empty"),
        ("later.txt", b"good\n" * 9 + b"\xff\n", "line 10"),
        ("columns.csv", b"a,b,c\n1,2,3\n", "columns"),
        ("pairs.csv", b"sent0,sent1\na,b\n", "needs sentences"),
        ("cut.txt.gz", b"\x1f\x8b\x08\x00", "cut.txt.gz"),
    ],
)
def test_a_corpus_that_cannot_be_read(
    command: tuple[Any, ...], tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    words = list(command)
    words[words.index("--corpus") + 1] = tmp_path / name
    done = bench(*words, "--runs", tmp_path / "runs")
    assert said in error_line(done) and name in error_line(done)
    assert not (tmp_path / "runs").exists()
