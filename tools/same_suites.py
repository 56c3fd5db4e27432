"""Write ``bench/score/same_numbers.toml``: which versions of a suite's code give the same scores.

For each suite it has the hash of today's code, and the hashes of earlier code with the same scores.

``python tools/same_suites.py`` after a change in ``bench/score/``, also after a merge: for each
suite with code that has changed since the last commit of that file, scores on made-up data
(tools/suite_numbers.py) are computed on this machine with the code of that commit and with today's.
If definition, scores, details and predictions are equal to the last digit, the earlier hash is kept
as one of equal scores. If not, nothing is written, and the suites and tasks are named. Then either
the change is mended, or ``--moved SUITE`` says that its scores are new.

``python tools/same_suites.py --base COMMIT`` compares with that commit instead.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from same_numbers import ROOT, last_commit, tree_at

FILE = ROOT / "bench" / "score" / "same_numbers.toml"
NUMBERS = Path(__file__).with_name("suite_numbers.py")
HEADER = (
    "# Written by tools/same_suites.py. Of each suite: the hash of its code today "
    "(bench.base.imported_code),\n"
    "# and the hashes, in records, of earlier code that gives the same scores: scores on made-up "
    "data were\n"
    "# compared digit by digit. What earlier code scored is not scored again.\n"
)
Table = dict[str, dict[str, Any]]


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", metavar="COMMIT")
    parser.add_argument("--moved", action="append", default=[], metavar="SUITE")
    chosen = parser.parse_args(words)
    table = read_table()
    base = chosen.base or last_commit(FILE)
    if not base:
        parser.error(f"{FILE.name} was never committed: --base COMMIT")
    with tempfile.TemporaryDirectory() as place:
        before = tree_at(base, Path(place), "bench", "methods", "pyproject.toml")
        problems = bring_up_to_date(table, before, ROOT, chosen.moved)
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        write_table(table)
    return 1 if problems else 0


def read_table() -> Table:
    return tomllib.loads(FILE.read_text("utf-8")) if FILE.is_file() else {}


def write_table(table: Table) -> None:
    lines = [HEADER]
    for suite in sorted(table):
        lines.append(f'[{suite}]\ncode = "{table[suite]["code"]}"\nearlier = [\n')
        lines += [f'    "{earlier}",\n' for earlier in table[suite]["earlier"]]
        lines.append("]\n\n")
    FILE.write_text("".join(lines).rstrip("\n") + "\n", "utf-8")


def bring_up_to_date(
    table: Table, before: Path, today: Path, moved: Sequence[str] = ()
) -> list[str]:
    """Put the hashes of today's code into the table.

    ``before``, ``today``: folders of the two trees. Returns what forbids it, a line each; then the
    table is unchanged.
    """
    then, now = codes(before), codes(today)
    changed = [suite for suite in now if suite in then and then[suite] != now[suite]]
    asked = [suite for suite in changed if suite not in moved]
    problems = []
    if asked:
        old, new = numbers(before, asked), numbers(today, asked)
        for suite in asked:
            problems += differences(suite, old[suite], new[suite])
    if problems:
        return problems
    for suite, code in now.items():
        earlier = list(table.get(suite, {}).get("earlier", []))
        if suite in moved:
            earlier = []
        elif suite in changed:
            earlier.append(then[suite])
            print(f"{suite}: other code, the same scores")
        earlier = [one for one in dict.fromkeys(earlier) if one != code]
        table[suite] = {"code": code, "earlier": earlier}
    for suite in set(table) - set(now):
        del table[suite]
    return []


def differences(suite: str, before: dict[str, Any], today: dict[str, Any]) -> list[str]:
    """Describe what is not the same in the numbers of a suite, a line each."""
    problems = []
    if before["definition"] != today["definition"]:
        problems.append(f"{suite}: another definition")
    if not before["scores"]:
        problems.append(f"{suite}: no scores to compare")
    for task in dict.fromkeys((*before["scores"], *today["scores"])):
        if before["scores"].get(task) != today["scores"].get(task):
            problems.append(f"{suite}: {task}: another score, detail or predictions")
    return problems


def codes(tree: Path) -> dict[str, str]:
    """Suite -> the hash of its code, as the code of that tree computes it for its records."""
    code = (
        "import json; from bench.score import suites; "
        "print(json.dumps({name: suites.built_in_code(name) for name in suites.suite_names()"
        " if suites.built_in_code(name) is not None}))"
    )
    return _python(tree, "-c", code)


def numbers(tree: Path, suites: Sequence[str]) -> dict[str, Any]:
    """Suite -> its definition and its scores on made-up data, by the code of a tree."""
    print(f"computing with {tree}: {', '.join(suites)}")
    return _python(tree, str(NUMBERS), *suites)


def _python(tree: Path, *words: str) -> Any:
    """Run Python with ``bench`` of a tree; returns the JSON that it prints."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
