"""History: attempts and events of some days, with everything that happens to messages.

A history is a list of rows in the order in which they were written. It has retries, crashes,
handoffs, batches, retries by hand, deaths without a run, clocks that were set forward and back,
rows that were written late, days without rows, and rows from before the columns of the reports.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

from hypothesis import strategies as st
from sqlalchemy import insert

from bullpen.core.clock import DAY, HOUR, MINUTE
from bullpen.core.message import HEARTBEAT, ROOM, SCHEDULE
from bullpen.core.models import ATTEMPTS, EVENTS
from bullpen.core.queue.attempts import fingerprint
from bullpen.core.store.base import Store

Value = str | int | float | None
Row = Mapping[str, Value]

PLACES = (
    ("Europe/Berlin", 1_792_756_800_000),  # summer time ends on the third day
    ("Australia/Lord_Howe", 1_775_131_200_000),  # by half an hour
    ("America/New_York", 1_772_798_400_000),  # begins
    ("Asia/Kolkata", 1_780_315_200_000),
    ("America/Havana", 1_793_361_600_000),  # ends at midnight
    ("UTC", 1_772_236_800_000),
)
"""Time zones, and noons a day or two before a change of their offsets."""

AGENTS = ("coder", "reviewer", "writer")
CHANNELS = ("slack", "telegram", "slack-sage", "web")
TEAMS = (None, None, "dev")
PEOPLE = (("U1", "Ann"), ("U2", "Zoë 🦊"), ("U2", "Zoë"), (None, "terminal"))

PAUSES = (0, 1, 7, 63, 64, 999, 2_000, 61_000, 20 * MINUTE)
RUNS = (0, 1, 64, 65, 12_345, 61_000, 5 * MINUTE, 15 * MINUTE, 40 * MINUTE, 3 * HOUR, 26 * HOUR)
JUMPS = (HOUR, -HOUR, -1, 30 * HOUR, -30 * HOUR)
COSTS = (0.0, 0.01, 0.1234567, 0.0000005, 3.3333335)

ERRORS = (
    ("retryable", "connection reset by peer"),
    ("retryable", "rate limit: try again in NUMBER s"),
    ("retryable", "rate limit: try again in NUMBER s"),
    ("permanent", 'it\'s "invalid": Ünïcode % _ {x} ' + "long " * 100),
    ("crash", "the processor ended"),
)

MAX_RUNS = 5
MAX_HOPS = 2


@dataclass(frozen=True, slots=True)
class Written:
    """A row, and when it was written; a late one is written long after its own time."""

    at: int
    table: str
    row: Row


@dataclass(frozen=True)
class History:
    """Some days of a store whose owner is in this time zone."""

    zone: str
    begin: int
    seeds: tuple[int, ...]
    """One for each message of a person's or of a schedule's."""

    @cached_property
    def rows(self) -> list[Written]:
        """The rows in the order in which they were written."""
        lives = (_Life(random.Random(seed), self.begin) for seed in self.seeds)
        return sorted((row for life in lives for row in life.rows), key=lambda row: row.at)

    def parts(self, number: int) -> list[Sequence[Written]]:
        """The rows in so many parts, one after the other."""
        size = -(-len(self.rows) // number)
        return [self.rows[first : first + size] for first in range(0, len(self.rows), size)]


def write(store: Store, rows: Sequence[Written]) -> None:
    """Write rows into the store, in one transaction."""
    with store.engine.begin() as connection:
        for name, table in (("attempts", ATTEMPTS), ("events", EVENTS)):
            if found := [each.row for each in rows if each.table == name]:
                connection.execute(insert(table), found)


@st.composite
def histories(
    draw: st.DrawFn, places: Sequence[tuple[str, int]] = PLACES, messages: int = 90
) -> History:
    """Histories of at least so many messages. Also the simplest one has a bit of everything."""
    zone, begin = draw(st.sampled_from(places))
    seeds = draw(st.lists(st.integers(0, 2**32), min_size=messages, unique=True))
    return History(zone, begin, tuple(seeds))


@dataclass(frozen=True, slots=True)
class _Message:
    message_id: str
    conversation_id: str
    conversation_at: int
    channel: str
    sender: str
    sender_id: str | None
    agent: str
    team_id: str | None
    from_agent: str | None = None
    parent_id: str | None = None
    hop: int = 0


class _Life:
    """One message of a person's or of a schedule's, and all that follows from it."""

    def __init__(self, chance: random.Random, begin: int) -> None:
        self.rows: list[Written] = []
        self._chance = chance
        self._numbers = count()
        # No message comes in on the third day, and many in one hour.
        busy = chance.random() < 0.4
        day, hour = (1, 7) if busy else (chance.choice((0, 1, 3)), chance.randrange(24))
        at = begin + day * DAY + hour * HOUR + chance.randrange(HOUR)
        self._is_old = chance.random() < 0.1
        self._late = chance.choice((0, 0, 0, 0, 0, 0, DAY, 4 * DAY))
        channel = chance.choice((*CHANNELS, *CHANNELS, ROOM, ROOM, HEARTBEAT, SCHEDULE))
        sender_id, sender = chance.choice(PEOPLE)
        message_id = self._new_id(channel)
        first = _Message(
            message_id=message_id,
            conversation_id=f"{ROOM}_1" if channel == ROOM else message_id,
            conversation_at=at,
            channel=channel,
            sender=sender,
            sender_id=sender_id,
            agent=AGENTS[0] if busy else chance.choice(AGENTS),
            team_id=chance.choice(TEAMS),
        )
        self._message(first, at)

    def _new_id(self, channel: str) -> str:
        prefix = SCHEDULE if channel == SCHEDULE else channel
        return f"{prefix}_{self._chance.getrandbits(40):010x}{next(self._numbers)}"

    def _message(self, message: _Message, at: int) -> None:
        """Enqueue a message, and run it until it is answered, dead or cancelled."""
        chance = self._chance
        due = at + chance.choice((0, 0, 0, 5 * MINUTE))
        self._enqueued(message, at, due)
        if chance.random() < 0.05:  # its lane was full
            self._dead(message, at + MINUTE, "overflow", "dropped: the lane has 100 messages")
            return
        by_hand = 2
        for attempt in count(1):
            outcome = chance.choices(
                ("completed", "failed", "crashed", "released", "cancelled"), (60, 24, 8, 5, 3)
            )[0]
            finished, dead = self._run(message, outcome, attempt, at, due)
            if outcome == "completed":
                self._answer(message, finished)
                return
            if outcome == "cancelled":
                return
            if dead:
                if not by_hand:
                    return
                by_hand -= 1
                finished += 2 * HOUR
                self._event("message_retried", message, finished, None)
            due = finished + chance.choice((0, MINUTE))

    def _run(
        self, message: _Message, outcome: str, attempt: int, at: int, due: int
    ) -> tuple[int, int]:
        """Write a run; returns its end, and the number of messages that died of it."""
        chance = self._chance
        messages = chance.choice((1, 1, 1, 2, 3))
        claimed = due + chance.choice(PAUSES) + chance.choice((0, chance.randrange(MINUTE)))
        started = claimed + chance.choice((0, 0, 5, 900))
        finished = started + chance.choice(RUNS) + chance.choice((0, chance.randrange(MINUTE)))
        if chance.random() < 0.1:
            finished += chance.choice(JUMPS)
        elif chance.random() < 0.1:
            finished = (finished // HOUR + 1) * HOUR
        failed = outcome in ("failed", "crashed")
        kind, error = chance.choice(ERRORS) if failed else (None, None)
        if error is not None:
            error = error.replace("NUMBER", str(chance.randrange(100)))
        dead = 0
        if failed and (kind == "permanent" or attempt >= MAX_RUNS):
            dead = chance.randint(1, messages)
        provider = chance.choice(("claude", "codex", None))
        self._write(
            "attempts",
            finished,
            {
                "message_id": message.message_id,
                "messages": messages,
                "agent": message.agent,
                "worker": "processor-1",
                "outcome": outcome,
                "error_kind": kind,
                "error": error,
                "fingerprint": None if error is None else fingerprint(error),
                "retry_count": attempt - 1,
                "provider": provider,
                "model": None if provider is None else chance.choice(("large", "small", None)),
                "input_tokens": chance.randrange(5000),
                "output_tokens": chance.randrange(900),
                "cost": chance.choice(COSTS),
                "conversation_id": message.conversation_id,
                "hop": message.hop,
                "team_id": message.team_id,
                "channel": message.channel,
                "enqueued_at": at,
                "claimed_at": claimed,
                "started_at": started,
                "finished_at": finished,
                "sender": "" if self._is_old else message.sender,
                "sender_id": None if self._is_old else message.sender_id,
                "from_agent": None if self._is_old else message.from_agent,
                "available_at": None if self._is_old else due,
                "conversation_at": None if self._is_old else message.conversation_at,
                "attempt": None if self._is_old else attempt,
                "dead": 0 if self._is_old else dead,
                "wait": chance.randrange(60_000) if failed and not (dead or self._is_old) else None,
            },
        )
        for _ in range(dead):
            assert kind is not None
            assert error is not None
            self._dead(message, finished, kind, error)
        return finished, dead

    def _answer(self, message: _Message, at: int) -> None:
        """Write the handoffs and the responses of a run that completed."""
        chance = self._chance
        if message.hop < MAX_HOPS:
            for _ in range(chance.choice((0, 0, 0, 0, 1, 2, 3))):
                agent = chance.choice([each for each in AGENTS if each != message.agent])
                handed = replace(
                    message,
                    message_id=self._new_id(message.channel),
                    agent=agent,
                    from_agent=message.agent,
                    parent_id=chance.choice((message.message_id, message.message_id, None)),
                    hop=message.hop + 1,
                )
                self._message(handed, at)
        for _ in range(chance.choice((0, 1, 1, 1, 2))):
            response = chance.randrange(10**6)
            waited = chance.choice((0, 3, 250, 64_000, 3 * HOUR))
            outcome = chance.choices(("delivered", "dead", "unknown"), (80, 10, 10))[0]
            self._response(message, outcome, at + max(waited, 0), response, waited)
            if outcome != "delivered" and chance.random() < 0.5:
                later = at + max(waited, 0) + HOUR
                self._response(message, "retried", later, response, waited + HOUR)
                self._response(message, "delivered", later + 5, response, waited + HOUR + 5)

    def _enqueued(self, message: _Message, at: int, due: int) -> None:
        data = {
            "channel": message.channel,
            "sender": message.sender,
            "sender_id": message.sender_id,
            "from_agent": message.from_agent,
            "parent_id": message.parent_id,
            "hop": message.hop,
            "team_id": message.team_id,
            "available_at": due,
        }
        self._event("message_enqueued", message, at, None if self._is_old else data)
        self._event("agent_progress", message, at, {"text": "not a fact of the reports"})

    def _dead(self, message: _Message, at: int, kind: str, error: str) -> None:
        data: dict[str, Value] = {"kind": kind, "error": error[:200]}
        if not self._is_old:
            data |= {
                "channel": message.channel,
                "team_id": message.team_id,
                "sender_id": message.sender_id,
                "fingerprint": fingerprint(error),
            }
        self._event("message_dead", message, at, data)

    def _response(
        self, message: _Message, outcome: str, at: int, response: int, waited: int
    ) -> None:
        failed = outcome in ("dead", "unknown")
        error = f"HTTP 50{response % 4} after {response % 7} s" if failed else None
        data: dict[str, Value] = {"channel": message.channel, "error": error}
        if not self._is_old:
            data |= {
                "response": response,
                "tries": 1 + response % 3,
                "waited": waited,
                "parts": 1 + response % 2,
                "sender_id": message.sender_id,
            }
        self._event(f"response_{outcome}", message, at, data)

    def _event(
        self, type_: str, message: _Message, at: int, data: Mapping[str, Value] | None
    ) -> None:
        self._write(
            "events",
            at,
            {
                "type": type_,
                "agent": message.agent,
                "conversation_id": message.conversation_id,
                "message_id": message.message_id,
                "data": None if data is None else json.dumps(data),
                "created_at": at,
            },
        )

    def _write(self, table: str, at: int, row: Row) -> None:
        self.rows.append(Written(at + self._late, table, row))
