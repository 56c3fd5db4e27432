"""Links between pages, and how pages write numbers."""

from __future__ import annotations

import re

from bench.board.addresses import link, method_page, run_file
from bench.board.board import Board
from bench.papers import papers


def run_link(board: Board, run_id: str, up: int = 0) -> str:
    """Link to the page that has the scores of a run, from a page ``up`` folders deep."""
    page = board.page_of[run_id]
    return f"#{link(page)}" if board.one_file else link(run_file(page, "index.html"), up)


def method_link(board: Board, method: str, up: int = 0) -> str:
    """Link to the page of a method; "" if there is none."""
    return "" if board.one_file else link(method_page(method), up)


def arxiv_url(text: str) -> str:
    """Return the address of the paper that a citation has the arXiv number of; "" if it has
    none."""
    number = re.search(r"arXiv (\d{4}\.\d{4,5}(?:v\d+)?)", text)
    return f"https://arxiv.org/abs/{number[1]}" if number else ""


def method_paper_url(method: str, text: str) -> str:
    """Return the address of a method's paper, by its citation or by its name; "" if it is not
    known."""
    return arxiv_url(text) or paper_url(method)


def paper_url(paper: str) -> str:
    """Return the address of a paper with tables here; "" if it is not at arXiv."""
    known = papers().get(paper)
    return f"https://arxiv.org/abs/{known.arxiv}" if known and known.arxiv else ""


def page_address(board: Board, path: str) -> str:
    """Return the full address of a file of a version; "" if the board has none."""
    if not board.address or board.one_file:
        return ""
    return f"{board.address}{link(f'{board.version}/{path}')}"


BESIDE = "../docs/README.md"
"""The documentation in the repository that the folder of all versions lies in, from that folder."""


def docs_link(docs: str, page: str = "", up: int = 1) -> str:
    """Return the address of a page of the documentation, without one of its first page; "" if
    there is none to link to.

    ``docs``: the address of its folder, of pages in HTML, or of its README.md on a code host; or
    :data:`BESIDE`. ``up``: folders between the page and the folder of all versions.
    """
    address = "../" * up + docs if docs == BESIDE else docs
    if not docs or not page:
        return address
    folder, _, name = address.rpartition("/")
    if name.endswith(".md"):
        return f"{folder}/{page}.md"
    return f"{address.rstrip('/')}/{page}.html"


def outside_links(docs: str, up: int = 1) -> list[tuple[str, str]]:
    """Return names and addresses of what lies outside the versions: documentation, source, the
    papers' claims; none without documentation."""
    if not docs:
        return []
    first = docs_link(docs, up=up)
    links = [("Docs", first)]
    repository = first.removesuffix("docs/README.md")
    if repository != first:
        links.append(("Source", f"{repository}README.md"))
    return [*links, ("Claims, explained", docs_link(docs, "claims", up))]


def minus(text: str) -> str:
    """Replace hyphens by minus signs."""
    return text.replace("-", "\N{MINUS SIGN}")
