"""The `bullpen` command."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress

import click

from bullpen import __version__
from bullpen.cli.lazy import COMPLETE_VARIABLE, LazyGroup
from bullpen.cli.output import echo
from bullpen.core.errors import BullpenError
from bullpen.core.files import check_home
from bullpen.core.ids import RUN_VARIABLE
from bullpen.core.settings import DEFAULTS
from bullpen.core.settings.parse import DATABASE_SETTING, SettingProblem, load_lenient

COMMAND_MODULES = {
    "agent": "bullpen.cli.agent:agent",
    "attach": "bullpen.cli.tmux:attach",
    "completion": "bullpen.cli.completion:completion",
    "config": "bullpen.cli.config:config",
    "db": "bullpen.cli.db:db",
    "demo": "bullpen.cli.demo:demo",
    "doctor": "bullpen.cli.doctor:doctor",
    "down": "bullpen.cli.down:down",
    "events": "bullpen.cli.events:events",
    "heartbeat": "bullpen.cli.heartbeat:heartbeat",
    "history": "bullpen.cli.history:history",
    "key": "bullpen.cli.key:key",
    "logs": "bullpen.cli.logs:logs",
    "model": "bullpen.cli.model:model",
    "open": "bullpen.cli.token:open_",
    "provider": "bullpen.cli.provider:provider",
    "queue": "bullpen.cli.queue:queue",
    "response": "bullpen.cli.response:response",
    "restart": "bullpen.cli.down:restart",
    "room": "bullpen.cli.room:room",
    "run": "bullpen.cli.run:run",
    "schedule": "bullpen.cli.schedule:schedule",
    "send": "bullpen.cli.send:send",
    "setup": "bullpen.cli.setup:setup",
    "status": "bullpen.cli.status:status",
    "team": "bullpen.cli.team:team",
    "token": "bullpen.cli.token:token",
    "trace": "bullpen.cli.trace:trace",
    "up": "bullpen.cli.up:up",
}

REPORTS_SETTINGS_ITSELF = frozenset({"config", "doctor"})
"""Commands that report problems of settings.toml themselves."""

IN_ANY_HOME = frozenset({"completion", "config", "doctor", "down"})
"""Commands that work in a home that others can write to: they look, or stop what runs."""

UMASK = 0o077
"""What Bullpen and its agents make is the owner's alone, whatever the shell says."""


def print_error(text: str, hint: str, code: str) -> None:
    """Print an error and its hint to standard error; with --json also as a document."""
    print_error_json(text, hint, code)
    echo(f"bullpen: {text}", err=True)
    if hint:
        echo(f"  {hint}", err=True)


def print_error_json(text: str, hint: str, code: str) -> None:
    """Print an error as the API does, if --json was given."""
    if "--json" in sys.argv:
        with suppress(OSError):  # writing to standard output may be what failed
            echo(json.dumps({"error": text, "code": code, "hint": hint}))


def print_usage_error_json(error: click.ClickException) -> None:
    """Print an error of usage as a document, if --json was given; click prints it for people."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = "" if context is None else f"See `{context.command_path} --help`."
    print_error_json(error.format_message(), hint, "usage")


def print_problems(problems: Iterable[SettingProblem], *, warnings: bool = False) -> None:
    """Print a line for each problem; warnings are about names that no setting has."""
    for each in problems:
        if warnings or not each.warning:
            echo(f"bullpen: {describe_problem(each)}", err=True)


def describe_problem(problem: SettingProblem) -> str:
    """Return what is wrong with a setting and what Bullpen uses instead."""
    if problem.warning:
        return f"{problem}. {problem.hint}"
    if problem.name == DATABASE_SETTING:
        return f"{problem}. The database is not touched until this is corrected."
    if problem.name in DEFAULTS:
        return f"{problem}. Its default counts."
    return f"{problem}. {problem.hint}"


@click.group(cls=LazyGroup, modules=COMMAND_MODULES)
@click.version_option(__version__, prog_name="bullpen")
@click.pass_context
def cli(context: click.Context) -> None:
    """A company of AI agents on a durable SQL queue.

    \b
    Begin with:
      bullpen up
      bullpen send "hello"
    """
    context.obj, problems = load_lenient(os.environ)
    if context.invoked_subcommand not in IN_ANY_HOME:
        check_home(context.obj.home)
    if context.invoked_subcommand not in REPORTS_SETTINGS_ITSELF:
        print_problems(problems)


def main() -> None:
    """Run the command; an error is printed with a hint and an exit status, never a traceback."""
    os.umask(UMASK)
    if RUN_VARIABLE in os.environ:
        os.environ.pop(COMPLETE_VARIABLE, None)  # it would name what the run may not see
    if COMPLETE_VARIABLE in os.environ:
        from bullpen.cli import completion

        completion.install_bash_completion()
    try:
        cli()
    except BullpenError as error:
        print_error(str(error), error.hint, error.code)
        sys.exit(error.exit_status)
    except OSError as error:  # such as a full disk, or a file without permission
        print_error(str(error), "", "os_error")
        sys.exit(1)
