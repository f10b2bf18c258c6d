"""The `bullpen` command."""

from __future__ import annotations

import os
import sys

import click

from bullpen import __version__
from bullpen.cli.agent import agent
from bullpen.cli.db import db
from bullpen.cli.heartbeat import heartbeat
from bullpen.cli.history import history
from bullpen.cli.key import key
from bullpen.cli.open import open_
from bullpen.cli.provider import provider
from bullpen.cli.queue import queue
from bullpen.cli.response import response
from bullpen.cli.room import room
from bullpen.cli.run import run
from bullpen.cli.schedule import schedule
from bullpen.cli.send import send
from bullpen.cli.services import down, status, up
from bullpen.cli.team import team
from bullpen.core.errors import BullpenError
from bullpen.core.settings import Settings


@click.group()
@click.version_option(__version__, prog_name="bullpen")
@click.pass_context
def cli(context: click.Context) -> None:
    """A company of AI agents on a durable SQL queue.

    \b
    Begin with:
      bullpen db upgrade
      bullpen up
      bullpen send "hello"
    """
    context.obj = Settings.load(os.environ)


COMMANDS = (
    *(
        agent,
        db,
        down,
        heartbeat,
        history,
        key,
        open_,
        provider,
        queue,
        response,
        room,
        run,
        schedule,
        send,
        status,
        team,
        up,
    ),
)
for command in COMMANDS:
    cli.add_command(command)


def main() -> None:
    """Run the command; an error of ours is three lines and an exit status, never a traceback."""
    try:
        cli()
    except BullpenError as error:
        click.echo(f"bullpen: {error}", err=True)
        if error.hint:
            click.echo(f"  {error.hint}", err=True)
        sys.exit(error.exit_status)
    except OSError as error:  # a disk that is full, a file that may not be read
        click.echo(f"bullpen: {error}", err=True)
        sys.exit(1)
