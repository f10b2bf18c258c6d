"""bullpen run: one service in the foreground. The composition root: it alone sees the services."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager

import click

from bullpen.cli.acting import only_people
from bullpen.cli.loading import for_good
from bullpen.core.listening import check_address
from bullpen.core.logs import set_up
from bullpen.core.services.lock import service_lock
from bullpen.core.services.parent import end_with_supervisor, is_supervised
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.core.store.url import names_a_database


@click.group()
@click.pass_obj
def run(settings: Settings) -> None:
    """Run one service in the foreground, beside those that the supervisor runs.

    More than one processor or scheduler may work for a home; the supervisor has one of each.

    \b
    Example:
      bullpen run processor
    """
    only_people("run services")
    if is_supervised(os.environ):
        end_with_supervisor(settings)
    set_up(settings)


@run.command()
def processor() -> None:
    """Claim messages and answer them, until SIGTERM or Ctrl-C.

    \b
    Example:
      bullpen run processor
    """
    with _working("processor") as store:
        with for_good():
            from bullpen.processor import process

        process.run(store)


@run.command()
def scheduler() -> None:
    """Do what is due, and keep the store in order, until SIGTERM or Ctrl-C.

    \b
    Example:
      bullpen run scheduler
    """
    with _working("scheduler") as store:
        with for_good():
            from bullpen.scheduler import process

        process.run(store)


@run.command()
@click.pass_obj
def api(settings: Settings) -> None:
    """Serve the API, until SIGTERM or Ctrl-C.

    \b
    Example:
      bullpen run api
    """
    with _one_under_the_supervisor(settings, "api"):
        # Before the rest is loaded: a start that fails must fail sooner than it counts as one.
        check_address(settings)
        if not names_a_database(settings):
            from bullpen.api import closed

            closed.run(settings)
            return
        with for_good():
            from bullpen.api import server

        server.run(settings)


@run.command()
@click.pass_obj
def minder(settings: Settings) -> None:
    """Stop what crashes again and again, and tell the owner. The supervisor speaks to it.

    \b
    Example:
      bullpen run minder
    """
    if not is_supervised(os.environ):
        raise click.UsageError("Only the supervisor can run this; see services/minder.conf.")
    with service_lock(settings, "minder"):
        with for_good():
            from bullpen.core.services import minder as process

        process.run(settings)


@contextmanager
def _working(name: str) -> Iterator[Store]:
    """The store, for a service that works.

    What works must not do it with other limits than were meant: here a bad setting is an error.
    """
    settings = Settings.load(os.environ)
    with _one_under_the_supervisor(settings, name), closing(open_store(settings)) as store:
        yield store


@contextmanager
def _one_under_the_supervisor(settings: Settings, name: str) -> Iterator[None]:
    """Be the one that a supervisor runs; what a person starts is his own affair."""
    if not is_supervised(os.environ):
        yield
        return
    with service_lock(settings, name):
        yield
