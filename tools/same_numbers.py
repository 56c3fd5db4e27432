"""Writes ``methods/same_numbers.toml``: of each module with a method its code's hash today, and those of earlier code with the same numbers.

``python tools/same_numbers.py`` after a change in ``methods/``: the golden losses of each method whose code has changed are computed, and
the hash before the change is kept as one of equal numbers if they equal those of tests/golden to the last digit. If they do not, nothing
is written, and the methods are named. Then either the change is mended, or ``--moved MODULE`` says that its numbers are new. A module
whose method no golden file has needs ``--same MODULE`` or ``--moved MODULE``, by somebody who knows.

``python tools/same_numbers.py --records RUNS --at COMMIT [--losses FILE]`` adds the hashes that the records of a folder hold, of runs made
at that commit: if the losses of FILE, computed with that commit's code (without FILE: its own golden file), equal today's golden file, or
if the syntax trees are the same.
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

import golden

from bench.base.imported_code import CodeFile, ImportScope, hash_code
from bench.base.installed_code import BUILT_IN, distribution_of, installed_methods, method_points
from bench.runs import RunsFolder

ROOT = golden.ROOT
FILE = ROOT / "methods" / "same_numbers.toml"
HEADER = """\
# Written by tools/same_numbers.py. Of each module with a method: the hash of its code today (bench.base.imported_code), and the hashes,
# in fingerprints of records, of earlier code that computes the same numbers: golden losses were compared digit by digit. Tables take runs
# of both for runs of one code.
"""
Losses = dict[str, list[float]]


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moved", action="append", default=[], metavar="MODULE")
    parser.add_argument("--same", action="append", default=[], metavar="MODULE")
    parser.add_argument("--records", type=Path, metavar="RUNS")
    parser.add_argument("--at", metavar="COMMIT")
    parser.add_argument("--losses", type=Path, metavar="FILE")
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


def read_table() -> dict[str, dict[str, object]]:
    return tomllib.loads(FILE.read_text("utf-8")) if FILE.is_file() else {}


def write_table(table: dict[str, dict[str, object]]) -> None:
    """The table as TOML, a module after the other."""
    lines = [HEADER]
    for module in sorted(table):
        lines.append(f'[{module}]\ncode = "{table[module]["code"]}"\nearlier = [\n')
        for earlier in table[module]["earlier"]:
            lines.append(f'    "{earlier}",\n')
        lines.append("]\n\n")
    FILE.write_text("".join(lines).rstrip("\n") + "\n", "utf-8")


def modules_with_methods() -> list[str]:
    """The modules of ``methods/`` that define methods, without "bench.methods."."""
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
    """The hash of the code of a module in a folder of methods; None if it is not there."""
    path = folder / f"{module}.py"
    if not path.is_file():
        return None
    start = CodeFile("", path, "bench.methods")
    return hash_code(start, ImportScope((), None, {"bench.methods": folder}))


def golden_losses() -> Losses:
    return json.loads(golden.held("losses.json"))


def bring_up_to_date(
    table: dict[str, dict[str, object]], moved: Sequence[str], same: Sequence[str]
) -> list[str]:
    """Put today's hashes into the table; returns what forbids it, a line each."""
    now = {module: hash_of(module, ROOT / "methods") for module in modules_with_methods()}
    known = [module for module in now if module in table]
    changed = [module for module in known if table[module]["code"] != now[module]]
    asked = [module for module in changed if module not in (*moved, *same)]
    names = [name for module in asked for name in methods_of(module)]
    losses = golden.losses(print, names) if names else {}
    scores = golden.scores() if set(names) & set(golden.FINISHED) else {}
    problems = []
    for module in asked:
        found = [
            f"{key}: the losses have moved"
            for key in differing(losses, golden_losses(), methods_of(module))
        ]
        held = json.loads(golden.held("scores.json"))
        compared = [name for name in methods_of(module) if name in scores]
        found += [f"{name}: the score has moved" for name in compared if scores[name] != held[name]]
        if not compared and not keys_of(golden_losses(), methods_of(module)):
            found = [
                f"{module}: changed, and no golden file has it: --same {module}, or --moved {module}"
            ]
        problems += found
    if problems:
        return problems
    for module, code in now.items():
        before = table.get(module, {"code": code, "earlier": []})
        earlier = list(before["earlier"])
        if module in moved:
            earlier = []
        elif before["code"] != code:
            earlier.append(before["code"])
            print(f"{module}: other code, the same numbers")
        table[module] = {"code": code, "earlier": [one for one in earlier if one != code]}
    for module in set(table) - set(now):
        del table[module]
    return []


def add_records(
    table: dict[str, dict[str, object]], runs: Path, commit: str, file: Path | None
) -> list[str]:
    """Add the hashes of the records of one commit; returns those that lack evidence, a line each."""
    recorded: dict[str, set[str]] = {}
    for record in RunsFolder(runs).records()[0]:
        if str(record.provenance.git.commit).startswith(commit):
            module = installed_methods().get(record.method, "").rpartition(".")[2]
            recorded.setdefault(module, set()).add(str(record.provenance.plugin.sha256))
    if file is None:
        losses = json.loads(lzma.decompress(_of_commit(commit, "tests/golden/losses.json.xz")))
    else:
        losses = json.loads(file.read_text())
    held, problems = golden_losses(), []
    with tempfile.TemporaryDirectory() as place:
        then = methods_at(commit, Path(place))
        for module, hashes in sorted(recorded.items()):
            keys = keys_of(losses, methods_of(module))
            equal_losses = bool(keys) and not differing(losses, held, methods_of(module))
            equal_trees = hash_of(module, then) == table[module]["code"]
            if not equal_losses and not equal_trees:
                problems.append(f"{module}: neither equal losses nor equal syntax trees: left out")
                continue
            why = "equal syntax trees" if equal_trees else f"{len(keys)} equal curves of losses"
            print(f"{module}: {why}")
            earlier = {*table[module]["earlier"], *hashes}
            table[module]["earlier"] = sorted(earlier)
    return problems


def keys_of(losses: Losses, methods: Iterable[str]) -> list[str]:
    """The keys of golden losses that are of these methods: "promcse+eh, unsupervised"."""
    wanted = set(methods)
    return [key for key in losses if key.partition(",")[0].partition("+")[0] in wanted]


def differing(some: Losses, others: Losses, methods: Iterable[str]) -> list[str]:
    """The keys of these methods that both have, with other losses."""
    return [key for key in keys_of(some, methods) if key in others and some[key] != others[key]]


def methods_at(commit: str, place: Path) -> Path:
    """The folder ``methods/`` as it was at a commit, with the import names of today."""
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit, "methods"], capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(place, filter="data")
    for path in (place / "methods").rglob("*.py"):
        text = path.read_text("utf-8")
        for word in ("from", "import"):
            text = text.replace(f"{word} methods.", f"{word} bench.methods.")
        path.write_text(text, "utf-8")
    return place / "methods"


def _of_commit(commit: str, path: str) -> bytes:
    return subprocess.run(
        ["git", "-C", str(ROOT), "show", f"{commit}:{path}"], capture_output=True, check=True
    ).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
