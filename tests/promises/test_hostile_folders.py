"""Folders that other people made: nothing in them is executed, nothing outside them is read, and
one bad run costs that run alone.
"""

from __future__ import annotations

import csv
import html.parser
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from in_a_row import End, in_a_row
from safetensors.torch import load_file
from started import BENCH, bench, error_line, python, record, run_folders

SECRET = "a line that nobody may see"


class Touches:
    """What a hostile pickle holds: a call."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.path,)


def by_method_and_seed(runs: Path) -> dict[str, Path]:
    """Return folders of runs as ``simcse 1``, ``cls``."""
    found = {}
    for run in run_folders(runs):
        made = record(run)
        seed = "" if made["seed"] is None else f" {made['seed']}"
        found[made["method"] + seed] = run
    return found


def edit(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a run's record."""
    made = record(run)
    change(made)
    (run / "run.json").write_text(json.dumps(made), encoding="utf-8")


def replace(file: Path, make: Callable[[Path], object]) -> None:
    """Make something else in the place of a file or folder."""
    if file.is_dir():
        shutil.rmtree(file)
    file.unlink(missing_ok=True)
    make(file)


def link_to(target: str) -> Callable[[Path], object]:
    """Return what makes a link."""
    return lambda file: file.symlink_to(target)


def large(size: int) -> Callable[[Path], object]:
    """Return what makes a file of so many bytes, which takes no room on the disk."""
    return lambda file: (file.touch(), os.truncate(file, size))


def predictions(run: Path) -> Path:
    """Return a run's only file of predictions."""
    (file,) = (run / "predictions").rglob("*.npz")
    return file


def forge_first(sent: dict[str, Path], place: Path) -> dict[str, str]:
    """Forge submissions; return why each is refused."""
    touches = np.array([Touches(place / "EXECUTED")], dtype=object)
    replace(sent["simcse 2"] / "curve.jsonl", link_to("../../secret"))
    replace(sent["simcse 3"] / "curve.jsonl", os.mkfifo)
    (sent["simcse 4"] / "setup.py").write_text(f"open({str(place / 'EXECUTED')!r}, 'w')")
    edit(sent["promcse 1"], lambda made: made["scores"][0].update(value=99.0))
    np.savez(predictions(sent["promcse 2"]), prediction=touches)
    np.savez_compressed(predictions(sent["promcse 3"]), prediction=np.zeros(9_000_000))
    replace(sent["promcse 4"] / "run.json", os.mkfifo)
    return {
        "simcse 2": "curve.jsonl",
        "simcse 3": "curve.jsonl",
        "simcse 4": "setup.py",
        "promcse 1": "99",
        "promcse 2": "prediction",
        "promcse 3": "72,000,",
        "promcse 4": "run.json",
    }


def forge_second(sent: dict[str, Path]) -> dict[str, str]:
    """Forge other submissions; return why each is refused."""
    (sent["simcse 2"] / "submitted_by.txt").write_text("Ada \u202e")
    replace(sent["simcse 3"] / "curve.jsonl", large(20 << 30))
    (sent["simcse 4"] / "checkpoint").mkdir()
    (sent["simcse 4"] / "checkpoint" / "model.safetensors").touch()
    (sent["promcse 1"] / "predictions" / "elsewhere").symlink_to("/etc")
    edit(sent["promcse 2"], lambda made: made.update(error="/home/ada/secret"))
    (sent["promcse 3"] / "run.json").write_text("[" * 200_000)
    edit(sent["promcse 4"], lambda made: made.update(seed=7))
    return {
        "simcse 2": "name",
        "simcse 3": "curve.jsonl",
        "simcse 4": "model.safetensors",
        "promcse 1": "elsewhere",
        "promcse 2": "error",
        "promcse 3": "JSON",
        "promcse 4": "",
    }


def spoil(runs: dict[str, Path]) -> None:
    """Spoil runs of a folder, each in another way; these stay: simcse 4, promcse 4, last-avg."""
    replace(runs["simcse 1"] / "curve.jsonl", link_to("../../secret"))
    replace(runs["simcse 2"] / "curve.jsonl", os.mkfifo)
    kept = runs["simcse 3"].parent.parent / "elsewhere"
    shutil.move(runs["simcse 3"] / "predictions", kept)
    (runs["simcse 3"] / "predictions").symlink_to("../../elsewhere")
    replace(runs["promcse 1"] / "curve.jsonl", large(20 << 30))
    cut = (runs["promcse 2"] / "run.json").read_bytes()[:500]
    (runs["promcse 2"] / "run.json").write_bytes(cut)
    replace(runs["promcse 3"] / "run.json", os.mkfifo)
    replace(runs["cls"] / ".lock", os.mkfifo)
    damage: dict[str, Callable[[Path], object]] = {
        "binary": lambda file: file.write_bytes(bytes(range(256))),
        "deep": lambda file: file.write_text("[" * 200_000),
        "device": link_to("/dev/zero"),
        "empty": Path.touch,
        "huge": large(1 << 27),
        "list": lambda file: file.write_text("[]"),
        "loop": link_to("run.json"),
        "nan": lambda file: file.write_text("NaN"),
    }
    for name, make in damage.items():
        folder = runs["cls"].parent / f"damaged-{name}"
        folder.mkdir()
        make(folder / "run.json")
    os.mkfifo(runs["cls"].parent / "MANIFEST.json")


BOXES = ("box-1", "box-2")


@pytest.fixture(scope="module")
def hostile(
    tmp_path_factory: pytest.TempPathFactory, ten_runs: Path
) -> tuple[Path, dict[str, dict[str, str]], dict[str, End]]:
    """Return a folder, why its submissions are refused by the ids of runs, and how verbs end."""
    place = tmp_path_factory.mktemp("hostile") / "place"
    runs = by_method_and_seed(ten_runs)
    for name in ("cls", "last-avg"):
        shutil.copytree(runs[name], place / "own" / runs[name].name)
    (place / "secret").write_text(SECRET + "\n")
    words = ["submit", "simcse-tiny", "promcse-tiny", "--runs", ten_runs, "--by", "Ada"]
    bench(*words, "--to", "box-1", cwd=place)
    shutil.copytree(place / "box-1", place / "box-2")
    sent = [by_method_and_seed(place / box) for box in BOXES]
    ids = {name: run.name for name, run in sent[0].items()}
    why = [forge_first(sent[0], place), forge_second(sent[1])]
    refused = {
        box: {ids[name]: word for name, word in words.items()}
        for box, words in zip(BOXES, why, strict=True)
    }
    shutil.copytree(ten_runs, place / "bad")
    spoil(by_method_and_seed(place / "bad"))
    publish = ["publish", "--preview", "--runs"]
    commands = {
        **{box: [*publish, "own", "--submissions", box, "--out", f"of-{box}"] for box in BOXES},
        "publish": [*publish, "bad", "--out", "of-bad"],
        "compare": ["compare", "--runs", "bad", "--format", "csv"],
        "runs": ["runs", "--runs", "bad"],
        "verify": ["verify", "--runs", "bad"],
    }
    # a pipe or a device that is read would never end
    ended = in_a_row(list(commands.values()), place, seconds=300)
    return place, refused, dict(zip(commands, ended, strict=True))


def files_of(folder: Path) -> list[Path]:
    """Return the files of a published folder, none of which is a link or holds the secret."""
    paths = list(folder.rglob("*"))
    assert [path for path in paths if path.is_symlink() or path.is_fifo()] == []
    files = [path for path in paths if path.is_file()]
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
    return files


Hostile = tuple[Path, dict[str, dict[str, str]], dict[str, End]]


@pytest.mark.promise(30)
@pytest.mark.promise(24)
@pytest.mark.parametrize("box", BOXES)
def test_hostile_submissions_are_refused_one_by_one_and_the_others_are_published(
    hostile: Hostile, box: str, ten_runs: Path
) -> None:
    place, refused, ends = hostile
    end = ends[box]
    assert end.code == 1 and "Traceback" not in end.err, end.err
    for run, word in refused[box].items():
        (line,) = [line for line in end.err.splitlines() if run in line]
        assert "refused" in line and word in line and line.isprintable(), line
    files_of(place / f"of-{box}")
    shown = {run.name for run in run_folders(place / f"of-{box}" / "preview" / "runs")}
    own = {run.name for run in run_folders(place / "own")}
    good = by_method_and_seed(ten_runs)["simcse 1"].name
    assert shown == {*own, good}
    assert "Ada" in (place / f"of-{box}" / "preview" / "index.html").read_text(encoding="utf-8")
    assert not (place / "EXECUTED").exists()


@pytest.mark.promise(30)
def test_spoilt_runs_cost_themselves_alone_in_a_publication(
    hostile: Hostile, ten_runs: Path
) -> None:
    place, _, ends = hostile
    end = ends["publish"]
    assert end.code == 0 and "Traceback" not in end.err, end.err
    runs = by_method_and_seed(ten_runs)
    shown = {run.name for run in run_folders(place / "of-bad" / "preview" / "runs")}
    assert {runs[name].name for name in ("simcse 4", "promcse 4", "last-avg")} <= shown
    left_out = ("simcse 1", "simcse 2", "simcse 3", "promcse 1", "promcse 2")
    for run in [*(runs[name].name for name in left_out), "damaged-deep", "damaged-huge"]:
        assert run not in shown
        assert [line for line in end.err.splitlines() if run in line], run
    files_of(place / "of-bad")


@pytest.mark.promise(30)
def test_spoilt_runs_cost_themselves_alone_in_a_table(hostile: Hostile, ten_runs: Path) -> None:
    """The rows are those of the whole folder but for the seeds whose records are gone."""
    _, _, ends = hostile
    end = ends["compare"]
    assert end.code == 0 and end.unchanged, end.err
    runs = by_method_and_seed(ten_runs)
    value = {name: float(record(run)["scores"][0]["value"]) for name, run in runs.items()}
    means = {row["method"]: float(row["mean"]) for row in csv.DictReader(io.StringIO(end.out))}
    left = {"simcse": ("simcse 1", "simcse 2", "simcse 3", "simcse 4")}
    left |= {"promcse": ("promcse 1", "promcse 4"), "cls": ("cls",), "last-avg": ("last-avg",)}
    expected = {method: np.mean([value[name] for name in names]) for method, names in left.items()}
    assert means == pytest.approx(expected)
    said = ends["runs"].err
    assert ends["runs"].code == 0 and ends["runs"].unchanged
    for name in ("binary", "deep", "empty", "huge", "list", "nan"):
        assert f"damaged-{name}" in said and f"damaged-{name}" in end.err, name
    assert all(runs[name].name in ends["runs"].out for name in ("simcse 1", "promcse 4", "cls"))


@pytest.mark.promise(30)
@pytest.mark.promise(23)
def test_verify_names_each_spoilt_run_and_agrees_with_the_others(
    hostile: Hostile, ten_runs: Path
) -> None:
    end = hostile[2]["verify"]
    assert end.code == 1 and end.unchanged and SECRET not in end.out
    runs = by_method_and_seed(ten_runs)
    lines = end.out.splitlines()
    for name in ("simcse 4", "promcse 4", "last-avg"):
        assert [line for line in lines if runs[name].name in line and "agrees" in line], name
    spoilt = ("simcse 1", "simcse 2", "simcse 3", "promcse 1", "promcse 2", "cls")
    for run in [*(runs[name].name for name in spoilt), "damaged-huge"]:
        assert [line for line in lines if run in line and "differs" in line], run


EVIL = "open({mark!r}, 'w')\nfrom transformers import {base}\nclass T({base}): pass\n"


def with_code(folder: Path, mark: Path, kind: str) -> Path:
    """Say in a model's folder that a class of its own has to be loaded."""
    name, base = (
        ("AutoModel", "BertModel") if kind == "model" else ("AutoTokenizer", "BertTokenizer")
    )
    here = folder.name
    (folder / "evil.py").write_text(EVIL.format(mark=str(mark), base=base))
    file = folder / ("config.json" if kind == "model" else "tokenizer_config.json")
    said = json.loads(file.read_text())
    if kind == "model":
        said["auto_map"] = {name: f"{here}--evil.T"}
    else:
        said["auto_map"] = {name: [f"{here}--evil.T", f"{here}--evil.T"]}
        said["tokenizer_class"] = "T"
    file.write_text(json.dumps(said))
    return folder


@pytest.mark.promise(30)
@pytest.mark.promise(6)
def test_code_and_pickles_of_a_models_folder_are_not_executed(tmp_path: Path, inputs: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    shutil.copy(inputs / "pairs.tsv", place)
    mark = place / "EXECUTED"
    for name in ("tiny", "model", "tokenizer", "pickled", "evil", "custom"):
        shutil.copytree(inputs / "tiny", place / name)
    with_code(place / "model", mark, "model")
    with_code(place / "tokenizer", mark, "tokenizer")
    state = load_file(place / "tiny" / "model.safetensors")
    torch.save(state, place / "pickled" / "pytorch_model.bin")
    torch.save({**state, "more": Touches(mark)}, place / "evil" / "pytorch_model.bin")
    for name in ("pickled", "evil"):
        (place / name / "model.safetensors").unlink()
    (place / "custom" / "evil.py").write_text(EVIL.format(mark=str(mark), base="BertModel"))
    module = {"idx": 0, "name": "0", "path": "", "type": "evil.T"}
    (place / "custom" / "modules.json").write_text(json.dumps([module]))

    def words(name: str, *more: str) -> list[str]:
        return ["evaluate", name, "--suite", "pairs.tsv", "--set", "pooling=cls", "--json", *more]

    commands = [
        words("tiny"),
        words("model"),
        words("tokenizer"),
        words("pickled"),
        words("evil"),
        words("evil", "--allow-pickle"),
        ["evaluate", "custom", "--suite", "pairs.tsv"],
        ["run", "cls", "--backbone", "model", "--suite", "pairs.tsv"],
        ["run", "cls", "--backbone", "tokenizer", "--suite", "pairs.tsv"],
        words("pickled", "--allow-pickle"),
    ]
    ends = in_a_row(commands, place, env={"BENCH_CACHE": str(tmp_path / "cache")})
    assert not mark.exists()
    tiny, model, tokenizer, pickled, evil, allowed, custom, *trained, converted = ends
    assert tiny.code == 0 and converted.code == 0, converted.err
    for end in (model, tokenizer, pickled, evil, allowed, custom, *trained):
        assert end.code == 2, end.err
        assert error_line(end)
    assert "pickle" in error_line(pickled) and "--allow-pickle" in pickled.err
    for end in (model, tokenizer, *trained):
        assert "code" in error_line(end)
    values = [record(run)["scores"][0]["value"] for run in run_folders(place / "runs")]
    assert len(values) == 2 and values[0] == pytest.approx(values[1]), "the same weights"


@pytest.mark.promise(30)
@pytest.mark.promise(27)
@pytest.mark.nightly
def test_an_export_executes_no_code_of_its_backbone_and_names_none(
    tmp_path: Path, inputs: Path
) -> None:
    """The code comes into the folder after the run: the run itself is refused with it."""
    mark = tmp_path / "EXECUTED"
    hostile = shutil.copytree(inputs / "tiny", tmp_path / "hostile")
    words = ["run", "simcse", "--backbone", "hostile", "--suite", inputs / "pairs.tsv"]
    words += ["--corpus", inputs / "corpus.txt", "--set", "select_on=last", "--budget", "2steps"]
    cache = {"BENCH_CACHE": str(tmp_path / "cache"), "HF_HOME": str(tmp_path / "hub")}
    bench(*words, "--set", "batch_size=8", cwd=tmp_path, env=cache)
    bench("export", "simcse-hostile", "--to", "clean", cwd=tmp_path, env=cache)
    assert (tmp_path / "clean" / "modules.json").is_file()
    with_code(hostile, mark, "tokenizer")
    done = bench("export", "simcse-hostile", "--to", "model", cwd=tmp_path, code=None, env=cache)
    assert done.code in (0, 2) and "Traceback" not in done.err, done.err
    assert not mark.exists()
    files = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert [path for path in files if path.name == "evil.py"] == []
    assert [path for path in files if b"auto_map" in path.read_bytes()] == []


LITTLE_MEMORY = """
import resource, sys
from importlib.metadata import entry_points
resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
sys.argv = sys.argv[1:]
(command,) = entry_points(group="console_scripts", name="bench")
sys.exit(command.load()())
"""


def in_the_schema_of_today(file: Path) -> None:
    """Write a record of an earlier schema as today's, so that its predictions are looked at."""
    old = json.loads(file.read_text(encoding="utf-8"))
    for score in old["scores"]:
        score.pop("text", None)
    for gone in ("energy_joules", "encoding"):
        old["cost"].pop(gone, None)
    old["provenance"] = {key: one for key, one in old["provenance"].items() if one is not None}
    file.write_text(json.dumps(old | {"schema": "bench.run/5"}), encoding="utf-8")


@pytest.mark.promise(30)
def test_a_table_of_2_kb_that_unpacks_to_20_gb_is_refused(shared: Path, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb"
    shutil.copytree(shared / "cases" / "parquet-bomb", bomb)
    (run,) = run_folders(bomb / "version" / "runs")
    in_the_schema_of_today(run / "run.json")
    commands = {
        "predictions.parquet": ["verify", "version"],
        "vectors.parquet": ["evaluate", "vectors:vectors.parquet", "--suite", "check"],
    }
    for file, words in commands.items():
        done = python(LITTLE_MEMORY, BENCH, *words, cwd=bomb, code=None, seconds=300)
        assert done.code in (1, 2), done.err
        said = done.out + done.err
        assert file in said and "MemoryError" not in said and "Traceback" not in said, said


WORDS = {
    "escape": "\x1b[2J\x1b]0;title\x07",
    "tag": "</script></style><script>alert(1)</script><img src=x onerror=alert(1)>\"' onload=x",
    "latex": r"\input{/etc/passwd}\write18{rm}$x^2$ 100% & # _ ~ \end{tabular}",
    "formula": '=HYPERLINK("http://evil","x")',
    "sum": "@SUM(A1)",
    "lines": "two\r\nlines\u2028end",
    "hidden": "\u202eevil\u2066x\u200b",
    "template": "{{ 7*7 }}{% include '/etc/passwd' %}",
}


class Page(html.parser.HTMLParser):
    """The names of the tags and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.handlers += [name for name, _ in attributes if name.startswith("on")]


@pytest.mark.promise(30)
@pytest.mark.promise(18)
def test_texts_of_records_stay_texts_in_every_form(tmp_path: Path, ten_runs: Path) -> None:
    place = tmp_path / "place"
    shutil.copytree(ten_runs, place / "runs")
    for run, words in zip(run_folders(place / "runs"), WORDS.values(), strict=False):

        def put(made: dict[str, Any], words: str = words) -> None:
            made |= {"method": words, "variant": words}

        edit(run, put)
    forms = ("table", "md", "latex", "csv", "json", "html")
    commands = [["compare", "--runs", "runs", "--format", form, "--all"] for form in forms]
    ends = in_a_row(commands, place)
    for end in ends:
        assert end.code == 0 and end.unchanged, end.err
        strange = {one for one in end.out + end.err if not one.isprintable() and one != "\n"}
        assert strange == set(), (end.words, sorted(map(ascii, strange)))
    text = dict(zip(forms, (end.out for end in ends), strict=True))
    rows = list(csv.reader(io.StringIO(text["csv"])))
    assert any("HYPERLINK" in cell for row in rows for cell in row), "what is tested is there"
    first = [cell for row in rows for cell in row if cell[:1] in {"=", "+", "-", "@", "\t"}]
    assert [cell for cell in first if not re.fullmatch(r"[-+]?[0-9.]+(e-?[0-9]+)?", cell)] == []
    page = Page(text["html"])
    assert "table" in page.tags and "img" not in page.tags and page.handlers == []
    assert "alert(1)" in text["html"] and "<script>alert" not in text["html"]
    assert not re.search(r"\\(input|write18)\b", text["latex"])
    assert text["latex"].count(r"\begin{tabular") == text["latex"].count(r"\end{tabular") > 0
    json.loads(text["json"])
