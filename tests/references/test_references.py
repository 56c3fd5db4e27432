"""The printed numbers: row for row what the reference file of the project's owner has, and findable by method and backbone."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import asdict
from pathlib import Path

import pytest
from commands import bench

from bench import references
from bench.base.errors import BenchError
from bench.references import PAPERS, ReferenceResult, results
from bench.references.rows import Part, contents, tables

ROOT = Path(__file__).parents[2]


def _reworded(note: str) -> str:
    """Notes name two things that the package does not have."""
    return note.replace(", see METHODS.md", "").replace("not verifiable from the seeds", "not verifiable here")


def test_every_row_is_that_of_the_papers_tables(shared: Path) -> None:
    rows = json.loads((shared / "reference" / "paper_results.json").read_text(encoding="utf-8"))
    for row in rows:
        row["note"] = _reworded(row["note"])
    assert [{field: asdict(r)[field] for field in rows[0]} for r in results()] == rows
    assert set(asdict(results()[0])) - set(rows[0]) == {"printed", "source", "runs", "protocol", "text", "corpus"}  # ours


def test_what_is_known_without_the_reference_file() -> None:
    assert len(results()) == 1095
    (headline,) = results("simcse", "bert-base-uncased", setting="unsupervised", task="Avg.", metric="spearman", paper="dcpcse")
    assert (headline.value, headline.std, headline.own_result, headline.table) == (76.25, None, False, "1")
    (spread,) = results("conpvp", "roberta-large", variant="", task="Avg.", metric="spearman", paper="conpvp")[1:]
    assert (spread.value, spread.std, spread.own_result) == (79.9, 0.32, True)
    assert results("no such method") == ()


def test_papers_and_metrics_are_named_and_values_are_in_range() -> None:
    assert {r.paper for r in results()} == set(PAPERS)
    for r in results():
        assert re.fullmatch("unsupervised|supervised|other", r.setting) and re.fullmatch(r"[1-9]", r.table) and r.label
        assert r.metric in {"alignment", "uniformity"} or 0 < r.value < 100, r
        assert r.std is None or 0 <= r.std < 5, r


def test_a_copied_row_names_its_source_and_an_own_one_has_none() -> None:
    for r in results():
        assert bool(r.source) is not r.own_result, r
        assert re.fullmatch(r"|[A-Z][a-z]+ (et al\.|and [A-Z][a-z]+) 20\d\da?", r.source)
        if found := re.search(r"copied from ([A-Z][a-z]+ (?:et al\.|and [A-Z][a-z]+) 20\d\da?)", r.note):
            assert r.source == (found.group(1) if not r.own_result else ""), r


def test_what_a_number_is_of_follows_from_its_note_where_that_says_so() -> None:
    for r in results():
        for words, runs in (("best Avg. of 4", "best of 4 seeds"), ("mean and std over 4", "mean of 4 seeds"),
                            ("average of 10 random", "mean of 10 runs")):  # fmt: skip
            assert (words in r.note) == (r.runs == runs), r


def test_protocols_are_those_of_the_suites() -> None:
    from bench.references.ours import SUITES
    from bench.score.suites import suite

    known = {(name, task.name): set() for name in set(SUITES.values()) for task in suite(name).tasks}
    for (name, task), protocols in known.items():
        protocols |= {one.protocol for one in suite(name).tasks if one.name == task}
    for r in results():
        if r.task != "Avg." and r.protocol != "unknown":
            assert r.protocol in known[SUITES[r.metric], r.task], r


def test_a_damaged_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "results.tsv"
    file.write_text(references.FILE.read_text(encoding="utf-8").replace("Avg.=79.90±0.32", "Avg.79.90±0.32"), encoding="utf-8")
    monkeypatch.setattr(references, "FILE", file)
    with pytest.raises(BenchError, match="'Avg.79.90±0.32' in the row 'ConPVP' is no score"):
        tuple(references._everything.__wrapped__())


def test_a_result_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        results()[0].value = 1.0  # type: ignore[misc]
    assert isinstance(results()[0], ReferenceResult)


def test_the_contents_have_every_table_once_and_the_docs_have_the_contents() -> None:
    """What has printed scores can be run again, nothing else can; the docs' list is this one, with the command of each."""
    every = contents()
    assert len({(one.paper, one.part) for one in every}) == len(every)
    assert {(one.paper, one.part) for one in every if not one.instead} == {(paper, f"table {table}") for paper, table in tables()}
    lines = [line for line in (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    listed = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    for one in every:
        command = one.instead or f"bench reproduce {one.paper}:{one.part.split()[1]}"
        assert (one.paper, one.part, one.shows, "no" if one.instead else "yes", f"`{command}`") in listed


@pytest.mark.slow
@pytest.mark.parametrize("one", [one for one in contents() if one.instead], ids=lambda one: f"{one.paper} {one.part}")
def test_what_has_no_scores_says_what_it_shows_and_a_command_that_works(one: Part) -> None:
    kind, number = one.part.split()
    name = f"{one.paper}:{number if kind == 'table' else kind + number}"
    for verb in (("reproduce",), ("references",)):
        done = bench(*verb, name)
        assert done.exit_code == 2 and f"it shows {one.shows}" in done.stderr and one.instead in " ".join(done.stderr.split())
    words = shlex.split(one.instead)[1:]
    told = bench(*words, *([] if words[0] == "methods" else ["--dry-run", "--offline"]))
    if words[0] == "run":  # a plan needs data that is not here: it is the data that is missing, nothing else
        assert told.exit_code in (0, 2) and ("evaluation data" in told.stderr or "not on this machine" in told.stderr), (
            told.stderr
        )
    else:
        assert told.exit_code == 0 and told.stdout
