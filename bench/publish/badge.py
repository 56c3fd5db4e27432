"""A small picture for a README: which version, of how many runs."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from bench.publish.board import Board
from bench.tables.words import visible

SIZE, PAD, HEIGHT = 11, 7, 20  # of the letters, beside a text, of the badge; in pixels
WIDE, NARROW = "mwMW%@—", "iljtfrI.,:;'|!()[] ·1-"
LABEL = "leaderboard"


def badge(board: Board) -> str:
    """SVG, without fonts, links or scripts of its own. ``textLength`` holds the text in its place whatever font there is."""
    runs, methods = len(board.runs), len(board.methods)
    words = f"{visible(board.version, limit=20)} · {runs:,} run{'s' * (runs != 1)} · {methods} method{'s' * (methods != 1)}"
    title = f"{visible(board.title)}: {words}, {board.date}"
    left, right = _width(LABEL), _width(words)
    width = left + right + 4 * PAD
    middle = left + 2 * PAD
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT}" role="img" aria-label={quoteattr(title)}>\n'
        f"<title>{escape(title)}</title>\n"
        f'<rect width="{width}" height="{HEIGHT}" rx="3" fill="#1f4e79"/>\n'
        f'<path d="M3 0h{middle - 3}v{HEIGHT}H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="#3b3b3b"/>\n'
        f'<g fill="#ffffff" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="{SIZE}">\n'
        f'<text x="{PAD}" y="14" textLength="{left}">{escape(LABEL)}</text>\n'
        f'<text x="{middle + PAD}" y="14" textLength="{right}">{escape(words)}</text>\n'
        "</g>\n</svg>\n"
    )


def _width(text: str) -> int:
    """About what the text takes: wide and narrow letters told apart."""
    return round(sum(0.95 if c in WIDE else 0.4 if c in NARROW else 0.64 for c in text) * SIZE)
