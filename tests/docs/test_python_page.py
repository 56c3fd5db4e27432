"""docs/reference/python.md keeps its promises: its blocks, run in order like the cells of a notebook."""

from __future__ import annotations

import linecache
import re
import sys
import types
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "python.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
PAIRS = [("man", "dog"), ("man", "girl"), ("dog", "band"), ("girl", "band"), ("girl", "dog")]


@pytest.mark.nightly
@pytest.mark.slow(seconds=35)
@pytest.mark.filterwarnings("default:own files .pairs.:UserWarning")
def test_the_blocks_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("datasets", "matplotlib", "pandas"):
        pytest.importorskip(library)
    import matplotlib

    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    rows = [f"a {one} runs\ta {two} waits\t{i}\n" for i, (one, two) in enumerate(PAIRS)]
    Path("pairs.tsv").write_text("sentence1\tsentence2\tscore\n" + "".join(rows))
    module = types.ModuleType("cells_of_the_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for i, block in enumerate(BLOCKS):
        name = f"/tmp/ipykernel_3/{i}.py"
        linecache.cache[name] = (len(block), None, block.splitlines(keepends=True), name)
        exec(compile(block, name, "exec", dont_inherit=True), module.__dict__)
    assert len(module.results) == 4 and Path("comparison.png").stat().st_size > 1000
    assert Path("my-model/README.md").is_file() and Path("leaderboards/preview").is_dir()
