"""What ``bench compare`` prints: the same in every form, and what is beside the verdicts."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from scipy.stats import rankdata
from shown import (
    WORDS,
    compared,
    hundredths,
    loaded,
    name_of,
    page,
    rows_of,
    says,
    squeezed,
    table_lines,
    text_of,
    verdict,
)
from started import bench, record, run_folders

import bench as library

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def forms(made_once: Any, ten_runs: Path) -> Path:
    """Return a folder with the ten runs compared in each form."""

    def write(folder: Path) -> None:
        for form in ("table", "md", "latex", "csv"):
            done = bench("compare", "--runs", ten_runs, "--format", form, cwd=folder)
            (folder / form).write_text(done.out, encoding="utf-8")
        words = ["--format", "json", "--cost", "--html", "page.html"]
        done = bench("compare", "--runs", ten_runs, *words, cwd=folder)
        (folder / "json").write_text(done.out, encoding="utf-8")

    return made_once("forms", write)


@pytest.fixture(scope="module")
def table(forms: Path) -> dict[str, Any]:
    """Return the one table of the ten runs."""
    (found,) = json.loads((forms / "json").read_text(encoding="utf-8"))["tables"]
    return dict(found)


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def described(path: Path) -> str:
    """Return what a reader sees of a page or of another text."""
    return text_of(page(text(path))) if path.suffix == ".html" else text(path)


@pytest.mark.promise(18, 19)
@pytest.mark.parametrize("form", ["table", "md", "latex", "page.html"])
def test_every_form_has_each_row_with_the_same_numbers(
    form: str, forms: Path, table: dict[str, Any]
) -> None:
    made = text(forms / form)
    lines = table_lines(page(made)) if form == "page.html" else made.splitlines()
    assert len(table["rows"]) == 4
    missing = [name_of(row) for row in table["rows"] if not says(lines, row)]
    assert not missing


@pytest.mark.promise(19)
def test_csv_has_the_numbers_in_full(forms: Path, table: dict[str, Any]) -> None:
    lines = list(csv.DictReader(text(forms / "csv").splitlines()))
    assert [line["method"] for line in lines] == [row["method"] for row in table["rows"]]
    for line, row in zip(lines, table["rows"], strict=True):
        assert float(line["mean"]) == row["mean"]
        assert line["verdict"] == (compared(row).get("verdict") or "")
        assert line["difference"] == str(compared(row).get("difference", ""))
        for end in ("ci_low", "ci_high"):
            assert line[f"difference_{end}"] == str(compared(row).get(end, ""))


@pytest.mark.promise(19)
def test_the_page_is_one_file_that_fetches_nothing(forms: Path) -> None:
    addresses = loaded(page(text(forms / "page.html")))
    assert [one for one in addresses if not one.startswith("data:")] == []


@pytest.mark.promise(19)
def test_latex_is_one_table_with_an_end_for_each_beginning(forms: Path) -> None:
    made = text(forms / "latex")
    begun = [part.partition("}")[0] for part in made.split(r"\begin{")[1:]]
    ended = [part.partition("}")[0] for part in made.split(r"\end{")[1:]]
    assert "tabular" in begun
    assert sorted(begun) == sorted(ended)


@pytest.mark.promise(17, 18)
def test_the_terminal_says_each_verdict_in_a_word(forms: Path, table: dict[str, Any]) -> None:
    lines = text(forms / "table").splitlines()
    words = {name_of(row): row["verdict"] for row in table["rows"]}
    assert words == {
        "simcse": "baseline",
        "promcse": "not trained",
        "cls": "for scale",
        "last-avg": "for scale",
    }
    for row in table["rows"]:
        (line,) = (one for one in lines if says([one], row))
        assert words[name_of(row)] in line
        assert not [word for word in WORDS if word in line]


@pytest.mark.promise(18)
def test_terminal_and_version_have_the_same_rows_and_numbers(
    table: dict[str, Any], version: Path, tmp_path: Path
) -> None:
    done = bench("compare", "--runs", version / "runs", "--format", "json", cwd=tmp_path)
    (again,) = done.json["tables"]
    (published,) = (one["table"] for one in json.loads(text(version / "tables.json"))["tables"])
    for other in (again, published):
        assert rows_of(other).keys() == rows_of(table).keys()
        for name, row in rows_of(other).items():
            assert hundredths(row) == hundredths(rows_of(table)[name]), name
            assert verdict(row) == verdict(rows_of(table)[name])
    shown = [
        text(version / "README.md").splitlines(),
        table_lines(page(text(version / "index.html"))),
    ]
    missing = [name_of(row) for lines in shown for row in table["rows"] if not says(lines, row)]
    assert not missing


@pytest.mark.promise(18)
def test_the_finding_is_the_same_sentence_on_terminal_page_and_markdown(
    forms: Path, version: Path
) -> None:
    paragraph = text(forms / "table").split("\n\n")[0]
    sentence = squeezed(paragraph.replace("\n", " ").split(". ")[0])
    assert len(sentence) > 20
    places = [version / "index.html", version / "README.md", version.parent / "README.md"]
    missing = [place.name for place in places if sentence not in squeezed(described(place))]
    assert not missing, "the terminal's finding stands elsewhere in other words"


FORMS = ("table", "md", "latex", "page.html", "python")


@pytest.mark.promise(18)
def test_finding_names_and_notes_are_the_same_words_in_every_form(
    made_once: Any, ten_runs: Path, table: dict[str, Any], forms: Path
) -> None:
    """Terminal, Markdown, LaTeX, page and Python; JSON has them one by one."""

    def print_in_python(folder: Path) -> None:
        tables = library.compare_runs(run_folders(ten_runs))
        assert tables.finding == table["finding"]
        (folder / "python").write_text(str(tables), encoding="utf-8")

    python = made_once("in-python", print_in_python) / "python"
    names = [row["name"] for row in table["rows"]]
    assert {"SimCSE", "PromCSE"} < set(names)
    notes = {note for row in table["rows"] for note in row["notes"]}
    assert "encoder not trained" in notes
    verdicts = {row["verdict"] for row in table["rows"]}
    assert "baseline" in verdicts
    wanted = [table["finding"], table["name"], *names, *notes, *table["notes"], *verdicts]
    for form in FORMS:
        said = plain_words(described(python if form == "python" else forms / form))
        missing = [words for words in wanted if plain_words(words) not in said]
        assert not missing, form
    assert not re.search(r"<sup>|textsuperscript", text(forms / "md") + text(forms / "latex"))


def plain_words(written: str) -> str:
    """Return a text on one line, without the characters that Markdown and LaTeX add."""
    return " ".join(re.sub(r"[\\{}$]", "", written).split())


@pytest.mark.promise(18)
def test_a_recipe_that_differs_is_named_with_its_values_everywhere(
    forms: Path, version: Path, ten_runs: Path
) -> None:
    """PromCSE's learning rate is another than SimCSE's, by their papers."""
    rates = {
        record(run)["method"]: record(run)["recipe"]["learning_rate"]["value"]
        for run in run_folders(ten_runs)
        if record(run)["training"]
    }
    assert rates == {"simcse": 3e-5, "promcse": 3e-2}
    places = [forms / "table", forms / "md", version / "README.md", version / "index.html"]
    for place in places:
        said = described(place)
        assert "learningrate" in squeezed(said), place.name
        assert "0.03" in said, place.name
        assert "3e-05" in said or "0.00003" in said, place.name


@pytest.mark.promise(19)
def test_cost_counts_the_weights_that_each_row_trains(
    table: dict[str, Any], tiny: Path, ten_runs: Path
) -> None:
    """SimCSE: the encoder and a dense layer. PromCSE: 16 vectors a layer for keys and values."""
    with safe_open(tiny / "model.safetensors", "pt") as stored:
        names = list(stored.keys())
        shapes = {name: stored.get_slice(name).get_shape() for name in names}
    encoder = sum(
        int(np.prod(shape))
        for name, shape in shapes.items()
        if name.startswith("bert.") and "pooler" not in name
    )
    head = 32 * 32 + 32
    costs = {name: row["cost"] for name, row in rows_of(table).items()}
    assert costs["simcse"]["trainable_parameters"] == encoder + head
    assert costs["promcse"]["trainable_parameters"] == 16 * 2 * 2 * 32 + head
    assert costs["cls"]["trainable_parameters"] == 0
    seconds = [
        record(run)["cost"]["train_seconds"]
        for run in run_folders(ten_runs)
        if record(run)["method"] == "simcse"
    ]
    assert costs["simcse"]["train_seconds"] == pytest.approx(np.mean(seconds))
    assert all(cost["peak_memory_bytes"] > 1e7 for cost in costs.values())


@pytest.mark.promise(19)
def test_strict_refuses_what_a_note_says_otherwise(ten_runs: Path, tmp_path: Path) -> None:
    words = ["compare", "--runs", ten_runs, "--strict"]
    refused = bench(*words, cwd=tmp_path, code=2)
    assert "learning_rate" in refused.err
    assert not refused.out
    bench(*words, "--method", "simcse,cls", cwd=tmp_path)


@pytest.mark.promise(19)
def test_items_are_those_whose_ranks_are_furthest_apart(ten_runs: Path, tmp_path: Path) -> None:
    chosen = [run for run in run_folders(ten_runs) if "cse-tiny-s1-" in run.name]
    words = ["compare", "--runs", ten_runs, *(run.name for run in chosen), "--items", "--top", "5"]
    (task,) = bench(*words, "--format", "json", cwd=tmp_path).json["tasks"]
    ranks = []
    for run in chosen:
        (file,) = (run / "predictions").rglob("*.npz")
        with np.load(file, allow_pickle=False) as stored:
            ranks.append(rankdata(stored["prediction"]))
    apart = np.abs(ranks[0] - ranks[1])
    said = [item["number"] for item in task["items"]]
    assert len(set(said)) == 5
    # numbers count from 1, and ranks are shown from 0 to 100
    assert np.sort(apart)[-5:][::-1].tolist() == [apart[number - 1] for number in said]
    shown = [item["apart"] for item in task["items"]]
    assert shown == pytest.approx([100 * apart[number - 1] / 79 for number in said])


@pytest.mark.promise(19)
def test_with_paper_says_which_rows_have_no_printed_number(ten_runs: Path, tmp_path: Path) -> None:
    """No paper prints scores of a random encoder on a file of ours."""
    done = bench("compare", "--runs", ten_runs, "--with-paper", cwd=tmp_path)
    assert "SimCSE" in done.out
    assert any("no published number" in line for line in done.out.splitlines())


@pytest.mark.promise(21)
@pytest.mark.nightly
def test_many_records_are_compared_row_by_row(ten_runs: Path, tmp_path: Path) -> None:
    """300 copies of a run, as 60 rows of five seeds that differ in the temperature."""
    (model,) = (run for run in run_folders(ten_runs) if run.name.startswith("simcse-tiny-s1-"))
    for place in range(300):
        made = record(model)
        made["seed"] = 1 + place % 5
        made["recipe"]["temperature"]["value"] = 0.01 + place // 5 / 1000
        made["fingerprint"] = f"{place:08x}" + made["fingerprint"][8:]
        made["run_id"] = f"simcse-tiny-s{made['seed']}-{place:08x}"
        copy = shutil.copytree(model, tmp_path / "runs" / made["run_id"])
        (copy / "run.json").write_text(json.dumps(made), encoding="utf-8")
    words = ["compare", "--runs", "runs", "--format", "json"]
    (found,) = bench(*words, cwd=tmp_path).json["tables"]
    assert [row["n"] for row in found["rows"]] == [5] * 60


@pytest.mark.promise(20)
def test_docs_show_the_simulation_and_name_what_makes_it() -> None:
    page_of_errors = text(ROOT / "benchmarks" / "verdict-errors.md")
    assert "benchmarks/verdict_errors.py" in page_of_errors
    assert (ROOT / "benchmarks" / "verdict_errors.py").is_file()
    shares = [
        float(cell)
        for line in page_of_errors.splitlines()
        if "all 5 seeds" in line
        for cell in line.split("|")[2:3]
    ]
    assert shares
    assert max(shares) <= 0.06
