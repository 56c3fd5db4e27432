"""Runs folders as they come from anywhere: nothing that a record holds gets out of its place, and
nothing damaged is fatal.
"""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from commands import bench
from factories import record
from msgspec.structs import replace

from bench.records import BackboneUsed, Code, CorpusUsed, RecipeValue, RunsFolder, Score

BAD = {
    "escape": "\x1b[2J\x1b]0;title\x07\x1b]8;;http://evil\x07",
    "markup": "[bold red]rich[/] [link=http://evil]x[/link]",
    "tag": "</script></style><script>alert(1)</script><img src=x onerror=alert(1)>\"' onload=x",
    "latex": r"\input{/etc/passwd}\write18{rm}$x^2$ 100% & # _ ~ \end{tabular}",
    "formula": '=HYPERLINK("http://evil","x")',
    "formula 2": "@SUM(A1)",
    "formula 3": "\t=1+1",
    "formula 4": "-1+1|cmd",
    "lines": "two\r\nlines\x0b\x0c\x85\u2028end",
    "bidi": "\u202eevil\u2066x\u200b\ufeff",
    "surrogate": "\udcff\ud800",
    "zero": "a\x00b",
    "long": "x" * 5000,
    "template": "{{ 7*7 }}{% include '/etc/passwd' %}",
    "table": "a|b\\|c`d`**e**",
    "curly": "{}",
    "percent": "%s%n{0}",
}
NOT_UTF8 = "not-utf-8"
"""Stands in a record for what ``bench`` refuses to write, until it is written."""

FORMS = ("table", "md", "latex", "csv", "json", "html")


def hostile(name: str, words: str, seed: int) -> Any:
    """A finished run in which every free text is ``words``."""
    odd = {words: words}
    subsets = {words: {"spearman": 1.0, "n": 2, "pearson": words}, "x": words}
    detail = {"subsets": subsets, words: words, "mean": words, "pearson": {"all": words}}
    cells = (
        (words, words, words, words),
        ("sts", words, "senteval-all/1", "spearman"),
        ("sts", "Avg.", words, words),
    )
    keys = ("suite", "task", "protocol", "metric")
    scores = tuple(
        Score(value=50.0 + seed, n=7, detail=detail, **dict(zip(keys, cell, strict=True)))
        for cell in cells
    )
    run_id = f"bad-{name.replace(' ', '-')}-{seed}"
    made = record(
        words, seed, variant=words, backbone=words, scores=scores, error=words, run_id=run_id
    )
    provenance = replace(
        made.provenance,
        **{"command": words, "bench_version": words, "packages": odd, "data": odd},
        **{"platform": odd, "corpus": CorpusUsed(name=words, sha256=words)},
        plugin=Code(**{"package": words, "version": words, "sha256": words}),
        backbone=BackboneUsed(**{"name": words, "revision": words}),
        determines=odd | {"places": odd},
    )
    assert made.training is not None
    recipe = {words: RecipeValue(value=words, source=words, note=words)}
    cost, training = replace(made.cost, device=words), replace(made.training, dev_task=words)
    more = {"provenance": provenance, "recipe": recipe, "cost": cost, "training": training}
    return replace(made, checkpoint=odd, **more)


@pytest.fixture(scope="module")
def bad_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = RunsFolder(tmp_path_factory.mktemp("bad") / "runs")
    for name, words in BAD.items():
        for seed in (1, 2):
            folder = store.write(
                hostile(name, words.replace("\udcff\ud800", NOT_UTF8), seed)
            ).parent
            sent = (folder / "run.json").read_text().replace(NOT_UTF8, r"\udcff\ud800")
            (folder / "run.json").write_text(sent)
        (folder / "curve.jsonl").write_text(
            json.dumps({"step": 1, "loss": 1.0, words: words}) + "\nnonsense\x1b[2J\n"
        )
    store.write(replace(hostile("failed", BAD["escape"], 3), status="failed"))
    store.write(record("simcse", 1))
    return store.path


def harmless(text: str) -> None:
    """Nothing but printable characters and line ends."""
    strange = {c for c in text if not c.isprintable() and c != "\n"}
    assert strange == set(), sorted(map(hex, map(ord, strange)))


COMPARE = ["compare", "--all", "--cost", "--with-paper"]
VERBS = {
    "runs": ["runs"],
    "runs --json": ["runs", "--json"],
    "verify": ["verify"],
    "verify --json": ["verify", "--json"],
    **{f"compare {form}": [*COMPARE, "--format", form] for form in FORMS},
    "compare --items": ["compare", "bad-tag-1", "bad-escape-1", "--items"],
}


@pytest.mark.nightly
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_that_reads_records_says_it_in_plain_characters(
    bad_runs: Path, verb: str
) -> None:
    done = bench(*VERBS[verb], "--runs", bad_runs, COLUMNS="200")
    assert done.exit_code in (0, 1, 2), done.output
    assert done.exit_code == 2 or done.stdout
    harmless(done.stdout)
    harmless(done.stderr)
    assert "Traceback" not in done.output


def test_reading_while_another_writes(tmp_path: Path) -> None:
    """Records that appear, change and go while they are read are whole, or not there."""
    store, stop = RunsFolder(tmp_path / "runs"), threading.Event()
    store.write(record("simcse", 1))
    errors: list[BaseException] = []

    def write() -> None:
        i = 0
        try:
            while not stop.is_set():
                i += 1
                made = store.write(record("promcse", 2 + i % 3, error="x" * (i % 7) * 10_000))
                if i % 2:
                    shutil.rmtree(made.parent)
        except BaseException as error:
            errors.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for verb in ("runs", "compare json", "verify --json") * 4:
            done = bench(*VERBS[verb], "--runs", store.path)
            assert done.exit_code in (0, 1) and "simcse" in done.stdout, done.output
            assert "damaged" not in done.stderr
    finally:
        stop.set()
        writer.join()
    assert errors == []
