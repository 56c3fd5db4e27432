"""Pack the finished runs that neither version 6 nor an earlier portion has::

    python leaderboards/designs/v6/portion.py RUNS

It writes the next `runs-N.tar.xz` beside this file, and names the runs that it packed.
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

from bench.records.record import read_record

HERE = Path(__file__).resolve().parent
PACKED = ("run.json", "plan.toml", "curve.jsonl", "predictions")


def runs_committed() -> set[str]:
    """Name the runs of version 6 and of the portions so far."""
    names = {record.parent.name for record in (HERE.parents[1] / "v6").glob("runs/*/run.json")}
    for portion in HERE.glob("runs-*.tar.xz"):
        with tarfile.open(portion) as archive:
            names |= {Path(name).parts[1] for name in archive.getnames() if "/" in name}
    return names


def runs_finished(runs: Path) -> list[Path]:
    """Find the folders of finished runs that are not committed."""
    committed = runs_committed()
    folders = [record.parent for record in sorted(runs.glob("*/run.json"))]
    new = [folder for folder in folders if folder.name not in committed]
    return [folder for folder in new if read_record(folder / "run.json").status == "finished"]


if __name__ == "__main__":
    folders = runs_finished(Path(sys.argv[1]))
    if not folders:
        sys.exit("no finished run is new")
    number = max(int(path.name[5:].split(".")[0]) for path in HERE.glob("runs-*.tar.xz")) + 1
    with tarfile.open(HERE / f"runs-{number}.tar.xz", "w:xz") as archive:
        for folder in folders:
            for name in PACKED:
                if (folder / name).exists():
                    archive.add(folder / name, f"runs/{folder.name}/{name}")
            print(folder.name)
