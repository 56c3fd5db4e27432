"""Records: round trip, and the reader against the JSON Schema that the package ships."""

from __future__ import annotations

import copy
import json
from copy import deepcopy
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from factories import record
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.base.errors import OtherSchema, RecordDamaged
from bench.records import (
    BackboneUsed,
    Checkout,
    Code,
    CorpusUsed,
    Cost,
    HowExecuted,
    Provenance,
    RecipeValue,
    RunRecord,
    Score,
    Training,
)
from bench.records import record as record_module

SCHEMA = json.loads(files("bench.records").joinpath("schema/run-5.schema.json").read_text())
jsonschema.Draft202012Validator.check_schema(SCHEMA)
# JSON Schema calls 1.0 an integer; the reader does not, and the schema's comment says so
CHECKER = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
    "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
)
VALIDATOR = jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=CHECKER)(
    SCHEMA
)

NAMES = st.text(min_size=1, max_size=8)
NUMBERS = st.floats(-(2.0**64), 2.0**64)
VALUES = st.floats(-1e9, 1e9)
AMOUNTS = st.floats(0, 1e18)
COUNTS = st.integers(0, 2**63 - 1)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**64) | NUMBERS | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text(max_size=5), ANY_JSON, max_size=3)
SCORES = st.builds(
    Score,
    suite=NAMES,
    task=NAMES,
    protocol=NAMES,
    metric=NAMES,
    value=VALUES,
    n=COUNTS,
    std=st.none() | AMOUNTS,
    detail=OBJECTS,
    predictions_sha256=st.none() | NAMES,
)
MAYBE_COUNT = st.none() | COUNTS
MAYBE_AMOUNT = st.none() | AMOUNTS
MAYBE_TEXT = st.none() | st.text(max_size=5)
CODES = st.builds(Code, package=MAYBE_TEXT, version=MAYBE_TEXT, sha256=MAYBE_TEXT)
RECORDS = st.builds(
    RunRecord,
    run_id=st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._+@=-]{0,20}\Z"),
    fingerprint=NAMES,
    status=st.sampled_from(record_module.STATUSES),
    method=NAMES,
    setting=st.sampled_from(record_module.SETTINGS),
    backbone=NAMES,
    seed=MAYBE_COUNT,
    variant=st.text(max_size=5),
    error=MAYBE_TEXT,
    recipe=st.dictionaries(
        st.text(max_size=5),
        st.builds(RecipeValue, value=ANY_JSON, source=st.text(), note=MAYBE_TEXT),
        max_size=3,
    ),
    scores=st.lists(SCORES, max_size=3, unique_by=lambda score: score.key).map(tuple),
    cost=st.builds(
        Cost,
        trainable_parameters=MAYBE_COUNT,
        trainable_parts=st.none() | st.dictionaries(st.text(max_size=5), COUNTS, max_size=3),
        train_seconds=MAYBE_AMOUNT,
        device=MAYBE_TEXT,
        train_tokens_per_second=MAYBE_AMOUNT,
        host_memory_bytes=MAYBE_COUNT,
    ),
    training=st.none()
    | st.builds(
        Training,
        steps=COUNTS,
        best_step=MAYBE_COUNT,
        dev_task=MAYBE_TEXT,
        dev_score=st.none() | VALUES,
        tokens=MAYBE_COUNT,
    ),
    provenance=st.builds(
        Provenance,
        created=st.datetimes().map(lambda moment: moment.isoformat()),
        command=MAYBE_TEXT,
        git=st.builds(Checkout, commit=MAYBE_TEXT, dirty=st.none() | st.booleans()),
        plugin=CODES,
        packages=st.dictionaries(st.text(max_size=5), MAYBE_TEXT, max_size=3),
        data=st.dictionaries(st.text(max_size=5), MAYBE_TEXT, max_size=3),
        corpus=st.builds(CorpusUsed, name=MAYBE_TEXT, sha256=MAYBE_TEXT, overlap=OBJECTS),
        backbone=st.builds(BackboneUsed, name=MAYBE_TEXT, title=st.text(max_size=5), model=OBJECTS),
        determines=st.none() | OBJECTS,
        execution=st.builds(
            HowExecuted,
            ranks=MAYBE_COUNT | st.lists(COUNTS, max_size=3).map(tuple),
            chunk=MAYBE_COUNT,
            suites=st.dictionaries(st.text(max_size=5), CODES, max_size=2),
            search=OBJECTS,
        ),
    ),
    checkpoint=st.none() | OBJECTS,
)


@pytest.mark.slow
@settings(max_examples=50)
@given(RECORDS)
def test_a_record_survives_json(made: RunRecord) -> None:
    content = json.loads(json.dumps(made.to_json()))
    assert RunRecord.from_json(content) == made
    VALIDATOR.validate(content)


def accepted(content: Any) -> bool:
    try:
        RunRecord.from_json(content)
    except RecordDamaged as error:
        assert "\n" not in error.message and error.message
        return "the same cell as" in error.message  # the one rule that JSON Schema cannot say
    return True


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside: Any = ()
    if isinstance(value, dict):
        inside = value.items()
    if isinstance(value, list):
        inside = enumerate(value)
    return [path, *(place for key, one in inside for place in places(one, (*path, key)))]


ODD_VALUES = [
    None,
    True,
    -1,
    0,
    1.0,
    1.5,
    2**63,
    2**65,
    1e308,
    -0.0,
    "",
    "x",
    "a\n",
    "../x",
    [],
    {},
]
ODD_VALUES += [[1], {"a": 1}, "bench.run/0", "2026-01-01T00:00:00Z", "none", 10**400, "٣"]
ODD = st.sampled_from([*ODD_VALUES, "2026-01-01T00:00:00+00:00\n"]) | ANY_JSON


@pytest.mark.slow
@settings(max_examples=150)
@given(st.data())
def test_reader_and_schema_agree_on_damaged_records(data: st.DataObject) -> None:
    content: Any = {"root": json.loads(json.dumps(record().to_json()))}
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from([place for place in places(content) if place]))
        parent = content
        for key in path[:-1]:
            parent = parent[key]
        action = data.draw(st.sampled_from(["change", "change", "remove", "add"]))
        if action == "change" or path == ("root",):
            parent[path[-1]] = deepcopy(data.draw(ODD))
        elif action == "remove":
            del parent[path[-1]]
        elif isinstance(parent, dict):
            parent[data.draw(st.sampled_from(["extra", "value", "std", "note"]))] = deepcopy(
                data.draw(ODD)
            )
        if not isinstance(content["root"], dict):
            break
    assert accepted(copy.deepcopy(content["root"])) == VALIDATOR.is_valid(content["root"])


LARGE = {"subsets": {"a": [1, 10**200]}}


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("scores 2 value", "abc", "scores[2].value: expected 'float', got 'str'"),
        ("run_id", "../../etc", "run_id: expected 'str' matching regex"),
        ("scores 1 detail", LARGE, "scores[1].detail: a number beyond 1.84e+19"),
        ("recipe epochs", {"value": -1e300, "source": ""}, "recipe.epochs: a number beyond"),
        ("cost tokens", 1, "cost: the object contains unknown field 'tokens'"),
    ],
)
def test_the_field_is_named(path: str, value: Any, said: str) -> None:
    content = json.loads(json.dumps(record().to_json()))
    *before, last = (int(key) if key.isdigit() else key for key in path.split())
    parent = content
    for key in before:
        parent = parent[key]
    parent[last] = value
    with pytest.raises(RecordDamaged) as caught:
        RunRecord.from_json(content)
    assert caught.value.message.startswith(said)


def test_one_cell_cannot_be_scored_twice() -> None:
    content = record().to_json()
    content["scores"].append(content["scores"][1])
    with pytest.raises(RecordDamaged, match=r"scores\[8\]: the same cell as scores\[1\]"):
        RunRecord.from_json(content)


def test_a_missing_field_is_named_and_optional_ones_may_be_absent() -> None:
    content = record().to_json()
    for optional in ("error", "variant", "training"):
        del content[optional]
    assert RunRecord.from_json(content).training is None
    del content["backbone"]
    with pytest.raises(RecordDamaged, match="missing required field 'backbone'"):
        RunRecord.from_json(content)


@pytest.mark.parametrize(
    ("named", "reader"),
    [("bench.run/4", "commit c8654158 of bench"), ("bench.run/6", "bench 0.1.0")],
)
def test_a_record_of_another_schema_is_refused_with_what_reads_it(named: str, reader: str) -> None:
    with pytest.raises(OtherSchema) as caught:
        RunRecord.from_json(record().to_json() | {"schema": named, "whatever": 1})
    assert caught.value.message == f"schema: {named}, and this bench reads bench.run/5"
    assert caught.value.hint == f"{reader} reads it"


@pytest.mark.parametrize("odd", [None, 7, "bench.run/05", "bench.run/5 ", "bench.run/x", []])
def test_a_schema_that_is_none_is_damage(odd: Any) -> None:
    with pytest.raises(RecordDamaged, match=r"schema: expected 'bench.run/5'") as caught:
        RunRecord.from_json(record().to_json() | {"schema": odd})
    assert not isinstance(caught.value, OtherSchema)
