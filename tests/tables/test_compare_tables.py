"""Tables with statistics: computed apart from the code under test, drawn in every form, and refused where they must be."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import jsonschema
import numpy as np
import pytest
from factories import STS, record
from msgspec import structs
from predicted_runs import N, cosines, family, gold_of, sts_run
from rich.console import Console

from bench import show
from bench.base.errors import BenchError
from bench.compare.statistics.table import Row, Table
from bench.compare.tables import TableOptions, compare_runs, with_footnotes
from bench.runs import RecipeValue, RunRecord, RunsFolder
from bench.runs.predictions import Run
from bench.score.metrics.correlation import spearman
from bench.show.tables import lines, print_tables, render

NOISES = {"sure": 0.1, "good": 0.32, "alike": 0.33, "weak": 1.5}
SEEDS = (1, 2, 3, 4, 5)


def of(runs: Path, records: list[RunRecord]) -> list[Run]:
    return [(one, runs / one.run_id) for one in records]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("compared")
    return of(folder, family(folder, NOISES, seeds=SEEDS))


@pytest.fixture(scope="module")
def table(runs: list[Run]) -> Table:
    (made,) = compare_runs(runs, TableOptions(baseline="good", cost=True))
    return made


def row(table: Table, name: str) -> Row:
    return next(one for one in table.rows if one.name == name)


def printed(tables: tuple[Table, ...], width: int, encoding: str = "utf-8") -> str:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    print_tables(tables, console=Console(file=out, width=width))
    out.flush()
    return out.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]


# --- the numbers ---


def test_clear_differences_are_found_and_chance_is_not(table: Table) -> None:
    verdicts = {
        one.name: {cell.against.verdict for cell in one.cells if cell and cell.against}
        for one in table.rows
    }
    assert verdicts == {"sure": {"better"}, "good": set(), "alike": {"unknown"}, "weak": {"worse"}}
    assert {one.name: one.rank for one in table.rows} == {
        "sure": (1, 1),
        "good": (2, 3),
        "alike": (2, 3),
        "weak": (4, 4),
    }
    assert table.tested is not None
    assert [(family.what, family.size) for family in table.tested.families] == [
        ("primary", 3),
        ("single tasks", 3 * 7),
        ("all pairs", 6),
    ]


def test_no_verdict_contradicts_the_interval_beside_it(table: Table) -> None:
    for one in table.rows:
        for cell in one.cells:
            if (
                cell is None
                or (found := cell.against) is None
                or found.low is None
                or found.high is None
            ):
                continue
            assert found.verdict != "equivalent" or (found.low > -0.5 and found.high < 0.5)
            told = (
                "equivalent"
                if found.verdict == "equivalent"
                else "better"
                if found.low > 0
                else "worse"
                if found.high < 0
                else "unknown"
            )
            assert found.verdict == told and found.level is not None and found.level >= 0.95
            assert (
                found.low < found.difference < found.high
                and found.p is not None
                and found.p_adjusted is not None
            )
            assert (found.p_adjusted < 0.05) == (found.low > 0 or found.high < 0)


def test_an_unknown_says_what_would_settle_it(table: Table) -> None:
    cell = row(table, "alike").cells[-1]
    assert (
        cell is not None
        and cell.against is not None
        and cell.against.detectable is not None
        and cell.against.chance is not None
    )
    assert (
        cell.against.detectable > abs(cell.against.difference) and 0.2 < cell.against.chance < 0.8
    )
    (words,) = [words for words in lines.answers(table) if words.startswith("alike: unknown")]
    assert (
        "would have been found" in words
        and "settle it" in words
        and "one new run beats one of good" in words
    )


def test_a_difference_agrees_with_a_plain_bootstrap(table: Table) -> None:
    """One cell by loops: items and the three shared seeds drawn anew each time."""
    task = "STS13"
    rng, gold = np.random.default_rng(5), gold_of(task)
    said = {
        name: [cosines(name, seed, task, NOISES[name]) for seed in SEEDS]
        for name in ("sure", "good")
    }
    drawn = []
    for _ in range(400):
        items, seeds = rng.integers(0, N, N), rng.integers(0, 5, 5)
        drawn.append(
            np.mean(
                [
                    spearman(said["sure"][s][items], gold[items])
                    - spearman(said["good"][s][items], gold[items])
                    for s in seeds
                ]
            )
        )
    cell = row(table, "sure").cells[table.columns.index(task)]
    assert (
        cell is not None
        and cell.against is not None
        and cell.against.low is not None
        and cell.against.high is not None
    )
    assert cell.against.difference == pytest.approx(
        np.mean(
            [
                spearman(a, gold) - spearman(b, gold)
                for a, b in zip(said["sure"], said["good"], strict=True)
            ]
        ),
        abs=0.011,
    )
    low, high = np.percentile(drawn, [2.5, 97.5])
    assert cell.against.level is not None
    scale = (
        NormalDist().inv_cdf((1 + cell.against.level) / 2) / 1.96
    )  # ours is of the family's level
    assert cell.against.high - cell.against.low == pytest.approx(scale * (high - low), rel=0.4)


def test_intervals_hold_the_mean_and_say_what_they_cover(table: Table, runs: list[Run]) -> None:
    for one in table.rows:
        for cell in one.cells:
            assert cell is not None and cell.spread is not None
            assert (
                cell.spread.low < cell.mean < cell.spread.high
                and cell.spread.covers == "items and seeds"
            )
    (single,) = compare_runs([run for run in runs if run[0].seed == 1], TableOptions())
    assert all(one.rank is None for one in single.rows), "one seed of each: nobody lends a spread"
    assert {
        cell.spread.covers for one in single.rows for cell in one.cells if cell and cell.spread
    } == {"items"}


def test_the_number_of_cells_is_paid_for(runs: list[Run]) -> None:
    by = {
        how: compare_runs(runs, TableOptions(baseline="good", correction=how))[0]
        for how in ("holm", "bh", "none")
    }
    p = {
        how: [
            cell.against.p_adjusted
            for one in made.rows
            for cell in one.cells
            if cell and cell.against and cell.against.p_adjusted is not None
        ]
        for how, made in by.items()
    }
    assert len(p["holm"]) == 24 and all(made.tested is not None for made in by.values())
    assert (
        all(a >= b >= c for a, b, c in zip(p["holm"], p["bh"], p["none"], strict=True))
        and p["holm"] != p["none"]
    )
    for how, words in (
        ("holm", "Holm over 3"),
        ("bh", "Benjamini-Hochberg over 3"),
        ("none", "not adjusted over 3"),
    ):
        assert words in " ".join(printed((by[how],), 120).split())


def test_the_same_runs_give_the_same_table(runs: list[Run], table: Table) -> None:
    assert compare_runs(runs, TableOptions(baseline="good", cost=True)) == (table,)


# --- where there is nothing to go by ---


def test_without_predictions_nothing_is_claimed() -> None:
    made = [
        record(name, seed, base=base) for name, base in (("a", 70), ("b", 75)) for seed in (1, 2)
    ]
    nowhere = [(one, Path("nowhere") / one.run_id) for one in made]
    (plain,) = compare_runs(nowhere, TableOptions(baseline="a"))
    assert plain.tested is None and all(one.rank is None for one in plain.rows)
    assert {
        cell.spread.covers for one in plain.rows for cell in one.cells if cell and cell.spread
    } == {"seeds"}
    assert all(
        cell.against is None or cell.against.verdict is None
        for one in plain.rows
        for cell in one.cells
        if cell
    )
    assert "less a: not tested, for want of predictions or by --statistics no" in printed(
        (plain,), 80
    )
    with pytest.raises(BenchError, match="none of these runs has predictions"):
        compare_runs(nowhere, TableOptions(statistics="yes"))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.unlink(), "no predictions"),
        (lambda path: path.write_bytes(b"PK\x03\x04 cut"), "is no predictions file"),
        (
            lambda path: np.savez(path, prediction=np.zeros(N), gold=gold_of("STS14")[::-1]),
            "differ in the items' gold",
        ),
        (lambda path: np.savez(path, prediction=np.full(N, np.nan), gold=gold_of("STS14")), "NaN"),
        (
            lambda path: np.savez(
                path, prediction=cosines("x", 9, "STS14", 5.0), gold=gold_of("STS14")
            ),
            "give another score",
        ),
        (
            lambda path: np.savez(path, prediction=np.array(["a"] * N), gold=gold_of("STS14")),
            "holds no numbers",
        ),
        (lambda path: np.savez(path, gold=gold_of("STS14")), "no prediction"),
    ],
    ids=["missing", "cut", "other gold", "NaN", "other score", "text", "half"],
)
def test_unusable_predictions_cost_their_cell_its_statistics(
    tmp_path: Path, spoil, said: str
) -> None:  # type: ignore[no-untyped-def]
    made = family(tmp_path, {"one": 0.2, "two": 1.0}, seeds=(1, 2), tasks=("STS13", "STS14"))
    spoil(RunsFolder(tmp_path).predictions_path(made[0].run_id, "STS14", "tokenised"))
    (table,) = compare_runs(of(tmp_path, made), TableOptions(baseline="two"))
    columns = [table.columns.index(task) for task in ("STS13", "STS14")]
    whole, spoilt = (row(table, "one").cells[column] for column in columns)
    assert (
        whole is not None
        and whole.spread is not None
        and whole.against is not None
        and whole.against.verdict == "better"
    )
    assert spoilt is not None and spoilt.spread is not None and spoilt.spread.covers == "seeds"
    assert spoilt.against is not None and spoilt.against.verdict is None
    (note,) = [note for note in table.notes if note.startswith("without statistics: one on STS14")]
    assert said in note


def test_a_method_without_gold_in_common_is_not_tested_against(tmp_path: Path) -> None:
    made = [
        sts_run(tmp_path, "one", None, 0.3, tasks=("STS12",)),
        sts_run(tmp_path, "two", None, 0.3, tasks=("STS12",), n=100),
    ]
    (table,) = compare_runs(of(tmp_path, made), TableOptions(baseline="two"))
    cell = row(table, "one").cells[0]
    assert cell is not None and cell.against is not None and cell.against.verdict is None
    assert any("the two runs have different" in note for note in table.notes)


def test_too_many_predictions_are_left_alone_unless_asked_for(
    runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.compare.tables.MANY_RUNS", 3)
    (table,) = compare_runs(runs, TableOptions())
    assert table.tested is None and any("--statistics yes" in note for note in table.notes)
    (asked,) = compare_runs(runs, TableOptions(statistics="yes"))
    assert asked.tested is not None and asked.tested.families
    assert not any(
        "not tested" in note for note in compare_runs(runs, TableOptions(statistics="no"))[0].notes
    )


def test_one_seed_is_judged_only_with_what_others_lend(tmp_path: Path) -> None:
    made = [
        *family(tmp_path, {"five": 0.3, "more": 0.4}, seeds=SEEDS),
        sts_run(tmp_path, "one", 1, 0.1),
        sts_run(tmp_path, "fixed", None, 0.1),
    ]
    (table,) = compare_runs(of(tmp_path, made), TableOptions(baseline="five"))
    assert table.tested is not None and table.tested.lent == ("one",)
    assert "wholly borrowed for one seed of one" in " ".join(printed((table,), 120).split())
    cell = row(table, "one").cells[-1]
    assert cell is not None and cell.against is not None and cell.against.verdict == "better"
    (table,) = compare_runs(of(tmp_path, [made[0], *made[-2:]]), TableOptions(baseline="one"))
    assert all(
        cell.against is None or cell.against.verdict is None
        for one in table.rows
        for cell in one.cells
        if cell
    )
    (note,) = [note for note in table.notes if note.startswith("not judged")]
    assert (
        "one, five (one seed" in note
        and "fixed" not in note
        and "no two other rows with several" in note
    )
    assert row(table, "fixed").rank == (1, 3) or row(table, "fixed").rank is None


def test_what_is_shown_is_what_is_tested_with_unequal_seeds(tmp_path: Path) -> None:
    made = family(tmp_path, {"a": 0.3}, seeds=(1, 2, 3, 4, 5)) + family(
        tmp_path, {"b": 0.32, "c": 0.5}, seeds=(1, 2)
    )
    (table,) = compare_runs(of(tmp_path, made), TableOptions(baseline="b"))
    for mine, base in zip(row(table, "a").cells, row(table, "b").cells, strict=True):
        assert mine is not None and base is not None and mine.against is not None
        assert mine.against.low is not None and mine.against.high is not None
        assert (mine.against.low + mine.against.high) / 2 == pytest.approx(mine.mean - base.mean)


def test_a_lone_row_and_a_missing_task_are_said(tmp_path: Path) -> None:
    made = [
        sts_run(tmp_path, "whole", None, 0.3),
        sts_run(tmp_path, "part", None, 0.3, tasks=("STS12", "STS13")),
    ]
    (table,) = compare_runs(of(tmp_path, made), TableOptions(baseline="whole"))
    assert "without Avg., for some task is missing: part" in table.notes
    cell = row(table, "part").cells[0]
    assert cell is not None and cell.against is not None and cell.against.verdict is not None
    (alone,) = compare_runs(of(tmp_path, made[:1]), TableOptions(baseline="whole"))
    assert "nothing to compare: there is one row" in alone.notes


def test_pairs_of_other_data_are_said_to_count_for_themselves(tmp_path: Path) -> None:
    made = [sts_run(tmp_path, name, None, 0.3, tasks=("STS12",)) for name in ("a", "b")]
    (table,) = compare_runs(of(tmp_path, made), TableOptions())
    assert (
        "pairs of STS12 are taken to share no sentence: the data is not the known one"
        in table.notes
    )


def test_every_form_says_the_same(table: Table) -> None:
    """One verdict and one interval for each row, in the terminal, in Markdown, in LaTeX and in JSON."""
    content = json.loads(render((table,), "json"))["tables"][0]
    for told in content["rows"]:
        against = told["cells"]["Avg."]["against"]
        if against is None or against["verdict"] is None:
            continue
        words = f"{told['method']}: {against['verdict']}, {against['difference']:+.2f} [{against['low']:+.2f}, {against['high']:+.2f}]"
        assert words in " ".join(printed((table,), 200).split())
        for form in ("md", "latex"):
            assert words[1:] in render((table,), form).replace("\\", "").replace(
                "{[}", "["
            ).replace("{]}", "]")


# --- drawn ---


@pytest.mark.parametrize("width", [60, 80, 120, 160])
def test_every_mean_and_difference_is_in_the_terminal(table: Table, width: int) -> None:
    text = printed((table,), width)
    assert max(map(len, text.splitlines())) <= width
    words = re.sub("[≈▲▼△▽±]", " ", text).split()
    for one in table.rows:
        for cell in one.cells:
            assert cell is not None and f"{cell.mean:.2f}" in words
            assert cell.against is None or f"{cell.against.difference:+.2f}" in words
    said = " ".join(text.split())
    assert (
        "Avg. less good is the question, a family of its own (Holm over 3): ▲ better, ▼ worse, ≈ equivalent, within ±0.5"
        in said
    )
    assert "single tasks are exploratory, another family (Holm over 21): △ better, ▽ worse" in said
    assert "all pairs are one family (Holm over 6)" in said


def test_eighty_columns_hold_the_scores_in_one_block(table: Table) -> None:
    headings = [line.split() for line in printed((table,), 80).splitlines() if "STS12  " in line]
    assert headings == [["#", "method", *STS, "Avg."]]
    plain = replace(
        table,
        baseline=None,
        rows=tuple(
            replace(
                one,
                cost=None,
                cells=tuple(cell and replace(cell, against=None) for cell in one.cells),
            )
            for one in table.rows
        ),
    )
    headings = [line.split() for line in printed((plain,), 80).splitlines() if "STS12 " in line]
    assert headings == [["rank", "method", *STS, "Avg.", "95", "%"]]


def test_an_ascii_terminal_gets_ascii(table: Table) -> None:
    text = printed((table,), 100, "ascii")
    assert "^ better, v worse, = equivalent" in " ".join(text.split()) and text.isascii()


def test_json_follows_its_schema(table: Table, runs: list[Run]) -> None:
    file = Path(show.__file__).parent / "tables" / "schema" / "compare-2.schema.json"
    schema = json.loads(file.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    contents = [
        json.loads(render(tables, "json"))
        for tables in ((table,), compare_runs(runs, TableOptions(statistics="no")))
    ]
    for content in contents:
        assert [error.message for error in check.iter_errors(content)] == []
    broken = json.loads(render((table,), "json"))
    del broken["tables"][0]["rows"][0]["cells"]["STS12"]["spread"]
    assert not check.is_valid(broken)
    (cell,) = [
        one["cells"]["Avg."] for one in contents[0]["tables"][0]["rows"] if one["method"] == "sure"
    ]
    assert (
        cell["against"]["verdict"] == "better"
        and cell["against"]["p"] < 0.05
        and cell["spread"]["low"] < cell["mean"]
    )


def test_parameters_are_shown_by_part_where_all_runs_of_a_row_have_them() -> None:
    def run(method: str, seed: int, parts: dict[str, int] | None) -> Run:
        one = record(method, seed)
        return structs.replace(one, cost=structs.replace(one.cost, trainable_parts=parts)), Path(
            "nowhere"
        ) / one.run_id

    parts = {"prompt": 294_912, "head": 590_592, "lm_head": 24_063_546}
    prompts = [run(method, seed, parts) for method in ("promcse", "dcpcse") for seed in (1, 2)]
    tables = compare_runs(
        [*prompts, run("ct", 1, {"encoder": 5_300_000}), run("ct", 2, None)],
        TableOptions(cost=True),
    )
    words = "295k prompt, 591k head, 24.1M LM head"
    (costs,) = [
        {
            one["method"]: one["cost"]["trainable_parts"]
            for one in json.loads(render(tables, "json"))["tables"][0]["rows"]
        }
    ]
    assert costs == {"promcse": parts, "dcpcse": parts, "ct": None}
    for text in (printed(tables, 120), render(tables, "md"), render(tables, "latex")):
        flat = " ".join(text.split())
        assert (
            f"promcse, dcpcse: {words}" in flat.replace("dcpcse, promcse", "promcse, dcpcse")
            and "5.3M encoder" not in flat
        )
    assert "trainable_parameters" in render(tables, "csv")
    assert words not in printed(compare_runs(prompts, TableOptions()), 120)


def test_csv_has_a_line_for_every_cell(table: Table) -> None:
    found = list(csv.DictReader(io.StringIO(render((table,), "csv"))))
    assert len(found) == 4 * 8
    (line,) = [one for one in found if (one["method"], one["task"]) == ("weak", "STS12")]
    cell = row(table, "weak").cells[0]
    assert cell is not None and cell.spread is not None and cell.against is not None
    assert (
        float(line["low"]) == cell.spread.low
        and float(line["p_adjusted"]) == cell.against.p_adjusted
    )
    assert (
        line["verdict"] == "worse"
        and (line["rank_low"], line["rank_high"], line["exploratory"]) == ("4", "4", "yes")
        and line["trainable_parameters"] == "5300000.0"
    )


def test_markdown_rows_have_as_many_cells_as_the_heading(table: Table) -> None:
    drawn = [line for line in render((table,), "md").splitlines() if line.startswith("|")]
    assert {line.count(" |") for line in drawn} == {drawn[0].count(" |")} and len(
        drawn
    ) == 2 + 4 + 3
    assert "| rank | method | STS12 " in drawn[0] and drawn[0].endswith(
        "| Avg. | params | train | memory |"
    )


def latex_structure(text: str) -> None:
    """What a compiler would refuse, checked without one: braces and environments in pairs, dollars even, cells as declared."""
    bare = re.sub(
        r"(?<!\\)%.*|\\[\\{}$&#%_]", lambda found: found[0][:0] if found[0][0] == "\\" else "", text
    )
    assert bare.count("{") == bare.count("}") and bare.count("$") % 2 == 0
    assert re.findall(r"\\begin\{(\w+)\}", text) != [] and sorted(
        re.findall(r"\\begin\{(\w+)\}", text)
    ) == sorted(re.findall(r"\\end\{(\w+)\}", text))
    for columns, body in re.findall(
        r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", text, re.S
    ):
        cells = {
            len(re.split(r"(?<!\\)&", line)) for line in body.splitlines() if line.endswith(r" \\")
        }
        assert cells == {len(columns)}
    assert text.isascii()


def test_latex(table: Table, tmp_path: Path) -> None:
    text = render((table,), "latex")
    latex_structure(text)
    caption = text[text.index(r"\caption") :]
    for part in ("5 seeds", "senteval-all/1", "Holm over 3", "other items and other seeds"):
        assert part in caption
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex here; the structure was checked")
    (tmp_path / "t.tex").write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=100,
    )
    assert done.returncode == 0, done.stdout[-1500:]
    assert "Overfull" not in done.stdout


# --- what must not be compared ---


def versions(one: RunRecord, **packages: str) -> RunRecord:
    return structs.replace(
        one,
        provenance=structs.replace(
            one.provenance, packages={**one.provenance.packages, **packages}
        ),
    )


def test_a_footnote_for_each_difference_and_a_mark_at_the_row() -> None:
    made = [record("a", 1), record("b", 1), record("b", 2), record("c", 1)]
    made[2] = versions(made[2], torch="2.6.0")
    made[3] = structs.replace(
        made[3],
        provenance=structs.replace(
            made[3].provenance, data={**made[3].provenance.data, "STS14": "9" * 64}
        ),
    )
    nowhere = [(one, Path("nowhere") / one.run_id) for one in made]
    (table,) = compare_runs(nowhere, TableOptions())
    assert table.footnotes == (
        "torch: 2.6.0 in b (seed 2); 2.13.0 in the others",
        "data of STS14: 99999999 in c; dddddddd in the others",
    )
    assert {one.name: one.footnotes for one in table.rows} == {"a": (), "b": (0,), "c": (1,)}
    for form, mark in (
        ("md", "<sup>1</sup>"),
        ("latex", r"\textsuperscript{1}"),
        ("json", '"footnotes": [\n      1\n     ]'),
    ):
        assert render((table,), form).count(mark) >= 1 + (form != "json")
    assert "b¹" in printed(
        (table,), 80
    ) and "¹ torch: 2.6.0 in b (seed 2); 2.13.0 in the others" in printed((table,), 80)
    with pytest.raises(BenchError, match=r"torch: 2\.6\.0 in b .* \(and 1 more difference\)"):
        compare_runs(nowhere, TableOptions(strict=True))
    assert compare_runs(nowhere[:2], TableOptions(strict=True))[0].footnotes == ()


def test_strict_refuses_runs_of_the_methods_older_code() -> None:
    made = [record(name, seed) for name in ("a", "b") for seed in (1, 2)]
    older = structs.replace(
        made[0], provenance=structs.replace(made[0].provenance, plugin={"sha256": "0" * 64})
    )
    nowhere = [(one, Path("nowhere") / one.run_id) for one in (older, *made[1:])]
    (table,) = compare_runs(nowhere, TableOptions())
    (footnote,) = table.footnotes
    assert f"bench compare {older.run_id}" in footnote
    assert {one.name: (one.footnotes, one.seeds) for one in table.rows} == {
        "a": ((0,), (2,)),
        "b": ((), (1, 2)),
    }
    with pytest.raises(BenchError, match=older.run_id):
        compare_runs(nowhere, TableOptions(strict=True))
    assert compare_runs(nowhere[1:], TableOptions(strict=True))


def test_a_footnote_tells_rates_that_were_searched_from_a_rate_that_most_others_have() -> None:
    """Two recipes that no trial of their search beat keep their rate, 3e-05; that is no rule for the searched ones beside them."""

    def run(name: str, rate: float, searched: bool) -> RunRecord:
        one, source = (
            record(name, 1),
            "search s, 6 trials, dev 60.00" if searched and rate != 3e-5 else "ours",
        )
        execution = {"search": {"name": "s", "trials": 6}} if searched else None
        recipe = {**one.recipe, "learning_rate": RecipeValue(value=rate, source=source)}
        return structs.replace(
            one, recipe=recipe, provenance=structs.replace(one.provenance, execution=execution)
        )

    made = [
        run("a", 3e-5, True),
        run("b", 3e-5, True),
        run("c", 1e-4, True),
        run("d", 2e-4, True),
        run("flow", 1e-3, False),
    ]
    (table,) = compare_runs([(one, Path("nowhere") / one.run_id) for one in made], TableOptions())
    (rates,) = [one for one in table.footnotes if one.startswith("learning_rate")]
    assert rates == "learning_rate: 0.001 in flow; searched in the others"
    (table,) = compare_runs(
        [(one, Path("nowhere") / one.run_id) for one in made[:-1]], TableOptions()
    )
    assert not table.footnotes
    chosen = RecipeValue(
        value=17, source="search s, 6 trials, dev 60.00"
    )  # of a row; the recipe's own was best in the others
    other = structs.replace(made[2], recipe={**made[2].recipe, "batch_size": chosen})
    (table,) = compare_runs(
        [(one, Path("nowhere") / one.run_id) for one in (*made[:2], other, made[3])],
        TableOptions(strict=True),
    )
    assert not table.footnotes, "rows of one search may differ in what it chose (docs/search.md)"


def test_what_has_only_another_text_form_or_protocol_is_named() -> None:
    from factories import sts_scores

    raw = record("raw-only", 1, scores=sts_scores(text="raw"))
    both = record("both", 1, scores=(*sts_scores(), *sts_scores(60, text="raw")))
    nowhere = [(one, Path("nowhere") / one.run_id) for one in (raw, both)]
    tables = {table.text: table for table in compare_runs(nowhere, TableOptions())}
    assert tables["tokenised"].footnotes == (
        "scored as senteval-all/1 (raw) only, in a table of its own: raw-only",
    )
    assert tables["raw"].footnotes == ()
    with pytest.raises(BenchError, match="--strict.*raw-only"):
        compare_runs(nowhere, TableOptions(strict=True))
    assert all(
        table.footnotes == ()
        for table in with_footnotes(compare_runs(nowhere[1:], TableOptions()), {both.run_id: both})
    )


def test_unequal_budgets_are_refused_and_named() -> None:
    def run(name: str, seed: int | None = 1, sentences: int = 64_000, **changes: object) -> Run:
        made = record(name, seed, **changes)  # type: ignore[arg-type]
        if made.training:
            made = structs.replace(
                made, training=structs.replace(made.training, sentences=sentences)
            )
        return made, Path("nowhere")

    wanted = TableOptions(equal_budget=True)
    untrained = run("cls", None, setting="none", training=None)
    assert compare_runs([run("a"), run("b", sentences=64_320), untrained], wanted), (
        "a last batch, and nothing trained"
    )
    with pytest.raises(
        BenchError, match=r"c had 128,000 rows of wiki.txt@cccccc, 1 seed; a 64,000 rows"
    ):
        compare_runs([run("a"), run("b"), run("c", sentences=128_000)], wanted)
    with pytest.raises(BenchError, match=r"b had .*, 2 seeds"):
        compare_runs([run("a"), run("d"), run("b"), run("b", 2)], wanted)
    news = run("c")
    news = (
        structs.replace(
            news[0],
            provenance=structs.replace(
                news[0].provenance, corpus={"name": "news", "sha256": "e" * 64}
            ),
        ),
        news[1],
    )
    with pytest.raises(BenchError, match="c had 64,000 rows of news@eeeeee"):
        compare_runs([run("a"), run("b"), news], wanted)


def test_rows_of_one_stated_budget_are_equal_whatever_they_made_of_it() -> None:
    """As many seconds: one method saw twice the rows, and no two seeds of it the same number."""

    def run(name: str, seed: int, sentences: int, budget: str = "600s") -> Run:
        made = record(name, seed)
        recipe = {**made.recipe, "budget": RecipeValue(value=budget, source="--set")}
        assert made.training is not None
        return structs.replace(
            made, recipe=recipe, training=structs.replace(made.training, sentences=sentences)
        ), Path("nowhere")

    wanted, fast = (
        TableOptions(equal_budget=True),
        [run("fast", 1, 128_000), run("fast", 2, 120_000)],
    )
    assert compare_runs([*fast, run("slow", 1, 64_000), run("slow", 2, 60_000)], wanted)
    with pytest.raises(
        BenchError, match="had a budget of 1200s on .*, 2 seeds; fast a budget of 600s on"
    ):
        compare_runs(
            [*fast, run("slow", 1, 64_000, "1200s"), run("slow", 2, 64_000, "1200s")], wanted
        )


# --- beside the papers ---


def test_the_printed_value_stands_beside_ours(tmp_path: Path) -> None:
    made = family(tmp_path, {"simcse": 0.3, "mine": 0.3}, seeds=(1,), backbone="bert-base-uncased")
    (table,) = compare_runs(of(tmp_path, made), TableOptions(with_paper=True))
    cells = dict(zip(table.columns, row(table, "simcse").cells, strict=True))
    printed_values = {
        "STS12": 68.40,
        "STS13": 82.41,
        "STS14": 74.38,
        "STS15": 80.91,
        "STS16": 78.56,
        "STS-B": 76.85,
        "SICK-R": 72.23,
        "Avg.": 76.25,
    }
    for task, value in printed_values.items():  # Gao et al. 2021, table 5
        cell = cells[task]
        assert (
            cell is not None
            and cell.printed is not None
            and cell.spread is not None
            and cell.printed.value == value
        )
        assert cell.printed.difference == pytest.approx(round(cell.mean, 2) - value, abs=1e-9)
        assert cell.printed.inside is None and cell.printed.reason.startswith("one seed")
    assert all(cell is None or cell.printed is None for cell in row(table, "mine").cells)
    assert "no paper printed: mine" in table.notes
    words = printed((table,), 100).split()
    assert all(f"{value:.2f}" in words for value in printed_values.values())
    for form in ("md", "latex", "csv", "json"):
        assert "82.41" in render((table,), form)
    latex_structure(render((table,), "latex"))


def test_a_printed_value_of_another_protocol_is_not_ours() -> None:
    from factories import sts_scores

    other = record(
        "simcse",
        1,
        backbone="bert-base-uncased",
        scores=tuple(structs.replace(s, protocol="other/9") for s in sts_scores()),
    )
    raw = record("simcse", 2, backbone="bert-base-uncased", scores=sts_scores(text="raw"))
    for one in (other, raw):
        (table,) = compare_runs([(one, Path("nowhere"))], TableOptions(with_paper=True))
        assert all(cell is None or cell.printed is None for one in table.rows for cell in one.cells)
        assert table.notes[-1] == "no paper printed any of these rows"


def test_with_three_values_the_others_are_all_that_are_not_named() -> None:
    """A footnote a value would call rows "the others" that have a third one."""
    made = [
        versions(record(name, 1), torch=torch)
        for name, torch in (("a", "2.13.0"), ("b", "2.13.0"), ("c", "2.6.0"), ("d", "2.7.0"))
    ]
    (table,) = compare_runs([(one, Path("nowhere") / one.run_id) for one in made], TableOptions())
    assert table.footnotes == ("torch: 2.6.0 in c; 2.7.0 in d; 2.13.0 in the others",)
    assert {one.name: one.footnotes for one in table.rows} == {
        "a": (),
        "b": (),
        "c": (0,),
        "d": (0,),
    }
