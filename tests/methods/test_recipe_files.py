"""The recipe files of the methods: every value that the papers and their code state, with its
source; and nothing that no method reads.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench import methods
from bench.method import Method, Value
from bench.method.contract import how_fitted
from bench.method.recipe_defaults import TRAINING
from bench.method.recipe_files import NO_SOURCE, Entry, read_recipes
from bench.method.recipes import merge_recipe, variants_of
from bench.papers import Meaning, ReferenceResult, meaning, results
from bench.run.planner import vectors_named

FOLDER = Path(methods.__file__).parent


def classes() -> dict[str, type[Method]]:
    found = {}
    for module in pkgutil.iter_modules(methods.__path__, "bench.methods."):
        for _, cls in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(cls, Method) and cls.__module__ == module.name and "name" in vars(cls):
                found[cls.name] = cls
    return found


CLASSES = classes()
FILES = sorted(file.stem for file in (FOLDER / "recipes").glob("*.toml"))


def learns(cls: type[Method], setting: str) -> bool:
    return setting != "none" or how_fitted(cls)


@pytest.mark.parametrize("name", FILES)
def test_every_recipe_is_one_that_its_method_can_be_run_with(name: str) -> None:
    """Keys that the method or the harness declares, known settings and variants, values that the
    method accepts.
    """
    cls, file = CLASSES[name], read_recipes(FOLDER, name)
    assert len({(e.setting, e.backbone, e.variant) for e in file.recipes}) == len(file.recipes)
    for entry in file.recipes:
        assert entry.setting in cls.settings and entry.variant in ("", *variants_of(cls)), entry
        recipe = merge_recipe(cls, entry, entry.variant, {}, trained=learns(cls, entry.setting))
        # else the user has to give a file or a model, or the recipe names vectors to fetch
        if all(
            recipe[key] is not None and vectors_named(recipe[key]) is None for key in cls.places
        ):
            cls.check(recipe, None)
        if learns(cls, entry.setting):
            assert cls.needs(entry.setting, recipe), entry
            assert entry.corpus or "--corpus FILE" in (entry.note or ""), entry  # nobody fetches it
        for key, value in {**entry.values, **entry.facts}.items():
            where = (entry.backbone, key)
            assert value.source.strip() and value.source != NO_SOURCE and value.note != "", where
            like = cls.defaults.get(key, TRAINING.get(key)) if key in entry.values else None
            like = like.value if isinstance(like, Value) else like
            if like is not None and value.value is not None:
                kinds = isinstance(value.value, float | int), isinstance(like, float | int)
                assert kinds[0] == kinds[1], where


@pytest.mark.parametrize("name", FILES)
def test_expected_numbers_equal_the_printed_ones(name: str, shared: Path) -> None:
    file = read_recipes(FOLDER, name)
    notes = " ".join(r["notes"] for r in recipes_json(shared))
    # what papers call it
    names = {row.method for row in results() if meant_by(row).method == name}
    for entry in file.recipes:
        if entry.expect is None:
            continue
        expect = dict(entry.expect)
        assert expect.pop("suite") == "sts" and expect.pop("task") == "Avg." and expect["source"]
        if "paper, table" not in expect["source"]:  # printed in a repository, not in a paper
            methods = {name, *names, expect["source"].split()[0].lower()}
            elsewhere = {r.value for r in results() if r.method in methods and r.task == "Avg."}
            assert f"Avg. {expect['value']}" in notes or expect["value"] in elsewhere
            continue
        paper, _, table = expect["source"].partition(" paper, table ")
        about = {"task": "Avg.", "metric": "spearman", "paper": paper.lower()}
        found = []
        for row in results(None, entry.backbone, **about):
            meant = meant_by(row)
            ours = (meant.method, meant.variant) == (name, entry.variant) and not meant.set
            # the tables call untrained rows unsupervised
            setting = entry.setting in (row.setting, "none")
            if (
                row.variant != "reproduced"
                and ours
                and row.table == table.split(",")[0]
                and setting
            ):
                found.append(row.value)
        assert found == [expect["value"]], entry


def meant_by(row: ReferenceResult) -> Meaning:
    return meaning(row.method, row.variant, row.setting, row.backbone)


def recipes_json(shared: Path) -> list[dict[str, Any]]:
    text = (shared / "reference" / "recipes.json").read_text(encoding="utf-8")
    text = text.replace("not verifiable from the seeds", "not verifiable here")
    return json.loads(text)["recipes"]


def template(text: str) -> str:
    """`This sentence : "X" means [MASK].` in the methods' notation."""
    for old, new in (("X", "{s}"), (" [MASK]", "{m}"), (" <mask>", "{m}")):
        text = text.replace(old, new)
    return text


# the name of a parameter of the reference file here, and its value; None: any value that has the
# source
HEADS = {
    "cls without head": False,
    "cls without head (cls_before_pooler)": False,
    "cls + dense + tanh": True,
    "[MASK], no head": False,
    "same as in training": True,
    "[MASK], not debiased, no head": False,
}
TRANSLATED: dict[str, Callable[[Any], tuple[str, Any]]] = {
    "select_on": lambda v: ("select_on", "STS-B dev"),
    "schedule": lambda v: ("schedule", "linear"),
    "dropout": lambda v: ("dropout", None),  # the backbone's own, which is this
    "prefix_dropout": lambda v: ("prefix_dropout", None),
    "mlm_head_trainable": lambda v: ("freeze_lm_head", not v),
    "template_1": lambda v: ("template_1", template(v)),
    "template_2": lambda v: ("template_2", template(v)),
    "debias_test": lambda v: ("debias_at_test", v),
    "templates_positive": lambda v: ("templates", "repo"),
    "components": lambda v: ("components", None),
    "corpus": lambda v: ("corpus", v),
}
OF_METHOD: dict[tuple[str, str], Callable[[Any], tuple[str, Any]]] = {
    ("simcse", "pooler_train"): lambda v: ("pooling", "cls"),
    ("promptbert", "pooler_train"): lambda v: ("head", "mlm-transform" if "MLM" in v else "tanh"),
    ("whitening", "pooler_test"): lambda v: ("pooling", "avg_first_last"),
}
# its published numbers belong to the embedding layer
NAMES = {"first-last-avg": "embedding-last-avg"}
CORPORA = {"wiki1m": "wiki1m_for_simcse.txt", "nli": "nli_for_simcse.csv"}


def ours(method: str, key: str, value: Any) -> tuple[str, Any]:
    if (method, key) in OF_METHOD:
        return OF_METHOD[method, key](value)
    if key == "pooler_test" and value in HEADS and "head_at_test" in CLASSES[method].defaults:
        return "head_at_test", HEADS[value]
    return TRANSLATED.get(key, lambda v: (key, v))(value)


# On RoBERTa the paper's own system has MLM: there the reference file's variant is the method, and
# the method without it a variant.
VARIANTS = {
    ("dcpcse", "roberta-base", "mlm"): "",
    ("dcpcse", "roberta-large", "mlm"): "",
    ("dcpcse", "roberta-base", ""): "no-mlm",
}
CORRECTED = {  # (method, backbone, our variant, key): its table 3 prints neither of these two runs
    ("dcpcse", "bert-base-uncased", "mlm", "mlm"): "DCPCSE Table 2: w/ MLM",
    ("dcpcse", "roberta-base", "no-mlm", "mlm"): "DCPCSE Table 2: w/o MLM",
}

APPENDIX_A = {  # printed there, too: PAPERS-CHECK-2, section 2, c
    "max_seq_length": "PromCSE appendix A; DCPCSE appendix A; PromCSE repo ",
    "eval_steps": "PromCSE appendix A; DCPCSE appendix A; PromCSE repo ",
    "schedule": "PromCSE appendix A; transformers ",
}


def with_appendix(method: str, key: str, source: str) -> str:
    """Return a source of PromCSE's or DCPCSE's deep prompt with the appendix that prints it."""
    whole = APPENDIX_A.get(key, "") if method in ("promcse", "dcpcse") else ""
    _, mark, beginning = whole.rpartition("; ")
    return (
        whole + source.removeprefix(beginning) if mark and source.startswith(beginning) else source
    )


def find(name: str, recipe: dict[str, Any]) -> Entry:
    variant = "" if recipe["variant"] == "untrained" else recipe["variant"]
    if recipe["setting"] == "unsupervised":
        variant = VARIANTS.get((name, recipe["backbone"], variant), variant)
    wanted = recipe["setting"], recipe["backbone"], variant
    recipes = read_recipes(FOLDER, name).recipes
    found = [e for e in recipes if (e.setting, e.backbone, e.variant) == wanted]
    assert len(found) == 1, (name, *wanted)
    return found[0]


def test_our_recipes_have_every_value_of_the_reference_file_with_its_source(shared: Path) -> None:
    seen = 0
    for recipe in recipes_json(shared):
        name = NAMES.get(recipe["method"], recipe["method"])
        entry = find(name, recipe)
        assert entry.note == recipe["notes"]
        for key, stated in recipe["parameters"].items():
            if key == "hard_negative_weight" and stated["value"] is None:
                assert key not in entry.values  # unsupervised: nothing reads it
                continue
            our_key, our_value = ours(name, key, stated["value"])
            where, value = (name, entry.backbone, key), {**entry.facts, **entry.values}.get(our_key)
            assert value is not None, where
            if our_value is None and our_key in entry.facts:
                our_value = "none"
            source = CORRECTED.get((name, entry.backbone, entry.variant, key), stated["source"])
            source = with_appendix(name, key, source)
            assert (value.value, value.source) == (our_value, source), where
            for other in stated.get("other", []):
                assert value.note and f"{other['source']}: " in value.note, (*where, value.note)
            seen += 1
        if "corpus" in recipe["parameters"]:
            corpus = recipe["parameters"]["corpus"]["value"]
            assert entry.corpus and corpus.startswith(CORPORA[entry.corpus])
    assert seen > 1000
