"""The command line: one file per verb, loaded when it is called.

Not here: anything but parsing and printing. ``bench --help`` imports click and nothing else.
"""

from __future__ import annotations

import click

from bench.base import __version__
from bench.base.extras import silence_advice
from bench.cli.errors import show_error
from bench.cli.verbs import VERBS, HelpfulGroup, Verbs

__all__ = ["VERBS", "HelpfulGroup", "main", "show_error"]


@click.group(
    cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="bench")
def main() -> None:
    """Sentence embeddings: train a method, score it the way the papers do, compare.

    \b
    Start:   bench demo
    A run:   bench run simcse --suite check --corpus builtin
    """
    silence_advice()
