"""After a gap in the connection, nothing that was missed is lost, or comes after what is live."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine

import pytest

from bullpen.channels.async_store import AsyncStore
from bullpen.channels.inbound import Chat, Inbound, Payload, Person, Source, Written
from bullpen.channels.incoming import queue
from bullpen.channels.incoming.decide import Incoming
from bullpen.channels.incoming.follow_up import NOTHING, Taken
from bullpen.channels.incoming.queue import IntakeQueue
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction


@pytest.fixture
def kind() -> str:
    """Its decisions are made before the store."""
    return "sqlite"


class Noting(Incoming):
    """Notes the text of each message, and its cursor."""

    def __init__(self) -> None:
        self.stored: list[tuple[str, str]] = []
        self.passed: list[str] = []

    def is_ignored(self, inbound: Inbound) -> bool:
        """What begins with a hyphen is not for the bot."""
        assert isinstance(inbound, Written)
        if ignored := inbound.text.startswith("-"):
            self.passed.append(inbound.cursor)
        return ignored

    def take(self, tx: Transaction, inbound: Inbound) -> Taken:
        """Note it."""
        assert isinstance(inbound, Written)
        self.stored.append((inbound.text, inbound.cursor))
        return NOTHING

    @property
    def texts(self) -> list[str]:
        return [text for text, _ in self.stored]


class Connected:
    """Follows no connection."""

    def connected(self, connections: int = 1) -> None:
        """Nothing follows."""

    def disconnected(self, reason: str) -> None:
        """Nothing follows."""

    def heard(self) -> None:
        """Nothing follows."""


def written(payload: Payload) -> Written:
    """The message of a payload."""
    cursor, text = str(payload["cursor"] or ""), str(payload["text"])
    source = Source(chat=Chat(id="C1", direct=True), person=Person(id="U1"), at=1, keys=(cursor,))
    return Written(source=source, text=text, cursor=cursor)


Work = Callable[[IntakeQueue, Noting], Coroutine[None, None, None]]


def receive(store: Store, work: Work) -> Noting:
    """Run this while intake stores what arrives."""
    noting = Noting()

    async def main() -> None:
        shared = AsyncStore(store)
        log = logging.getLogger("test")
        intake = IntakeQueue(
            shared, written, noting, Connected(), lambda _: None, log, catches_up=True
        )
        running = asyncio.create_task(intake.run())
        try:
            async with asyncio.timeout(20):
                await work(intake, noting)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            shared.close()

    asyncio.run(main())
    return noting


def live(intake: IntakeQueue, cursor: int | None, text: str = "live") -> asyncio.Future[None]:
    """A message arrives."""
    return intake.add({"cursor": cursor, "text": text})


def missed(intake: IntakeQueue, cursor: int, text: str = "missed") -> asyncio.Future[None]:
    """A message is fetched."""
    return intake.add({"cursor": cursor, "text": text}, missed=True)


async def still(waiting: asyncio.Future[None]) -> None:
    """It goes on waiting."""
    await asyncio.wait({waiting}, timeout=0.05)
    assert not waiting.done()


def test_what_arrives_before_the_connection_is_reported_waits_for_what_was_missed(
    store: Store,
) -> None:
    async def work(intake: IntakeQueue, noting: Noting) -> None:
        await live(intake, 1)
        intake.disconnected("a cut")
        waiting = live(intake, 3)
        await still(waiting)
        intake.end_gap()
        await missed(intake, 2)
        await still(waiting)
        intake.caught_up(intake.gaps)
        await waiting

    assert receive(store, work).texts == ["live", "missed", "live"]


def test_live_messages_move_no_cursor_while_others_are_missing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next catch-up begins before those that this one has not found yet."""
    monkeypatch.setattr(queue, "HOLD_SECONDS", 0.01)

    async def work(intake: IntakeQueue, noting: Noting) -> None:
        intake.end_gap()
        await live(intake, 3, "waits no longer")
        await missed(intake, 2)
        intake.caught_up(intake.gaps)
        await live(intake, 4)

    expected = [("waits no longer", ""), ("missed", "2"), ("live", "4")]
    assert receive(store, work).stored == expected


def test_a_catch_up_that_began_before_a_gap_does_not_end_it(store: Store) -> None:
    async def work(intake: IntakeQueue, noting: Noting) -> None:
        intake.end_gap()
        began = intake.gaps
        intake.disconnected("a cut")
        intake.caught_up(began)
        waiting = live(intake, 4)
        await still(waiting)
        intake.end_gap()
        intake.caught_up(began)
        await still(waiting)
        await missed(intake, 2)
        intake.caught_up(intake.gaps)
        await waiting

    assert receive(store, work).stored == [("missed", "2"), ("live", "4")]


def test_the_cursor_passes_no_message_that_is_not_stored(store: Store) -> None:
    """A message that is not for the bot may arrive while an earlier one waits."""

    async def work(intake: IntakeQueue, noting: Noting) -> None:
        await live(intake, 1, "-between people")
        waiting = live(intake, 2)
        await live(intake, 3, "-between people")
        await waiting
        intake.disconnected("a cut")
        await live(intake, 4, "-between people")
        await missed(intake, 5, "-between people")

    assert receive(store, work).passed == ["1", "", "", ""]


def test_a_command_without_a_place_in_the_history_does_not_wait(store: Store) -> None:
    """Slack and Discord want its acknowledgement within three seconds."""

    async def work(intake: IntakeQueue, noting: Noting) -> None:
        intake.end_gap()
        waiting = live(intake, 3)
        await live(intake, None, "/status")
        await still(waiting)
        intake.caught_up(intake.gaps)
        await waiting

    assert receive(store, work).texts == ["/status", "live"]
