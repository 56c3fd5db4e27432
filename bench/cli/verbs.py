"""The verbs of bench, and the group that finds, imports and runs them."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from bench.base.errors import BenchError, UnknownName
from bench.base.terminal import check_system
from bench.cli.errors import TYPED, show_error, usage_error

VERBS = {
    "run": "Train and score methods; keep one record per run.",
    "search": "Search recipe values, with the same effort for every method.",
    "evaluate": "Score a ready-made encoder: hub name, folder, run, vectors.",
    "compare": "Compare runs: tables as in the papers, intervals, verdicts.",
    "publish": "Write a new version of the leaderboards: pages, Markdown, data.",
    "verify": "Compute scores again from predictions, verdicts from scores.",
    "demo": "Do a small run on the data in the package: nothing is fetched.",
    "methods": "List the methods; with a name, everything about it.",
    "suites": "List the suites; with a name, its tasks, protocol and data.",
    "check": "Check methods and suites before training.",
    "runs": "List runs; with a name, everything about one.",
    "export": "Write a run's model as a folder that other tools load.",
    "submit": "Write runs for a pull request to somebody else's leaderboard.",
    "papers": "What papers published: tables, hyperparameters, claims, remarks.",
    "data": "Evaluation data and training text: list, fetch, check.",
    "doctor": "Show what is installed, which device is used, and what is next.",
}
WELCOME = """Sentence embeddings: train, score as the papers do, keep the record, compare.

first
  bench demo               text to page in two minutes: no data, no network
  bench doctor             what is installed, and which data is here
  bench methods            what can be run

with runs
  bench compare            which method is best, and how sure that is
  bench runs               your runs; bench runs RUN shows one of them
  bench publish --preview  the same as a page, before it is published

all commands: bench --help"""


class HelpfulGroup(click.Group):
    """A group that prints its help if no command is named."""

    # what is printed if no command is named; "": the help
    welcome = ""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args:
            click.echo(self.welcome or self.get_help(ctx))
            ctx.exit(0)
        return super().parse_args(ctx, args)


class Verbs(HelpfulGroup):
    """The verbs of bench: each is imported when it is named, and its errors are one line each."""

    welcome = WELCOME

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run bench, and say in one line which file failed. Even help fails on a full disk."""
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            if error.filename is None:
                drop_output()
            where = f"{error.filename}: " if error.filename is not None else ""
            show_error(BenchError(f"{where}{error.strerror or error}"))
            sys.exit(2)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        module = importlib.import_module(f"bench.cli.{name}")
        return getattr(module, name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            raise UnknownName("command", args[0], VERBS, hint="bench --help")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            show_error(BenchError(error.format_message(), "bench --help"))
            ctx.exit(error.exit_code)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb, and turn its errors into lines and exit codes."""
        ctx.meta[TYPED] = [*ctx._protected_args, *ctx.args]
        try:
            check_system()
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BenchError as error:
            show_error(error)
            ctx.exit(error.exit_code)
        except click.UsageError as error:  # an unknown option, for example
            show_error(usage_error(error))
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(130)
        except BrokenPipeError:  # `bench ... | head`
            drop_output()
            ctx.exit(0)
        except MemoryError as error:
            what = " ".join(str(error).split()) or "there is no room for what was asked for"
            show_error(BenchError(f"the memory does not suffice: {what}"))
            ctx.exit(2)
        except (OSError, click.exceptions.Exit):
            raise
        # a plugin's own code may fail, or exit, while it is imported
        except (Exception, SystemExit) as error:
            from bench.base.user_code import located, place_of

            if not place_of(error):
                raise
            show_error(BenchError(located(error)))
            ctx.exit(1)


def drop_output() -> None:
    """Discard what is left of the output, so that the interpreter does not fail on it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
