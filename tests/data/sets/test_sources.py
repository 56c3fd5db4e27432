"""The sources of the data sets that bench knows, and the conversions of their files."""

from __future__ import annotations

import pytest

from bench.data.sets import (
    ANY,
    data_sets,
    sources_of,
)
from bench.data.sets.conversions import CONVERSIONS


def test_every_evaluation_set_but_the_prepared_table_can_be_fetched_whole() -> None:
    for one in data_sets().values():
        if one.kind == "evaluation" and one.name != "CxC-STS":
            for form in one.forms or (ANY,):
                given = sources_of(one, form)
                assert all(any(source.part(file) for source in given) for file in one.files), (
                    one.name,
                    form,
                )


@pytest.mark.parametrize(
    ("name", "given", "want"),
    [
        (
            "labelled lines",
            [b"\xef\xbb\xbf1\ta b \r\n2\tc\td\t\r\n3\te"],
            b"1\ta b\n2\tc d\n3\te\n",
        ),
        (
            "JSON lines",
            [b'{"text": " a b", "cluster": 7}\n{"text": "", "cluster": 8}\n'],
            b"7\ta b\n8\t\n",
        ),
        ("text and labels", [b"a\tb \nc\n", b"1\n2\n"], b"1\ta b\n2\tc\n"),
        ("first 2 columns", [b"a\tb\tsource\nc\td\n"], b"a\tb\nc\td\n"),
    ],
)
def test_conversions(name: str, given: list[bytes], want: bytes) -> None:
    assert CONVERSIONS[name](*given) == want
