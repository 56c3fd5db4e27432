"""Pages built from records: one self-contained HTML file, no script, no network, readable from a phone to paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.runs.record import RunRecord
    from bench.statistics.table import Table

TEMPLATES = Path(__file__).with_name("templates")


def write_page(
    records: Iterable[RunRecord], out_file: Path, title: str = "Comparison", note: str | None = None, *,
    baseline: str | None = None, together: bool = False, folders: Mapping[str, Path] | None = None,
    tables: Sequence[Table] | None = None,
) -> Path:  # fmt: skip
    """Write the comparison of ``records`` to ``out_file``, whole or not at all; returns its path.

    ``tables``, where they are given, are shown instead of those that ``records`` make (``bench.compare`` adds statistics to them).
    ``note`` stands under the title, ``folders`` (run id -> folder) is where training curves are looked for. The bytes depend
    on the records and curves only.
    """
    from bench.runs.files import write_whole

    html = render_page(records, title, note, baseline=baseline, together=together, folders=folders, tables=tables)
    write_whole(Path(out_file), html.encode(), hint="another place for the page")
    return Path(out_file)


def render_page(
    records: Iterable[RunRecord], title: str = "Comparison", note: str | None = None, *, baseline: str | None = None,
    together: bool = False, folders: Mapping[str, Path] | None = None, tables: Sequence[Table] | None = None,
) -> str:  # fmt: skip
    """The page as HTML. Raises ``jinja2.UndefinedError`` where the template asks for what the page does not have."""
    import jinja2
    from markupsafe import Markup

    from bench.pages.comparison import comparison
    from bench.tables.words import score, signed

    page = comparison(list(records), title, note, baseline=baseline, together=together, folders=folders or {},
                      tables=tables)  # fmt: skip
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_finalize,
    )  # fmt: skip
    environment.filters |= {"score": score, "signed": lambda value: signed(value).replace("-", "\N{MINUS SIGN}")}
    style = Markup((TEMPLATES / "style.css").read_text(encoding="utf-8"))  # ours: the one thing that is not escaped
    return environment.get_template("comparison.html").render(page=page, style=style)


def _finalize(value: object) -> object:
    """None must never be printed, and foreign text has no control characters."""
    from markupsafe import Markup

    from bench.tables.words import visible

    if value is None:
        raise ValueError("the template printed a value that was not recorded")
    return visible(value, limit=None) if isinstance(value, str) and not isinstance(value, Markup) else value
