"""bullpen run: one service in the foreground. The composition root: it alone sees the services."""

from __future__ import annotations

import logging

import click

from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store


@click.group()
def run() -> None:
    """Run one service in the foreground, as the supervisor does.

    \b
    Example:
      bullpen run processor
    """
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )


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
