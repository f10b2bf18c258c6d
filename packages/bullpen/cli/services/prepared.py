"""What `bullpen up` sees to before anything runs: a home, a database, somebody to answer."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing

from bullpen.cli.output import writing
from bullpen.core.roster.agent import ECHO, Agent
from bullpen.core.roster.agents import add_agent
from bullpen.core.roster.find import find_agent
from bullpen.core.services.directories import make_directories
from bullpen.core.services.leftovers import end_leftovers, leftovers
from bullpen.core.settings import Settings
from bullpen.core.store import schema
from bullpen.core.store.open import open_store
from bullpen.core.store.url import names_a_database

Tell = Callable[[str], None]

REAL = ("claude", "codex")


def prepare(settings: Settings, tell: Tell) -> None:
    """Make what is missing; nobody is asked anything, and what is there stays."""
    make_directories(settings)
    if not names_a_database(settings):
        return  # the API says so, and the rest does not start
    bring_up_to_date(settings, tell)
    _hire(settings, tell)


def clear_away(settings: Settings, tell: Tell) -> None:
    """End the services that a supervisor left behind: there may never be two of one."""
    found = leftovers(settings)
    if found:
        names = ", ".join(f"{name} ({each.pid})" for name, each in found.items())
        seconds = settings.grace_seconds
        tell(f"An earlier supervisor is gone and left {names}; they get {seconds} s to end.")
        end_leftovers(found, seconds, tell)


def bring_up_to_date(settings: Settings, tell: Tell) -> None:
    """Make the database, or bring it to this version's schema."""
    with closing(open_store(settings, check=False)) as store:
        if store.revision() == schema.HEAD:
            return
        from bullpen.core.backup.upgrade import upgrade  # only here: Alembic takes its time

        done = upgrade(store)
    if done.before is None:
        tell("The database is made.")
    else:
        kept = f"; what was is kept in {done.backup}" if done.backup else ""
        tell(f"The database is upgraded from revision {done.before}{kept}.")


def _hire(settings: Settings, tell: Tell) -> None:
    """See to it that there is somebody to answer: a real one, if one is installed."""
    with writing(settings) as tx:
        if find_agent(tx, settings.default_agent) is None:
            provider = next(filter(shutil.which, REAL), ECHO)
            add_agent(tx, Agent(id=settings.default_agent, provider=provider))
            tell(f"@{settings.default_agent} is hired and answers with {provider}.")
