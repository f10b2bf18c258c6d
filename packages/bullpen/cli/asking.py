"""Asks in a person's name: a message is put into the queue, and waited for."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bullpen.cli.following import Wait, WaitResult
from bullpen.cli.interrupts import is_interactive
from bullpen.cli.screen import Screen
from bullpen.core.conversations.following import ConversationFollower, last_event_id
from bullpen.core.errors import BadSchedule, StoreError
from bullpen.core.files.copied import upload_copy
from bullpen.core.files.incoming import SavedUpload
from bullpen.core.message import NewMessage
from bullpen.core.queue.receive import submit
from bullpen.core.roster.teams import get_team
from bullpen.core.schedules.when import parse_duration, parse_time
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.core.time_zone import owner_zone_name

SENDER = "owner"
POLL_SECONDS = 0.02
"""So often a file is looked at, whose writers do not know of this process."""
WAIT_SECONDS = 300.0


@contextmanager
def open_waiting_store(settings: Settings) -> Iterator[Store]:
    """The store, for somebody who waits: a file is looked at often, which costs nothing."""
    if settings.url.startswith("sqlite"):  # a server tells everybody
        poll = min(POLL_SECONDS, settings.poll_seconds)
        settings = replace(settings, poll_seconds=poll)
    store = open_store(settings)
    try:
        yield store
    finally:
        store.close()


def enqueue_message(
    store: Store, new: NewMessage, team: str, files: tuple[Path, ...], deadline: str | None
) -> tuple[int, str]:
    """Put it into the queue; gives the place in the events before, and the conversation's id."""
    settings = store.settings
    with store.read() as tx:  # a name that is wrong is told before files are copied
        position = last_event_id(tx)
        if team:
            get_team(tx, team)
    kept: list[SavedUpload] = []
    try:
        for file in files:
            kept.append(upload_copy(file, settings.files, store.ids, settings.upload_bytes))
        with store.write() as tx:
            until = None if deadline is None else _parse_deadline(deadline, tx.now, settings)
            named = tuple(str(each.path) for each in kept)
            sent = submit(tx, replace(new, files=named, deadline=until))
    except BaseException:
        for each in kept:
            each.path.unlink(missing_ok=True)
        raise
    return position, sent[0].message_id


def _parse_deadline(text: str, now: int, settings: Settings) -> int:
    try:
        return now + parse_duration(text)
    except BadSchedule:
        return parse_time(text, owner_zone_name(settings))


def wait_for_answers(
    following: ConversationFollower, screen: Screen, timeout: float | None, *, asks: bool = True
) -> WaitResult:
    """Wait for it: so many seconds, or if None as long as somebody is there who can end it."""
    if timeout is None:
        timeout = math.inf if is_interactive() else WAIT_SECONDS
    try:
        return Wait(following, screen, time.monotonic() + timeout, asks).wait()
    except (StoreError, OSError):
        # What went wrong is told by who catches it.
        screen.note(f"{following.conversation_id} is in the queue all the same.")
        raise
