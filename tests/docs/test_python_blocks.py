"""The Python blocks of every page run: what they import from bench and call exists."""

from __future__ import annotations

import ast
import re
import sys
import types
from pathlib import Path

import pytest
from made_runs import made_run

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(?:python|py)\n(.*?)^```$", re.M | re.S)
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
BLOCKS: dict[str, str] = {}
for page in PAGES:
    for i, block in enumerate(BLOCK.findall(page.read_text(encoding="utf-8"))):
        BLOCKS[f"{page.relative_to(ROOT)}:{i}"] = block
ONLY_IMPORTS = {
    "README.md:0": "its model is the reader's",
    "docs/evaluate.md:0": "it encodes for half a minute; the notebook has the same cells, and a "
    "test runs it",
    "docs/evaluate.md:1": "its folder is the reader's, and it needs onnxruntime",
    "docs/evaluate.md:2": "its server is the reader's",
    "docs/evaluate.md:3": "its folder is the reader's",
}
"""Block -> why only its imports from bench are run."""
OWN_TEST = {
    **{
        f"docs/reference/python.md:{i}": "one block goes on from the other: "
        "tests/docs/test_python_page.py"
        for i in range(5)
    },
    "docs/add-a-suite.md:4": "it imports the file of the block before: "
    "tests/docs/test_add_a_suite.py",
}


def imports_of(code: str) -> str:
    nodes = [one for one in ast.parse(code).body if isinstance(one, ast.Import | ast.ImportFrom)]
    return "\n".join(line for line in map(ast.unparse, nodes) if line.split()[1][:5] == "bench")


def test_no_exception_names_a_block_that_is_gone() -> None:
    assert {*ONLY_IMPORTS, *OWN_TEST} <= BLOCKS.keys() and len(BLOCKS) > 8


@pytest.mark.parametrize("name", [name for name in BLOCKS if name not in OWN_TEST])
def test_a_block_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs in a folder with the run that docs/architecture.md reads."""
    code = imports_of(BLOCKS[name]) if name in ONLY_IMPORTS else BLOCKS[name]
    if "mteb" in code:
        pytest.importorskip("mteb", reason="no mteb: pip install mteb")
    if "RunsFolder" in code:
        made_run(tmp_path / "runs", "promcse", 42, noise=0.5)
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("a_block")
    monkeypatch.setitem(sys.modules, "a_block", module)  # a dataclass looks its module up
    exec(compile(code, name, "exec", dont_inherit=True), module.__dict__)
    assert len(vars(module)) > 5
