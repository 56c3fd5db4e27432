"""The paper of docs/papers.md is a folder and no code: added to a copy of the package, it is
listed, shown, and planned.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
CONTENTS = "part\tshows\twhy\topen\ntable 1\tSTS scores\t\t\n"
OURS = "method\tvariant\tours\tour_variant\tset\twhy_not\tdoubt\nmine\t\t\t\t\tnot a method here yet\t\n"


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the package, of which the papers are a copy with one more."""
    folder = tmp_path_factory.mktemp("copy")
    package = folder / "bench"
    package.mkdir()
    for part in (ROOT / "bench").iterdir():
        if part.name != "papers":
            (package / part.name).symlink_to(part)
    shutil.copytree(ROOT / "bench" / "papers", package / "papers")
    (folder / "methods").symlink_to(ROOT / "methods")
    paper = package / "papers" / "mine"
    paper.mkdir()
    results, plan = re.findall(r"^```(?:toml)?\n(table\t.*?|# mine.*?)^```$", PAGE, re.M | re.S)
    files = {"paper.toml": 'citation = "Mine, 2026"\nyear = 2026\n', "contents.tsv": CONTENTS}
    files |= {"results.tsv": results, "1.toml": plan, "ours.tsv": OURS}
    for name, text in files.items():
        (paper / name).write_text(text, encoding="utf-8")
    return folder


IN_A_ROW = """
import sys
from bench.cli import main
for command in sys.argv[1:]:
    try:
        main(command.split())
    except SystemExit as end:
        if end.code:
            raise
"""


def run(folder: Path, *commands: str) -> str:
    """Run commands one after the other in one process; return what they print."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", IN_A_ROW, *commands],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_folder_is_a_paper(copied: Path) -> None:
    said = run(copied, "papers", "papers mine:1")
    assert re.search(r"^mine +2026 +4\b", said, re.M)
    assert "77.10 ± 0.32" in said and "copied from Gao et al. 2021: SimCSE" in said


@pytest.mark.nightly
def test_its_table_is_planned(copied: Path) -> None:
    said = run(copied, "run --paper mine:1 --dry-run")
    assert "mine:1: STS scores" in said and "not a method here yet" in said
    assert "76.25" in said.split("mine:1: STS scores")[1]
