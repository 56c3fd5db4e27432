"""Training text in files, from the option to the record, the board's command and the run that it
makes again.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from bench.base.errors import BenchError, CorpusError, DataMissing
from bench.data.sets import DataFolder, Later, data_sets
from bench.method.config import RunConfig
from bench.method.plugins import Registry
from bench.records.record import CORPUS_PARTS
from bench.run.corpora import corpus_arguments, name_with_content, open_corpus
from bench.run.plan import plan_configs
from bench.run.planned import PlannedRun

NO_DATA = DataFolder(None)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table and two texts in the working directory."""
    monkeypatch.chdir(tmp_path)
    lines = [f"{i},how does it {i},it does {i},4.{i}" for i in range(9)]
    Path("t.csv").write_text("\n".join(["id,q,a,rating", *lines]) + "\n", encoding="utf-8")
    for name in "xy":
        rows = [f"a sentence {i} of {name}\n" for i in range(9)]
        Path(f"{name}.txt").write_text("".join(rows), encoding="utf-8")


def plan(registry: Registry, *corpus: str, data: DataFolder = NO_DATA) -> PlannedRun:
    texts = corpus[0] if len(corpus) == 1 else corpus
    config = RunConfig(methods=("simcse",), suites=("check",), corpus=texts)
    (run,) = plan_configs([config], registry, data)
    return run


def test_chosen_columns_make_another_run_and_file_names_do_not(registry: Registry) -> None:
    shutil.copy("t.csv", "u.csv")
    shutil.copy("x.txt", "w.txt")
    one = plan(registry, "t.csv:q")
    assert plan(registry, "u.csv:q").run_id == one.run_id
    assert plan(registry, "t.csv:q=sentence").run_id == one.run_id
    several = plan(registry, "t.csv:q", "x.txt")
    for same in (("u.csv:q", "w.txt"), ("u.csv:q", "./x.txt")):
        assert plan(registry, *same).run_id == several.run_id
    others = [
        ("t.csv:a",),
        ("x.txt", "t.csv:q"),
        ("t.csv:q", "y.txt"),
        ("x.txt",),
        ("x.txt", "x.txt"),
    ]
    ids = {plan(registry, *other).run_id for other in others}
    assert len(ids | {one.run_id, several.run_id}) == len(others) + 2


def test_a_single_text_has_the_fingerprint_that_it_always_had(registry: Registry) -> None:
    run = plan(registry, "x.txt")
    assert CORPUS_PARTS not in run.determines
    assert run.run_id == plan(registry, "x.txt:text").run_id


def test_the_parts_lead_to_the_text_again_under_any_name(registry: Registry) -> None:
    run = plan(registry, "t.csv:q", "x.txt", "builtin")
    assert run.corpus is not None
    arguments = corpus_arguments(run.corpus)
    assert run.determines[CORPUS_PARTS] == list(arguments)
    Path("t.csv").rename("renamed.csv")
    Path("x.txt").rename("renamed.txt")
    again = plan(registry, *arguments)
    assert again.run_id == run.run_id
    assert name_with_content(run.corpus).endswith(" = " + " + ".join(arguments))
    Path("renamed.txt").unlink()
    with pytest.raises(DataMissing, match="no text with sha256:"):
        plan(registry, *arguments)


def test_a_missing_text_that_bench_knows_is_named(registry: Registry) -> None:
    (nli,) = [one for one in data_sets().values() if one.name == "nli_triplets"]
    (form,) = nli.files[0].forms.values()
    with pytest.raises(DataMissing, match=r"sha256:\w+ \(nli_triplets.csv.xz\)") as caught:
        plan(registry, f"sha256:{form.sha256}")
    assert "--data DIR" in str(caught.value.hint)


def test_a_saved_folder_is_found_by_the_hash_of_the_rows(registry: Registry) -> None:
    import datasets

    datasets.disable_progress_bars()
    rows = [{"q": f"how {i}", "n": i} for i in range(9)]
    datasets.Dataset.from_list(rows).save_to_disk("set")
    run = plan(registry, "set:q")
    assert run.corpus is not None and run.corpus.name == "set:q"
    assert plan(registry, *corpus_arguments(run.corpus)).run_id == run.run_id


def test_a_plan_says_what_is_there_twice_and_what_is_test_data(registry: Registry) -> None:
    shutil.copy("x.txt", "w.txt")
    notes = plan(registry, "x.txt", "w.txt").notes
    assert "w.txt is the same text as x.txt: each row is trained on again" in notes
    assert any(note.startswith("transductive") for note in plan(registry, "x.txt", "target").notes)
    assert not any("same text" in note for note in plan(registry, "x.txt", "y.txt").notes)


@pytest.mark.parametrize(
    ("corpus", "problem"),
    [
        ("blank.txt", "blank.txt: no row has any text"),
        ("x.txt:q", "x.txt has no column 'q'; it has text"),
        ("builtin:q", "has no column 'q'"),
        ("t.csv:q,a", "simcse in the unsupervised setting needs sentences"),
    ],
)
def test_a_mistake_is_one_line(registry: Registry, corpus: str, problem: str) -> None:
    Path("blank.txt").write_text("\n\n", encoding="utf-8")
    with pytest.raises(BenchError) as caught:
        plan(registry, corpus)
    assert problem in caught.value.message and "\n" not in caught.value.message
    assert caught.value.exit_code == 2 and caught.value.hint


def test_a_text_that_is_fetched_later_makes_the_plan_provisional(registry: Registry) -> None:
    data = DataFolder(None, fetcher=Later())
    config = RunConfig(
        methods=("simcse",), suites=("check",), corpus=("x.txt", "hub:owner/name:text#50")
    )
    (run,) = plan_configs([config], registry, data)
    assert run.provisional and CORPUS_PARTS not in run.determines
    assert run.corpus is not None and len(run.corpus) == 59
    with pytest.raises(CorpusError, match="need the same columns"):
        open_corpus(("x.txt", "hub:owner/name:a,b"), True, data, ())
    with pytest.raises(DataMissing, match="nothing is fetched"):
        plan(registry, "x.txt", "hub:owner/name:text", data=DataFolder(None, offline=True))


def test_the_commands_of_the_page_are_planned(registry: Registry) -> None:
    """docs/data.md, on files as it names them."""
    import datasets

    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    names = "notes.txt|faq.csv|saved_dataset"
    commands = re.findall(rf"^bench run (.*--corpus (?:{names}).*)$", page, flags=re.M)
    assert len(commands) == 5
    Path("x.txt").rename("notes.txt")
    rows = [f"{i},how {i},so {i},not {i}\n" for i in range(70)]
    Path("faq.csv").write_text("id,question,answer,wrong_answer\n" + "".join(rows), "utf-8")
    datasets.disable_progress_bars()
    datasets.Dataset.from_dict({"text": [f"text {i}" for i in range(9)]}).save_to_disk(
        "saved_dataset"
    )
    kinds = []
    for command in commands:
        words = shlex.split(command)
        texts = [words[i + 1] for i, word in enumerate(words) if word == "--corpus"]
        setting = "supervised" if "--setting" in words else None
        config = RunConfig(
            methods=(words[0],), suites=("check",), setting=setting, corpus=tuple(texts)
        )
        (run,) = plan_configs([config], registry, NO_DATA)
        assert run.corpus is not None
        kinds.append(f"{len(run.corpus)} {run.corpus.kind}")
    assert kinds == [
        "9 sentences",
        "70 sentences",
        "70 triplets",
        "10079 sentences",
        "9 sentences",
    ]
