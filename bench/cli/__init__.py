"""The command line: one file per verb, loaded when it is called. ``bench --help`` imports click and nothing else."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO

import click

from bench.base import __version__
from bench.base.errors import BenchError, UnknownName, printable

VERBS = {
    "run": "Train and score methods; keep one record per run.",
    "search": "Search recipe values, with the same effort for every method.",
    "evaluate": "Score a finished encoder: a hub name, a folder, a run, vectors, a server.",
    "compare": "Compare runs: tables as the papers print them, intervals, verdicts.",
    "publish": "A new version of the leaderboards: pages, Markdown, data.",
    "verify": "Compute every score again from its stored predictions.",
    "demo": "A small run on the data in the package: nothing is fetched.",
    "methods": "List the methods; with a name, everything about it.",
    "suites": "List the suites; with a name, its tasks, protocol and data.",
    "check": "Check methods, suites, recipes and plans before anything is trained.",
    "runs": "List runs and what engines have queued; with a name, everything about one.",
    "encode": "Turn your sentences into vectors with a run's model.",
    "export": "Write a run's model for other tools, here or on the hub.",
    "submit": "Write runs for a pull request to somebody else's board.",
    "reproduce": "Run a paper's table again: printed value, ours, verdict.",
    "references": "What papers printed, and what does not fit in their tables.",
    "data": "Evaluation data and training text: what is here, missing or damaged.",
    "doctor": "What is installed, which device is used, and what to do next.",
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


TYPED = "bench.typed"  # in click's meta: the words after "bench"


class HelpfulGroup(click.Group):
    """A group that prints its help, not an error, if no command is named; and the help of a command wherever --help stands,
    even after an option that would take it as its value. ``welcome``: printed instead of the help."""

    welcome = ""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args:
            click.echo(self.welcome or self.get_help(ctx))
            ctx.exit(0)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if {"-h", "--help"}.isdisjoint(rest[: rest.index("--")] if "--" in rest else rest):
            return name, command, rest
        group = [word for word in rest[:1] if word in getattr(command, "commands", ())]
        return name, command, [*group, "--help"]


TAKES_PLUGINS = ("evaluate", "compare", "verify", "publish", "encode", "export")
"""Verbs in which FILE.py among the arguments is a plugin file; run, search and check read such a file themselves."""


def with_plugin_options(command: click.Command, words: Sequence[str]) -> list[str]:
    """The words of a command line, with --plugin before each FILE.py that is not the value of an option."""
    takes_value = {
        name
        for param in command.params
        if isinstance(param, click.Option) and not param.is_flag
        for name in (*param.opts, *param.secondary_opts)
    }
    changed: list[str] = []
    for word in words:
        is_value = bool(changed) and changed[-1] in takes_value
        if word.endswith(".py") and not word.startswith("-") and not is_value:
            changed.append("--plugin")
        changed.append(word)
    return changed


class Verbs(HelpfulGroup):
    """A group whose commands are imported when they are named, and whose errors are one line each."""

    welcome = WELCOME

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
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and name in TAKES_PLUGINS:
            rest = with_plugin_options(command, rest)
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            show_error(BenchError(error.format_message(), "bench --help"))
            ctx.exit(error.exit_code)

    def main(self, *args: Any, **extra: Any) -> Any:
        """As click has it; what could not be printed is a line and exit code 2, also of ``--help``."""
        code: Any = 0
        check_streams()
        try:
            return super().main(*args, **extra)
        except SystemExit as end:
            code = end.code
            raise
        except OSError as error:
            drop_output(sys.stdout)
            show_error(BenchError(f"the output cannot be written: {error.strerror or error}"))
            sys.exit(2)
        finally:
            try:
                sys.stdout.flush()
            except (OSError, ValueError) as error:
                drop_output(sys.stdout)
                if not isinstance(error, BrokenPipeError) and code == 0:
                    show_error(BenchError(f"the output cannot be written: {error}"))
                    sys.exit(2)

    def invoke(self, ctx: click.Context) -> Any:
        ctx.meta[TYPED] = [*ctx._protected_args, *ctx.args]
        try:
            check_places(ctx.meta[TYPED])
            done = super().invoke(ctx)
            sys.stdout.flush()
            return done
        except (BenchError, click.UsageError) as error:  # click's: an unknown option, for example
            show_error(error if isinstance(error, BenchError) else usage_error(error))
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(130)
        except BrokenPipeError:  # `bench ... | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        except OSError as error:
            if error.errno in OF_THE_OUTPUT and error.filename is None:
                drop_output(sys.stdout)
                show_error(BenchError(f"the output cannot be written: {error.strerror}"))
            else:
                place = f"{error.filename}: " if error.filename is not None else ""
                show_error(BenchError(f"{place}{error.strerror or error}"))
            ctx.exit(2)
        except (
            Exception,
            SystemExit,
        ) as error:  # a plugin's own code, where nobody expected it to fail
            from bench.base.user_code import located, place_of

            if not place_of(error):
                raise
            show_error(BenchError(located(error)))
            ctx.exit(1)


OF_THE_OUTPUT = (errno.ENOSPC, errno.EIO, errno.EBADF, errno.EDQUOT, errno.EFBIG)
"""Errors of standard output: a full disk, for example."""


def drop_output(stream: TextIO) -> None:
    """Let what is left of the output go nowhere, so that the interpreter does not fail on it at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def check_streams() -> None:
    """End with a line if the process was started without a standard output; without a standard error, what it would say goes nowhere."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as long as the process lives
    if sys.stdout is None:
        show_error(BenchError("the output cannot be written: it is closed", "bench ... > FILE"))
        sys.exit(2)


def check_places(words: Sequence[str]) -> None:
    """Raise BenchError for a path that no record could hold, and if the working directory is gone."""
    try:
        here = os.getcwd()
    except OSError as error:
        raise BenchError(
            f"the working directory cannot be read: {error.strerror}", "cd to another folder"
        ) from None
    for text in (*words, here, os.environ.get("BENCH_RUNS", "")):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BenchError(
                f"{ascii(text)} is not UTF-8, and a record could not name it",
                "rename it, or give it another way, such as a link with a name in UTF-8",
            ) from None


def usage_error(error: click.UsageError) -> BenchError:
    """An error of click. For an option that is a recipe value, such as --lr, the hint says how to set it."""
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        shown = {
            name
            for param in error.ctx.command.params
            if not getattr(param, "hidden", False)
            for name in param.opts
        }
        near = [name for name in error.possibilities or () if name in shown]
        error = click.NoSuchOption(error.option_name, possibilities=near, ctx=error.ctx)
    message, context = error.format_message(), error.ctx
    hint = f"{context.command_path if context else 'bench'} --help"
    options = {name for param in (context.command.params if context else ()) for name in param.opts}
    if isinstance(error, click.NoSuchOption) and "--set" in options:
        from bench.run.recipes import setter

        meant = setter(error.option_name)
        if meant.partition(" ")[0] in options:
            return BenchError(message.partition(" (")[0], meant)
    return BenchError(message, hint)


def show_error(error: BenchError, label: str = "error") -> None:
    """Print what is wrong and what to try, a line each, on standard error. Control characters in foreign text are made visible."""
    hint, context = error.hint or "", click.get_current_context(silent=True)
    typed = {word.partition("=")[0] for word in context.meta.get(TYPED, ())} if context else set()
    same = [name for name in ("--runs", "--plugin") if name in typed and name not in hint]
    if same and "bench " in hint:
        hint = f"{hint} (with the same {' and '.join(same)})"
    for name, text in ((label, error.message), ("try", hint)):
        if text:
            try:
                click.echo(f"{name}: {printable(' '.join(text.split()))}", err=True)
            except OSError:  # a full disk: the exit code says it
                drop_output(sys.stderr)


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
