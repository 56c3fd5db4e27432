"""``bench references``: the papers, a table as printed, the audit, as text and as JSON."""

from __future__ import annotations

import json
import re

import pytest
from commands import bench, error_line


def test_the_overview_names_every_table() -> None:
    from bench.references import tables

    said = bench("references").stdout
    assert all(f"{paper}:{table} " in said for paper, table in tables())


def test_a_table_as_printed_with_its_remarks() -> None:
    said = bench(
        "references", "promcse:1", "--setting", "supervised", "--backbone", "bert-base-uncased"
    ).stdout
    (line,) = [
        line
        for line in said.splitlines()
        if line.startswith("PromCSE-BERT-base ") and "+ EH" not in line
    ]
    assert (
        line.split()[2:9] == ["75.58", "84.33", "79.67", "85.79", "81.24", "84.25", "80.79"]
        and "81.81" in line
    )
    letter = line.split()[-1]
    assert f"\n{letter} printed 81.81; the mean of its 7 cells is 81.66 (+0.15)\n" in said
    assert (
        "unsupervised" not in said
        and "RoBERTa" not in said.split("supervised", 1)[1].split("\na ")[0]
    )


def test_remarks_that_matter_come_first_and_copies_are_one_line() -> None:
    from bench.references import results
    from bench.references.audit import KINDS, count_told, remarks

    said = bench("references", "promcse:1", COLUMNS="120").stdout
    notes = [line for line in said.splitlines() if re.match(r"[a-z]{1,2} (?!has)\S", line)]
    kinds = {
        remark.text: remark.kind for one in results(paper="promcse") for remark in remarks(one)
    }
    order = [
        list(KINDS).index(next(kind for text, kind in kinds.items() if text.startswith(note[2:60])))
        for note in notes
    ]
    assert order == sorted(order) and order[0] == 0 and len(set(order)) > 2
    assert said.count(
        "copied from "
    ) == 1 and "; Gao et al. 2021: BERT-base (first-last avg.), BERT-base-flow" in " ".join(
        said.split()
    )
    (line,) = [
        line for line in bench("references").stdout.splitlines() if line.startswith("  promcse:1 ")
    ]
    differing = (
        " ".join(said.split())
        .split("printed differently elsewhere: ")[1]
        .split("; see --audit")[0]
        .count("(")
    )
    assert int(line.split()[3]) == count_told(
        remark for one in results(paper="promcse") if one.table == "1" for remark in remarks(one)
    )
    assert int(line.split()[3]) == len(notes) + differing - 1  # "(reproduce)" is part of a label


@pytest.mark.parametrize("columns", ["80", "120"])
@pytest.mark.parametrize("name", ["promcse:1", "conpvp:4", "conpvp:6", "focal-infonce:4"])
def test_tables_fit_the_terminal(name: str, columns: str) -> None:
    said = bench("references", name, COLUMNS=columns).stdout
    assert max(map(len, said.splitlines())) <= int(columns)
    assert "…" not in said


def test_filters_know_our_names_and_theirs() -> None:
    lines = [
        json.loads(line)
        for line in bench(
            "references", "--method", "embedding-last-avg", "--json"
        ).stdout.splitlines()
    ]
    assert {one["method"] for one in lines} == {
        "first-last-avg",
        "sbert",
    }  # SBERT's encoder, pooled so
    lines = [
        json.loads(line)
        for line in bench(
            "references", "conpvp:3", "--own", "--task", "Avg.", "--json"
        ).stdout.splitlines()
    ]
    assert {one["value"] for one in lines} >= {78.85, 80.18} and all(
        one["own_result"] for one in lines
    )
    assert all(any(told["kind"] == "best" for told in one["remarks"]) for one in lines)


def test_the_audit_as_text_and_as_json() -> None:
    said = bench("references", "--audit", COLUMNS="80").stdout
    assert max(map(len, said.splitlines())) <= 80
    flat = " ".join(said.split())
    assert (
        "printed 81.81; the mean of its 7 cells is 81.66" in flat
        and "Gao et al. 2021 38 rows, 35 of them compared" in flat
    )
    lines = [
        json.loads(line)
        for line in bench(
            "references", "--audit", "--kind", "quoted,best", "--json"
        ).stdout.splitlines()
    ]
    assert {one["kind"] for one in lines} == {"quoted", "best"}
    assert "nothing to say of them" in bench("references", "dcpcse:2", "--audit").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("promsce",), "unknown paper 'promsce'"),
        (
            ("promcse:6",),
            "table 6 of promcse has no scores that can be compared: it shows hyperparameters",
        ),
        (("promcse:9",), "table '9' of promcse is not here"),
        (("--method", "simsce"), "unknown method 'simsce'"),
        (("--audit", "--kind", "mean"), "unknown kind 'mean' of remark"),
        (
            ("dcpcse:2", "--backbone", "bert-base-uncased", "--task", "STS12"),
            "unknown task 'STS12'",
        ),
    ],
)
def test_mistakes_are_one_line(words: tuple[str, ...], said: str) -> None:
    assert said in error_line(bench("references", *words))
