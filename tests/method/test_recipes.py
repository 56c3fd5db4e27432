"""Recipe layers: which value wins, which source it names, and what --set may say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.base.errors import BenchError, UnknownName
from bench.method import Method, Value
from bench.method.plugins import from_file
from bench.method.recipe_checks import check_entries
from bench.method.recipe_defaults import TRAINING
from bench.method.recipe_files import Entry, RecipeDisagreement, read_recipes
from bench.method.recipe_types import parse_value
from bench.method.recipes import (
    check_variant,
    choose_entry,
    merge_recipe,
    settings_with_recipe,
    variants_of,
)
from bench.run.options import combinations_of


class Made(Method):
    name = "made"
    settings = ("unsupervised", "supervised")
    variants = {"warm": {"temperature": 0.5, "batch_size": Value(32, "table 9")}, "plain": {}}
    defaults = {"temperature": Value(0.05, "eq. 1"), "layers": 3, "mask": True, "words": "all"}
    defaults |= {"file": None}


def entry(
    setting: str = "unsupervised", backbone: str = "bert-base-uncased", variant: str = "", **of: Any
) -> Entry:
    values = {key: Value(value, "the recipe") for key, value in of.items()}
    return Entry(setting, backbone, variant, values, None, None)


def test_each_layer_wins_over_the_one_before_and_names_itself() -> None:
    own = entry(batch_size=16, temperature=0.1, epochs=3)
    recipe = merge_recipe(Made, own, "warm", {"epochs": "2", "words": "few"}, trained=True)
    values = recipe.values_with_source()
    assert {key: (v.value, v.source) for key, v in values.items() if key not in TRAINING} == {
        "temperature": (0.5, "variant warm"),
        "layers": (3, "made's default"),
        "mask": (True, "made's default"),
        "words": ("few", "--set"),
        "file": (None, "made's default"),
    }
    assert (values["batch_size"].value, values["batch_size"].source) == (32, "table 9")
    assert (values["epochs"].value, values["epochs"].source) == (2.0, "--set")
    assert values["learning_rate"] == TRAINING["learning_rate"]
    assert recipe.temperature == recipe["temperature"] == 0.5
    assert len(recipe) == len(TRAINING) + 5 and set(recipe) == set(values)
    with pytest.raises(AttributeError, match="no key 'nothing'"):
        recipe.nothing  # noqa: B018


TAKEN: list[tuple[str, Any, str, Any]] = [
    ("learning_rate", 3e-5, "1", 1.0),
    ("max_steps", 10, "none", None),
    ("temperature", 0.05, "0.1", 0.1),
    ("mask", True, "0", False),
    ("file", None, "a=b.txt", "a=b.txt"),
    ("words", "all", "", None),
]


@pytest.mark.parametrize(("key", "like", "text", "value"), TAKEN)
def test_a_value_becomes_of_the_kind_that_it_replaces(key, like, text, value):
    found = parse_value(key, text, like)
    assert found == value and type(found) is type(value)


FOUND = (
    entry("unsupervised", "builtin", temperature=1),
    *(
        entry("unsupervised", backbone, epochs=1)
        for backbone in ("bert-base-uncased", "bert-large-uncased", "roberta-base", "roberta-large")
    ),
    entry("supervised", "bert-base-uncased", epochs=1),
)


@pytest.mark.parametrize(
    ("backbone", "nearest"),
    [
        ("/models/my-bert", "bert-base-uncased"),
        ("google/bert-large-cased", "bert-large-uncased"),
        ("xlm-roberta-base", "roberta-base"),
    ],
)
def test_the_nearest_recipe_is_of_the_same_family_then_size(backbone, nearest):
    found = choose_entry(FOUND, "unsupervised", backbone, "")
    assert found is not None and found.backbone == nearest


def test_a_recipe_of_the_backbone_wins_over_the_variants_recipe_for_another() -> None:
    """Recipes without a variant hold for every variant: a rate for another size would be worse than
    none for the variant.
    """
    own = entry("unsupervised", "bert-base-uncased", "warm", epochs=1)
    assert choose_entry((*FOUND, own), "unsupervised", "bert-large-uncased", "warm") is FOUND[2]
    assert choose_entry((*FOUND, own), "unsupervised", "my-bert-base", "warm") is own
    assert choose_entry((*FOUND, own), "unsupervised", "my-bert-large", "warm") is FOUND[2]


def printed(setting: str, variant: str = "") -> Entry:
    expect = {"suite": "sts", "task": "Avg.", "value": 80.0, "source": "table 1"}
    return Entry(setting, "bert-base-uncased", variant, {}, None, expect)


BERT = "bert-base-uncased"
U = "unsupervised"
S = "supervised"
PLAIN, MARGIN = entry(U), Entry(S, BERT, "margin", {}, None, None)
SETTINGS: list[tuple[tuple[Entry, ...], str, str, list[str]]] = [
    (FOUND, BERT, "", [U, S]),
    (FOUND, "builtin", "", [U]),
    ((PLAIN, printed(S)), BERT, "", [S, U]),
    ((PLAIN, entry(S), printed(S, "eh")), BERT, "", [U, S]),
    ((*FOUND, MARGIN), "builtin", "margin", [S]),
]


@pytest.mark.parametrize(("recipes", "backbone", "variant", "wanted"), SETTINGS)
def test_settings_with_a_recipe(recipes, backbone, variant, wanted):
    assert settings_with_recipe(recipes, backbone, variant) == wanted


@pytest.fixture
def recipe_file(tmp_path: Path) -> Path:
    (tmp_path / "recipes").mkdir()
    return tmp_path / "recipes" / "made.toml"


SHARING = """
[[common]]
corpus = "wiki1m"
note = "of all"
values.epochs = { value = 1, source = "for all" }
values.eval_steps = { value = 125, source = "for all" }
facts.seed = { value = 42, source = "for all" }

[[common]]
setting = "unsupervised"
backbone = ["a", "b"]
values.epochs = { value = 2, source = "for a and b" }

[[common]]
variant = "own"
corpus = "nli"

[[recipe]]
setting = "unsupervised"
backbone = "a"
note = "its own"
values.batch_size = { value = 8, source = "a" }

[[recipe]]
setting = "unsupervised"
backbone = "b"
variant = "own"
values.epochs = { value = 3, source = "b" }

[[recipe]]
setting = "supervised"
backbone = "a"

[[disagreement]]
topic = "t"
paper = "p"
code = "c"
use = "u"
"""


def test_recipes_share_the_values_of_common_tables(tmp_path: Path, recipe_file: Path) -> None:
    recipe_file.write_text(SHARING)
    file = read_recipes(tmp_path, "made")
    first, own, other = file.recipes
    shared = {"eval_steps": Value(125, "for all")}
    of_a_and_b, batch = Value(2, "for a and b"), Value(8, "a")
    assert first.values == {"epochs": of_a_and_b, **shared, "batch_size": batch}
    assert own.values == {"epochs": Value(3, "b"), **shared}
    assert other.values == {"epochs": Value(1, "for all"), **shared}
    assert [(e.corpus, e.note, e.variant) for e in file.recipes] == [
        ("wiki1m", "its own", ""),
        ("nli", "of all", "own"),
        ("wiki1m", "of all", ""),
    ]
    assert all(e.facts == {"seed": Value(42, "for all")} and e.expect is None for e in file.recipes)
    assert file.disagreements == (RecipeDisagreement("t", "p", "c", "u"),)


def test_a_recipe_file_may_declare_a_variant(tmp_path, monkeypatch):
    (tmp_path / "recipes").mkdir()
    file = tmp_path / "recipes" / "filed.toml"
    file.write_text('[variants.cool]\ntemperature = { value = 0.01, source = "table 2" }\n')
    plugin = tmp_path / "filed.py"
    plugin.write_text(
        "from bench.method import Method\n\n\nclass Filed(Method):\n"
        "    name = 'filed'\n    settings = ('unsupervised',)\n"
        "    defaults = {'temperature': 0.05}\n    variants = {'hot': {'temperature': 0.5}}\n"
    )
    (registered,) = from_file(plugin)
    assert set(variants_of(registered.cls)) == {"hot", "cool"}
    cool = merge_recipe(registered.cls, None, "cool", {}, trained=True).values_with_source()
    assert cool["temperature"] == Value(0.01, "table 2")
    assert merge_recipe(registered.cls, None, "hot", {}, trained=True).temperature == 0.5
    with pytest.raises(UnknownName, match="unknown variant 'col' of filed; nearest: cool"):
        check_variant(registered.cls, "col")
    file.write_text('[variants.hot]\ntemperature = { value = 0.01, source = "table 2" }\n')
    read_recipes.cache_clear()
    with pytest.raises(BenchError, match=r"filed.toml: \[variants.hot\]"):
        variants_of(registered.cls)


@pytest.mark.parametrize(
    "text",
    [
        "[[recipes]]\nsetting = 's'\n",
        "[[recipe]]\nsetting = 's'\nbackbone = 'b'\nvalue = 1\n",
        '[[recipe]]\nsetting="none"\nbackbone="b"\n[recipe.values]\nepochs = { vlaue = 2 }\n',
    ],
)
def test_a_malformed_recipe_file_is_named(tmp_path: Path, recipe_file: Path, text: str) -> None:
    recipe_file.write_text(text)
    with pytest.raises(BenchError, match="is not a valid recipe file") as caught:
        read_recipes(tmp_path, "made")
    assert str(recipe_file) in caught.value.message and "\n" not in caught.value.message


def test_a_recipe_must_be_of_a_setting_a_variant_and_keys_of_the_method() -> None:
    check_entries(Made, [entry(temperature=0.1), entry(variant="warm")])
    for wrong, name in (
        (entry("none"), "setting 'none'"),
        (entry(variant="wram"), "variant 'wram'"),
        (entry(temprature=1), "'temprature'"),
    ):
        with pytest.raises(UnknownName, match=name):
            check_entries(Made, [wrong])


TIMES = [{"temperature": t, "epochs": e} for t in ("0.05", "0.1") for e in ("1", "2")]


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ({"temperature": "0.05"}, [{"temperature": "0.05"}]),
        ({"temperature": "0.05, 0.1", "epochs": "1,2"}, TIMES),
        (
            {"template_1": r'"{s}"\, {m}', "dropout": ""},
            [{"template_1": '"{s}", {m}', "dropout": ""}],
        ),
    ],
)
def test_values_with_commas_between_them_are_a_series(asked, meant):
    assert combinations_of(asked) == meant
