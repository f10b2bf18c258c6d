"""Homes as they are after a while, backups of them, and homes made of those."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bullpen.core.access.keys import Scope, add_key
from bullpen.core.background import register_worker
from bullpen.core.message import Answer, Outcome, ReplyTo
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.ops.backup.contents import ProgressCallback
from bullpen.ops.backup.create import BackupResult, BackupTarget, create_backup, resolve_target
from bullpen.ops.backup.restore import RestoredHome, restore
from tests.conformance.verbs import AGENT, Dump, done, dump, hire, send, take
from tests.heartbeats.hearts import awake
from tests.outbox.outgoing import answer
from tests.schedules.plans import plan
from tests.stores import FakeClock

UMLAUTS = "Grüße, 'quotes', \"more\", \\ and 🐂"


def lived_in(store: Store) -> None:
    """Something of everything: done, waiting, running, on its way out, due, and files."""
    settings = store.settings
    file = keep_file(settings, "file_1_a.txt", "of a person")
    hire(store)
    awake(store, "sleeper")
    plan(store)
    send(store, UMLAUTS, channel="slack", sender="Ann", sender_id="U1",
         reply_to=ReplyTo(chat="C1"), files=(str(file),))  # fmt: skip
    done(store, take(store).token, Outcome(answers=(Answer(message="yes", files=(str(file),)),)))
    send(store, "the next")
    take(store)
    send(store, "after that")
    answer(store, "slack_waits")
    with store.write() as tx:
        add_key(tx, "script", [Scope.READ])
        register_worker(tx, "processor", "/nowhere/sock")
    plugins = settings.home / "plugins"
    (plugins / "shout" / "empty").mkdir(parents=True)
    (plugins / "shout" / "run.sh").write_text("#!/bin/sh\n")
    (plugins / "shout" / "run.sh").chmod(0o755)
    (plugins / "latest").symlink_to("shout")
    work = settings.workspace / AGENT
    work.mkdir(parents=True, exist_ok=True)
    (work / "draft.md").write_text("a draft")
    (settings.home / "token").write_text("secret of this home alone")


def keep_file(settings: Settings, name: str, text: str) -> Path:
    """A file from a person."""
    settings.files.mkdir(mode=0o700, exist_ok=True)
    path = settings.files / name
    path.write_text(text)
    return path


def take_backup(
    store: Store, to: Path, *, workspace: bool = False, keep: int | None = None
) -> BackupResult:
    """A backup in this directory, or of this file's name."""
    return create_backup(
        store, resolve_target(store.settings, to), with_workspace=workspace, keep=keep
    )


def made_of(backup: Path, home: Path, url: str = "", *, keep_keys: bool = False) -> RestoredHome:
    """A home made of it."""
    return restore(backup, home, database_url=url, keep_keys=keep_keys)


@contextmanager
def store_of(home: Path, url: str = "", now: int | None = None) -> Iterator[Store]:
    """The store of a restored home, now or at another time."""
    settings = Settings(home=home, workspace=home / "workspace", database_url=url)
    clock = None if now is None else FakeClock(now)
    opened = open_store(settings, clock=clock)
    try:
        yield opened
    finally:
        opened.close()


def left_in(directory: Path) -> list[str]:
    """What lies there for a person to see."""
    return sorted(path.name for path in directory.iterdir() if not path.name.startswith("."))


def alike(found: Dump) -> Dump:
    """Rows as either database has them: what is true is 1."""
    return {
        name: [tuple(int(each) if isinstance(each, bool) else each for each in row) for row in rows]
        for name, rows in found.items()
    }


def everything(store: Store) -> Dump:
    """All rows, comparable between the two databases."""
    return alike(dump(store))


def files_of(text: object) -> list[str]:
    """The files that a row names."""
    return [] if text is None else [str(each) for each in json.loads(str(text))]


class StopsAt:
    """Tells nobody, and stops its process the so-manieth time."""

    def __init__(self, count: int) -> None:
        self._left = count

    def __call__(self, what: str, done: int, total: int) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGSTOP)


def take_until(settings: Settings, to: Path, count: int) -> None:
    """Take a backup in this process, which stops in the middle; a body for children."""
    with_told(settings, to, StopsAt(count))


def with_told(settings: Settings, to: Path, tell: ProgressCallback) -> None:
    """Take a backup and be told how far it is."""
    store = open_store(settings)
    try:
        create_backup(store, BackupTarget(to), with_workspace=True, tell=tell)
    finally:
        store.close()


def restore_until(backup: Path, home: Path, url: str, count: int) -> None:
    """Restore in this process, which stops in the middle; a body for children."""
    restore(backup, home, database_url=url, tell=StopsAt(count))
