"""Checks after a kill: everything in a folder is complete, and how much of the work is done."""

from __future__ import annotations

import json
from pathlib import Path

import torch

STEPS = 24
TRIALS = 6
"""Trials of a search, besides the unchanged recipe."""
# git: others may change the checkout meanwhile, and a busy machine may not answer in time
TIMES = ("created", "execution", "git")
"""Parts of a record that depend on the clock or the machine."""


def contents(folder: Path, but: str = "\n") -> dict[str, bytes]:
    """Return path -> bytes of every file, except in folders with names that begin with ``but``.

    Records and curves are reduced to the part that does not depend on the clock; locks, logs and
    receipts of downloads are left out.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or name.startswith(but):
            continue
        if path.name.endswith((".lock", ".receipt.json")):
            continue
        if path.name in ("written.txt", "optuna.log"):
            continue
        found[name] = _timeless(path)
    return found


def _timeless(path: Path) -> bytes:
    """Return a file's bytes without the parts that depend on the clock."""
    data = path.read_bytes()
    if path.name == "run.json":
        content = json.loads(data)
        content["cost"] = None
        for key in TIMES:
            content["provenance"].pop(key, None)
        return json.dumps(content).encode()
    if path.name == "search.json":
        content = json.loads(data)
        content["study"]["created"] = ""
        for trials in content["trials"].values():
            for trial in trials:
                trial["seconds"] = 0
        return json.dumps(content).encode()
    if path.name == "curve.jsonl":
        entries = [json.loads(line) for line in data.splitlines()]
        for entry in entries:
            entry.pop("sentences_per_second", None)
        return json.dumps(entries).encode()
    if path.suffix == ".toml":
        # a recipe file says how long its search took
        lines = data.splitlines(keepends=True)
        return b"".join(line for line in lines if not line.startswith(b"seconds = "))
    return data


def sound(folder: Path) -> str | None:
    """Describe a problem of the runs in ``folder`` after a kill: everything that is recorded must
    be there.
    """
    from bench.base.findings import DIFFERS
    from bench.verify import verify_run

    for run in sorted((folder / "runs").glob("*/run.json")):
        for finding in verify_run(run.parent).findings:
            # the checkpoint of an unfinished training is not recorded yet; gold is cut short here
            if finding.outcome == DIFFERS and finding.kind not in ("checkpoint", "gold"):
                return f"{finding.kind} of {finding.what}: {finding.why}"
    return None


def worked_on(folder: Path, process: int) -> bool:
    """Say if a run, also one of a search, is locked by this process (``bench.records.store``)."""
    from bench.records import RunsFolder

    runs = [*folder.glob("runs/*-*"), *folder.glob("runs/*/trials/*/*/*-*")]
    holders = [RunsFolder(run.parent).worked_on_by(run.name) for run in runs]
    return any(holder is not None and holder.endswith(f":{process}") for holder in holders)


def steps_done(folder: Path) -> float:
    """Return the share of training steps that a saved state has."""
    if any((folder / "runs").glob("*/predictions/*.npz")):
        return 1.0
    steps = [0]
    for file in folder.glob("runs/*/state/state.pt"):
        steps.append(torch.load(file, weights_only=True)["progress"]["step"])
    return max(steps) / STEPS


def scores_done(folder: Path, tasks: int) -> float:
    """Return the share of tasks with stored predictions."""
    return len(list(folder.glob("runs/*/predictions/**/*.npz"))) / tasks


def trials_done(folder: Path) -> float:
    """Return the share of finished trials of a search."""
    texts = [path.read_text() for path in folder.glob("runs/*/search.json")]
    return sum(text.count('"finished"') for text in texts) / TRIALS


def acknowledged(folder: Path) -> str | None:
    """Check that the record was written, and is not older than the last acknowledged one."""
    from bench.records import RunsFolder

    file = folder / "written.txt"
    noted = file.read_text().splitlines() if file.exists() else []
    acknowledged_numbers = [int(line) for line in noted[-2:] if line.isdigit()]
    if not acknowledged_numbers:
        return None
    last = acknowledged_numbers[-1]
    store = RunsFolder(folder / "runs")
    found = [store.read(run_id).seed for run_id in store.ids()]
    if not found or found[0] not in (last, last + 1):
        return f"{last} was written, {found} is there"
    return None


def published_whole(folder: Path, before: Path) -> str | None:
    """Check a publication after a kill.

    Every version that is there is complete; if the new one is missing, nothing has changed.
    """
    from bench.base.findings import DIFFERS
    from bench.verify import check_manifest

    boards = folder / "leaderboards"
    for version in sorted(boards.glob("v[0-9]*")):
        report = check_manifest(version)
        if report is None:
            return f"{version.name}: no manifest"
        for finding in report.findings:
            if finding.outcome == DIFFERS:
                return f"{version.name}: {finding.what}"
    # half-made files there are no part of a version
    left = contents(boards, but=".publishing-")
    if (boards / "v2").is_dir() or left == contents(before):
        return None
    return "v2 is not there, and other files changed"


def submitted_whole(folder: Path) -> str | None:
    """Check a submission after a kill: every run in its place passes the checks of a board."""
    from bench.base.errors import BenchError
    from bench.publish.submissions import check_submission

    for place in sorted((folder / "box").glob("[!.]*")):
        try:
            check_submission(place)
        except BenchError as error:
            return f"{place.name}: {error.message}"
    return None


def exported_whole(folder: Path, whole: Path) -> str | None:
    """Check an export after a kill: it is complete or missing. ``whole``: the undisturbed one."""
    from bench.base.hashes import has_same_files

    place = folder / "model"
    if not place.exists() or has_same_files(place, whole):
        return None
    return "model is there, and is not complete"
