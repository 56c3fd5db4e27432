"""A user's mistake: one line that says what, where and what to do, exit code 2, nothing written.

The installed command is loaded once and called with one mistake after the other, which takes some
hundredths of a second each; one of them is a process of its own, and says the same.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_a_row import End
from made import write_pairs
from started import BENCH, bench, error_line, hashes, python, record, run_folders

RUN = "run simcse --backbone tiny --corpus corpus.txt --suite pairs.tsv --set select_on=last"
OWN = "run simcse --backbone tiny --corpus corpus.txt --suite"

MISTAKES = {
    # what is not there
    "run": ["method"],
    "runn": ["runn", "run"],
    "run simsce --suite check": ["simsce", "simcse"],
    "run simcse+energy --backbone tiny --corpus corpus.txt --suite pairs.tsv": ["energy", "simcse"],
    "run nothing.py --suite check": ["nothing.py"],
    "run not-python.py --suite check": ["not-python.py:1", "SyntaxError"],
    "run no-method.py --suite check": ["no-method.py", "method"],
    f"{RUN} --plugin nothing.py": ["nothing.py"],
    f"{RUN} --backbone /nothing": ["/nothing"],
    f"{RUN} --backbone empty": ["empty", "config.json"],
    f"{RUN} --backbone no-weights": ["no-weights", "safetensors"],
    f"{RUN} --backbone nobody/nothing --offline": ["nobody/nothing", "forbids fetching"],
    f"{RUN} --corpus nothing.txt": ["nothing.txt"],
    f"{RUN} --set duplicates=no": ["duplicates=no"],
    f"{RUN} --set schedule=cosine --dry-run": ["schedule=cosine"],
    f"{RUN} --set epochs=3 --budget 2epochs": ["epochs=3", "--budget 2epochs"],
    f"{RUN} --data file": ["file"],
    f"{RUN} --runs file": ["file"],
    f"{OWN} chek": ["chek", "check"],
    f"{OWN} sts": ["STS12", "data"],
    "run --plan nothing.toml": ["nothing.toml"],
    "run --plan bad.toml": ["bad.toml", "line 1"],
    "run --plan odd.toml": ["odd.toml", "recipe"],
    "evaluate --suite pairs.tsv": ["model"],
    "evaluate /nope --suite pairs.tsv": ["/nope"],
    "evaluate '' --suite pairs.tsv": ["model", "empty"],
    f"{RUN} --corpus ''": ["--corpus is empty"],
    "evaluate file --suite pairs.tsv": ["file"],
    "evaluate vectors:no.npz --suite pairs.tsv": ["no.npz"],
    "evaluate tiny --suite stss": ["stss", "sts"],
    # options of a training, to what trains nothing
    "run cls --backbone tiny --suite pairs.tsv --budget 5steps": ["budget", "cls trains nothing"],
    "run cls --backbone tiny --suite pairs.tsv --corpus corpus.txt": ["--corpus", "nothing"],
    "run cls --backbone tiny --suite pairs.tsv --set dropout=0.1": [
        "dropout=0.1",
        "trains nothing",
    ],
    "run cls --backbone tiny --suite pairs.tsv --chunk 4": ["--chunk", "cls trains nothing"],
    "run whitening --backbone tiny --suite pairs.tsv --chunk 4": ["--chunk", "whitening"],
    "run whitening --backbone tiny --suite pairs.tsv --budget 5steps": ["budget", "whitening"],
    "run whitening --backbone tiny --suite pairs.tsv --set learning_rate=1": [
        "learning_rate=1",
        "whitening trains nothing",
    ],
    "run whitening --backbone tiny --suite pairs.tsv --set adapter=lora": ["adapter", "whitening"],
    "run cls --backbone tiny --suite pairs.tsv --setting supervised": ["--setting", "nothing"],
    "run cls last-avg --suite pairs.tsv --set select_on=last": ["cls and last-avg train nothing"],
    "search cls --backbone tiny --suite pairs.tsv": ["cls cannot be searched", "not trained"],
    "search whitening,simcse --backbone tiny": ["whitening cannot be searched", "not trained"],
    "evaluate tiny --suite pairs.tsv --budget 5steps": ["--budget"],
    # a run, a model, a method and a plan where another of them is expected
    "evaluate simcse-tiny-s9-01234567 --suite pairs.tsv --runs kept": ["unknown run", "kept"],
    "evaluate nowhere/simcse-tiny-s9 --suite pairs.tsv --runs kept": ["unknown run", "kept"],
    "evaluate simcse --suite pairs.tsv --runs empty": ["simcse", "method"],
    f"{RUN} --backbone simcse-tiny-s1-01234567": ["simcse-tiny-s1-01234567", "folder"],
    "doctor simcse-tiny-s1-01234567": ["simcse-tiny-s1-01234567", "folder"],
    "run simcse-tiny-s1 --suite pairs.tsv": ["simcse-tiny-s1", "method"],
    "run plan.toml --suite pairs.tsv": ["plan.toml", "no recipe"],
    "run nothing.toml --suite pairs.tsv": ["nothing.toml", "no such file"],
    "compare --runs kept builtin": ["builtin", "unknown run"],
    "compare --runs nowhere": ["nowhere"],
    "compare --runs empty": ["empty"],
    "compare --runs damaged": ["damaged"],
    "compare --runs kept nobody": ["nobody", "kept"],
    "compare --runs kept --baseline nobody": ["nobody", "simcse"],
    "compare --runs kept --method nobody": ["nobody", "simcse"],
    "compare --runs kept --suite stss": ["stss"],
    "compare --runs kept --task nothing": ["nothing", "pairs"],
    "compare --runs kept simcse-tiny-s1 --items": ["--items", "two"],
    "runs --runs kept nobody": ["nobody", "kept"],
    "verify --runs nowhere": ["nowhere"],
    "verify --runs kept nobody": ["nobody", "kept"],
    "verify nowhere": ["nowhere"],
    "export --runs kept nobody --to new": ["nobody", "kept"],
    "publish --runs nowhere --out boards": ["nowhere"],
    "publish --runs empty --out boards": ["empty"],
    "publish --runs kept --out boards --baseline nobody": ["nobody", "simcse"],
    "submit --runs kept nobody --by Ada --to box": ["nobody", "kept"],
    "methods simsce": ["simsce", "simcse"],
    "suites stss": ["stss", "sts"],
    "check nothing.py": ["nothing.py"],
    "check not-python.py": ["not-python.py:1"],
    "data list STS21": ["STS21", "STS16"],
    "data fetch STS21": ["STS21", "STS16"],
    "doctor --data nothing": ["nothing"],
    "search simsce --corpus corpus.txt": ["simsce", "simcse"],
    "search simcse --corpus nothing.txt": ["nothing.txt"],
    # options that nobody has, and values that nobody understands
    f"{RUN} --no-such-option": ["--no-such-option"],
    f"{RUN} --lr 1e-4": ["--lr"],
    f"{RUN} --batch-size 32": ["--batch-size"],
    f"{RUN} --seed 1": ["--seed"],
    f"{RUN} --setting zero-shot": ["zero-shot", "unsupervised"],
    f"{RUN} --setting supervised": ["corpus.txt", "pairs"],
    f"{RUN} --seeds a": ["--seeds a"],
    f"{RUN} --seeds 5-1": ["--seeds 5-1"],
    f"{RUN} --seeds 1-99999999": ["--seeds 1-99999999"],
    f"{RUN} --budget soon": ["--budget soon", "steps"],
    f"{RUN} --budget 5parsecs": ["--budget 5parsecs", "steps"],
    f"{RUN} --budget 0sentences": ["--budget 0sentences", "number of sentences"],
    f"{RUN} --budget -3m": ["--budget -3m"],
    f"{RUN} --chunk many": ["--chunk many"],
    f"{RUN} --chunk 0": ["--chunk 0"],
    f"{RUN} --precision int8": ["int8", "bf16"],
    f"{RUN} --device cuda:99": ["--device cuda:99"],
    f"{RUN} --device tpu": ["--device tpu"],
    f"{RUN} --on mars:3": ["mars"],
    f"{RUN} --on local:many": ["local:many"],
    f"{RUN} --set temprature=1": ["temprature", "temperature"],
    f"{RUN} --set lr=1e-5": ["lr"],
    f"{RUN} --set seed=3": ["seed"],
    f"{RUN} --set batch_size": ["batch_size", "="],
    f"{RUN} --set batch_size=many": ["batch_size=many", "whole number"],
    f"{RUN} --set batch_size=0": ["batch_size=0", "1"],
    f"{RUN} --set temperature=0": ["temperature", "0"],
    f"{RUN} --set temperature=0,05": ["temperature=0,05", "decimal point"],
    f"{RUN} --set temperature=nan": ["temperature=nan", "number"],
    f"{RUN} --set learning_rate=inf": ["learning_rate=inf", "number"],
    f"{RUN} --set learning_rate=1e30": ["learning_rate=1e30", "1.8e+19"],
    f"{RUN} --set learning_rate=-1": ["learning_rate=-1", "0"],
    f"{RUN} --set dropout=7": ["dropout=7", "1"],
    f"{RUN} --set select_on=STSB": ["STSB", "STS-B"],
    f"{RUN} --set max_steps=0": ["max_steps=0", "1"],
    f"{RUN} --set pooling=middle": ["pooling=middle"],
    "evaluate tiny --suite pairs.tsv --set pooling=maen": ["pooling=maen"],
    "evaluate tiny --suite pairs.tsv --name one,two": ["one,two", "1 model"],
    "evaluate tiny --suite pairs.tsv --dimensions many": ["--dimensions many", "64"],
    "evaluate tiny --suite pairs.tsv --precision int4": ["int4", "int8"],
    "compare --runs kept --format pdf": ["pdf", "latex"],
    # options that the answer of another one would leave without effect
    "compare --runs kept simcse-tiny-s1 promcse-tiny-s1 --items --html page.html --cost": [
        "--items",
        "--html",
        "--cost",
    ],
    "compare --runs kept --paper promcse:1 --baseline cls": ["--paper", "--baseline"],
    "runs --runs kept simcse-tiny-s1 --status failed": ["--status"],
    f"{RUN} --all": ["--all", "--dry-run"],
    "demo --steps 0 --out demo": ["--steps", "0"],
    "demo --seeds x --out demo": ["--seeds x"],
    "submit --runs kept simcse-tiny-s1 --to box": ["--by"],
    "search simcse --corpus corpus.txt --backbone tiny --trials many": ["--trials", "many"],
    "search simcse --corpus corpus.txt --backbone tiny --trials 0": ["--trials", "0"],
    # files that hold something else
    f"{OWN} nothing.tsv": ["nothing.tsv"],
    f"{OWN} short-row.tsv": ["short-row.tsv", "line 6", "1", "3"],
    f"{OWN} nan.tsv": ["nan.tsv", "line 6", "nan", "number"],
    f"{OWN} inf.tsv": ["inf.tsv", "line 6", "inf", "number"],
    f"{OWN} word.tsv": ["word.tsv", "line 6", "much", "number"],
    f"{OWN} columns.tsv": ["columns.tsv", "one", "two", "three"],
    f"{OWN} empty.tsv": ["empty.tsv", "empty"],
    f"{OWN} head.tsv": ["head.tsv", "no rows"],
    f"{RUN} --corpus empty.txt": ["empty.txt", "empty"],
    f"{RUN} --corpus latin.txt": ["latin.txt", "line 10", "UTF-8"],
    f"{RUN} --corpus three.csv": ["three.csv", "'a', 'b', 'c'"],
    f"{RUN} --corpus cut.txt.gz": ["cut.txt.gz"],
    f"{RUN} --corpus cut.jsonl": ["cut.jsonl", "line 2", "JSON"],
    f"{RUN} --corpus triplets.csv:sent0,nothing": ["triplets.csv", "nothing", "sent1"],
    f"{RUN} --corpus /": ["/", "folder"],
    "evaluate tiny --suite nan.tsv": ["nan.tsv", "line 6", "nan"],
    "evaluate vectors:nan.npz --suite pairs.tsv": ["nan.npz", "NaN"],
    "evaluate vectors:few.npz --suite pairs.tsv": ["few.npz", "142"],
    "evaluate vectors:unequal.npz --suite pairs.tsv": ["unequal.npz", "(1, 3)", "2"],
    "evaluate vectors:file --suite pairs.tsv": ["file"],
    # what stands where something is to be written
    "export --runs kept simcse-tiny --to new": ["simcse-tiny", "4 runs"],
    "export --runs kept simcse-tiny-s1 --to kept": ["kept", "exists"],
    "publish --runs kept --out file": ["file"],
    "submit --runs kept simcse-tiny-s1 --by Ada --to file": ["file"],
    "demo --out file": ["file"],
    f"{RUN} --runs /dev/null/runs": ["/dev/null/runs"],
    "export --runs kept simcse-tiny-s1 --to /dev/null/model": ["/dev/null/model"],
    "publish --runs kept --out /dev/null/boards": ["/dev/null/boards"],
    "compare --runs kept --html /dev/null/page.html": ["/dev/null/page.html"],
}
"""Commands, and the words that their one line must have."""


@pytest.fixture(scope="module")
def ends(mistakes: list[End]) -> dict[str, End]:
    """Return how each mistake ended."""
    return dict(zip(MISTAKES, mistakes[-len(MISTAKES) :], strict=True))


@pytest.mark.promise(29)
@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_one_line_that_says_what_and_where_and_writes_nothing(
    command: str, ends: dict[str, End]
) -> None:
    end = ends[command]
    assert end.code == 2, end.err
    line = error_line(end)
    assert [word for word in MISTAKES[command] if word not in line] == [], line
    assert end.unchanged


@pytest.mark.promise(29)
def test_a_process_of_its_own_says_the_same(wrong: Path, copied: Any, ends: dict[str, End]) -> None:
    command, place = f"{OWN} nan.tsv", copied(wrong)
    before = hashes(place)
    done = bench(*command.split(), cwd=place, code=2, alone=True)
    assert (done.out, done.err) == (ends[command].out, ends[command].err)
    assert hashes(place) == before


FILES_AT_MOST = """
import resource, sys
from importlib.metadata import entry_points

limit, *sys.argv = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
(command,) = entry_points(group="console_scripts", name="bench")
sys.exit(command.load()())
"""
"""A disk that takes no larger file: as on a full one, a write fails in the middle."""


@pytest.mark.promise(29)
@pytest.mark.promise(10)
def test_a_full_disk_is_one_line_and_the_same_command_goes_on(tmp_path: Path, tiny: Path) -> None:
    words = ["run", "cls", "--backbone", str(tiny), "--suite", "pairs.tsv", "--plain"]
    write_pairs(tmp_path / "pairs.tsv")
    full = python(FILES_AT_MOST, "2000", "bench", *words, cwd=tmp_path, code=None)
    assert full.code in (1, 2)
    line = error_line(full)
    assert "runs/cls-tiny" in line and ("File too large" in line or "cannot be written" in line), (
        line
    )
    finished = [
        run for run in run_folders(tmp_path / "runs") if record(run)["status"] == "finished"
    ]
    assert finished == []
    bench(*words, cwd=tmp_path)
    (run,) = run_folders(tmp_path / "runs")
    assert record(run)["status"] == "finished" and not list(run.rglob("*.new"))


@pytest.mark.promise(29)
def test_a_folder_that_may_not_be_written_is_one_line_and_stays_as_it_is(
    tmp_path: Path, inputs: Path, ten_runs: Path
) -> None:
    """As a user with the rights of the files and no others; root gives its own up."""
    root = os.geteuid() == 0
    dropped = "-dac_override,-dac_read_search,-fowner"
    drop = ["setpriv", f"--bounding-set={dropped}", "--inh-caps=-all"] if root else []
    if root and shutil.which("setpriv") is None:
        pytest.skip("root, and no setpriv that gives up root's rights")
    runs = shutil.copytree(ten_runs, tmp_path / "runs")
    shutil.copytree(inputs / "tiny", tmp_path / "tiny")
    shutil.copy(inputs / "pairs.tsv", tmp_path)
    before = hashes(tmp_path)
    folders = [path for path in [runs, *runs.rglob("*")] if path.is_dir()]
    for folder in folders:
        folder.chmod(0o555)
    script = "import os, sys; os.execvp(sys.argv[1], sys.argv[1:])"
    words = ["run", "first-last-avg", "--backbone", "tiny", "--suite", "pairs.tsv", "--plain"]
    try:
        done = python(script, *drop, BENCH, *words, cwd=tmp_path, code=None)
    finally:
        for folder in folders:
            folder.chmod(0o755)
    if "setpriv:" in done.err:
        pytest.skip("root that may not give up its rights")
    assert done.code == 2, done.err
    assert "runs/" in error_line(done) and "denied" in error_line(done)
    assert hashes(tmp_path) == before


@pytest.mark.promise(31)
@pytest.mark.promise(22)
def test_a_version_of_runs_made_in_folders_of_a_machine_names_none_of_them(
    version: Path, ten_runs: Path
) -> None:
    """The runs were made with absolute paths of their backbone, text, suite and runs."""
    pyarrow = pytest.importorskip("pyarrow.parquet")
    made = [record(run) for run in run_folders(ten_runs)]
    assert len(made) == 10 and {one["status"] for one in made} == {"finished"}
    folders = {str(ten_runs.parent), str(ten_runs.parent.parent), str(Path.home())}
    if str(Path.home()) == "/":
        folders.discard("/")
    files = [path for path in version.parent.rglob("*") if path.is_file()]
    assert len([path for path in files if path.name == "run.json"]) == 10
    for file in files:
        content = file.read_bytes()
        if file.suffix == ".parquet":
            table = pyarrow.read_table(file)
            content += repr(table.to_pylist()).encode() + repr(table.schema.metadata).encode()
        if file.suffix == ".npz":
            with np.load(file) as arrays:
                texts = [
                    arrays[name].tolist() for name in arrays if arrays[name].dtype.kind in "US"
                ]
            content += repr(texts).encode()
        spelled = [form for one in folders for form in (one, one.replace("/", r"\/"))]
        assert [one for one in spelled if one.encode() in content] == [], file
