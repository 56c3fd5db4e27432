"""Puts together what travels to a rented card, and the commands that are given there.

The folder needs no network, no installed bench and no ``.git``::

    setup.sh         unpacks, installs the wheels, sets the environment; sourced by each command
    code.tar.xz      the code, with the entry points of its methods
    wheels/          packages that the machine with the card lacks
    data.tar.xz      evaluation sets
    corpus/          the text that is trained on
    plan.toml        the runs, with the paths of this folder
    sentences.txt    sentences to encode
    kit.json         the commit
    commands.txt     the commands
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import tarfile
import tempfile
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from card_measure import commit_here
from card_models import ROOT, sentences

from bench.base.errors import BenchError
from bench.base.text import format_bytes
from bench.run.config import Plan, RunConfig

CODE = ("bench", "methods", "benchmarks", "pyproject.toml")
"""What travels of the checkout; leaderboards, tests and docs stay."""
SENTENCES = 2000
SETUP = """\
# sourced by each command, in the folder that travelled; $OUT: what comes back
export WORK="${{WORK:-/tmp/bench-card}}" OUT="${{OUT:-$PWD/out}}"
KIT="$PWD"
mkdir -p "$WORK" "$OUT"
if [ ! -e "$WORK/ready" ]; then
    tar xJf "$KIT/code.tar.xz" -C "$WORK" || return 1
    [ ! -e "$KIT/data.tar.xz" ] || tar xJf "$KIT/data.tar.xz" -C "$WORK" || return 1
    for part in corpus recipes plan.toml sentences.txt kit.json; do
        [ ! -e "$KIT/$part" ] || cp -r "$KIT/$part" "$WORK/" || return 1
    done
    if [ -d "$KIT/wheels" ]; then
        python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir \\
            --target "$WORK/site" "$KIT"/wheels/*.whl || return 1
    fi
    touch "$WORK/ready"
fi
export PYTHONPATH="$WORK/code:$WORK/code/site:$WORK/site" BENCH_CACHE="$WORK/cache"
export BENCH_COMMIT={commit} HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1
cd "$WORK" || return 1
"""


@dataclass(frozen=True, kw_only=True)
class Parcel:
    """What is asked of one kit."""

    folder: Path
    limit_bytes: int
    """Of all files together."""

    command_length: int
    """Characters of a command at most."""

    wheels: tuple[Path, ...] = ()
    corpus: Path | None = None
    data: Path | None = None
    plan: Path | None = None
    processes: int = 8
    seconds: int = 400
    """Until the runs are asked to end."""


def pack(parcel: Parcel) -> list[str]:
    """Write the folder; returns lines to print: sizes and commands.

    Raises BenchError, and leaves no folder, if something is missing, too large or too long.
    """
    if parcel.folder.exists() and any(parcel.folder.iterdir()):
        raise BenchError(f"{parcel.folder} is not empty", "another folder, or remove it")
    commands = commands_of(parcel)
    for name, command in commands.items():
        if len(command) > parcel.command_length:
            raise BenchError(
                f"the command {name} has {len(command)} characters; --command-length allows "
                f"{parcel.command_length}",
                f"--command-length {len(command)}, if the machine allows it",
            )
    parent = parcel.folder.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=".card-") as scratch:
        made = Path(scratch) / "kit"
        made.mkdir()
        write_parts(parcel, made)
        text = "".join(f"# {name}\n{command}\n" for name, command in commands.items())
        (made / "commands.txt").write_text(text, encoding="utf-8")
        lines = size_lines(made)
        total = sum(size for _, size in sizes_of(made))
        if total > parcel.limit_bytes:
            largest = "; ".join(lines[:4])
            raise BenchError(
                f"the kit has {format_bytes(total)}; --limit-mb allows "
                f"{format_bytes(parcel.limit_bytes)}. {largest}",
                "a smaller corpus, fewer sets, or a higher --limit-mb",
            )
        if parcel.folder.exists():
            parcel.folder.rmdir()
        made.rename(parcel.folder)
    lines.append(f"{format_bytes(total)} of {format_bytes(parcel.limit_bytes)} in {parcel.folder}")
    for name, command in commands.items():
        lines += [f"# {name}, {len(command)} characters", command]
    return lines


def commands_of(parcel: Parcel) -> dict[str, str]:
    """Return the commands that are given where the card is, in the folder that travelled."""
    card = ". ./setup.sh && python3 code/benchmarks/card.py"
    device = '--device "${DEV:-cuda}"'
    found = {"measure": f'{card} measure {device} $X --out "$OUT/card"'}
    if parcel.plan is not None:
        options = f"--processes {parcel.processes} --seconds {parcel.seconds}"
        found["runs"] = f'{card} runs plan.toml {device} {options} --out "$OUT"'
    found["encode and demo"] = (
        ". ./setup.sh && time python3 -m bench demo --plain --out demo > $OUT/demo.txt && "
        "time python3 -m bench encode $(ls demo/runs | grep simcse | head -n 1) sentences.txt "
        "--runs demo/runs --to vectors.npy && tail -n 20 $OUT/demo.txt"
    )
    return found


def write_parts(parcel: Parcel, made: Path) -> None:
    """Write everything that travels. Raises BenchError for a file that is not there."""
    commit = commit_here()
    write_code(made / "code.tar.xz")
    (made / "setup.sh").write_text(SETUP.format(commit=shlex.quote(commit)), encoding="utf-8")
    kit = {"schema": 1, "commit": commit.removesuffix("+"), "dirty": commit.endswith("+")}
    (made / "kit.json").write_text(json.dumps(kit) + "\n", encoding="utf-8")
    text = "".join(f"{sentence}\n" for sentence in sentences(SENTENCES))
    (made / "sentences.txt").write_text(text, encoding="utf-8")
    for wheel in parcel.wheels:
        if not wheel.is_file():
            raise BenchError(f"--wheel {wheel}: no such file", "pip download --no-deps PACKAGE")
        (made / "wheels").mkdir(exist_ok=True)
        shutil.copy(wheel, made / "wheels")
    if parcel.corpus is not None:
        if not parcel.corpus.is_file():
            raise BenchError(f"--corpus {parcel.corpus}: no such file")
        (made / "corpus").mkdir()
        shutil.copy(parcel.corpus, made / "corpus")
    if parcel.data is not None:
        if not parcel.data.is_dir():
            raise BenchError(f"--data {parcel.data}: no such folder", "bench data fetch sts --data")
        with tarfile.open(made / "data.tar.xz", "w:xz") as archive:
            archive.add(parcel.data, "data")
    if parcel.plan is not None:
        travelling_plan(parcel, made).write(made / "plan.toml")


def write_code(file: Path) -> None:
    """Write the checkout's code, and what makes its entry points known without an installation."""
    try:
        listed = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files", "-z", *CODE],
            capture_output=True,
            check=True,
            timeout=60,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise BenchError(
            f"git cannot list the files of {ROOT}: {error}", "a git checkout"
        ) from None
    names = [name.decode() for name in listed.stdout.split(b"\0") if name]
    names.append("bench/_version.py")
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(file, "w:xz") as archive:
        for name in dict.fromkeys(names):
            if (ROOT / name).is_file():  # a file may be removed and not yet committed
                archive.add(ROOT / name, f"code/{name}")
        about = Path(scratch) / "about"
        write_entry_points(about)
        archive.add(about, "code/site/sentence_bench-0.dist-info")


def write_entry_points(folder: Path) -> None:
    """Write a folder of package metadata with this checkout's name, version and entry points."""
    from bench.base import __version__

    folder.mkdir()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    metadata = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {__version__}\n"
    (folder / "METADATA").write_text(metadata, encoding="utf-8")
    lines = []
    groups = {**project["entry-points"], "console_scripts": project["scripts"]}
    for group, entries in groups.items():
        lines.append(f"[{group}]")
        lines += [f"{name} = {value}" for name, value in entries.items()]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def travelling_plan(parcel: Parcel, made: Path) -> Plan:
    """Return the plan with the paths of the kit; recipe files are copied into it.

    Raises BenchError for runs that need what does not travel.
    """
    assert parcel.plan is not None
    plan = Plan.read(parcel.plan)
    configs = [travelling_config(config, parcel, made) for config in plan.runs]
    return replace(plan, runs=tuple(configs))


def travelling_config(config: RunConfig, parcel: Parcel, made: Path) -> RunConfig:
    """Return the options of a run as they hold on the machine with the card."""
    values: dict[str, Any] = {"on": "here", "device": "auto", "runs": None, "offline": True}
    others = [name for name in config.backbones if name != "builtin"]
    if others:
        raise BenchError(
            f"{parcel.plan}: backbone {others[0]} does not travel; only builtin does",
            'backbones = ["builtin"]',
        )
    if config.plugins:
        raise BenchError(
            f"{parcel.plan}: plugin {config.plugins[0]} does not travel",
            "methods and suites of the package alone",
        )
    if config.corpus != "builtin":
        if parcel.corpus is None:
            raise BenchError(
                f"{parcel.plan}: the text {config.corpus or 'of the recipe'} does not travel",
                "--corpus FILE takes a text along",
            )
        values["corpus"] = f"corpus/{parcel.corpus.name}"
    if parcel.data is not None:
        values["data"] = "data"
    elif set(config.suites) != {"check"}:
        raise BenchError(
            f"{parcel.plan}: suite {', '.join(config.suites)} needs data",
            "--data FOLDER takes the sets along",
        )
    recipes = []
    for name in config.recipes:
        (made / "recipes").mkdir(exist_ok=True)
        shutil.copy(name, made / "recipes")
        recipes.append(f"recipes/{Path(name).name}")
    return replace(config, recipes=tuple(recipes), **values)


def sizes_of(folder: Path) -> list[tuple[str, int]]:
    """Return (file or folder, bytes) of a folder's entries, the largest first."""
    found = []
    for entry in folder.iterdir():
        files = [entry] if entry.is_file() else [file for file in entry.rglob("*")]
        found.append((entry.name, sum(file.stat().st_size for file in files if file.is_file())))
    return sorted(found, key=lambda pair: -pair[1])


def size_lines(folder: Path) -> list[str]:
    """Return a line for each entry of a folder, the largest first."""
    return [f"{name} {format_bytes(size)}" for name, size in sizes_of(folder)]
