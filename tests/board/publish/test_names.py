"""Names on published pages (none of the publisher's folders), addresses, and commands to type."""

from __future__ import annotations

import pytest

from bench.records.record import public_name


@pytest.mark.parametrize(
    "backbone, name",
    [
        ("builtin", "builtin"),
        ("owner/model-x", "owner/model-x"),
        ("/home/me/all-MiniLM-L6-v2", "all-MiniLM-L6-v2"),
        ("/work/minilm/model/", "minilm"),
        ("C:\\Users\\me\\bert", "bert"),
        ("/model", "local folder"),
    ],
)
def test_no_path_of_the_publishers_machine_is_a_name(backbone: str, name: str) -> None:
    assert public_name(backbone) == name
