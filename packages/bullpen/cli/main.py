"""The `bullpen` command."""

from __future__ import annotations

import os
import sys

import click

from bullpen import __version__
from bullpen.cli.commands import COMPLETE_VARIABLE, LazyGroup
from bullpen.cli.failure import print_error
from bullpen.cli.problems import print_problems
from bullpen.core.errors import BullpenError
from bullpen.core.settings_problems import load_lenient

HERE = "bullpen.cli"
COMMAND_MODULES = {
    "agent": f"{HERE}.agent:agent",
    "attach": f"{HERE}.services.attach:attach",
    "completion": f"{HERE}.completion:completion",
    "config": f"{HERE}.config:config",
    "db": f"{HERE}.db:db",
    "demo": f"{HERE}.demo:demo",
    "doctor": f"{HERE}.doctor.command:doctor",
    "down": f"{HERE}.services.down:down",
    "events": f"{HERE}.events.command:events",
    "heartbeat": f"{HERE}.heartbeat:heartbeat",
    "history": f"{HERE}.history:history",
    "key": f"{HERE}.key:key",
    "logs": f"{HERE}.services.logs:logs",
    "model": f"{HERE}.model:model",
    "open": f"{HERE}.open:open_",
    "provider": f"{HERE}.provider:provider",
    "queue": f"{HERE}.queue:queue",
    "response": f"{HERE}.response:response",
    "restart": f"{HERE}.services.restart:restart",
    "room": f"{HERE}.room:room",
    "run": f"{HERE}.run:run",
    "schedule": f"{HERE}.schedule:schedule",
    "send": f"{HERE}.send:send",
    "setup": f"{HERE}.setup.command:setup",
    "status": f"{HERE}.services.status:status",
    "team": f"{HERE}.team:team",
    "token": f"{HERE}.token:token",
    "trace": f"{HERE}.trace.command:trace",
    "up": f"{HERE}.services.up:up",
}

REPORTS_SETTINGS_ITSELF = frozenset({"config", "doctor"})
"""What says by itself what is bad in settings.toml."""


@click.group(cls=LazyGroup, places=COMMAND_MODULES)
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
    if context.invoked_subcommand not in REPORTS_SETTINGS_ITSELF:
        print_problems(problems)


def main() -> None:
    """Run the command; an error of ours is three lines and an exit status, never a traceback."""
    if COMPLETE_VARIABLE in os.environ:
        from bullpen.cli import completion_bash

        completion_bash.install_bash_completion()
    try:
        cli()
    except BullpenError as error:
        print_error(str(error), error.hint, error.code)
        sys.exit(error.exit_status)
    except OSError as error:  # a disk that is full, a file that may not be read
        print_error(str(error), "", "os_error")
        sys.exit(1)
