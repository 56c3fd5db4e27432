"""Methods and files among the arguments, and every option that a page names is in the help."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import bench, error_line


def test_data_among_the_models_is_for_the_option_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pairs.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t1\n")
    done = bench("evaluate", "builtin", "pairs.tsv")
    assert error_line(done) == "error: pairs.tsv is a file of data, and no model"
    assert "bench evaluate MODEL --suite pairs.tsv" in done.stderr
