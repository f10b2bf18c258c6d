"""bullpen run: one service in the foreground. The composition root: it alone sees the services."""

from __future__ import annotations

import click

from bullpen.core.listening import check_address
from bullpen.core.logs import set_up
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store


@click.group()
@click.pass_obj
def run(settings: Settings) -> None:
    """Run one service in the foreground, as the supervisor does.

    \b
    Example:
      bullpen run processor
    """
    set_up(settings)


@run.command()
@click.pass_obj
def processor(settings: Settings) -> None:
    """Claim messages and answer them, until SIGTERM or Ctrl-C.

    \b
    Example:
      bullpen run processor
    """
    from bullpen.processor import process

    store = open_store(settings)
    process.run(store)
    store.close()


@run.command()
@click.pass_obj
def scheduler(settings: Settings) -> None:
    """Do what is due, and keep the store in order, until SIGTERM or Ctrl-C.

    \b
    Example:
      bullpen run scheduler
    """
    from bullpen.scheduler import process

    store = open_store(settings)
    process.run(store)
    store.close()


@run.command()
@click.pass_obj
def api(settings: Settings) -> None:
    """Serve the API, until SIGTERM or Ctrl-C.

    \b
    Example:
      bullpen run api
    """
    # Before the rest is loaded: a start that fails must fail sooner than it counts as one.
    check_address(settings)
    from bullpen.api import server

    server.run(settings)
