"""Tell mkdocs what mkdocs.yml cannot: pages of the repository outside docs/, links to its files,
the boards.

Links in docs/ work on the code host. On the site, pages outside docs/ and linked files are copied
to ``repository/``, and ``leaderboards/`` next to it, so that the folder is whole on a disk and on
GitHub Pages. A board's links to Markdown lead to its page on the site.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
from project_urls import repository_address  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    "CHANGES.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "benchmarks/README.md",
    "benchmarks/verdict-errors.md",
    "benchmarks/parity/README.md",
    "bench/builtin/README.md",
)
# pages that published plans, which never change, link by their former name
MOVED = {"docs/resume.md": "docs/training.md"}
# a link with the file's name as its text
NAMED = re.compile(r"\[(?:docs/)?([\w./-]+\.md)\]\(([^)#\s]*)")
HREF = re.compile(r'(?<=href=")(?!\w+:|#|/)([^"#]*\.md)((?:#[^"]*)?)(?=")')
LINK = re.compile(r"(?<=\]\()(?!\w+:|#|/)([^)\s#]*)(#[^)\s]*)?(?=[)\s])")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    address = repository_address()
    if address:
        config.repo_url = address
        config.edit_uri = "edit/main/docs/"
    return config


def _titles(nav: list[Any]) -> dict[str, str]:
    """Return the titles of the navigation: page -> title."""
    found: dict[str, str] = {}
    for entry in nav:
        if not isinstance(entry, dict):
            continue
        for title, value in entry.items():
            if isinstance(value, list):
                found |= _titles(value)
            else:
                found[value] = title
    return found


def on_files(files: Files, config: MkDocsConfig) -> Files:
    def add(path: str, place: str) -> None:
        if (ROOT / path).is_file() and files.get_file_from_path(place) is None:
            file = File.generated(config, place, abs_src_path=str(ROOT / path))
            files.append(file)
            pages.append(file)

    pages = list(files)
    for path in PAGES:
        add(path, f"repository/{path}")
    for page in pages:  # also those that are added meanwhile
        if not page.is_documentation_page():
            continue
        for target, _ in LINK.findall(page.content_string):
            path = _path(page.src_uri, target)
            if target and _place(path).startswith("repository/"):
                add(path, _place(path))
    for file in sorted((ROOT / "leaderboards").rglob("*")):
        path = file.relative_to(ROOT).as_posix()
        if not file.is_file() or file.suffix == ".md" or "/preview/" in path:
            continue
        targets = _markdown_links(file, path) if file.suffix == ".html" else []
        for target in targets:
            if _place(target).startswith("repository/"):
                add(target, _place(target))
        if targets:
            files.append(File.generated(config, path, content=_with_site_links(file, path)))
        else:
            add(path, path)
    return files


def _markdown_links(board: Path, path: str) -> list[str]:
    """Return the Markdown files of the repository that a page of a board links to."""
    links = HREF.findall(board.read_text(encoding="utf-8"))
    return [_target(path, target) for target, _ in links]


def _target(path: str, link: str) -> str:
    """Return the file of the repository that a page of a board links to; of a version's plan the
    one that it is a copy of, whose links hold."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    return re.sub(r"^leaderboards/(v\d+)/plan\.md$", r"leaderboards/plans/\1.md", target)


def _with_site_links(board: Path, path: str) -> str:
    """Return a page of a board whose links to Markdown lead to pages of the site, and those to the
    repository's README to the repository, if its address is known."""

    def moved(link: re.Match[str]) -> str:
        target = _target(path, link[1])
        if target == "README.md" and repository_address():
            return repository_address()
        place = re.sub(r"(^|/)README\.md$", r"\1index.md", _place(target))
        page = place.removesuffix(".md").removesuffix(".html") + ".html"
        return posixpath.relpath(page, posixpath.dirname(path)) + link[2]

    return HREF.sub(moved, board.read_text(encoding="utf-8"))


def _path(page: str, target: str) -> str:
    """Return the file of the repository that a link means, from its page's address on the site."""
    home = page.removeprefix("repository/") if page.startswith("repository/") else f"docs/{page}"
    path = posixpath.normpath(posixpath.join(posixpath.dirname(home), target))
    return f"{path}/README.md" if (ROOT / path).is_dir() else path


def _place(path: str) -> str:
    """Return the place of a repository's file on the site."""
    path = MOVED.get(path, path)
    if path == "README.md":
        return path
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path.startswith("leaderboards/") and posixpath.basename(path) == "README.md":
        return path.replace("README.md", "index.html")
    if path.startswith("leaderboards/") and not path.endswith(".md"):
        return path
    return f"repository/{path}"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    def moved(link: re.Match[str]) -> str:
        target, anchor = link[1], link[2] or ""
        if not target:
            return anchor
        place = _place(_path(page.file.src_uri, target))
        return posixpath.relpath(place, posixpath.dirname(page.file.src_uri) or ".") + anchor

    titles = _titles(config.nav or [])

    def called(link: re.Match[str]) -> str:
        return f"[{titles.get(_place(_path(page.file.src_uri, link[2])), link[1])}]({link[2]}"

    return LINK.sub(moved, NAMED.sub(called, markdown))
