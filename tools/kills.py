"""kill -9, again and again, at moments drawn from the whole of what a command does: nothing is
lost, nothing is there twice.

    python tools/kills.py [--kills 100] [--seed 1] [--only train-simcse,publish] [--data DIR]
                          [--list]

Every kind of work is done once undisturbed. Then it is begun, killed, and begun again where the
kill left it, until it is done; what lies there then must be what the undisturbed one made, to the
byte (of records and curves: without times and speeds). After every kill what lies there must be
whole. A line for each kind of work says how many kills there were, how often the work came to its
end, and at which share of the work the kills hit (quartiles). Everything is tiny: a random backbone
of 2 layers, some hundred sentences. Scoring needs the real data sets (``--data``, or BENCH_DATA)
but for the suite ``check``; of large ones a few rows of each class are kept. Exit code 1 where
anything was not as it must be.

``tests/project/test_kills.py`` does ten of these kinds.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import multiprocessing
import multiprocessing.process
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
for place in (ROOT / "tests" / "support", ROOT / "tools"):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))
sys.path.append(str(ROOT))  # last: where bench is installed, that one is meant

PATIENCE = 600.0  # seconds after which a process hangs
PRELOADED = [
    "bench.cli.run",
    "bench.run.execute",
    "bench.training",
    "bench.score.suites.sts",
    "bench.methods.simcse",
    "transformers",
    "bench.cli.evaluate",
    "bench.cli.export",
    "bench.cli.publish",
    "bench.publish.build",
    "bench.board.board",
    "matplotlib.figure",
]
PAPERS = ("simcse", "promcse", "dcpcse", "conpvp", "focal-infonce")
SUITES = ("check", "sts", "cxc", "transfer-quick", "transfer", "fewshot", "clustering", "geometry")
STEPS = 24
TRIALS = 6  # and the recipe as it is


@dataclass(frozen=True)
class Work:
    """One kind of work that a process does in a folder.

    ``do`` names a function of this module that the process calls with that folder and
    ``arguments``. ``life``: a process lives at most this share of the whole work's time before it
    is killed; less than one if it goes on from what is there. ``begun``: says if the process of
    that number has begun with the work itself; most kills come after that, and after more is there
    than before. ``progress``: the share that is done, by the files in the folder; None: by the
    seconds that the process lived. ``problem``: describes damage that a kill left; None: none.
    """

    name: str
    prepare: Callable[[Path], None]
    arguments: tuple[str, ...]
    do: str = "command"
    life: float = 1.05
    begun: Callable[[Path, int], bool] | None = None
    progress: Callable[[Path], float] | None = None
    problem: Callable[[Path], str | None] = lambda _: None
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Told:
    """The outcome of one kind of work."""

    name: str
    seconds: float = 0.0  # of the undisturbed one
    kills: int = 0
    ends: int = 0
    moments: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def line(self) -> str:
        quarters = (
            statistics.quantiles(self.moments, n=4, method="inclusive")
            if len(self.moments) > 1
            else self.moments
        )
        hit = (
            " ".join(
                f"{100 * one:.0f}" for one in (min(self.moments), *quarters, max(self.moments))
            )
            if quarters
            else "none"
        )
        return (
            f"{self.name:<22} {self.kills:>4} kills, {self.ends:>3} ends, "
            f"{self.seconds:6.2f} s undisturbed, killed at {hit} %: {len(self.wrong)} wrong"
        )


def child(
    do: str, arguments: Sequence[str], folder: str, environment: Mapping[str, str], log: str
) -> None:
    os.environ.update(environment)
    shorten()
    with (
        open(log, "a", buffering=1) as stream,
        contextlib.redirect_stdout(stream),
        contextlib.redirect_stderr(stream),
    ):
        globals()[do](Path(folder), *arguments)


def shorten() -> None:
    """Sets keep few rows in this process: a kill is not to wait for thousands of sentences, classifiers and clusters."""
    from bench.score.suites import check, clustering, fewshot, suite, transfer

    for task in (task for name in SUITES if name != "check" for task in suite(name).tasks):
        vars(task)["n"] = 0  # how many it has is not held
    whole = check.CHECK_TASK.n
    read_pairs, read_labelled, read_classes = (
        check._read_captions,
        transfer.read_transfer,
        clustering.read_clustering,
    )

    def pairs(*given: Any, **how: Any) -> Any:
        vars(check.CHECK_TASK)["n"] = whole
        loaded = read_pairs(*given, **how)
        if loaded.n == whole:
            vars(check.CHECK_TASK)["n"] = len(range(0, whole, 9))
        rows, columns = (
            range(0, loaded.n, 9),
            ("sentences1", "sentences2", "gold", "subset", "caption1", "caption2", "image"),
        )
        return replace(
            loaded,
            data=replace(
                loaded.data, **{name: _rows(getattr(loaded.data, name), rows) for name in columns}
            ),
        )

    def labelled(*given: Any, **how: Any) -> Any:
        data = read_labelled(*given, **how)
        rows = _few(
            [f"{label} {split}" for label, split in zip(data.labels, data.split, strict=True)], 40
        )
        texts = tuple(_rows(one, rows) for one in data.texts)
        return replace(data, texts=texts, labels=data.labels[rows], split=data.split[rows])

    def classes(*given: Any, **how: Any) -> Any:
        data = read_classes(*given, **how)
        rows = _few([str(label) for label in data.labels], 4)
        return replace(data, texts=_rows(data.texts, rows), labels=data.labels[rows])

    check._read_captions = vars(check.CHECK_TASK)["read"] = pairs
    transfer.read_transfer = fewshot.read_transfer = labelled
    clustering.read_clustering = classes


def _rows(values: Any, rows: Sequence[int]) -> Any:
    return [values[row] for row in rows] if isinstance(values, list) else values[list(rows)]


def _few(kinds: Sequence[str], most: int) -> list[int]:
    """Return the first rows of each kind."""
    seen: Counter[str] = Counter()
    rows = []
    for row, kind in enumerate(kinds):
        seen[kind] += 1
        rows += [row] * (seen[kind] <= most)
    return rows


def command(folder: Path, *arguments: str) -> None:
    from bench.cli import main

    os.chdir(folder)
    sys.argv = ["bench", *arguments]
    main(list(arguments))


def records(folder: Path, last: str) -> None:
    """Write one record after the other and note each that is written."""
    from factories import record
    from msgspec import structs

    from bench.records import RunsFolder

    store, made = RunsFolder(folder / "runs"), record()
    known = store.read(made.run_id).seed if store.ids() else None
    with store.lock(made.run_id), (folder / "written.txt").open("a", buffering=1) as noted:
        # its process may have been killed before it said so
        noted.write(f"{known}\n" if known else "")
        for i in range((known or 0) + 1, int(last) + 1):
            store.write(structs.replace(made, seed=i))
            noted.write(f"{i}\n")


def fetch(folder: Path) -> None:
    """Fetch two sets from a server on this machine, one in an archive and one that is converted."""
    from bench.data import fetching
    from bench.data.sets.fetch import Fetcher

    fetching.WAITS = (0.0, 0.0, 0.0)
    with data_world() as sets:
        for one in sets:
            Fetcher(folder / "data").get(one)


# --- what is compared ---

# git: of the checkout, which others may change meanwhile; a busy machine may not tell it in time
TIMES = (
    "created",
    "execution",
    "git",
)


def contents(folder: Path, but: str = "\n") -> dict[str, bytes]:
    """Return every file's bytes, except in folders with names that begin with ``but``.

    Records and curves are reduced to the part that does not depend on the clock; locks, logs and
    receipts of downloads are left out.
    """
    return {
        path.relative_to(folder).as_posix(): _timeless(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not path.name.endswith((".lock", ".receipt.json"))
        and path.name not in ("written.txt", "optuna.log")
        and not path.relative_to(folder).as_posix().startswith(but)
    }


def _timeless(path: Path) -> bytes:
    data = path.read_bytes()
    if path.name == "run.json":
        content = json.loads(data)
        content["cost"] = None
        content["provenance"] = {
            key: one for key, one in content["provenance"].items() if key not in TIMES
        }
        return json.dumps(content).encode()
    if path.name == "search.json":
        content = json.loads(data)
        content["study"]["created"] = ""
        for trial in (trial for own in content["trials"].values() for trial in own):
            trial["seconds"] = 0
        return json.dumps(content).encode()
    if path.name == "curve.jsonl":
        entries = [json.loads(line) for line in data.splitlines()]
        return json.dumps(
            [
                {key: one for key, one in entry.items() if key != "sentences_per_second"}
                for entry in entries
            ]
        ).encode()
    if path.suffix == ".toml":  # what a search took
        return b"".join(
            line for line in data.splitlines(keepends=True) if not line.startswith(b"seconds = ")
        )
    return data


def sound(folder: Path) -> str | None:
    """Describe a problem of the runs in ``folder`` after a kill: everything that is recorded must
    be there.
    """
    from bench.base.findings import DIFFERS
    from bench.verify import verify_run

    for run in sorted((folder / "runs").glob("*/run.json")):
        for one in verify_run(run.parent).findings:
            if one.outcome == DIFFERS and one.kind not in (
                "checkpoint",
                "gold",
            ):  # of a training that goes on it is not recorded yet; gold is cut short here
                return f"{one.kind} of {one.what}: {one.why}"
    return None


def worked_on(folder: Path, process: int) -> bool:
    """Say if a run, also one of a search, is locked by this process (``bench.records.store``)."""
    from bench.records import RunsFolder

    runs = [*folder.glob("runs/*-*"), *folder.glob("runs/*/trials/*/*/*-*")]
    holders = [RunsFolder(run.parent).worked_on_by(run.name) for run in runs]
    return any(holder is not None and holder.endswith(f":{process}") for holder in holders)


def steps_done(folder: Path) -> float:
    if any((folder / "runs").glob("*/predictions/*.npz")):
        return 1.0
    return (
        max(
            (int(path.name.split("-")[1]) for path in folder.glob("runs/*/state/step-*.pt")),
            default=0,
        )
        / STEPS
    )


def scores_done(folder: Path, tasks: int) -> float:
    return len(list(folder.glob("runs/*/predictions/**/*.npz"))) / tasks


def trials_done(folder: Path) -> float:
    texts = [path.read_text() for path in folder.glob("runs/*/search.json")]
    return sum(text.count('"finished"') for text in texts) / TRIALS


def acknowledged(folder: Path) -> str | None:
    """Check that the record was written, and is not older than the last acknowledged one."""
    from bench.records import RunsFolder

    noted = (
        (folder / "written.txt").read_text().splitlines()
        if (folder / "written.txt").exists()
        else []
    )
    whole = [int(one) for one in noted[-2:] if one.isdigit()]
    store = RunsFolder(folder / "runs")
    found = [store.read(run_id).seed for run_id in store.ids()]
    if whole and (not found or found[0] not in (whole[-1], whole[-1] + 1)):
        return f"{whole[-1]} was written, {found} is there"
    return None


def published_whole(folder: Path, before: Path) -> str | None:
    """Check a publication after a kill.

    Every version that is there is whole; if the new one is missing, everything is as it was.
    """
    from bench.base.findings import DIFFERS
    from bench.verify import check_manifest

    boards = folder / "leaderboards"
    for version in sorted(boards.glob("v[0-9]*")):
        report = check_manifest(version)
        wrong = (
            ["no manifest"]
            if report is None
            else [one.what for one in report.findings if one.outcome == DIFFERS]
        )
        if wrong:
            return f"{version.name}: {wrong[0]}"
    left = contents(boards, but=".publishing-")  # what is half made there is no part of a version
    return (
        None
        if (boards / "v2").is_dir() or left == contents(before)
        else "v2 is not there, and what was there is another"
    )


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
    """Check an export after a kill: it is the whole one or none. ``whole``: the undisturbed one."""
    from bench.base.hashes import has_same_files

    place = folder / "model"
    if not place.exists():
        return None
    return None if has_same_files(place, whole) else "model is there, and is not whole"


def works(inputs: Path, data: Path | None, wanted: Sequence[str] = ()) -> list[Work]:
    """Return the works of these names, or all; their shared inputs are made below ``inputs``."""
    from bench.conformance.methods import tiny_backbone

    inputs.mkdir(parents=True, exist_ok=True)
    tiny = tiny_backbone(inputs / "tiny")
    corpus = inputs / "text.txt"
    corpus.write_text("".join(f"{line}\n" for line in _sentences(4 * STEPS)))
    os.environ["BENCH_CACHE"] = str(inputs / "cache")
    common = ("--backbone", tiny, "--device", "cpu", "--precision", "fp32", "--runs", "runs")

    def train(method: str) -> Work:
        return Work(
            f"train-{method}",
            lambda folder: None,
            (
                "run",
                "--method",
                method,
                "--setting",
                "unsupervised",
                "--corpus",
                str(corpus),
                "--suite",
                "check",
                "--seeds",
                "1",
                "--set",
                "batch_size=4",
                "--set",
                "eval_steps=5",
                "--set",
                "learning_rate=1e-3",
                *common,
            ),
            life=0.25,
            begun=worked_on,
            progress=steps_done,
            problem=sound,
            environment={"BENCH_SAVE_SECONDS": "0"},
        )

    def score(suite: str) -> Work:
        place = () if suite == "check" else ("--data", str(data))
        tasks = _tasks(suite)
        return Work(
            f"score-{suite}",
            lambda folder: None,
            ("run", "--method", "cls", "--suite", suite, *place, *common),
            life=0.25 if tasks > 1 else 1.05,
            begun=worked_on,
            progress=(lambda folder: scores_done(folder, tasks)) if tasks > 1 else None,
            problem=sound,
        )

    every = [
        *(train(one) for one in PAPERS),
        *(score(one) for one in SUITES if one == "check" or data is not None),
    ]
    every += [
        Work(
            "search",
            lambda folder: None,
            (
                "search",
                "--method",
                "simcse",
                "--corpus",
                str(corpus),
                "--suite",
                "check",
                "--budget",
                "8steps",
                "--trials",
                str(TRIALS),
                "--name",
                "one",
                "--space",
                "learning_rate=log:1e-5..1e-2",
                "--set",
                "batch_size=4",
                "--set",
                "eval_steps=4",
                "--plain",
                *common,
            ),
            life=0.25,
            begun=worked_on,
            progress=trials_done,
            environment={"BENCH_SAVE_SECONDS": "0"},
        ),
        Work("record", lambda folder: None, ("300",), do="records", life=0.2, problem=acknowledged),
        Work("data-fetch", lambda folder: None, (), do="fetch"),
        Work(
            "data-overlap",
            _overlap_corpus,
            ("data", "overlap", "corpus.tsv.gz", "--suite", "check", "--matches", "matches.jsonl"),
        ),
        Work(
            "publish",
            lambda folder: _to_publish(folder, inputs),
            ("publish", "--runs", "runs", "--out", "leaderboards"),
            problem=lambda folder: published_whole(folder, inputs / "published" / "leaderboards"),
        ),
        Work(
            "evaluate",
            lambda folder: None,
            ("evaluate", tiny, "--set", "pooling=cls", "--suite", "check", "--runs", "runs"),
            begun=worked_on,
            problem=sound,
        ),
        Work(
            "submit",
            lambda folder: _to_submit(folder, inputs),
            ("submit", "simcse", "promcse", "--runs", "runs", "--to", "box", "--by", "Ada"),
            problem=submitted_whole,
        ),
        Work(
            "export",
            lambda folder: _to_export(folder, inputs, tiny),
            ("export", "cls", "--runs", "runs", "--to", "model"),
            problem=lambda folder: exported_whole(folder, inputs / "exported" / "model"),
        ),
    ]
    names = [one.name for one in every]
    if strange := [name for name in wanted if name not in names]:
        raise SystemExit(f"no work {', '.join(strange)}: {', '.join(names)}")
    return [one for one in every if not wanted or one.name in wanted]


def _sentences(count: int) -> list[str]:
    draw = random.Random(6)
    words = [
        "a",
        "man",
        "plays",
        "the",
        "guitar",
        "woman",
        "reads",
        "book",
        "in",
        "park",
        "dog",
        "runs",
        "fast",
        "over",
        "green",
        "grass",
        "child",
        "sleeps",
        "house",
        "near",
        "sea",
    ]
    return [" ".join(draw.choices(words, k=draw.randint(2, 12))) for _ in range(count)]


def _tasks(suite: str) -> int:
    from bench.score.suites import suite as known

    return len({task.name for task in known(suite).tasks})


def _overlap_corpus(folder: Path) -> None:
    rows = _sentences(4000)
    text = "sent0\tsent1\n" + "".join(f"{a}\t{b}\n" for a, b in zip(rows, rows[1:], strict=False))
    (folder / "corpus.tsv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def _to_publish(folder: Path, inputs: Path) -> None:
    """Make four runs that are published, and one more that is not."""
    from made_runs import made_run, made_runs

    kept = inputs / "published"
    if not kept.is_dir():
        made_runs(kept / "runs", {"simcse": 0.8, "promcse": 0.45}, seeds=(1, 2), suites=("check",))
        process = _start(
            "command",
            ("publish", "--runs", "runs", "--out", "leaderboards"),
            kept,
            {},
            inputs / "log.txt",
        )
        process.join(PATIENCE)
        made_run(kept / "runs", "promptbert", 1, suites=("check",))
    shutil.copytree(kept, folder, dirs_exist_ok=True)


def _to_submit(folder: Path, inputs: Path) -> None:
    """Make four finished runs."""
    from made_runs import made_runs

    kept = inputs / "submitted"
    if not kept.is_dir():
        made_runs(kept / "runs", {"simcse": 0.8, "promcse": 0.45}, seeds=(1, 2), suites=("check",))
    shutil.copytree(kept, folder, dirs_exist_ok=True)


def _to_export(folder: Path, inputs: Path, tiny: str) -> None:
    """Make a finished run; its undisturbed export stays among the inputs."""
    kept = inputs / "exported"
    if not kept.is_dir():
        kept.mkdir()
        run = ("run", "cls", "--backbone", tiny, "--suite", "check", "--device", "cpu")
        export = ("export", "cls", "--to", "model")
        for words in (run, export):
            process = _start(
                "command", (*words, "--runs", "runs"), kept, {}, inputs / "exported.txt"
            )
            process.join(PATIENCE)
    shutil.copytree(kept / "runs", folder / "runs")


@contextlib.contextmanager
def data_world() -> Iterator[list[Any]]:
    """Serve two sets that no one else knows, on this machine.

    One is in an archive, one in three forms that are converted.
    """
    import hashlib
    import io
    import tarfile
    from unittest import mock

    from hub import StandInHub

    from bench.data.sets import (
        ANY,
        DataFile,
        DataSet,
        Form,
        Source,
        SourcePart,
        content_hash,
        folder,
        pending,
    )
    from bench.data.sets import fetch as fetching

    rows = [f"{i % 7}\t{line}" for i, line in enumerate(_sentences(3000))]
    plain = "".join(f"{row}\n" for row in rows).encode()
    split = [row.split("\t") for row in rows]
    given = {
        "labelled lines": [plain.replace(b"\n", b" \r\n")],
        "JSON lines": [
            b"".join(
                json.dumps({"text": f" {text} ", "cluster": label}).encode() + b"\n"
                for label, text in split
            )
        ],
        "text and labels": [
            b"".join(f" {text}\n".encode() for _, text in split),
            b"".join(f"{label}\n".encode() for label, _ in split),
        ],
        "first 2 columns": [b"".join(f"{row}\tmore\n".encode() for row in rows)],
    }
    form = {ANY: Form(sha256=hashlib.sha256(plain).hexdigest(), bytes=len(plain))}

    def data_set(name: str, files: Sequence[str]) -> DataSet:
        return DataSet(
            name=name,
            kind="evaluation",
            title=name,
            suites=("clustering",),
            unit="texts",
            items={"test": len(rows)},
            licence="none",
            terms="none",
            source="us",
            cite="us",
            get="ask us",
            homes={ANY: name},
            also=(),
            accept=True,
            files=tuple(
                DataFile(
                    path=file,
                    role="table",
                    rows=len(rows),
                    columns=2,
                    content=content_hash(split),
                    forms=form,
                )
                for file in files
            ),
        )

    packed, converted = (
        data_set("PACKED", ["a.txt", "b.txt"]),
        data_set("CONVERTED", [f"{i}.txt" for i in range(len(given))]),
    )
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for file in packed.files:
            info = tarfile.TarInfo(f"all/{file.path}")
            info.size = len(plain)
            tar.addfile(info, io.BytesIO(plain))
    parts: dict[str, SourcePart] = {}
    with StandInHub() as hub:
        for i, (conversion, sources) in enumerate(given.items()):
            names = tuple(f"{i}-{k}" for k in range(len(sources)))
            for name, content in zip(names, sources, strict=True):
                hub.serve(f"raw.githubusercontent.com/owner/converted/c0ffee/{name}", content)
            parts[f"{i}.txt"] = SourcePart(
                paths=names,
                conversion=conversion,
                sha256=tuple(hashlib.sha256(one).hexdigest() for one in sources),
            )
        hub.serve("raw.githubusercontent.com/owner/packed/c0ffee/all.tar", archive.getvalue())
        of = {
            "PACKED": Source(
                name="packed",
                title="",
                site="github",
                repo="owner/packed",
                revision="c0ffee",
                archive="all.tar",
                into="PACKED",
                form=ANY,
                sets=("PACKED",),
            ),
            "CONVERTED": Source(
                name="converted",
                title="",
                site="github",
                repo="owner/converted",
                revision="c0ffee",
                into="CONVERTED",
                form=ANY,
                sets=("CONVERTED",),
                files=parts,
            ),
        }
        sets = {one.name: one for one in (packed, converted)}
        environment = {
            "BENCH_MIRROR": hub.url,
            "HF_HUB_OFFLINE": "0",
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
        }
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.dict(os.environ, environment))
            # which the hub's client read when it was imported
            stack.enter_context(mock.patch("huggingface_hub.constants.HF_HUB_OFFLINE", False))
            for module in (fetching, folder, pending):
                stack.enter_context(
                    mock.patch.object(module, "sources_of", lambda one, text=ANY: [of[one.name]])
                )
            stack.enter_context(mock.patch.object(fetching, "data_set", sets.__getitem__))
            yield list(sets.values())


def _start(
    do: str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path
) -> multiprocessing.process.BaseProcess:
    # its processes have imported what takes long: a kill hits the work
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    import kills  # by this name, whoever was started

    process = context.Process(
        target=kills.child, args=(do, tuple(arguments), str(folder), dict(environment), str(log))
    )
    process.start()
    return process


def difference_of(name: str, found: Mapping[str, bytes], whole: Mapping[str, bytes]) -> str:
    """Say how a file differs from the undisturbed one: more, missing or other."""
    if name not in whole:
        return "more"
    return "other" if name in found else "missing"


def killed(work: Work, place: Path, count: int, draw: random.Random) -> Told:
    """Do ``work`` with ``count`` kills below ``place``, again and again."""
    told, folder, log = Told(work.name), place / "work", place / "log.txt"

    def fresh() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        work.prepare(folder)

    def start() -> multiprocessing.process.BaseProcess:
        return _start(work.do, work.arguments, folder, work.environment, log)

    def wait_until(process: multiprocessing.process.BaseProcess, is_so: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while process.is_alive() and time.monotonic() < until and not is_so():
            time.sleep(0.005)

    def has_begun(process: multiprocessing.process.BaseProcess) -> Callable[[], bool]:
        return lambda: work.begun is None or work.begun(folder, process.pid or 0)

    def goes_on() -> Callable[[], bool]:
        """Say if there is more now than when this was called."""
        progress = work.progress
        before = progress(folder) if progress is not None else 0.0
        return lambda: progress is None or progress(folder) > before

    for _ in range(2):  # the first fills caches
        fresh()
        began = time.monotonic()
        moves, process = goes_on(), start()
        wait_until(process, has_begun(process))
        starting = time.monotonic() - began
        wait_until(process, moves)
        moving = time.monotonic() - began
        process.join(PATIENCE)
        told.seconds = time.monotonic() - began
        if process.exitcode != 0:
            told.wrong.append(
                f"undisturbed it ended with {process.exitcode}: {log.read_text()[-2000:]}"
            )
            return told
    whole = contents(folder)
    fresh()
    while True:
        began = time.monotonic()
        moves, process = goes_on(), start()
        if told.kills < count:
            when = draw.random() if work.begun is not None else 1.0
            if when < 0.15:  # while it starts
                process.join(draw.uniform(0, starting))
            elif when < 0.35:  # before anything new is there
                wait_until(process, has_begun(process))
                process.join(draw.uniform(0, max(moving - starting, 0.1)))
            else:
                wait_until(process, has_begun(process))
                wait_until(process, moves)
                process.join(
                    draw.uniform(
                        0, work.life * (told.seconds - (moving if work.begun is not None else 0.0))
                    )
                )
            process.kill()
        process.join(PATIENCE)
        lived = time.monotonic() - began
        if process.exitcode == -signal.SIGKILL:
            told.kills += 1
            told.moments.append(
                min(1.0, lived / told.seconds if work.progress is None else work.progress(folder))
            )
            if (problem := work.problem(folder)) is not None:
                told.wrong.append(f"kill {told.kills}: {problem}")
            continue
        told.ends += 1
        if process.exitcode is None:
            process.kill()
            process.join()
            told.wrong.append(f"after {told.kills} kills it hangs")
        elif process.exitcode != 0:
            told.wrong.append(
                f"after {told.kills} kills it ended with {process.exitcode}: "
                f"{log.read_text()[-600:]}"
            )
        elif (found := contents(folder)) != whole:
            words = [
                f"{name} ({difference_of(name, found, whole)})"
                for name in sorted({*found, *whole})
                if found.get(name) != whole.get(name)
            ]
            told.wrong.append(
                f"after {told.kills} kills the end is another: {', '.join(words[:6])}"
            )
        if told.kills >= count:
            said = log.read_text()
            told.wrong += [
                f"it said: {words}"
                for words in ("Traceback", "cannot be used", "cut short")
                if words in said
            ]
            return told
        fresh()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=100, help="of each kind of work")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="kinds of work, comma-separated")
    parser.add_argument("--data", type=Path, default=os.environ.get("BENCH_DATA"))
    parser.add_argument("--list", action="store_true", help="name the kinds of work")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        for work in works(
            Path(temporary) / "inputs",
            options.data and options.data.absolute(),
            [one for one in options.only.split(",") if one],
        ):
            if options.list:
                print(work.name)
                continue
            told = killed(
                work,
                Path(temporary) / work.name,
                options.kills,
                random.Random(f"{options.seed} {work.name}"),
            )
            print("\n".join([told.line(), *(f"  {one}" for one in told.wrong[:5])]), flush=True)
            wrong += len(told.wrong)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
