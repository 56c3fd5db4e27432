"""Write ``methods/same_numbers.toml``: which versions of a method's code give the same numbers.

For each module with a method it has the hash of today's code, the hash that names the code in
fingerprints, and the hashes of earlier code with the same numbers.

``python tools/same_numbers.py`` after a change in ``methods/``, also after a merge: for each method
with code that has changed since the last commit of that file, golden losses (tools/golden.py) are
computed on this machine with the code of that commit and with today's. If they are equal to the
last digit, the hash before the change is kept as one of equal numbers, and the code keeps its name
in fingerprints: ids of runs stay. If not, nothing is written, and the methods are named. Then
either the change is mended, or ``--moved MODULE`` says that its numbers are new. A module with a
method that has no golden losses or scores needs ``--same MODULE`` or ``--moved MODULE``, by
somebody who knows.

``python tools/same_numbers.py --records RUNS --at COMMIT [--losses THEN NOW]`` adds the hashes in
the records of a folder, for runs made at that commit: if the syntax trees are the same, or if the
losses in two files are, which the code of that commit and today's gave on one machine.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import golden

from bench.base.import_scope import CodeFile, ImportScope
from bench.base.imported_code import hash_code
from bench.base.installed_code import BUILT_IN, distribution_of, installed_methods, method_points
from bench.records import RunsFolder

ROOT = golden.ROOT
FILE = ROOT / "methods" / "same_numbers.toml"
HEADER = """\
# Written by tools/same_numbers.py. Of each module with a method: the hash of its code today
# (bench.base.imported_code), the hash that names it in fingerprints, so that ids of runs stay when
# code is rewritten, and the hashes, in records, of earlier code that computes the same numbers:
# golden losses were compared digit by digit. Tables take runs of both for runs of one code.
"""
Table = dict[str, dict[str, Any]]
Numbers = dict[str, Any]


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moved", action="append", default=[], metavar="MODULE")
    parser.add_argument("--same", action="append", default=[], metavar="MODULE")
    parser.add_argument("--records", type=Path, metavar="RUNS")
    parser.add_argument("--at", metavar="COMMIT")
    parser.add_argument("--losses", type=Path, nargs=2, metavar=("THEN", "NOW"))
    chosen = parser.parse_args(words)
    table = read_table()
    if chosen.records is not None:
        problems = add_records(table, chosen.records, chosen.at, chosen.losses)
        write_table(table)
    else:
        problems = bring_up_to_date(table, chosen.moved, chosen.same)
        if not problems:
            write_table(table)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def read_table() -> Table:
    return tomllib.loads(FILE.read_text("utf-8")) if FILE.is_file() else {}


def write_table(table: Table) -> None:
    """Return the table as TOML, a module after the other."""
    lines = [HEADER]
    for module in sorted(table):
        lines.append(f'[{module}]\ncode = "{table[module]["code"]}"\n')
        lines.append(f'named = "{table[module]["named"]}"\nearlier = [\n')
        for earlier in table[module]["earlier"]:
            lines.append(f'    "{earlier}",\n')
        lines.append("]\n\n")
    FILE.write_text("".join(lines).rstrip("\n") + "\n", "utf-8")


def modules_with_methods() -> list[str]:
    """Return the modules of ``methods/`` that define methods, without "bench.methods."."""
    return sorted(
        point.module.rpartition(".")[2]
        for point in method_points()
        if distribution_of(point) == BUILT_IN
    )


def methods_of(module: str) -> list[str]:
    return [
        name for name, place in installed_methods().items() if place == f"bench.methods.{module}"
    ]


def hash_of(module: str, folder: Path) -> str | None:
    """Return the hash of a module's code in a folder of methods, or None if it is not there."""
    path = folder / f"{module}.py"
    if not path.is_file():
        return None
    start = CodeFile("", path, "bench.methods")
    return hash_code(start, ImportScope((), None, {"bench.methods": folder}))


def bring_up_to_date(table: Table, moved: Sequence[str], same: Sequence[str]) -> list[str]:
    """Put today's hashes into the table, and return the objections, a line each."""
    now = {module: hash_of(module, ROOT / "methods") for module in modules_with_methods()}
    changed = [module for module in now if module in table and table[module]["code"] != now[module]]
    problems = []
    asked = [module for module in changed if module not in (*moved, *same)]
    if asked:
        names = [name for module in asked for name in methods_of(module)]
        with tempfile.TemporaryDirectory() as place:
            before = numbers(tree_at(last_commit(), Path(place)), names)
        today = numbers(ROOT, names)
        for module in asked:
            problems += differences(module, before, today)
    if problems:
        return problems
    for module, code in now.items():
        earlier = list(table.get(module, {}).get("earlier", []))
        named = table.get(module, {}).get("named", code)
        if module in moved:
            earlier = []
            named = code
        elif module in changed:
            earlier.append(table[module]["code"])
            print(f"{module}: other code, the same numbers")
        earlier = [one for one in earlier if one != code]
        table[module] = {"code": code, "named": named, "earlier": earlier}
    for module in set(table) - set(now):
        del table[module]
    return []


def differences(module: str, before: Numbers, today: Numbers) -> list[str]:
    """Describe differences of a module's golden numbers, a line each; a line also if there are none
    to compare.
    """
    keys = keys_of(before, methods_of(module))
    if not keys:
        return [
            f"{module}: changed, and has no golden numbers: --same {module}, or --moved {module}"
        ]
    return [f"{key}: other numbers" for key in keys if before[key] != today.get(key)]


def numbers(tree: Path, methods: Sequence[str]) -> Numbers:
    """Compute the golden losses and scores of these methods by the code of a tree.

    The keys are "simcse+mlm, unsupervised" and the like.
    """
    code = (
        "import json, sys; import bench, golden; names = sys.argv[1:]; "
        "assert bench.__file__.startswith(str(golden.ROOT)), bench.__file__; "
        "scores = golden.scores() if {*names} & {*golden.FINISHED} else {}; "
        "print(json.dumps({**golden.losses(methods=names), **scores}))"
    )
    print(f"computing with {tree}: {', '.join(methods)}")
    path = os.pathsep.join([str(tree), str(tree / "tools")])
    done = subprocess.run(
        [sys.executable, "-c", code, *methods],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def last_commit(file: Path = FILE) -> str:
    """The commit that last changed a table; "" if none did."""
    return _git("log", "-1", "--format=%H", "--", str(file)).decode().strip()


def tree_at(commit: str, place: Path, *parts: str) -> Path:
    """Put the files of a commit, or these parts of them, into a folder."""
    wanted = parts or ("bench", "methods", "tools", "tests/golden", "pyproject.toml")
    with tarfile.open(fileobj=io.BytesIO(_git("archive", commit, *wanted))) as files:
        files.extractall(place, filter="data")
    return place


def add_records(table: Table, runs: Path, commit: str, files: Sequence[Path] | None) -> list[str]:
    """Add the hashes of one commit's records, and return those that lack evidence, a line each."""
    recorded: dict[str, set[str]] = {}
    for record in RunsFolder(runs).records()[0]:
        if str(record.provenance.git.commit).startswith(commit):
            module = installed_methods().get(record.method, "").rpartition(".")[2]
            recorded.setdefault(module, set()).add(str(record.provenance.plugin.sha256))
    then, now = [json.loads(file.read_text()) for file in files] if files else ({}, {})
    problems = []
    with tempfile.TemporaryDirectory() as place:
        methods = under_todays_name(tree_at(commit, Path(place), "methods") / "methods")
        for module, hashes in sorted(recorded.items()):
            keys = keys_of(then, methods_of(module))
            equal_losses = bool(keys) and all(then[key] == now.get(key) for key in keys)
            equal_trees = hash_of(module, methods) == table[module]["code"]
            if not equal_losses and not equal_trees:
                problems.append(f"{module}: neither equal losses nor equal syntax trees: left out")
                continue
            why = "equal syntax trees" if equal_trees else f"{len(keys)} equal curves of losses"
            print(f"{module}: {why}")
            table[module]["earlier"] = sorted({*table[module]["earlier"], *hashes})
    return problems


def under_todays_name(folder: Path) -> Path:
    """Copy ``methods/`` with imports from ``bench.methods``.

    Modules were once imported from ``methods``.
    """
    for path in folder.rglob("*.py"):
        text = re.sub(r"\b(from|import) methods\b", r"\1 bench.methods", path.read_text("utf-8"))
        path.write_text(text, "utf-8")
    return folder


def keys_of(some: Numbers, methods: Iterable[str]) -> list[str]:
    """Return the keys of golden numbers of these methods: "promcse+eh, unsupervised", or "cls"."""
    wanted = set(methods)
    return [key for key in some if key.partition(",")[0].partition("+")[0] in wanted]


def _git(*words: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
