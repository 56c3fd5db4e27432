"""Records: the reader against the JSON Schema that the package ships."""

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
from bench.records import RunRecord

SCHEMA = json.loads(files("bench.records").joinpath("schema/run-5.schema.json").read_text())
jsonschema.Draft202012Validator.check_schema(SCHEMA)
# JSON Schema calls 1.0 an integer; the reader does not, and the schema's comment says so
CHECKER = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
    "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
)
VALIDATOR = jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=CHECKER)(
    SCHEMA
)

NUMBERS = st.floats(-(2.0**64), 2.0**64)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**64) | NUMBERS | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


def test_a_record_fits_its_schema_and_is_read_back() -> None:
    made = record()
    content = json.loads(json.dumps(made.to_json()))
    VALIDATOR.validate(content)
    assert RunRecord.from_json(content) == made


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


@pytest.mark.parametrize(
    ("named", "reader"),
    [("bench.run/4", "commit c8654158 of bench"), ("bench.run/6", "bench 0.1.0")],
)
def test_a_record_of_another_schema_is_refused_with_what_reads_it(named: str, reader: str) -> None:
    with pytest.raises(OtherSchema) as caught:
        RunRecord.from_json(record().to_json() | {"schema": named, "whatever": 1})
    assert caught.value.message == f"schema: {named}, and this bench reads bench.run/5"
    assert caught.value.hint == f"{reader} reads it"


@pytest.mark.parametrize("odd", [None, "bench.run/05"])
def test_a_schema_that_is_none_is_damage(odd: Any) -> None:
    with pytest.raises(RecordDamaged, match=r"schema: expected 'bench.run/5'") as caught:
        RunRecord.from_json(record().to_json() | {"schema": odd})
    assert not isinstance(caught.value, OtherSchema)
