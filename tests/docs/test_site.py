"""The documentation site: it builds without a warning, works from a disk, and can be searched; the
reference is made from the code.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import make_reference
import published_rows
import pytest
from browser import PHONE, WIDE, violations, visit
from browser import chromium as chromium  # a fixture

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "index",
    "tutorial",
    "reference/method",
    "reference/python",
    "reference/suite",
    "faq",
    "reference/cli",
    "repository/CHANGES",
    "suites",
    "verified",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site with .ci/site, as the workflow of the pages does."""
    out = tmp_path_factory.mktemp("site") / "with a blank"
    done = _build(ROOT / ".ci" / "site", out)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def _build(script: Path, out: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(
        [script, out], env=environment, capture_output=True, text=True, timeout=300
    )


def test_the_page_of_the_command_line_is_made_of_its_options() -> None:
    """After a change:  python tools/make_reference.py"""
    written = (make_reference.FOLDER / "cli.md").read_text(encoding="utf-8")
    assert written == make_reference.command_line()


@pytest.mark.nightly
def test_the_site_has_the_boards_and_linked_files_of_the_repository(site: Path) -> None:
    page = f"{published_rows.VERSION}/tables.json"
    assert (site / page).read_bytes() == (ROOT / page).read_bytes()
    links = site / "leaderboards" / "index.html"
    names = re.findall(r'href="([^"#]*)', links.read_text(encoding="utf-8"))
    assert "../claims.html" in names
    # of versions that are no longer there
    assert "repository/leaderboards/ERRATA.html" in (site / "claims.html").read_text("utf-8")
    assert [name for name in names if name and not (links.parent / name).is_file()] == []
    schema = "repository/bench/compare/forms/schema/compare-5.schema.json"
    assert (site / schema).is_file()
    # of the code, the page of promises links its tests alone; a design has a script of its own
    scripts = [file for file in site.rglob("*.py") if "designs" not in file.parts]
    assert all("promises" in file.parts for file in scripts)
    home = (site / "index.html").read_text(encoding="utf-8")
    tutorial = (site / "tutorial.html").read_text(encoding="utf-8")
    assert '<a href="statistics.html#the-rule">the rule</a>' in tutorial
    assert 'href="leaderboards/index.html"' in home and 'href="repository/CHANGES.html"' in home


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["bench.train", "bench.method.TorchMethod"])
def test_a_public_name_has_its_docstring_on_the_site(site: Path, name: str) -> None:
    page = {"bench": "python", "bench.method": "method"}
    place, _, last = name.rpartition(".")
    text = (site / "reference" / f"{page[place]}.html").read_text(encoding="utf-8")
    said = inspect.getdoc(getattr(importlib.import_module(place), last))
    assert said is not None
    first = text.split(f'id="{name}"')[1].split("<p>")[1].split("</p>")[0]
    words = re.findall(r"\w+", re.sub(r"<[^>]+>", "", first))
    assert words == re.findall(r"\w+", said.split("\n\n")[0])


@pytest.mark.nightly
@pytest.mark.slow(seconds=20)
def test_a_broken_link_and_a_wrong_docstring_fail_the_build(tmp_path: Path) -> None:
    for folder in (".ci", "docs", "odd"):
        (tmp_path / folder).mkdir()
    script = shutil.copy(ROOT / ".ci" / "site", tmp_path / ".ci" / "site")
    (tmp_path / "leaderboards").symlink_to(ROOT / "leaderboards")
    (tmp_path / "mkdocs.yml").write_text(
        "site_name: odd\nplugins:\n  - mkdocstrings:\n      handlers:\n"
        "        python: {paths: [.], options: {docstring_style: google}}\n"
    )
    page, code = tmp_path / "docs" / "index.md", tmp_path / "odd" / "__init__.py"
    page.write_text("::: odd.say\n")
    code.write_text(
        'def say(text: str) -> None:\n    """Say it.\n\n    Args:\n        text: Words.\n    """\n'
    )
    done = _build(script, tmp_path / "site")
    assert done.returncode == 0, done.stdout + done.stderr
    page.write_text("::: odd.say\n\n[lost](lost.md)\n")
    done = _build(script, tmp_path / "site")
    assert done.returncode != 0 and "lost.md" in done.stderr
    page.write_text("::: odd.say\n")
    code.write_text(code.read_text().replace("say(text", "say(word"))
    done = _build(script, tmp_path / "site")
    assert done.returncode != 0 and "Parameter 'text' does not appear" in done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_it_reads_from_a_disk_light_and_dark_and_asks_for_nothing_else(
    site: Path, chromium: Browser, size: tuple[int, int]
) -> None:
    grounds = set()
    for dark in (False, True):
        names = PAGES if size == PHONE and not dark else PAGES[:3]
        for name in names:
            with visit(chromium, (site / f"{name}.html").as_uri(), size, dark=dark) as seen:
                assert seen.outside(site.as_uri()) == [] and seen.troubles == []
                wide, inner = seen.page.evaluate(
                    "[document.documentElement.scrollWidth, innerWidth]"
                )
                assert wide <= inner, f"{name} is {wide} wide on {inner}"
                if size == WIDE:
                    found = violations(seen.page)
                    assert [
                        one["help"] for one in found if one["impact"] in ("serious", "critical")
                    ] == []
        grounds.add((dark, _ground(site, chromium, size, dark)))
    light, night = (next(value for dark, value in grounds if dark is one) for one in (False, True))
    assert light == "rgb(255, 255, 255)" and light != night


def _ground(site: Path, chromium: Browser, size: tuple[int, int], dark: bool) -> str:
    with visit(chromium, (site / "index.html").as_uri(), size, dark=dark) as seen:
        return str(seen.page.evaluate("getComputedStyle(document.body).backgroundColor"))
