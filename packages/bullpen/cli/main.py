"""The `bullpen` command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import click

from bullpen import __version__
from bullpen.cli.errors import describe_os_error, print_error, print_warning
from bullpen.cli.lazy import COMPLETE_VARIABLE, LazyGroup
from bullpen.core.errors import BullpenError
from bullpen.core.files import check_home
from bullpen.core.ids import RUN_VARIABLE
from bullpen.core.settings.parse import DATABASE_SETTING, SettingProblem, load_lenient
from bullpen.core.settings.values import setting_exists

SECTIONS = {
    "Start here": {
        "up": "bullpen.cli.up:up",
        "setup": "bullpen.cli.setup:setup",
        "send": "bullpen.cli.send:send",
        "status": "bullpen.cli.status:status",
        "demo": "bullpen.cli.demo:demo",
        "doctor": "bullpen.cli.doctor:doctor",
    },
    "Agents": {
        "agent": "bullpen.cli.agent:agent",
        "team": "bullpen.cli.team:team",
        "room": "bullpen.cli.room:room",
        "provider": "bullpen.cli.provider:provider",
        "model": "bullpen.cli.model:model",
    },
    "Messages": {
        "queue": "bullpen.cli.queue:queue",
        "response": "bullpen.cli.response:response",
        "trace": "bullpen.cli.trace:trace",
        "history": "bullpen.cli.history:history",
        "events": "bullpen.cli.events:events",
    },
    "Channels": {
        "channel": "bullpen.cli.channel:channel",
        "pairing": "bullpen.cli.pairing:pairing",
    },
    "Schedules": {
        "schedule": "bullpen.cli.schedule:schedule",
        "heartbeat": "bullpen.cli.heartbeat:heartbeat",
    },
    "Reports": {
        "report": "bullpen.cli.report:report",
    },
    "Services": {
        "down": "bullpen.cli.down:down",
        "restart": "bullpen.cli.down:restart",
        "logs": "bullpen.cli.logs:logs",
        "attach": "bullpen.cli.tmux:attach",
        "run": "bullpen.cli.run:run",
    },
    "Settings and data": {
        "config": "bullpen.cli.config:config",
        "db": "bullpen.cli.db:db",
    },
    "API and keys": {
        "open": "bullpen.cli.token:open_",
        "key": "bullpen.cli.key:key",
        "token": "bullpen.cli.token:token",
    },
    "Help": {
        "help": "bullpen.cli.help:help_",
        "version": "bullpen.cli.help:version",
        "completion": "bullpen.cli.completion:completion",
    },
}
"""Every command, under its heading in the help."""

REPORTS_SETTINGS_ITSELF = frozenset({"config", "doctor"})
"""Commands that report problems of settings.toml themselves."""

IN_ANY_HOME = frozenset({"completion", "config", "doctor", "down", "help", "version"})
"""Commands that work in a home that others can write to: they only read, or stop services."""

PROGRAM = "bullpen"

UMASK = 0o077
"""Files of Bullpen and its agents are private, whatever the umask of the shell."""


def print_problems(problems: Iterable[SettingProblem], *, warnings: bool = False) -> None:
    """Print a line for each problem; `warnings` includes unknown names in settings.toml."""
    for each in problems:
        if warnings or not each.warning:
            print_warning(describe_problem(each))


def describe_problem(problem: SettingProblem) -> str:
    """Return the problem of a setting and the value that Bullpen uses instead."""
    if problem.warning:
        return f"{problem}. {problem.hint}"
    if problem.name == DATABASE_SETTING:
        return f"{problem}. The database is not used until this is corrected."
    if setting_exists(problem.name):
        return f"{problem}. Its default is used."
    return f"{problem}. {problem.hint}"


@click.group(
    "bullpen",
    cls=LazyGroup,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="bullpen")
@click.pass_context
def cli(context: click.Context) -> None:
    """Run AI agents on a durable SQL queue.

    \b
    Examples:
      bullpen up
      bullpen send "hello"
      bullpen help agent add
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
        os.environ.pop(
            COMPLETE_VARIABLE, None
        )  # completion would show ids that the run may not read
    if COMPLETE_VARIABLE in os.environ:
        from bullpen.cli import completion

        completion.install_bash_completion()
    try:
        cli(prog_name=PROGRAM)
    except BullpenError as error:
        print_error(str(error), error.hint, error.code)
        sys.exit(error.exit_status)
    except OSError as error:  # such as a full disk, or a file without permission
        print_error(describe_os_error(error), "", "os_error")
        sys.exit(1)
