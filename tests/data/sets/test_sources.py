"""The sources of the data sets that bench knows, and the conversions of their files."""

from __future__ import annotations

import pytest

from bench.data.sets import (
    ANY,
    all_sources,
    data_set,
    data_sets,
    sources_of,
)
from bench.data.sets.conversions import CONVERSIONS


def test_every_source_is_of_sets_that_exist_and_gives_files_that_they_have() -> None:
    for source in all_sources().values():
        wanted = [data_set(name) for name in source.sets]
        paths = {file.path for one in wanted for file in one.files}
        assert set(source.files) <= paths, source.name
        assert {part.conversion for part in source.files.values()} <= {"as is", *CONVERSIONS}
        assert all(source.into in one.places for one in wanted), source.name
        assert source.form == ANY or all(
            source.form in (*one.forms, ANY) or not one.forms for one in wanted
        )
        assert source.pinned or "trust on first use" in source.note
        assert all(
            len(part.sha256) == len(part.paths)
            for part in source.files.values()
            if part.conversion != "as is" and "*" not in part.paths[0]
        )
        if source.site == "github":
            assert len(source.revision) == 40


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
