"""Write docs/reference/cli.md from click's options.

After a change of one:  python tools/make_reference.py
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference"
MADE = "<!-- made by tools/make_reference.py -->\n"


def cell(text: str) -> str:
    """Return text for a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def escaped(text: str) -> str:
    """Return plain text for a cell, in which "[default: 5] [env var: X]" is no link."""
    return cell(text).replace("] [", "] \\[")


def commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Yield every command with its full name, in the order of ``bench --help``."""
    from bench.cli import main

    def below(
        command: click.Command, context: click.Context
    ) -> Iterator[tuple[str, click.Command, click.Context]]:
        yield context.command_path, command, context
        # a word in the place of an argument
        words = () if isinstance(command, click.Group) else getattr(command, "commands", ())
        for name in words:
            one = command.make_context(
                context.command_path, [name], context.parent, resilient_parsing=True
            )
            yield f"{context.command_path} {name}", one.command, one
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                one = command.get_command(context, name)
                assert one is not None
                yield from below(one, click.Context(one, info_name=name, parent=context))

    yield from below(main, click.Context(main, info_name="bench", **main.context_settings))


def command_line() -> str:
    parts = [f"# Command line\n\n{MADE}"]
    for name, command, context in commands():
        parts.append(
            f"## {name}\n\n```\n{' '.join([name, *command.collect_usage_pieces(context)])}\n```\n"
        )
        for block in inspect.cleandoc(command.help or "").split("\n\n"):
            if block.startswith("\b"):
                parts.append(
                    f"```\n{textwrap.dedent(block.removeprefix(chr(8)).strip(chr(10)))}\n```\n"
                )
            else:
                parts.append(cell(block).replace("\\|", "|") + "\n")
        records = [
            record
            for option in command.get_params(context)
            if (record := option.get_help_record(context)) and "--help" not in record[0]
        ]
        if isinstance(command, click.Group):
            rows = [
                (f"[{name} {one}](#{f'{name} {one}'.replace(' ', '-')})", said)
                for one, said in _listed(command, context)
            ]
            parts.append(
                "| command | |\n|---|---|\n"
                + "".join(f"| {one} | {cell(said)} |\n" for one, said in rows)
            )
        if records:
            parts.append(
                "| option | |\n|---|---|\n"
                + "".join(
                    f"| `{cell(one).replace('&lt;', '<')}` | {escaped(said)} |\n"
                    for one, said in records
                )
            )
    return "\n".join(parts)


def _listed(command: click.Group, context: click.Context) -> Iterator[tuple[str, str]]:
    for name in command.list_commands(context):
        one = command.get_command(context, name)
        assert one is not None
        yield name, one.get_short_help_str(200)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "cli.md").write_text(command_line(), encoding="utf-8")
