"""Progress: the state of each message is shown at its place, and follows its row.

It is set right at the start of the process, and never delays or replaces an answer.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import bindparam, select

from bullpen.channels.async_store import AsyncStore
from bullpen.channels.platform import Address, Platform, Progress, Stage
from bullpen.core.channels.chats import Verbosity, find_chat
from bullpen.core.clock import DAY, HOUR, MINUTE, SECOND
from bullpen.core.errors import StoreError
from bullpen.core.events.conversation import AgentProgress
from bullpen.core.message import ReplyTo
from bullpen.core.models import EVENTS, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.states import MESSAGE_STATES, MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import visible_line

POLL_SECONDS = 1.0
SHOW_SECONDS = 10.0
MAX_TRACKED = 500
MAX_RESTORED = 100
QUEUED_AFTER_MS = SECOND
"""A message that is taken up at once never shows as queued."""
REPORT_AGE_MS = 10 * MINUTE
"""Reports of an agent that are older are not shown."""
MAX_REPORT_CHARS = 200
_PRECEDENCE = {Stage.WORKING: 2, Stage.QUEUED: 1}

VERBOSE_MS = 5 * SECOND
"""How often a verbose chat shows a report."""

M = MESSAGES.c

SELECT_STATE: Statement[tuple[str, str]] = Statement(
    lambda: select(M.status, M.agent).where(M.message_id == bindparam("message_id"))
)

# In the words of the partial index.
SELECT_REPORT: Statement[tuple[str | None]] = Statement(
    lambda: (
        select(EVENTS.c.data)
        .where(
            EVENTS.c.type == const(AgentProgress.type),
            EVENTS.c.created_at >= bindparam("since"),
            EVENTS.c.message_id == bindparam("message_id"),
        )
        .order_by(EVENTS.c.id.desc())
        .limit(const(1))
    )
)

SELECT_RECENT: Statement[tuple[str, str, str, str | None, str | None, int]] = Statement(
    lambda: (
        select(M.message_id, M.status, M.agent, M.reply_to, M.sender_id, M.created_at)
        .where(
            M.channel == bindparam("channel"),
            M.updated_at >= bindparam("since"),
            M.from_agent.is_(None),
        )
        .order_by(M.id.desc())
        .limit(const(MAX_RESTORED))
    )
)


@dataclass(slots=True)
class _Tracked:
    to: Address
    at: int
    stage: Stage | None = None
    shown_at: int = 0
    verbosity: Verbosity = Verbosity.NORMAL
    is_shown: bool = False


def stage_of(state: MessageState) -> Stage:
    """How far a message in this state is."""
    if state is MessageState.PROCESSING:
        return Stage.WORKING
    if state is MessageState.COMPLETED:
        return Stage.DONE
    return Stage.FAILED if MESSAGE_STATES[state].terminal else Stage.QUEUED


def one_for_each_place(due: Sequence[Progress]) -> list[Progress]:
    """What a chat shows that shows one thing, such as typing, for all of its messages.

    A running message comes before waiting ones, and the newest before older ones.
    """
    ordered = sorted(due, key=lambda each: _PRECEDENCE.get(each.stage, 0))
    return list({(each.to.chat, each.to.thread): each for each in ordered}.values())


class ProgressDisplay:
    """Shows the progress of the messages of one account."""

    def __init__(
        self,
        store: AsyncStore,
        platform: Platform,
        receiving: asyncio.Event,
        log: logging.Logger,
    ) -> None:
        """Nothing is shown while `receiving` is not set."""
        self._store = store
        self._platform = platform
        self._receiving = receiving
        self._log = log
        self._channel = platform.context.account
        self._refresh_ms = int((platform.progress_seconds or 0) * SECOND)
        self._tracked: dict[str, _Tracked] = {}
        self._arrived = asyncio.Event()

    def track(self, message_id: str, to: Address) -> None:
        """Follow a message that was just stored."""
        if self._refresh_ms and len(self._tracked) < MAX_TRACKED:
            self._tracked[message_id] = _Tracked(to, self._store.now)
            self._arrived.set()

    async def run(self) -> None:
        """Show progress until cancelled."""
        if not self._refresh_ms:
            return
        await self._receiving.wait()
        await self._restore()
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._tracked:
                await self._receiving.wait()
                try:
                    await self._follow()
                except StoreError as error:
                    self._log.info("progress waits, because %s", error)
                await asyncio.sleep(POLL_SECONDS)

    async def _restore(self) -> None:
        """Follow the messages from before the start; marks that were left behind are set right."""
        now = self._store.now
        values = {"channel": self._channel, "since": now - DAY}
        for message_id, status, _, reply_to, sender_id, _ in await self._store.read(
            lambda tx: tx.all(SELECT_RECENT, values)
        ):
            state = MessageState(status)
            if not MESSAGE_STATES[state].active and not self._platform.leaves_marks:
                continue
            to = ReplyTo.parse(reply_to) if reply_to else ReplyTo()
            address = Address(
                chat=to.chat, thread=to.thread, message=to.message, person=sender_id or ""
            )
            self._tracked[message_id] = _Tracked(address, now - HOUR)
        self._arrived.set()

    async def _follow(self) -> None:
        """Look at the rows once, and show what has changed or fades."""
        ids = list(self._tracked)
        rows = await self._store.read(lambda tx: _states(tx, ids))
        now = self._store.now
        due: list[tuple[str, _Tracked, Progress]] = []
        for message_id, row in zip(ids, rows, strict=True):
            tracked = self._tracked[message_id]
            state = MessageState(row[0]) if row else MessageState.COMPLETED
            stage = stage_of(state)
            fresh = stage is Stage.QUEUED and now - tracked.at < QUEUED_AFTER_MS
            verbose = tracked.verbosity is Verbosity.VERBOSE
            refresh = min(self._refresh_ms, VERBOSE_MS) if verbose else self._refresh_ms
            faded = now - tracked.shown_at >= refresh
            ended = MESSAGE_STATES[state].terminal
            if not fresh and (stage is not tracked.stage or (faded and not ended)):
                tracked.stage, tracked.shown_at = stage, now
                text = f"@{row[1]} is working" if row and stage is Stage.WORKING else ""
                due.append((message_id, tracked, Progress(to=tracked.to, stage=stage, text=text)))
            if ended or state is MessageState.HELD:
                del self._tracked[message_id]
        if due:
            shown = await self._store.read(lambda tx: self._adapt(tx, due))
            if not self._platform.leaves_marks:
                shown = one_for_each_place(shown)
            await asyncio.gather(*(self._show(each) for each in shown))

    def _adapt(self, tx: Transaction, due: list[tuple[str, _Tracked, Progress]]) -> list[Progress]:
        """Leave out what quiet chats do not show, and add the agents' reports for verbose ones."""
        found = []
        for message_id, tracked, progress in due:
            chat = find_chat(tx, self._channel, progress.to.chat)
            tracked.verbosity = chat.verbosity if chat and chat.verbosity else Verbosity.NORMAL
            # A mark that was left before stays right.
            if tracked.verbosity is Verbosity.QUIET and not tracked.is_shown:
                continue
            tracked.is_shown = True
            if tracked.verbosity is Verbosity.VERBOSE and progress.stage is Stage.WORKING:
                progress = replace(progress, text=_report(tx, message_id) or progress.text)
            found.append(progress)
        return found

    async def _show(self, progress: Progress) -> None:
        try:
            async with asyncio.timeout(SHOW_SECONDS):
                await self._platform.show(progress)
        except Exception as error:
            self._log.debug("progress was not shown: %r", error)


def _states(tx: Transaction, ids: list[str]) -> list[tuple[str, str] | None]:
    return tx.one_each(SELECT_STATE, [{"message_id": each} for each in ids])


def _report(tx: Transaction, message_id: str) -> str:
    """What the agent of a message reported last."""
    values = {"message_id": message_id, "since": tx.now - REPORT_AGE_MS}
    row = tx.one(SELECT_REPORT, values)
    data: object = json.loads(row[0]) if row is not None and row[0] else None
    text = data.get("text") if isinstance(data, dict) else None
    return visible_line(text)[:MAX_REPORT_CHARS] if isinstance(text, str) else ""
