"""Names on published pages (none of the publisher's folders), addresses, and commands to type."""

from __future__ import annotations

import pytest

from bench.base.text import slug
from bench.board.addresses import unused_name
from bench.records.record import public_name


@pytest.mark.parametrize(
    "backbone, name",
    [
        ("builtin", "builtin"),
        ("bert-base-uncased", "bert-base-uncased"),
        ("owner/model-x", "owner/model-x"),
        ("/home/me/all-MiniLM-L6-v2", "all-MiniLM-L6-v2"),
        ("/work/minilm/model/", "minilm"),
        ("./runs/x/checkpoint", "x"),
        ("~/m", "m"),
        ("../up", "up"),
        ("C:\\Users\\me\\bert", "bert"),
        ("runs/a/b", "b"),
        ("/", "local folder"),
        ("/model", "local folder"),
    ],
)
def test_no_path_of_the_publishers_machine_is_a_name(backbone: str, name: str) -> None:
    assert public_name(backbone) == name


def test_addresses_are_plain() -> None:
    assert (
        slug("unsupervised", "owner/Model X", None, "senteval-all/1")
        == "unsupervised-owner-model-x-senteval-all-1"
    )
    assert slug("Ünï<script>") == "uni-script"
    assert len(slug("x" * 500)) == 100
    assert unused_name("a", {"a", "a-2"}) == "a-3" and unused_name("b", {"a"}) == "b"
