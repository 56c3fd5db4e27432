"""The kinds of work that are killed, with the inputs that they need."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from kill_checks import (
    STEPS,
    TRIALS,
    acknowledged,
    exported_whole,
    published_whole,
    scores_done,
    sound,
    steps_done,
    submitted_whole,
    trials_done,
    worked_on,
)
from kill_process import PATIENCE, SUITES, start_process
from kill_sets import sentences

PAPERS = ("simcse", "promcse", "dcpcse", "conpvp", "focal-infonce")


@dataclass(frozen=True)
class Work:
    """One kind of work that a process does in a folder.

    ``do`` names a job of ``kill_process.JOBS``, which gets that folder and ``arguments``.
    ``life``: a process lives at most this share of the whole work's time before it is killed; less
    than one if it continues from the files that are there. ``begun``: says if the process of that
    number has begun with the work itself; most kills come after that, and after more is there than
    before. ``progress``: the share that is done, by the files in the folder; None: by the seconds
    that the process lived. ``problem``: describes damage that a kill left; None: none.
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


def works(inputs: Path, data: Path | None, wanted: Sequence[str] = ()) -> list[Work]:
    """Return the works of these names, or all; their shared inputs are made below ``inputs``."""
    from bench.conformance.methods import tiny_backbone

    inputs.mkdir(parents=True, exist_ok=True)
    tiny = tiny_backbone(inputs / "tiny")
    corpus = inputs / "text.txt"
    corpus.write_text("".join(f"{line}\n" for line in sentences(4 * STEPS)))
    os.environ["BENCH_CACHE"] = str(inputs / "cache")
    common = ("--backbone", tiny, "--device", "cpu", "--precision", "fp32", "--runs", "runs")
    every = [_train(method, corpus, common) for method in PAPERS]
    every += [_score(suite, data, common) for suite in SUITES if suite == "check" or data]
    every += [_search(corpus, common), *_file_works(), *_verb_works(inputs, tiny)]
    names = [work.name for work in every]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise SystemExit(f"no work {', '.join(unknown)}: {', '.join(names)}")
    return [work for work in every if not wanted or work.name in wanted]


def _nothing(folder: Path) -> None:
    """Prepare nothing."""


def _train(method: str, corpus: Path, common: Sequence[str]) -> Work:
    words = f"run --method {method} --setting unsupervised --suite check --seeds 1"
    values = "--set batch_size=4 --set eval_steps=5 --set learning_rate=1e-3"
    return Work(
        f"train-{method}",
        _nothing,
        (*words.split(), *values.split(), "--corpus", str(corpus), *common),
        life=0.25,
        begun=worked_on,
        progress=steps_done,
        problem=sound,
        environment={"BENCH_SAVE_SECONDS": "0"},
    )


def _score(suite: str, data: Path | None, common: Sequence[str]) -> Work:
    place = () if suite == "check" else ("--data", str(data))
    tasks = _tasks(suite)
    work = Work(
        f"score-{suite}",
        _nothing,
        ("run", "--method", "cls", "--suite", suite, *place, *common),
        begun=worked_on,
        problem=sound,
    )
    if tasks > 1:
        return replace(work, life=0.25, progress=partial(scores_done, tasks=tasks))
    return work


def _search(corpus: Path, common: Sequence[str]) -> Work:
    words = f"search --method simcse --suite check --budget 8steps --trials {TRIALS} --name one"
    values = "--space learning_rate=log:1e-5..1e-2 --set batch_size=4 --set eval_steps=4"
    return Work(
        "search",
        _nothing,
        (*words.split(), *values.split(), "--corpus", str(corpus), "--plain", *common),
        life=0.25,
        begun=worked_on,
        progress=trials_done,
        environment={"BENCH_SAVE_SECONDS": "0"},
    )


def _file_works() -> list[Work]:
    """Return the works that write records, data sets and overlaps."""
    overlap = "data overlap corpus.tsv.gz --suite check --matches matches.jsonl"
    return [
        Work("record", _nothing, ("300",), do="records", life=0.2, problem=acknowledged),
        Work("data-fetch", _nothing, (), do="fetch"),
        Work("data-overlap", _overlap_corpus, tuple(overlap.split())),
    ]


def _verb_works(inputs: Path, tiny: str) -> list[Work]:
    """Return the works that publish, evaluate, submit and export."""
    evaluate = ("evaluate", tiny, "--set", "pooling=cls", "--suite", "check", "--runs", "runs")
    boards = inputs / "published" / "leaderboards"
    return [
        Work(
            "publish",
            partial(_to_publish, inputs=inputs),
            ("publish", "--runs", "runs", "--out", "leaderboards"),
            problem=partial(published_whole, before=boards),
        ),
        Work("evaluate", _nothing, evaluate, begun=worked_on, problem=sound),
        Work(
            "submit",
            partial(_to_submit, inputs=inputs),
            ("submit", "simcse", "promcse", "--runs", "runs", "--to", "box", "--by", "Ada"),
            problem=submitted_whole,
        ),
        Work(
            "export",
            partial(_to_export, inputs=inputs, tiny=tiny),
            ("export", "cls", "--runs", "runs", "--to", "model"),
            problem=partial(exported_whole, whole=inputs / "exported" / "model"),
        ),
    ]


def _tasks(suite: str) -> int:
    from bench.score.suites import suite as known

    return len({task.name for task in known(suite).tasks})


def _overlap_corpus(folder: Path) -> None:
    rows = sentences(4000)
    text = "sent0\tsent1\n" + "".join(f"{a}\t{b}\n" for a, b in zip(rows, rows[1:], strict=False))
    (folder / "corpus.tsv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def _to_publish(folder: Path, inputs: Path) -> None:
    """Make four runs that are published, and one more that is not."""
    from made_runs import made_run, made_runs

    kept = inputs / "published"
    if not kept.is_dir():
        made_runs(kept / "runs", {"simcse": 0.8, "promcse": 0.45}, seeds=(1, 2), suites=("check",))
        process = start_process(
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
            process = start_process(
                "command", (*words, "--runs", "runs"), kept, {}, inputs / "exported.txt"
            )
            process.join(PATIENCE)
    shutil.copytree(kept / "runs", folder / "runs")
