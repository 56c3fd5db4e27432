"""``bench.train`` accepts a class, a list of methods, a number as seeds, sentences as a corpus, and
recipe values, as a person writes them.
"""

from __future__ import annotations

import linecache
import sys
import types
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import bench
from bench.base.errors import BenchError
from bench.library.arguments import recipe_texts
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
def test_a_class_is_recorded_handed_over_again_and_known_by_what_it_uses(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = typed(monkeypatch)
    made, other = bench.train([mine, "simcse"], seeds=1, **options)
    about = made.record.provenance
    assert about.corpus.name.startswith("sentences-")
    assert about.plugin.package == "the class Mine (a notebook)"
    assert about.command.startswith("bench.train(['mine', 'simcse'], backbone='")
    assert about.command.endswith("seeds=[1], select_on='last', batch_size=3)")
    assert made.scores[0].value == other.scores[0].value, "the losses are the same"

    monkeypatch.setattr(known, "_classes", {})  # another process
    with pytest.raises(BenchError, match="'mine' of the class Mine .*plugins="):
        bench.load_run(made, device="cpu")
    assert bench.load_run(made, device="cpu", plugins=mine).encode(["a dog"]).shape == (1, 32)

    changed = typed(monkeypatch, CLASS.replace("FACTOR = 1.0", "FACTOR = 2.0"), cell=2)
    assert bench.train(changed, seeds=1, **options)[0].run_id == made.run_id, "it is not used"
    scaled = typed(monkeypatch, CLASS.replace("if False", "if FACTOR < 0"), cell=3)
    assert bench.train(scaled, seeds=1, **options)[0].run_id != made.run_id


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
    for wrong in (True, 1.5, [1, "2"], None, -1, [[1]], "1-99999999999999999999", 2**63):
        with pytest.raises(ValueError, match="expected whole numbers"):
            parse_seeds(wrong)


WRONG_CLASSES = {
    "an object": ("name = 'x'", "an object of the class Mine is not a method"),
    "a name that is taken": ('name = "mine"', "defines the method 'simcse', and so does"),
}


@pytest.mark.parametrize("case", WRONG_CLASSES)
def test_a_class_that_is_no_method_is_one_line(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, said = WRONG_CLASSES[case]
    after = {"a name that is taken": 'name = "simcse"'}.get(case, "pass")
    cls = typed(monkeypatch, CLASS.replace(before, after))
    with pytest.raises(BenchError) as caught:
        bench.train(cls() if case == "an object" else cls)
    assert said in str(caught.value) and "\n" not in str(caught.value)
