"""Golden files: outputs that a refactoring must not change.

``python tools/golden.py [NAME ...]`` writes ``tests/golden/`` anew, compressed.
tests/golden/test_golden.py computes the same and compares. A change that is meant is a commit of
its own, which says what moved and why.

* ``compare.json``: every table of the newest version, as the command line prints it with simcse as
  baseline.
* ``plans.json``: each method, setting, variant and paper's backbone: the recipe, and the
  fingerprint if one is known without a network.
* ``losses.json``: the loss of each of 20 steps of each trained method, on the built-in backbone.
* ``scores.json``: the suite ``check`` for encoders that nobody trained.
"""

from __future__ import annotations

import csv
import json
import lzma
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "golden"
BACKBONES = ("builtin", "bert-base-uncased", "bert-large-uncased", "roberta-base", "roberta-large")
FINISHED = ("cls", "first-last-avg", "last-avg", "embedding-last-avg")
STEPS = 20
SHORT = {"max_steps": str(STEPS), "batch_size": "8", "max_seq_length": "16", "select_on": "last"}
# a method may need more than its recipe: a teacher or a generator that is here
NEEDS = {
    "dclr": {"teacher": "builtin"},
    "diffcse": {"generator": "builtin"},
    "guided-simcse": {"guide": "builtin"},
    "rankcse": {"teacher_1": "builtin"},
    "truncated": {"pooling": "cls"},
}
# labelled NLI, or word vectors
NOT_HERE = {
    ("consert", "supervised"),
    ("infersent", "supervised"),
    ("sbert", "supervised"),
}


def compare(form: str, *options: str) -> str:
    from click.testing import CliRunner

    from bench.cli import main
    from bench.publish.versions import version_folders

    newest = version_folders(ROOT / "leaderboards")[-1]
    result = CliRunner().invoke(
        main,
        [
            "compare",
            "--runs",
            str(newest / "runs"),
            "--format",
            form,
            *options,
        ],
    )
    assert result.exit_code == 0, result.output
    return result.stdout


def plans(backbones: Collection[str] = BACKBONES) -> dict[str, Any]:
    """Return "method+variant, setting, backbone" -> recipe, corpus, printed value and fingerprint.

    The entry is the message if planning ends with an error.
    """
    from bench.run.plugins import discover

    registry = discover()
    made: dict[str, Any] = {}
    for name in registry:
        cls = registry[name].cls
        planned_on = backbones if cls.own_backbone is None else BACKBONES[:1]
        for setting in (None, *cls.settings):
            for variant in ("", *cls.variants):
                method = f"{name}+{variant}" if variant else name
                for backbone in planned_on:
                    key = f"{method}, {setting or 'no setting'}, {backbone}"
                    made[key] = _plan(registry, name, setting, variant, backbone)
    return made


def _plan(registry: Any, name: str, setting: str | None, variant: str, backbone: str) -> Any:
    from functools import partial

    import bench
    from bench.base.errors import BenchError
    from bench.records import RunsFolder
    from bench.run.config import Plan, RunConfig
    from bench.run.plan import plan_config
    from bench.session.session import Session

    # fingerprints are known from the package's own files
    suite = "check" if backbone == "builtin" else "sts"
    request = RunConfig(
        methods=(name,),
        setting=setting,
        variant=variant,
        backbones=(backbone,),
        suites=(suite,),
        overrides=NEEDS.get(name, {}),
    )
    try:
        session = Session(plan=Plan((request,)), store=RunsFolder(None), only_look=True)
        planned = session.prepare(partial(plan_config, request, registry))
    except BenchError as error:
        return str(error.message).replace(str(Path(bench.__file__).parent), "bench")
    (run,) = planned.runs
    return {
        "setting": run.setting,
        "corpus": run.corpus.name if run.corpus else None,
        "printed": run.expect["value"] if run.expect else None,
        "recipe": dict(sorted(run.recipe.items())),
        **({} if run.provisional else {"fingerprint": run.fingerprint}),
    }


def losses(
    report: Callable[[str], None] = lambda line: None, methods: Collection[str] | None = None
) -> dict[str, list[float]]:
    """Compute the losses of all methods, or of the named ones."""
    from bench.training import trainer

    trainer.LOG_EVERY = 1  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as folder:
        return dict(_losses(Path(folder), report, methods))


def trained() -> list[tuple[str, str, str]]:
    """Return (method, setting, variant) of everything that trains in steps on the data at hand."""
    from bench.run.plugins import discover

    registry = discover()
    found = []
    for name in registry:
        cls = registry[name].cls
        if cls.fitted == "pass":
            continue
        for setting in cls.settings:
            if setting != "none" and (cls.name, setting) not in NOT_HERE:
                found += [(cls.name, setting, variant) for variant in ("", *cls.variants)]
    return found


def _losses(
    folder: Path, report: Callable[[str], None], methods: Collection[str] | None
) -> Iterator[tuple[str, list[float]]]:
    from dataclasses import replace

    from bench.base.errors import BenchError
    from bench.data.sets import DataFolder
    from bench.method import SilentReporter
    from bench.records import RunsFolder
    from bench.run.config import RunConfig
    from bench.run.execute import execute
    from bench.run.plan import plan_config
    from bench.run.plugins import discover

    registry, triplets = discover(), _triplets(folder)
    for name, setting, variant in trained():
        if methods is not None and name not in methods:
            continue
        key = f"{name}{'+' if variant else ''}{variant}, {setting}"
        values = {**SHORT, **NEEDS.get(name, {})}
        for corpus in ("builtin", str(triplets)):
            request = RunConfig(
                methods=(name,),
                setting=setting,
                variant=variant,
                suites=("check",),
                corpus=corpus,
                overrides=values,
                seeds=(1,),
            )
            try:
                (run,) = plan_config(request, registry, DataFolder(None))
            except BenchError:
                continue  # the other corpus, or a variant that another setting has
            record, _ = execute(
                replace(run, tasks=(), task_data=()),
                RunsFolder(folder),
                RunConfig(device="cpu"),
                SilentReporter(),
            )
            assert record.training is not None and record.training.steps == STEPS, (
                key,
                record.error,
            )
            lines = [
                json.loads(line)
                for line in (folder / record.run_id / "curve.jsonl").read_text().splitlines()
            ]
            report(key)
            yield key, [float(f"{line['loss']:.6g}") for line in lines]
            break


def _triplets(folder: Path) -> Path:
    """Write 320 made triplets of the package's own sentences: each with its neighbour and a distant
    one.
    """
    sentences = (
        lzma.decompress((ROOT / "bench" / "builtin" / "data" / "sentences.txt.xz").read_bytes())
        .decode()
        .splitlines()[:322]
    )
    path = folder / "triplets.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [
                ("sent0", "sent1", "hard_neg"),
                *zip(sentences[:320], sentences[1:321], reversed(sentences[:320]), strict=True),
            ]
        )
    return path


def scores(methods: Collection[str] = FINISHED) -> dict[str, Any]:
    """Compute the scores of all encoders that nobody trained, or of the named ones."""
    from bench.data.sets import DataFolder
    from bench.method import SilentReporter
    from bench.records import RunsFolder
    from bench.run.config import RunConfig
    from bench.run.execute import execute
    from bench.run.plan import plan_config
    from bench.run.plugins import discover

    with tempfile.TemporaryDirectory() as folder:
        runs = plan_config(
            RunConfig(methods=tuple(methods), suites=("check",)), discover(), DataFolder(None)
        )
        records = [
            execute(run, RunsFolder(Path(folder)), RunConfig(device="cpu"), SilentReporter())[0]
            for run in runs
        ]
    return {
        record.method: {score.task: round(score.value, 4) for score in record.scores}
        for record in records
    }


def as_text(value: Any) -> str:
    """Return a text as it is, or a dictionary with one line an entry, so that a diff names the
    change.
    """
    if isinstance(value, str):
        return value
    return (
        "{\n"
        + ",\n".join(f"{json.dumps(key)}: {json.dumps(entry)}" for key, entry in value.items())
        + "\n}\n"
    )


FILES: dict[str, Callable[[], Any]] = {
    "compare.json": lambda: compare("json", "--baseline", "simcse"),
    "plans.json": plans,
    "losses.json": losses,
    "scores.json": scores,
}


def held(name: str) -> str:
    """Return the text of a golden file."""
    return lzma.decompress((FOLDER / f"{name}.xz").read_bytes()).decode()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for wanted in sys.argv[1:] or FILES:
        (FOLDER / f"{wanted}.xz").write_bytes(
            lzma.compress(as_text(FILES[wanted]()).encode(), preset=9 | lzma.PRESET_EXTREME)
        )
        print(wanted)
