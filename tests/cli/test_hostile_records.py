"""Runs folders as they come from anywhere: nothing that a record holds gets out of its place, and
nothing damaged is fatal.
"""

from __future__ import annotations

import csv
import html.parser
import io
import itertools
import json
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import argv, bench
from factories import record
from msgspec.structs import replace
from scored_run import finished_run, predictions

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
            folder = store.write(hostile(name, words, seed)).parent
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


TOGETHER = ["--together", "--cost", "--with-paper"]
VERBS = {
    "runs": ["runs"],
    "runs --json": ["runs", "--json"],
    "verify": ["verify"],
    "verify --json": ["verify", "--json"],
    **{f"compare {form}": ["compare", "--format", form] for form in FORMS},
    **{f"compare together {form}": ["compare", *TOGETHER, "--format", form] for form in FORMS},
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


def test_csv_has_no_formula(bad_runs: Path) -> None:
    done = bench("compare", *TOGETHER, "--runs", bad_runs, "--format", "csv")
    rows = list(csv.reader(io.StringIO(done.stdout)))
    assert len({len(row) for row in rows}) == 1 and len(rows) > len(BAD)
    cells = itertools.chain.from_iterable(rows)
    starts = [cell for cell in cells if cell[:1] and cell[0] in "=+-@\t|%"]
    assert [cell for cell in starts if not re.match(r"-?[0-9.]+(e-?[0-9]+)?$", cell)] == []


class Tags(html.parser.HTMLParser):
    """Every tag and attribute of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attributes


def test_html_has_no_tag_of_theirs(bad_runs: Path) -> None:
    done = bench("compare", *TOGETHER, "--runs", bad_runs, "--format", "html")
    page = Tags()
    page.feed(done.stdout)
    foreign = {"script", "img", "iframe", "object", "link", "base", "form"}
    ours = ["link", "script", "script"]  # an empty icon, the data of the numbers and board.js
    assert [tag for tag in page.tags if tag in foreign] == ours and "table" in page.tags
    assert [pair for pair in page.attributes if pair[0].startswith("on")] == []
    links = [value or "" for name, value in page.attributes if name in ("href", "src", "action")]
    assert [link for link in links if not link.startswith("#")] == ["data:,"]
    assert "49" not in re.findall(r'class="method">(.*?)</', done.stdout), "no template was run"


KNOWN = set(
    argv(
        """
    documentclass usepackage begin end toprule midrule bottomrule caption textbf underline
    centering small footnotesize scriptsize tiny setlength tabcolsep pm times textbackslash
    textasciitilde textasciicircum textless textgreater textbar textquotedbl dots dagger
    cmidrule addlinespace multicolumn textsuperscript resizebox textwidth linewidth emph
    textit raggedright par item geometry hspace quad noindent ddagger ast label circ approx
    textcolor color scalebox makebox newline vspace smallskip medskip bigskip phantom
    allowbreak ifdim width else fi
    """
    )
)


def test_latex_has_no_command_of_theirs(bad_runs: Path) -> None:
    text = bench("compare", *TOGETHER, "--runs", bad_runs, "--format", "latex").stdout
    assert set(re.findall(r"\\([A-Za-z]+)", text)) <= KNOWN
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") > 0
    assert text.count(r"\begin{table}") == text.count(r"\end{table}")
    assert len(re.findall(r"(?<!\\)\{", text)) == len(re.findall(r"(?<!\\)\}", text))
    body = text.partition(r"\begin{document}")[2]
    assert re.findall(r"(?<!\\)%(?!\n)", body) == [], "nothing is commented out"


ARRAYS: dict[str, dict[str, Any]] = {
    "text": {"prediction": np.array(["x"] * 1000)},
    "short": {"prediction": np.zeros(3)},
    "nan": {"prediction": np.full(1000, np.nan)},
    "constant": {"prediction": np.ones(1000)},
    "gold of nan": {"gold": np.full(1000, np.nan)},
    "subset": {"subset": np.zeros((5, 5))},
}


@pytest.mark.parametrize("odd", [*ARRAYS, "no zip"])
def test_predictions_that_are_something_else_are_never_fatal(tmp_path: Path, odd: str) -> None:
    store = RunsFolder(tmp_path / "runs")
    good, bad = finished_run(store, 1), finished_run(store, 2)
    path = predictions(store, bad)
    if odd == "no zip":
        path.write_bytes(b"PK nonsense")
    else:
        with np.load(path) as stored:
            arrays = {**stored}
        np.savez(path, **arrays | ARRAYS[odd])
    for form in ("table", "json"):
        done = bench("compare", "--runs", store.path, "--format", form)
        assert done.exit_code == 0 and "Traceback" not in done.output, done.output
    done = bench("compare", good.run_id, bad.run_id, "--items", "--runs", store.path)
    assert done.exit_code in (0, 2) and "Traceback" not in done.output
    done = bench("verify", "--runs", store.path)
    results = " ".join(done.output.split())
    assert done.exit_code == 1 and f"{bad.run_id} differs" in results
    assert f"{good.run_id} agrees" in results


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
