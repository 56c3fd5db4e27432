"""Train: rows of the papers, plans, large batches, precisions, and how long a training takes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made import rated_pairs, sentences
from scipy.stats import spearmanr
from started import Done, bench, python, record, run_folders

PRINTED = Path(__file__).parents[1] / "support" / "data" / "printed_recipes.json"
"""What the papers' tables of hyperparameters print, typed from the papers."""
TABLES = json.loads(PRINTED.read_text(encoding="utf-8"))["tables"]
ROWS_OF_NLI = 275_601  # SimCSE's nli_for_simcse.csv
GIB = 2**30


def plans(done: Done) -> list[dict[str, Any]]:
    """Return what ``--dry-run --json`` prints: an object for each run."""
    return [json.loads(line) for line in done.out.splitlines()]


def steps_of(plan: Mapping[str, Any]) -> int | None:
    """Return the planned steps of a run, wherever the plan has them."""
    found = plan.get("steps", (plan.get("estimate") or {}).get("steps"))
    return None if found is None else int(found)


def method_of(plan: Mapping[str, Any]) -> str:
    return plan["method"] + (f"+{plan['variant']}" if plan["variant"] else "")


@pytest.fixture(scope="module")
def nowhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty folder for plans, which leave nothing."""
    return tmp_path_factory.mktemp("plans")


def planned_as_printed(given: list[Any], tables: list[Any], cwd: Path) -> None:
    """Compare every row of printed tables with what one command plans."""
    methods = sorted({table["method"] for table in tables})
    backbones = sorted({row[0] for table in tables for row in table["rows"]})
    done = bench("run", *methods, "--backbone", ",".join(backbones), *given, cwd=cwd)
    planned = {(method_of(plan), plan["backbone"]): plan for plan in plans(done)}
    for table in tables:
        for backbone, *cells, _ in table["rows"]:
            wanted = dict(zip(table["columns"], cells, strict=True)) | table["all"]
            plan = planned[table["method"], backbone]
            where = (table["where"], table["method"], backbone)
            assert plan["setting"] == table["setting"], where
            assert {key: plan["recipe"][key]["value"] for key in wanted} == wanted, where
    sources = [value["source"] for plan in planned.values() for value in plan["recipe"].values()]
    assert all(isinstance(source, str) and source.strip() for source in sources)


@pytest.mark.promise(4)
def test_a_bare_command_plans_the_rows_that_the_papers_print(nowhere: Path) -> None:
    tables = [table for table in TABLES if table["main"]]
    assert sum(len(table["rows"]) for table in tables) >= 30
    planned_as_printed(["--dry-run", "--json"], tables, nowhere)
    assert not list(nowhere.iterdir())  # a plan leaves nothing


@pytest.mark.nightly
@pytest.mark.promise(4)
@pytest.mark.parametrize("setting", ["unsupervised", "supervised"])
def test_with_a_setting_a_command_plans_the_rows_that_the_papers_print(
    setting: str, nowhere: Path
) -> None:
    tables = [one for one in TABLES if not one["main"] and one["setting"] == setting]
    planned_as_printed(["--setting", setting, "--dry-run", "--json"], tables, nowhere)


@pytest.fixture(scope="module")
def promcse_plan(nowhere: Path) -> Done:
    """Return the plan of README: PromCSE's printed row on RoBERTa-large."""
    words = ["run", "--method", "promcse", "--backbone", "roberta-large", "--dry-run"]
    return bench(*words, cwd=nowhere)


@pytest.mark.promise(4)
def test_the_plan_of_a_paper_s_row_says_what_it_takes(promcse_plan: Done, nowhere: Path) -> None:
    """PromCSE's row has 84.76; its tables, SimCSE's text and RoBERTa's own page give the rest."""
    said = promcse_plan.out
    steps = math.ceil(ROWS_OF_NLI / 512) * 10
    for fact in ("84.76", f"{ROWS_OF_NLI:,}", f"{steps:,}", "512", "0.005", "Table 6", "GiB"):
        assert fact in said, fact
    assert "STS12" in said and "SICK-R" in said  # what it is scored on
    # 1.4 GB: the 355,359,744 weights of RoBERTa-large in four bytes
    downloads = next(line for line in said.splitlines() if "GB: " in line or "GB in all" in line)
    assert "roberta-large 1.4 GB" in downloads
    assert not list(nowhere.iterdir())


@pytest.mark.promise(4)
def test_every_value_of_a_plan_and_every_download_says_where_it_comes_from(nowhere: Path) -> None:
    words = ["run", "promcse", "--backbone", "roberta-large", "--set", "temperature=0.07"]
    (plan,) = plans(bench(*words, "--dry-run", "--json", cwd=nowhere))
    recipe = plan["recipe"]
    assert recipe["temperature"]["value"] == 0.07  # what is typed wins
    assert "--set" in recipe["temperature"]["source"]
    assert re.search(r"PromCSE.*Table 6", recipe["batch_size"]["source"])  # the paper
    assert "PromCSE repo" in recipe["max_seq_length"]["source"]  # the authors' code
    assert recipe["max_steps"]["source"]  # ours
    sizes = {one["name"]: one["bytes"] for one in plan["to_fetch"]}
    assert sizes["roberta-large"] == pytest.approx(355_359_744 * 4, rel=0.01)
    assert {"nli", "STS12", "STS-B", "SICK-R"} <= sizes.keys()
    licences = {one["name"]: one["licence"] for one in plan["to_fetch"]}
    assert licences["roberta-large"] == "MIT" and all(licences.values())


def memory_of(said: str) -> float:
    """Return the GiB that a plan prints."""
    amount, unit = re.findall(r"([\d,.]+) (GiB|TiB)", said)[0]
    return float(amount.replace(",", "")) * (1024 if unit == "TiB" else 1)


@pytest.mark.promise(4)
def test_the_memory_of_a_plan_is_that_of_its_activations(promcse_plan: Done, nowhere: Path) -> None:
    """Within a factor of two of Korthikanti et al. 2022, eq. 1: s b h (34 + 5 a s / h) numbers of
    two bytes a layer, here of four.
    """
    layers, hidden, heads, tokens, texts = 24, 1024, 16, 32, 3 * 512
    numbers = tokens * texts * hidden * (34 + 5 * heads * tokens / hidden)
    activations = layers * numbers * 2  # four bytes in the place of two
    expected = (activations + 355_359_744 * 4) / GIB
    assert expected / 2 < memory_of(promcse_plan.out) < expected * 2


@pytest.mark.promise(4, 8)
def test_a_plan_that_does_not_fit_names_the_chunk_that_would(nowhere: Path) -> None:
    words = ["run", "promcse", "--backbone", "roberta-large", "--set", "batch_size=131072"]
    too_much = bench(*words, "--dry-run", cwd=nowhere).out
    assert memory_of(too_much) > 4096  # no machine has that
    (rows,) = set(re.findall(r"--chunk (\d+)", too_much))
    assert 1 <= int(rows) < 131072


@pytest.mark.promise(4)
def test_a_plan_counts_the_parameters_that_train(promcse_plan: Done) -> None:
    layers, hidden, prompt = 24, 1024, 10
    trained = layers * 2 * prompt * hidden + hidden * hidden + hidden  # keys, values; the head
    said = f"{trained:,}" in promcse_plan.out or re.search(r"\b1\.5\d*\s?(M|m)", promcse_plan.out)
    assert said, "the plan does not say how many parameters train"


@pytest.mark.promise(4)
def test_a_plan_ends_with_the_command_that_measures_the_time(promcse_plan: Done) -> None:
    end = " ".join(promcse_plan.out.split("\n\n")[-1].split())
    assert "--budget 20steps" in end, "the plan does not end with a command that measures the time"


@pytest.mark.promise(4, 9)
def test_a_budget_that_is_typed_wins_over_the_recipe_s_most_steps(nowhere: Path) -> None:
    words = ["run", "simcse", "--corpus", "builtin", "--suite", "check", "--dry-run", "--json"]
    (plan,) = plans(bench(*words, "--budget", "4000steps", cwd=nowhere))
    steps = steps_of(plan)
    if steps is None:
        raise RuntimeError("a plan has its steps in another place")
    assert steps == 4000, "--budget 4000steps does not plan 4,000 steps"


SHORT: dict[str, Any] = {
    "suites": "pairs.tsv",
    "select_on": "last",
    "progress": False,
    "seeds": 1,
}
TRAINED = """
import json, sys, time
import bench

def scored(name, method, values):
    began = time.monotonic()
    try:
        runs = bench.train(method, runs=f"runs/{name}", **values)
    except bench.BenchError as error:
        return {"error": str(error)}
    (row,) = runs.frame().to_dict("records")
    return {"score": row["value"], "seconds": time.monotonic() - began}

asked = json.loads(sys.argv[1])
print(json.dumps({name: scored(name, *one) for name, one in asked.items()}))
"""


def trained(asked: Mapping[str, tuple[str, dict[str, Any]]], cwd: Path) -> dict[str, Any]:
    """Train in one process; return score and record of each run, or its error."""
    found = python(TRAINED, json.dumps(asked), cwd=cwd).json
    for name, one in found.items():
        if "score" in one:
            (run,) = run_folders(cwd / "runs" / name)
            one["record"] = record(run)
        else:
            assert not (cwd / "runs" / name).exists(), name  # what is refused leaves nothing
    return dict(found)


TRIPLETS = 16
CHUNKED: dict[str, dict[str, Any]] = {
    "whole": {},
    "chunk 4": {"chunk": 4},
    "chunk 5": {"chunk": 5},
    "cut": {"batch_size": 4},
}

REFUSED: dict[str, dict[str, Any]] = {
    "fp8": {"precision": "fp8"},
    "tf32 on a processor": {"precision": "tf32", "device": "cpu"},
    "chunk of no rows": {"chunk": 0},
}


def rows_with_two_negatives() -> list[tuple[str, str, str, str]]:
    pairs, others = rated_pairs(TRIPLETS, seed=5), sentences(2 * TRIPLETS, seed=6)
    return [
        (first, second, others[i], others[TRIPLETS + i])
        for i, (first, second, _) in enumerate(pairs)
    ]


@pytest.fixture(scope="module")
def by_chunks(found_once: Any, inputs: Path, tiny: Path) -> dict[str, Any]:
    """Return runs on 16 rows, of which every batch has all, as a whole and in chunks."""
    return dict(found_once("chunks", lambda folder: trained_by_chunks(folder, inputs, tiny)))


def trained_by_chunks(folder: Path, inputs: Path, tiny: Path) -> dict[str, Any]:
    heads = ("sent0", "sent1", "negative_1", "negative_2")
    lines = [",".join(row) for row in (heads, *rows_with_two_negatives())]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "pairs.tsv").write_bytes((inputs / "pairs.tsv").read_bytes())
    values = SHORT | {"backbone": str(tiny), "corpus": "rows.csv", "setting": "supervised"}
    values |= {"batch_size": TRIPLETS, "budget": "4steps", "learning_rate": 3e-3, "dropout": 0}
    values |= {"head": False, "temperature": 0.1}
    asked = CHUNKED | REFUSED
    return trained({name: ("simcse", values | more) for name, more in asked.items()}, folder)


def trained_by_hand(tiny: Path, steps: int) -> float:
    """Train as SimCSE's eq. 5 says, by transformers and torch alone, and return the score."""
    import torch
    from torch.nn.functional import cosine_similarity, cross_entropy
    from transformers import AutoModel, PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast.from_pretrained(tiny)
    model = AutoModel.from_pretrained(tiny).eval()  # no dropout

    def embed(texts: Any) -> torch.Tensor:
        read = tokenizer(list(texts), padding=True, return_tensors="pt")
        return model(read["input_ids"], read["attention_mask"]).last_hidden_state[:, 0]

    decayed = [one for name, one in model.named_parameters() if "pooler" not in name]
    optimizer = torch.optim.AdamW(decayed, lr=3e-3, weight_decay=0.0)
    anchors, *candidates = zip(*rows_with_two_negatives(), strict=True)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * (steps - step) / steps
        others = torch.cat([embed(texts) for texts in candidates])  # (3 n, H)
        logits = cosine_similarity(embed(anchors)[:, None], others[None], dim=-1) / 0.1
        optimizer.zero_grad()
        cross_entropy(logits, torch.arange(TRIPLETS)).backward()
        torch.nn.utils.clip_grad_norm_(decayed, 1.0)
        optimizer.step()
    firsts, seconds, gold = zip(*rated_pairs(80), strict=True)
    with torch.inference_mode():
        cosines = cosine_similarity(embed(firsts).double(), embed(seconds).double()).numpy()
    # pairs of one sentence twice are ties: their cosines differ from 1 by rounding alone
    return float(spearmanr(cosines.round(5), np.array(gold)).statistic) * 100


@pytest.mark.promise(7, 8)
def test_a_batch_in_chunks_has_the_gradient_of_the_whole_batch(
    by_chunks: dict[str, Any], tiny: Path
) -> None:
    expected, untrained = (trained_by_hand(tiny, steps) for steps in (4, 0))
    assert abs(expected - untrained) > 1
    for name in ("whole", "chunk 4", "chunk 5"):
        assert by_chunks[name]["record"]["training"]["steps"] == 4
        # two cosines that change places are 0.05
        assert by_chunks[name]["score"] == pytest.approx(expected, abs=0.15), name
        assert by_chunks[name]["score"] == pytest.approx(by_chunks["whole"]["score"], abs=0.06)
    assert abs(by_chunks["cut"]["score"] - expected) > 1  # batches of 4 are another thing


@pytest.mark.promise(8)
def test_a_chunk_is_no_other_run(by_chunks: dict[str, Any]) -> None:
    ids = {name: by_chunks[name]["record"]["run_id"] for name in CHUNKED}
    assert ids["whole"] == ids["chunk 4"] == ids["chunk 5"] != ids["cut"]


@pytest.mark.promise(8, 28)
def test_a_precision_that_does_not_exist_is_refused(by_chunks: dict[str, Any]) -> None:
    said = by_chunks["fp8"].get("error", "")
    assert "fp8" in said, 'bench.train(precision="fp8") trains'


@pytest.mark.promise(8)
@pytest.mark.parametrize("name", ["tf32 on a processor", "chunk of no rows"])
def test_what_cannot_be_computed_is_refused_in_a_line(name: str, by_chunks: dict[str, Any]) -> None:
    said = by_chunks[name].get("error", "")
    assert name.partition(" ")[0] in said and "\n" not in said, by_chunks[name]


COMPUTES_BF16 = """
import torch
a = torch.ones(128, 64, dtype=torch.bfloat16, requires_grad=True)
(a @ a.T).sum().backward()
"""


@pytest.mark.nightly
@pytest.mark.promise(8)
def test_compiled_and_in_bf16_a_training_is_nearly_that_of_fp32(
    inputs: Path, tiny: Path, tmp_path: Path
) -> None:
    (tmp_path / "pairs.tsv").write_bytes((inputs / "pairs.tsv").read_bytes())
    values = SHORT | {"backbone": str(tiny), "corpus": str(inputs / "triplets.csv")}
    values |= {"setting": "supervised", "dropout": 0, "batch_size": 16, "budget": "4steps"}
    asked = {"fp32": {"precision": "fp32"}, "compiled": {"compile": True}}
    if python(COMPUTES_BF16, cwd=tmp_path, code=None).code == 0:
        asked["bf16"] = {"precision": "bf16"}
    done = trained({name: ("simcse", values | more) for name, more in asked.items()}, tmp_path)
    fp32 = done["fp32"]["score"]
    assert done["compiled"]["score"] == pytest.approx(fp32, abs=0.05)
    assert "bf16" not in done or done["bf16"]["score"] == pytest.approx(fp32, abs=2)
    assert len({one["record"]["status"] for one in done.values()}) == 1


ROWS, BATCH = 200, 16  # of inputs/corpus.txt
IN_AN_EPOCH = math.ceil(ROWS / BATCH)  # the last short batch counts: 13
BUDGETS: dict[str, tuple[dict[str, Any], int]] = {
    "steps": ({"budget": "7steps"}, 7),
    "no step": ({"budget": "0steps"}, 0),
    "an epoch": ({"budget": "1epochs"}, IN_AN_EPOCH),
    "two epochs": ({"epochs": 2}, 2 * IN_AN_EPOCH),
    "half an epoch": ({"budget": "0.5epochs"}, math.ceil(IN_AN_EPOCH / 2)),
    "without short batches": ({"budget": "1epochs", "drop_last": True}, ROWS // BATCH),
    "sentences": ({"budget": "80sentences"}, 80 // BATCH),
    "a sentence more": ({"budget": "81sentences"}, 80 // BATCH + 1),
    "more than an epoch": ({"budget": "216sentences"}, IN_AN_EPOCH + 1),
}


@pytest.fixture(scope="module")
def budgets(found_once: Any, inputs: Path, tiny: Path) -> dict[str, Any]:
    """Return a run for each budget, and one that has two seconds."""
    return dict(found_once("budgets", lambda folder: trained_by_budgets(folder, inputs, tiny)))


def trained_by_budgets(folder: Path, inputs: Path, tiny: Path) -> dict[str, Any]:
    (folder / "pairs.tsv").write_bytes((inputs / "pairs.tsv").read_bytes())
    values = SHORT | {"backbone": str(tiny), "corpus": str(inputs / "corpus.txt")}
    values |= {"batch_size": BATCH, "max_steps": None}
    asked = {name: given for name, (given, _) in BUDGETS.items()}
    asked |= {"time": {"budget": "2s"}, "no budget": {"budget": "7parsecs"}}
    return trained({name: ("simcse", values | more) for name, more in asked.items()}, folder)


@pytest.mark.promise(9)
def test_a_budget_of_steps_epochs_or_sentences_trains_as_many_steps(
    budgets: dict[str, Any],
) -> None:
    steps = {name: budgets[name]["record"]["training"]["steps"] for name in BUDGETS}
    assert steps == {name: wanted for name, (_, wanted) in BUDGETS.items()}
    assert all(budgets[name]["record"]["status"] == "finished" for name in BUDGETS)


@pytest.mark.promise(9)
def test_a_budget_of_time_ends_a_training_soon_after_it(budgets: dict[str, Any]) -> None:
    run = budgets["time"]["record"]
    assert run["status"] == "finished" and run["training"]["steps"] >= 1
    assert 2 <= budgets["time"]["seconds"] < 90  # with loading and scoring, on a busy machine


@pytest.mark.promise(9, 29)
def test_a_budget_that_is_none_is_refused_in_a_line(budgets: dict[str, Any]) -> None:
    said = budgets["no budget"].get("error", "")
    assert "7parsecs" in said and "steps" in said and "\n" not in said


ALIKE, APART, AT_ONCE = 6, 18, 8
"""Rows with one and the same text, rows with a text of their own, rows of a batch."""


@pytest.fixture(scope="module")
def repeating(tmp_path_factory: pytest.TempPathFactory, inputs: Path) -> Path:
    """Return a folder with rated pairs, and a text in which a quarter of the rows are equal."""
    folder = tmp_path_factory.mktemp("repeating")
    (folder / "pairs.tsv").write_bytes((inputs / "pairs.tsv").read_bytes())
    same, *others = sentences(APART + 1, seed=5)
    rows = [same] * ALIKE + others
    (folder / "rows.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


@pytest.mark.promise(4, 9)
def test_batches_without_equal_texts_hold_each_text_once(repeating: Path, tiny: Path) -> None:
    """Three steps of eight rows: each takes the text that repeats once, and seven others as long as
    there are any.
    """
    values = SHORT | {"backbone": str(tiny), "corpus": "rows.txt", "batch_size": AT_ONCE}
    values |= {"budget": "1epochs", "max_steps": None, "learning_rate": 3e-3}
    asked = {
        "as drawn": {},
        "keep": {"duplicates": "keep"},
        "drop": {"duplicates": "drop"},
        "chunks": {"duplicates": "drop", "chunk": 3},
        "whole batches": {"duplicates": "drop", "drop_last": True},
    }
    runs = trained({name: ("simcse", values | more) for name, more in asked.items()}, repeating)
    records = {name: one["record"] for name, one in runs.items()}
    seen = {name: run["training"]["sentences"] for name, run in records.items()}
    whole = {"as drawn": ALIKE + APART, "keep": ALIKE + APART}
    dropped = {"drop": 8 + 8 + 5, "chunks": 8 + 8 + 5, "whole batches": 3 * 8}
    assert seen == whole | dropped
    assert {run["training"]["steps"] for run in records.values()} == {3}
    assert runs["as drawn"]["score"] == runs["keep"]["score"] != runs["drop"]["score"]
    assert records["as drawn"]["recipe"] == records["keep"]["recipe"]
    assert records["drop"]["recipe"]["duplicates"]["value"] == "drop"
    assert "duplicates" not in records["keep"]["recipe"]


@pytest.mark.promise(4)
def test_a_plan_says_what_becomes_of_equal_texts(repeating: Path, tiny: Path) -> None:
    words: list[str | Path] = ["run", "simcse", "--backbone", tiny, "--corpus", "rows.txt"]
    words += ["--suite", "pairs.tsv", "--set", "select_on=last", "--set", f"batch_size={AT_ONCE}"]
    words += ["--budget", "2epochs", "--dry-run", "--json"]
    ways = {"keep": "negatives of each other", "drop": "no batch has equal texts"}
    for way, said in ways.items():
        (plan,) = plans(bench(*words, "--set", f"duplicates={way}", cwd=repeating))
        (note,) = [note for note in plan["notes"] if f"sentence {ALIKE - 1}" in note]
        assert said in note
        assert steps_of(plan) == 6
