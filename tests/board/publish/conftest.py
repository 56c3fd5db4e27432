"""Fixtures of tests that look at published pages."""

from __future__ import annotations

from board_page import page, seen  # noqa: F401
from browser import chromium  # noqa: F401
from published import hostile_site, out, quick, runs, site, without_figures  # noqa: F401
from submitted import theirs  # noqa: F401
