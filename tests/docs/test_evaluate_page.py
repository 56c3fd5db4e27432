"""docs/evaluate.md and its notebook do what they say."""

from __future__ import annotations

import ast
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from commands import bench as command

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "evaluate.md"


def cells() -> list[str]:
    notebook = json.loads((DOCS / "evaluate.ipynb").read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.mark.slow
@pytest.mark.usefixtures("short_check")
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    shown = []
    for cell in cells():
        tree = ast.parse(cell)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "a cell", "exec"), names)
        if last is not None:
            shown.append(eval(ast.unparse(last), names))
    verdict = names["comparison"].frame().set_index("backbone")["verdict"]["built-in"]
    assert verdict in ("better", "worse", "inconclusive") and shown[-1] == (2, 256)
    assert "<table>" in names["words"]._repr_html_()
    assert "random words" in names["comparison"]._repr_html_()


BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S)
LINES = [
    shlex.split(line.split("     #")[0], comments=True)[1:]
    for line in "".join(BLOCKS).splitlines()
    if line.startswith("bench ")
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tiny_decoders import decoder

    return Path(decoder(tmp_path_factory.mktemp("decoder") / "qwen", "qwen"))


@pytest.mark.slow
@pytest.mark.usefixtures("short_check")
@pytest.mark.parametrize("words", [one for one in LINES if "FOLDER" in one], ids=" ".join)
def test_commands_of_the_page_on_a_tiny_decoder(
    words: list[str], folder: Path, tmp_path: Path
) -> None:
    given = [str(folder) if word == "FOLDER" else word for word in words]
    given = ["check" if word.startswith("sts") else word for word in given]
    done = command(
        *given,
        *(() if "check" in given else ("--suite", "check")),
        "--runs",
        tmp_path / "runs",
        "--device",
        "cpu",
    )
    assert done.exit_code == 0 and "captions" in done.stdout, done.stderr
