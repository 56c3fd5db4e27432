"""``bench.train`` accepts a class, a list of methods, a number as seeds, sentences as a corpus, and
recipe values, as a person writes them.
"""

from __future__ import annotations

import inspect
import linecache
import subprocess
import sys
import types
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import bench
from bench.base.errors import BenchError, UnknownName
from bench.library.arguments import find_methods, recipe_texts
from bench.method import plugins as known
from bench.run.seeds import parse_seeds

CLASS = """
    from bench.methods.simcse import SimCSE

    FACTOR = 1.0

    class Mine(SimCSE):
        name = "mine"
        settings = ("unsupervised",)
        variants = {}

        def loss(self, views, batch):
            if False:
                return None
            return super().loss(views, batch)
"""
SENTENCES = [f"a {animal} {verb}" for animal in ("dog", "cat", "man") for verb in ("runs", "eats")]
PAIRS = "sentence1\tsentence2\tscore\n" + "".join(
    f"a {one} runs\ta {two} runs\t{i % 6}\n"
    for i, (one, two) in enumerate(
        (one, two) for one in ("dog", "cat", "man", "boy") for two in ("dog", "car", "girl")
    )
)


@pytest.fixture(autouse=True)
def no_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins in a process to which no class was handed."""
    monkeypatch.setattr(known, "_classes", {})


def typed(monkeypatch: pytest.MonkeyPatch, source: str = CLASS, cell: int = 1) -> Any:
    """The class Mine, as a notebook's cell defines it."""
    text, name = dedent(source), f"/tmp/ipykernel_2/{cell}.py"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    module = types.ModuleType("typed_cells")
    monkeypatch.setitem(sys.modules, "typed_cells", module)
    exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)
    return module.Mine


@pytest.fixture
def options(tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A training of two steps on a tiny model, scored on twelve pairs."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    return {
        "backbone": tiny,
        "corpus": SENTENCES,
        "suites": "pairs.tsv",
        "select_on": "last",
        "batch_size": 3,
        "device": "cpu",
        "progress": False,
    }


@pytest.mark.slow(seconds=5)
def test_a_class_a_list_of_methods_a_number_and_sentences(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = typed(monkeypatch)
    results = bench.train([mine, "simcse"], seeds=1, **options)
    assert [one.record.method for one in results] == ["mine", "simcse"]
    assert [one.record.seed for one in results] == [1, 1]
    record = results[0].record
    assert record.recipe["batch_size"].value == 3 and record.training.steps == 2
    assert record.provenance.corpus.name.startswith("sentences-")
    assert record.provenance.plugin.package == "the class Mine (a notebook)"
    assert record.provenance.command.startswith("bench.train(['mine', 'simcse'], backbone='")
    assert record.provenance.command.endswith("seeds=[1], select_on='last', batch_size=3)")
    assert results[0].scores[0].value == results[1].scores[0].value, "the losses are the same"

    (again,) = bench.train(mine, seeds=[1], **options)
    assert again.run_id == results[0].run_id and again.record == record, "nothing was repeated"
    assert bench.load_run(again, device="cpu").encode(["a dog"]).shape == (1, 32)
    compared = bench.compare_runs(results, baseline=mine)
    assert compared.tables[0].baseline.startswith("mine")
    monkeypatch.setattr(known, "_classes", {})  # another process
    with pytest.raises(BenchError, match="'mine' of the class Mine .*plugins="):
        bench.load_run(again, device="cpu")
    assert bench.load_run(again, device="cpu", plugins=mine).encode(["a dog"]).shape == (1, 32)

    changed = typed(monkeypatch, CLASS.replace("FACTOR = 1.0", "FACTOR = 2.0"), cell=2)
    assert bench.train(changed, seeds=1, **options)[0].run_id == again.run_id, "it is not used"
    scaled = typed(monkeypatch, CLASS.replace("if False", "if FACTOR < 0"), cell=3)
    assert bench.train(scaled, seeds=1, **options)[0].run_id != again.run_id


@pytest.mark.slow(seconds=3)
def test_a_file_a_series_of_values_and_a_range_of_seeds(
    options: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "my_loss.py").write_text(dedent(CLASS))
    options |= {"temperature": [0.05, 0.1]}
    results = bench.train("my_loss.py", seeds=range(1, 2), **options)
    assert [one.record.recipe["temperature"].value for one in results] == [0.05, 0.1]
    assert results[0].record.provenance.plugin.package == "my_loss.py"


def test_a_recipe_value_with_a_comma_is_one_value() -> None:
    assert recipe_texts({"prompt": "query, "}, {"epochs": None}) == {
        "prompt": "query\\, ",
        "epochs": "None",
    }
    assert recipe_texts(None, {"temperature": (0.05, 0.1), "drop_last": True}) == {
        "temperature": "0.05,0.1",
        "drop_last": "true",
    }
    with pytest.raises(BenchError, match="epochs is given twice"):
        recipe_texts({"epochs": 1}, {"epochs": 2})


def test_seeds_are_whole_numbers() -> None:
    import numpy as np

    assert parse_seeds(3) == (3,) and parse_seeds("1-3") == (1, 2, 3)
    assert parse_seeds(np.arange(2)) == (0, 1) and parse_seeds([5, 5]) == (5,)
    for wrong in (True, 1.5, [1, "2"], None, -1, [[1]]):
        with pytest.raises(ValueError, match="expected whole numbers"):
            parse_seeds(wrong)


def test_methods_come_as_names_classes_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.methods.simcse import SimCSE

    (tmp_path / "my_loss.py").write_text(dedent(CLASS))
    file = str(tmp_path / "my_loss.py")
    assert find_methods("simcse,promcse+eh", ())["methods"] == ("simcse", "promcse+eh")
    assert find_methods(SimCSE, ())["methods"] == ("simcse",), (
        "a class of this package is its method"
    )
    assert find_methods([file, "simcse"], ())["methods"] == ("mine", "simcse")
    assert find_methods(typed(monkeypatch), ())["methods"] == ("mine",)
    with pytest.raises(BenchError, match="defines the method 'mine', and so does the class Mine"):
        find_methods([typed(monkeypatch), file], ())


WRONG_CLASSES = {
    "an object": ("name = 'x'", "an object of the class Mine is not a method"),
    "no name": ('name = "mine"', "the class Mine has no name of its own"),
    "a name that is taken": ('name = "mine"', "defines the method 'simcse', and so does"),
    "no settings": ('("unsupervised",)', "settings is 'all'"),
}


@pytest.mark.parametrize("case", WRONG_CLASSES)
def test_a_class_that_is_no_method_is_one_line(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, said = WRONG_CLASSES[case]
    after = {"a name that is taken": 'name = "simcse"', "no settings": '"all"'}.get(case, "pass")
    cls = typed(monkeypatch, CLASS.replace(before, after))
    with pytest.raises(BenchError) as caught:
        bench.train(cls() if case == "an object" else cls)
    assert said in str(caught.value) and "\n" not in str(caught.value)


WRONG_ARGUMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "misspelled": (
        {"batchsize": 8},
        "unknown argument 'batchsize' of bench.train; nearest: batch_size",
    ),
    "of the function": (
        {"suite": "check"},
        "unknown argument 'suite' of bench.train; nearest: suites",
    ),
    "another tool's name": ({"lr": 1e-5}, "(try: learning_rate=VALUE)"),
    "another name of ours": ({"dataset": "x.txt"}, "(try: corpus=FILE)"),
    "a value of the wrong type": ({"batch_size": "many"}, "batch_size=many"),
    "a budget without a unit": ({"budget": 500}, "budget=500: expected a text"),
    "a model as a backbone": ({"backbone": object()}, "of type object: expected a path or a name"),
    "a number as a suite": ({"suites": 3}, "suites=3, of type int: expected a path or a name"),
    "no suite": ({"suites": None}, "suites=None, of type NoneType"),
    "a number as data": ({"data": 3}, "data=3, of type int"),
    "settings in a list": ({"settings": ["a"]}, "settings=['a']: expected a dictionary"),
    "no such method": ({"method": "simsce"}, "unknown method 'simsce'"),
    "no method": ({"method": []}, "no method was named"),
    "a class of something else": ({"method": dict}, "the class dict is not a method"),
}


@pytest.mark.parametrize("case", WRONG_ARGUMENTS)
def test_a_wrong_argument_is_one_line_and_nothing_is_written(case: str, tmp_path: Path) -> None:
    arguments, said = WRONG_ARGUMENTS[case]
    call = {"method": "simcse", "suites": "check", "corpus": "builtin", "device": "cpu"}
    with pytest.raises(BenchError) as caught:
        bench.train(**{**call, "runs": tmp_path / "runs", **arguments})
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "runs").exists()


def test_an_unknown_argument_of_evaluate_is_named_too() -> None:
    with pytest.raises(
        UnknownName, match="unknown argument 'suit' of bench.evaluate; nearest: suit"
    ):
        bench.evaluate("builtin", suit="check")


def test_wrong_types_elsewhere_are_one_line_too() -> None:
    for call in (
        lambda: bench.compare_runs(3),
        lambda: bench.load_runs(3),  # type: ignore[arg-type]
        lambda: bench.verify_runs(3),  # type: ignore[arg-type]
        lambda: bench.publish_runs(3),  # type: ignore[arg-type]
        lambda: bench.evaluate("builtin", "check", name=3),  # type: ignore[arg-type]
        lambda: bench.evaluate("builtin", "check", prefix=3),  # type: ignore[arg-type]
        lambda: bench.evaluate("builtin", "check", server="x"),  # type: ignore[arg-type]
        lambda: bench.evaluate("builtin", "check", prompts="x"),  # type: ignore[arg-type]
    ):
        with pytest.raises(BenchError) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_the_hint_of_an_error_is_in_its_text() -> None:
    assert str(BenchError("no run", "bench run")) == "no run (try: bench run)"
    assert str(BenchError("no run")) == "no run"


def test_import_bench_loads_nothing_and_no_function_has_the_name_of_a_package() -> None:
    code = (
        "import bench, sys; print(sorted({'click', 'torch', 'numpy', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    packages = {path.name for path in Path(bench.__file__).parent.iterdir() if path.is_dir()}
    assert not packages & set(bench.__all__)


def test_import_bench_offers_every_function_of_the_library() -> None:
    from bench import library

    functions = {name for name in library.__all__ if inspect.isfunction(getattr(library, name))}
    assert set(bench.__all__) == functions | {"BenchError", "__version__"}
    assert all(getattr(bench, name) is getattr(library, name) for name in functions)
    assert set(bench.__all__) <= set(dir(bench))
