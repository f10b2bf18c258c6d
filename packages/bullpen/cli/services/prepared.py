"""What `bullpen up` sees to before anything runs: a home, a database, somebody to answer."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing

from bullpen.cli.output import write_transaction
from bullpen.core.roster.agent import ECHO, Agent
from bullpen.core.roster.agents import add_agent
from bullpen.core.roster.find import find_agent
from bullpen.core.services.directories import make_directories
from bullpen.core.services.leftovers import end_orphans, find_orphans
from bullpen.core.settings import Settings
from bullpen.core.store import schema
from bullpen.core.store.open import open_store
from bullpen.core.store.url import has_valid_database_url

PrintLine = Callable[[str], None]

AGENT_PROGRAMS = ("claude", "codex")


def prepare(settings: Settings, tell: PrintLine) -> None:
    """Make what is missing; nobody is asked anything, and what is there stays."""
    make_directories(settings)
    if not has_valid_database_url(settings):
        return  # the API says so, and the rest does not start
    migrate_database(settings, tell)
    _ensure_agent(settings, tell)


def end_orphaned_services(settings: Settings, tell: PrintLine) -> None:
    """End the services that a supervisor left behind: there may never be two of one."""
    found = find_orphans(settings)
    if found:
        names = ", ".join(f"{name} ({each.pid})" for name, each in found.items())
        seconds = settings.grace_seconds
        tell(f"An earlier supervisor is gone and left {names}; they get {seconds} s to end.")
        end_orphans(found, seconds, tell)


def migrate_database(settings: Settings, tell: PrintLine) -> None:
    """Make the database, or bring it to this version's schema."""
    with closing(open_store(settings, check=False)) as store:
        if store.revision() == schema.HEAD_REVISION:
            return
        from bullpen.core.backup.upgrade import (
            upgrade_database,  # only here: Alembic takes its time
        )

        done = upgrade_database(store)
    if done.before is None:
        tell("The database is made.")
    else:
        kept = f"; what was is kept in {done.backup}" if done.backup else ""
        tell(f"The database is upgraded from revision {done.before}{kept}.")


def _ensure_agent(settings: Settings, tell: PrintLine) -> None:
    """See to it that there is somebody to answer: a real one, if one is installed."""
    with write_transaction(settings) as tx:
        if find_agent(tx, settings.default_agent) is None:
            provider = next(filter(shutil.which, AGENT_PROGRAMS), ECHO)
            add_agent(tx, Agent(id=settings.default_agent, provider=provider))
            tell(f"@{settings.default_agent} is hired and answers with {provider}.")
