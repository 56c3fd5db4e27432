"""Code of a model folder: no verb runs it, and no export names it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench.base.errors import RunFailed
from bench.export.code import check_code, remove_code_names


def test_names_of_code_are_taken_out_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "1_Dense").mkdir()
    config = {"auto_map": {"AutoModel": "evil.M"}, "inner": [{"auto_map": ["a.B"], "size": 2}]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "1_Dense" / "config.json").write_text(json.dumps({"auto_map": "other/repo--x.Y"}))
    vocabulary = {"auto_map": 7, "a": 0}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    remove_code_names(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text()) == {"inner": [{"size": 2}]}
    assert json.loads((tmp_path / "1_Dense" / "config.json").read_text()) == {}
    assert json.loads((tmp_path / "vocab.json").read_text()) == vocabulary


def test_only_the_module_files_of_bench_may_be_there(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("a = 1\n")
    folder = tmp_path / "export"
    (folder / "below").mkdir(parents=True)
    shutil.copyfile(own, folder / "own.py")
    check_code(folder, [own])
    for name, text in (("other.py", ""), ("below/own.py", "a = 1\n"), ("x.so", "")):
        (folder / name).write_text(text)
        with pytest.raises(RunFailed, match="neither data nor a module of bench"):
            check_code(folder, [own])
        (folder / name).unlink()
    (folder / "own.py").write_text("a = 2\n")
    with pytest.raises(RunFailed, match="own.py"):
        check_code(folder, [own])


@pytest.mark.nightly
@pytest.mark.slow
def test_no_verb_runs_a_file_of_a_model_folder(tiny: str, tmp_path: Path) -> None:
    """Somebody may send a folder with settings that name a class of evil.py, which leaves a mark if
    it is imported.
    """
    mark = tmp_path / "executed"
    hostile = tmp_path / "hostile"
    shutil.copytree(tiny, hostile)
    for name in ("config.json", "tokenizer_config.json"):
        file = hostile / name
        content = json.loads(file.read_text()) if file.is_file() else {}
        content["auto_map"] = {"AutoTokenizer": ["hostile--evil.T", "hostile--evil.T"]}
        file.write_text(json.dumps(content))
    for name in ("evil.py", "modeling_evil.py", "setup.py", "conftest.py", "bench.py"):
        (hostile / name).write_text(f"open({str(mark)!r}, 'w')\nclass T: pass\n")
    environment = os.environ | {
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(tmp_path / "hf"),
        "BENCH_CACHE": str(tmp_path / "cache"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    train = (
        "run simcse --backbone hostile --suite check --corpus builtin "
        "--set max_steps=1 --set batch_size=8"
    )
    commands = [
        train,
        "evaluate hostile --set pooling=mean --suite check",
        "doctor --backbone hostile",
        "export simcse-hostile --to model",
        "verify",
    ]
    for command in commands:
        words = command.split()
        place = [] if words[0] == "doctor" else ["--runs", "runs"]
        done = subprocess.run(
            [sys.executable, "-m", "bench", *words, *place],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert not mark.exists(), command
        assert "Traceback" not in done.stderr, (command, done.stderr)
    for file in (tmp_path / "model").rglob("*.json"):
        assert "auto_map" not in file.read_text(), file
