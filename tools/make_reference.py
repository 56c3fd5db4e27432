"""Write pages of docs/reference from click's options, schemas and the papers' tables.

After a change of any of them:  python tools/make_reference.py
"""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference"
MADE = "<!-- made by tools/make_reference.py -->\n"
SCHEMAS = {
    "Run record, `runs/RUN/run.json`": "bench/records/schema/run-5.schema.json",
    "Comparison, `bench compare --format json`": "bench/compare/forms/schema/compare-5.schema.json",
    "Tables of a published version, `vN/tables.json`": "bench/board/publish/schema/board-5.schema.json",
}


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


def schemas() -> str:
    parts = [
        f"# Schemas\n\n{MADE}\nJSON Schema, draft 2020-12, in the package. "
        "A field that is not listed is an error. Older runs are read as well.\n"
    ]
    for title, path in SCHEMAS.items():
        schema = json.loads((ROOT / path).read_text(encoding="utf-8"))
        link = f"../../{path}"
        name = schema.get("$id") or schema.get("properties", {}).get("schema", {}).get("const", "")
        parts.append(
            f"## {title}\n\n[`{name}`]({link}). "
            f"{schema.get('description') or schema.get('$comment') or ''}\n"
        )
        parts.append(properties(schema))
        for one, found in schema.get("$defs", {}).items():
            if "properties" in found:
                parts.append(f"### {name.partition('/')[0]}: {one}\n\n{properties(found)}")
    return "\n".join(parts)


def properties(schema: dict[str, Any]) -> str:
    required = set(schema.get("required", ()))
    rows = []
    for name, one in schema["properties"].items():
        said = one.get("description") or one.get("$comment") or ""
        rows.append(
            f"| `{name}` | {cell(kind(one))} | "
            f"{'' if name in required else 'may be absent. '}{cell(said)} |\n"
        )
    return "| field | is | |\n|---|---|---|\n" + "".join(rows)


def kind(one: dict[str, Any]) -> str:
    """Describe the type of a schema's value in words."""
    if "$ref" in one:
        return one["$ref"].rpartition("/")[2].replace("_", " ")
    if "const" in one:
        return f"`{one['const']}`"
    if "enum" in one:
        return ", ".join(f"`{json.dumps(value)}`" for value in one["enum"])
    for key in ("anyOf", "oneOf"):
        if key in one:
            return " or ".join(kind(other) for other in one[key])
    types = one.get("type", "any")
    said = " or ".join(types) if isinstance(types, list) else types
    if "items" in one and isinstance(one["items"], dict):
        said = said.replace("array", f"array of {kind(one['items'])}")
    if isinstance(one.get("additionalProperties"), dict):
        said = said.replace("object", f"object of {kind(one['additionalProperties'])}")
    return said


PAGES = {
    "cli.md": command_line,
    "schemas.md": schemas,
}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, make in PAGES.items():
        (FOLDER / name).write_text(make(), encoding="utf-8")
