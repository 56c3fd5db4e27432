"""Every command of README and docs runs here, is planned here (--dry-run), or is marked with the
reason why it cannot; every score on a page names its source.

A page says of a block, in a comment above it, ``<!-- not run: why -->``. ``WHY`` below has the
reasons that hold for whole kinds of commands. docs/verified.md tells the reader.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from commands import bench
from scored_run import finished_run

from bench.cli import main
from bench.records import RunsFolder

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md")
]
PAGES += sorted(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "reference")
WHY = {  # docs/verified.md has the same reasons for the reader
    r"python3? -m venv|pip install|\btox\b|pytest|pre-commit": "the environment that tests run in",
    r"^(nohup )?python benchmarks/|^torchrun ": (
        "a measurement of minutes, or several devices; tests/benchmarks"
    ),
    r"^(python tests/|\.ci/)": (
        "scripts that tests run: tests/project/test_workflows.py, "
        "tests/project/test_release.py, tests/compare/statistics"
    ),
    r"^git ": "another repository, or a tag",
    r"^bench data fetch": "a network; stand-ins in tests/cli/test_data_fetch.py",
    r"--plugin|(my_\w+|dcl|odd|pairs|mails)\.py": (
        "files that a page shows; tests/docs/test_add_a_method.py, tests/docs/test_add_a_suite.py"
    ),
    r"^bench evaluate ": (
        "a model or a file of the reader's; tests/docs/test_evaluate_page.py, tests/library"
    ),
    r"^bench export ": "a trained run; tests/export",
    r"^bench demo": "two minutes of training; tests/promises/test_begin.py",
    r"--runs leaderboards/v\d+/runs|^bench methods simcse|roberta-large --dry-run|^bench doctor": (
        "run elsewhere: tests/docs/test_readme.py"
    ),
    r"(tickets\.(tsv|csv)|mails\.csv|retrieval:helpdesk)": "files that a page shows; tests/docs/test_own_data.py",
    r"mteb:": "mteb is slow to import; tests/score/suites/test_mteb.py",
    r"^bench verify leaderboards/v\d+": "hundreds of runs; tests/golden/test_version.py",
    r"--items|^bench data check": ("evaluation data; tests/cli/test_compare_items.py"),
    r"compare --paper ": "runs of a printed table; tests/cli/test_run_paper.py",
    r"--why ": "a row with a verdict; tests/compare/test_why.py",
    r"--submissions": (
        "a run of somebody else; tests/board/publish, tests/project/test_workflows.py"
    ),
}
# errors that a plan may give because the tests have no data, no network and no such file: the
# command was understood
MISSING = re.compile(
    r"forbids fetching|no such folder|no corpus at|data folder \w+ does not exist|"
    r"is not on this machine|more processes than the \d+ cores|gives no dev score here|"
    r"is not a run with an adapter|plan.toml: No such file"
)


@dataclass(frozen=True)
class Printed:
    page: str
    text: str
    marked: str  # why it is not run, as the page says

    @property
    def words(self) -> list[str]:
        said = (
            re.split(r" {2,}(?!-)|\s#\s| \\$", self.text)[0]
            if self.text.startswith("bench")
            else self.text
        )
        return shlex.split(said, comments=True)


def printed() -> Iterator[Printed]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        name = page.relative_to(ROOT).as_posix()
        for mark, language, block in re.findall(
            r"(?:<!-- not run: (.*?) -->\n)?^```(\w*)[^`\n]*\n(.*?)^```$", text, flags=re.M | re.S
        ):
            if language not in ("", "sh"):
                continue
            for line in block.replace("\\\n", " ").splitlines():
                for one in re.split(r" {4,}(?=bench )", line.strip().removeprefix("$ ")):
                    if re.match(
                        r"(bench|nohup|python3?|pip|tox|torchrun|git|\.ci/\S+|\.venv/\S+) ?(?!\s)",
                        one,
                    ) and not re.match(r"bench {3,}", one):
                        yield Printed(name, one, mark)
        for one in re.findall(
            r"^    (bench .*)$", re.sub(r"(?ms)^```.*?^```$", "", text), flags=re.M
        ):
            yield Printed(name, one, "")


COMMANDS = list(dict.fromkeys(printed()))
OURS = [one for one in COMMANDS if one.text.startswith("bench ") and "..." not in one.text]


def why(one: Printed) -> str:
    return one.marked or next(
        (said for pattern, said in WHY.items() if re.search(pattern, one.text)), ""
    )


def test_every_option_is_there() -> None:
    """Also of the commands that are not run."""
    for one in OURS:
        words = [word.replace("NAME|SUITE|all", "sts").strip("[]") for word in one.words[1:]]
        with click.Context(main, info_name="bench", **main.context_settings) as context:
            command: click.Command = main
            while isinstance(command, click.Group) and words:
                if (found := command.get_command(context, words[0])) is None:
                    break
                command, words = found, words[1:]
            assert command is not main or not words, f"{one.page}: {one.text}"
            if isinstance(command, click.Group) or "--plugin" in words:
                continue  # a plugin's file is read as soon as it is named
            free = "NAME" in one.text or "FILE" in one.text
            try:
                command.make_context(command.name, list(words), context, resilient_parsing=free)
            except click.UsageError as error:
                pytest.fail(f"{one.page}: {one.text}: {error.format_message()}")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a reader's folder: two finished runs, and a version published from them."""
    folder = tmp_path_factory.mktemp("reader")
    for seed in (42, 43):
        finished_run(RunsFolder(folder / "runs"), seed)
    return folder


PLANS = ("run", "search")  # minutes or days of training: planned


def filled(one: Printed, folder: Path) -> list[str]:
    """Return the words of a command, with values for the placeholders of the reader's own names."""
    first, second = sorted(path.name for path in (folder / "runs").iterdir())
    stands = {
        "RUN": first,
        "RUN-A": first,
        "RUN-B": second,
        "[NAME]": "STS12",
        "STS-B": "CHECK",
        "/shared/runs": str(folder / "runs"),
    }
    if one.words[1] not in PLANS:  # these read what is here
        stands |= {
            "DIR": str(folder),
            "sts": "check",
            "sts,cxc": "check",
            "last-avg": "simcse",
            "simcse,promcse": "simcse",
        }
    words = [
        re.sub(r"^simcse-builtin-s\d+$", first, stands.get(word, word)) for word in one.words[1:]
    ]
    return [word for word in words if word not in (">", "table.tex")]


RUN = [one for one in OURS if not why(one) and one.words[1] not in PLANS]
PLANNED = [one for one in OURS if not why(one) and one.words[1] in PLANS]


@pytest.mark.slow
def test_commands_run(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    assert len({one.text for one in RUN}) > 30
    wrong = []
    for words in {tuple(filled(one, place)): one for one in RUN}:
        shutil.rmtree(
            place / "leaderboards" / "submissions", ignore_errors=True
        )  # bench submit writes over nothing
        said = bench(*words, BENCH_RUNS=str(place / "runs"))
        if said.exit_code or not said.stdout.strip():
            wrong.append((words, said.exit_code, (said.stderr or said.stdout)[-300:]))
    assert wrong == []


@pytest.mark.slow
def test_trainings_are_planned(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is understood: a plan, or the one line that says which data, text or model is not
    here.
    """
    monkeypatch.chdir(place)
    assert len({one.text for one in PLANNED}) > 20
    wrong, plans = [], 0
    for words in {tuple(filled(one, place)): one for one in PLANNED}:
        dry = ("--dry-run",) if "--dry-run" not in words else ()
        said = bench(*words, *dry, BENCH_RUNS=str(place / "runs"))
        plans += said.exit_code == 0
        if said.exit_code not in (0, 2) or said.exit_code == 2 and not MISSING.search(said.stderr):
            wrong.append((words, said.exit_code, said.stderr[-300:]))
    assert wrong == [] and plans > 5
