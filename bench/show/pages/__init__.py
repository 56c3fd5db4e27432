"""Pages built from records: one self-contained HTML file, no script, no network, readable from a phone to paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.compare.statistics.table import Table
    from bench.runs.record import RunRecord


def write_page(
    records: Iterable[RunRecord],
    out_file: Path,
    title: str = "Comparison",
    note: str | None = None,
    *,
    baseline: str | None = None,
    together: bool = False,
    folders: Mapping[str, Path] | None = None,
    tables: Sequence[Table] | None = None,
) -> Path:
    """Write the comparison of ``records`` to ``out_file``, whole or not at all; returns its path.

    ``tables``, where they are given, are shown instead of those that ``records`` make (``bench.compare`` adds statistics to them).
    ``note`` stands under the title, ``folders`` (run id -> folder) is where training curves are looked for. The bytes depend
    on the records and curves only.
    """
    from bench.base.files import write_or_fail

    html = render_page(records, title, note, baseline=baseline, together=together, folders=folders, tables=tables)
    write_or_fail(Path(out_file), html.encode(), hint="another place for the page")
    return Path(out_file)


def render_page(
    records: Iterable[RunRecord],
    title: str = "Comparison",
    note: str | None = None,
    *,
    baseline: str | None = None,
    together: bool = False,
    folders: Mapping[str, Path] | None = None,
    tables: Sequence[Table] | None = None,
) -> str:
    """The page as HTML. Raises ``jinja2.UndefinedError`` where the template asks for what the page does not have."""
    from markupsafe import Markup

    from bench.show.pages.comparison import comparison
    from bench.show.pages.engine import TEMPLATES, render

    page = comparison(list(records), title, note, baseline=baseline, together=together, folders=folders or {}, tables=tables)
    style = Markup((TEMPLATES / "style.css").read_text(encoding="utf-8"))  # ours: the one thing that is not escaped
    return render("comparison.html", page=page, style=style)
