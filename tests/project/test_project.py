"""The package's own metadata, and the one address that all its links start with."""

from __future__ import annotations

from pathlib import Path

import project_urls

ROOT = Path(__file__).resolve().parents[2]


def test_links_appear_once_an_address_is_set() -> None:
    assert project_urls.project_urls("") == {}
    links = project_urls.project_urls("https://example.org/bench")
    assert links["Issues"] == "https://example.org/bench/issues"
    for name, link in links.items():
        path = link.removeprefix("https://example.org/bench").removeprefix("/blob/main/")
        assert name in ("Repository", "Issues") or (ROOT / path).is_file(), link


def test_an_address_that_is_set_is_the_one_to_cite() -> None:
    address = project_urls.repository_address()
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert ("repository-code:" in citation) == bool(address)
    assert address in citation
