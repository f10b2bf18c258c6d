"""Health: the state of one account, kept in the store, and the owner told once when it is down."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from bullpen.channels.async_store import AsyncStore
from bullpen.channels.failures import MAX_REASON_CHARS, ChannelDown
from bullpen.channels.waiting import wait_at_most
from bullpen.core.channels.health import (
    Activity,
    ChannelState,
    find_health,
    report_activity,
    report_state,
)
from bullpen.core.errors import StoreError
from bullpen.core.message import Answer
from bullpen.core.outbox.hold import find_hold
from bullpen.core.outbox.write import OWNER_SENDER, send_to_owner, send_to_person
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import visible_line

REPORT_SECONDS = 15.0
"""How often activity is written. Changes of the state are written at once."""
RECONNECT_HINT = "Bullpen connects again automatically. If this lasts, check the network."


READABLE_CHANNEL = "cli"
"""Where a notice about the owner's own channel is read."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Why a channel neither receives nor sends."""

    code: str = ""
    reason: str = ""
    hint: str = ""


class HealthReporter:
    """What is known of the connection of one account, and its row."""

    def __init__(
        self,
        store: AsyncStore,
        channel: str,
        worker: Callable[[], str],
        on_connected: Callable[[bool], None],
        flush: Callable[[Transaction], None],
        log: logging.Logger,
    ) -> None:
        """`flush` adds what else is written with the activity."""
        self._store = store
        self._channel = channel
        self._worker = worker
        self._on_connected = on_connected
        self._flush = flush
        self._log = log
        self._activity = Activity()
        self._state = (ChannelState.STARTING, "", "", "")
        self._reported: tuple[ChannelState, str, str, str] | None = None
        self._changed = asyncio.Event()
        self.heard_at = store.now
        """When the platform was last heard."""
        self.is_connected = False
        self.connected_at = 0

    def connected(self, connections: int = 1) -> None:
        """The platform can reach the client."""
        again = not self.is_connected
        self.is_connected = True
        self.connected_at = self._store.now
        self._activity = replace(self._activity, connections=connections)
        self.set(ChannelState.UP)
        self._on_connected(again)

    def disconnected(self, reason: str, code: str = "disconnected") -> None:
        """The platform cannot reach the client for now."""
        self.is_connected = False
        self._activity = replace(self._activity, connections=0)
        self.set(ChannelState.DEGRADED, code, reason, RECONNECT_HINT)

    def silent(self, reason: str) -> None:
        """The connection brings no messages, although there are some."""
        self.set(ChannelState.DEGRADED, "silent", reason)

    def heard(self) -> None:
        """The platform sent something."""
        self.heard_at = self._store.now
        self._activity = replace(self._activity, last_event_at=self.heard_at)

    def message_taken(self) -> None:
        """A message was stored."""
        self._activity = replace(self._activity, last_message_at=self._store.now)

    def part_sent(self) -> None:
        """The platform took a part."""
        self._activity = replace(self._activity, last_receipt_at=self._store.now)

    def down(self, error: ChannelDown) -> None:
        """The account cannot work."""
        self.is_connected = False
        self.set(ChannelState.DOWN, error.code, error.reason, error.hint)

    def set(self, state: ChannelState, code: str = "", reason: str = "", hint: str = "") -> None:
        """Report this state as soon as possible."""
        reason = visible_line(reason)[:MAX_REASON_CHARS]
        if (state, code, reason, hint) != self._state:
            self._state = (state, code, reason, hint)
            self._log.info("%s is %s%s", self._channel, state, f": {reason}" if reason else "")
            self._changed.set()

    async def run(self) -> None:
        """Write the state when it changes, and the activity now and then, until cancelled."""
        while True:
            await self.report()
            await wait_at_most(self._changed, REPORT_SECONDS)
            self._changed.clear()

    async def report(self) -> None:
        """Write what has changed since the last report."""
        activity, self._activity = self._activity, Activity()
        state = self._state
        if activity == Activity() and state == self._reported:
            return
        try:
            await self._store.write(lambda tx: self._write(tx, activity, state))
            self._reported = state
        except StoreError as error:
            self._log.warning("the health of %s was not written: %s", self._channel, error)

    async def is_retry_asked(self) -> bool:
        """Whether a person asked for an attempt since this account was reported as down."""
        if self._state[0] is not ChannelState.DOWN or self._reported != self._state:
            return False
        health = await self._store.read(lambda tx: find_health(tx, self._channel))
        return health is not None and health.state is ChannelState.STARTING

    async def find_pause(self) -> Pause | None:
        """Why the channel is paused; None if it is not."""
        return await self._store.read(self._find_pause)

    def _find_pause(self, tx: Transaction) -> Pause | None:
        health, hold = find_health(tx, self._channel), find_hold(tx)
        if hold is not None:
            # The home from which this one was copied may serve the same account.
            return Pause(
                "restored",
                f"this home was restored from a backup, and is on hold: {hold.reason}",
                "Run: bullpen db release",
            )
        return Pause() if health is not None and health.paused else None

    def _write(
        self, tx: Transaction, activity: Activity, state: tuple[ChannelState, str, str, str]
    ) -> None:
        name, code, reason, hint = state
        if state != self._reported:
            before = find_health(tx, self._channel)
            tell = report_state(
                tx,
                self._channel,
                name,
                worker=self._worker(),
                code=code,
                reason=reason,
                hint=hint,
            )
            if tell:
                self._notify(tx, f"The channel {self._channel} is down: {reason}. {hint}".strip())
            elif name is ChannelState.UP and before is not None and before.told_at is not None:
                self._notify(tx, f"The channel {self._channel} is up again.")
        report_activity(tx, self._channel, activity)
        self._flush(tx)

    def _notify(self, tx: Transaction, text: str) -> None:
        """Notify the owner; about their own channel, where terminals show it."""
        if tx.settings.owner_channel != self._channel:
            send_to_owner(tx, text)
        else:
            send_to_person(tx, Answer(message=text), channel=READABLE_CHANNEL, sender=OWNER_SENDER)
