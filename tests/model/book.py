"""What the model of the queue keeps: messages, lanes and what was written down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field

from bullpen.core.clock import DAY, MINUTE
from bullpen.core.errors import BullpenError, IllegalMove, LaneBusy, UnknownAgent
from bullpen.core.message import INTERNAL, ROOM, NewMessage
from bullpen.core.queue.lanes import LanePolicy, Ordering
from bullpen.core.settings import Settings
from bullpen.core.states import LANE_STATES, MESSAGE_STATES, LaneState, MessageState

M, L = MessageState, LaneState
_TOLD = {L.ACTIVE: "resumed", L.PAUSED: "paused", L.DRAINING: "draining", L.ARCHIVED: "archived"}


@dataclass(slots=True)
class Item:
    """A message, live or archived; its number is its place in the order of arrival."""

    number: int
    new: NewMessage
    status: MessageState
    sort_key: int
    due_at: int
    available_at: int
    ready: bool
    """Only a claim sees that a delay is over, and makes it ready."""
    deadline: int | None
    created_at: int
    updated_at: int
    retry_count: int = 0
    crash_count: int = 0
    alone: bool = False
    """Its run failed once: no other message is claimed with it."""
    archived: bool = False


@dataclass(slots=True)
class LaneModel:
    """An agent's lane, and the claim on it if there is one."""

    policy: LanePolicy
    max_attempts: int
    state: LaneState = L.ACTIVE
    not_before: int | None = None
    token: str | None = None
    expires: int = 0
    claimed_at: int = 0
    newest_at: int = 0
    """The latest arrival: whatever the clock says, nobody who comes later goes first."""
    batch: tuple[int, ...] = ()
    most_attempts: int = 0
    """The highest limit that it ever had."""


@dataclass(slots=True)
class Log:
    """What was appended since somebody read it."""

    events: list[tuple[str, str | None, int | None]] = field(default_factory=list)
    responses: list[tuple[int, int, str | None]] = field(default_factory=list)
    """The message answered, the answer's place and text; None is word of its death."""
    attempts: list[tuple[int, int, str, str | None]] = field(default_factory=list)
    said: list[tuple[str, str, str | None]] = field(default_factory=list)
    posts: list[tuple[str, str, str]] = field(default_factory=list)


class Book:
    """Messages, lanes, claims and the log; a verb that raises changes nothing."""

    def __init__(
        self, settings: Settings, now: Callable[[], int], window: int, chance: float
    ) -> None:
        self.settings = settings
        self.clock = now
        self.window = window
        self.chance = chance
        self.items: dict[int, Item] = {}
        self.names: dict[int, str] = {}
        """The ids that the store made, of dropped messages too."""
        self.lanes: dict[str, LaneModel] = {}
        self.receipts: dict[tuple[str, str], int] = {}
        self.stale: list[str] = []
        """Tokens of claims that are over."""
        self.log = Log()
        self.count = 0

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """All or nothing."""
        items = {number: copy(item) for number, item in self.items.items()}
        lanes = {agent: copy(lane) for agent, lane in self.lanes.items()}
        receipts, stale, count = dict(self.receipts), list(self.stale), self.count
        self.log = Log()
        try:
            yield
        except BullpenError:
            self.items, self.lanes, self.receipts = items, lanes, receipts
            self.stale, self.count, self.log = stale, count, Log()
            raise

    def read_log(self) -> None:
        """Forget what was appended."""
        self.log = Log()

    # What is where

    def live(self, *states: MessageState) -> list[Item]:
        """The messages in these states that are not in the archive, in order of arrival."""
        return [each for each in self.items.values() if each.status in states and not each.archived]

    def pending(self, agent: str) -> list[Item]:
        """What waits for this agent, in the order of its lane."""
        found = (each for each in self.live(M.PENDING) if each.new.agent == agent)
        return sorted(found, key=lambda each: (each.sort_key, each.number))

    def head(self, agent: str) -> int | None:
        """The sort key of what would be claimed next; None if nothing would."""
        lane = self.lanes[agent]
        waits = lane.not_before is not None and lane.not_before > self.clock()
        if waits or lane.token is not None or lane.state not in (L.ACTIVE, L.DRAINING):
            return None
        return min((each.sort_key for each in self.pending(agent) if each.ready), default=None)

    def conversation(self, item: Item) -> str:
        """Its root's id, or its own if it is the root."""
        return item.new.conversation_id or self.names[item.number]

    def claims(self) -> dict[str, str]:
        """The agents that have a run, by its token."""
        return {lane.token: agent for agent, lane in self.lanes.items() if lane.token is not None}

    # Lanes

    def create(self, agent: str, policy: LanePolicy) -> None:
        """One that exists keeps what it is."""
        if agent not in self.lanes:
            self.lanes[agent] = LaneModel(policy, 0)
            self._limit(agent, policy)

    def configure(self, agent: str, policy: LanePolicy) -> None:
        """A new ordering is that of everything that may still wait in the lane."""
        lane = self._lane(agent)
        changed = policy.ordering is not lane.policy.ordering
        lane.policy = policy
        self._limit(agent, policy)
        for item in self.live(*(set(M) - {M.COMPLETED})) if changed else ():
            if item.new.agent == agent:
                self._sort(item)

    def move_lane(self, agent: str, target: LaneState) -> None:
        """Pause, resume, drain or archive."""
        lane = self._lane(agent)
        if target is L.ARCHIVED and (self.pending(agent) or lane.token is not None):
            raise LaneBusy(agent)
        if target is lane.state:
            return
        if target not in LANE_STATES[lane.state].moves_to:
            raise IllegalMove(f"{agent} is {lane.state}")
        lane.state = target
        self.log.events.append((f"lane_{_TOLD[target]}", agent, None))

    def _limit(self, agent: str, policy: LanePolicy) -> None:
        lane = self.lanes[agent]
        lane.max_attempts = policy.max_attempts or self.settings.max_attempts
        lane.most_attempts = max(lane.most_attempts, lane.max_attempts)

    def _lane(self, agent: str) -> LaneModel:
        if agent not in self.lanes:
            raise UnknownAgent(agent)
        return self.lanes[agent]

    def _sort(self, item: Item) -> None:
        match self.lanes[item.new.agent].policy.ordering:
            case Ordering.FIFO:
                item.sort_key = item.due_at
            case Ordering.PRIORITY:
                item.sort_key = item.due_at - (4 - item.new.priority) * 10 * MINUTE
            case Ordering.DEADLINE:
                alone = item.due_at + DAY
                item.sort_key = alone if item.deadline is None else item.deadline

    # What is written down

    def _move(self, item: Item, status: MessageState) -> None:
        assert status in MESSAGE_STATES[item.status].moves_to, f"{item.status} to {status}"
        item.status, item.updated_at = status, self.clock()

    def _announce(self, item: Item) -> None:
        self._event("message_dead", item)
        if item.new.channel not in (ROOM, INTERNAL):
            self._respond(item, 0, None)
            self.log.said.append((item.new.agent, "assistant", None))

    def _respond(self, item: Item, seq: int, text: str | None) -> None:
        self.log.responses.append((item.number, seq, text))
        self._event("response_ready", item)

    def _event(self, event: str, item: Item) -> None:
        self.log.events.append((event, item.new.agent, item.number))

    def _attempt(self, batch: list[Item], outcome: str, kind: str | None = None) -> None:
        self.log.attempts.append((batch[0].number, len(batch), outcome, kind))


def address(new: NewMessage) -> str | tuple[str | None, ...] | None:
    """What one run may answer together; None stands alone."""
    if new.channel == ROOM:
        return ROOM
    if new.from_agent is not None:
        return None
    if new.reply_to is None:
        return (new.channel, new.sender_id or new.sender)
    return (new.channel, new.reply_to.chat, new.reply_to.thread)
