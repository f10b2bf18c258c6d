"""The lanes of a simulation: messages are enqueued, claimed in batches and finished."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush

from bullpen.core.events.base import MessageRef
from bullpen.core.events.conversation import (
    ChainStepStart,
    MessageEnqueued,
    MessageReceived,
    TeamChainEnd,
)
from bullpen.core.events.message import MessageHeld
from bullpen.core.message import ALONE, ROOM
from bullpen.core.states import MessageState
from bullpen.ops.demo.company import AGENTS
from bullpen.ops.demo.engine import Engine
from bullpen.ops.demo.rows import Journal, LaneRow
from bullpen.ops.demo.runs import Run, RunModel
from bullpen.ops.demo.state import Conversation, QueuedMessage, SimulatedLane
from bullpen.ops.demo.traffic import Incident

BATCH_WINDOW = 16
WORKERS = 2


class Lanes:
    """The unfinished messages by agent; each lane has one run at a time."""

    def __init__(self, engine: Engine, journal: Journal, model: RunModel) -> None:
        self._engine = engine
        self._random = engine.random
        self._journal = journal
        self._model = model
        self._claim_limit = engine.plan.claim_limit
        self._workers = [engine.ids.new("processor") for _ in range(WORKERS)]
        self._lanes = {each.id: SimulatedLane(each) for each in AGENTS}
        self._open: dict[int, QueuedMessage] = {}
        self.enqueued = 0
        self.incidents: Sequence[Incident] = ()
        """Those of this hour."""
        self.end_run: Callable[[Run], None] = _no_end
        """What happens at the end of a run."""

    @property
    def unfinished(self) -> int:
        """The number of messages that are not finished."""
        return len(self._open)

    def rest(self) -> list[QueuedMessage]:
        """The messages that are not finished."""
        return list(self._open.values())

    def enqueue(
        self,
        conversation: Conversation,
        *,
        message_id: str,
        agent: str,
        text: str,
        channel: str,
        team_id: str | None,
        parent: QueuedMessage | None = None,
        delay: int = 0,
        hold_reason: str | None = None,
        waits: bool = False,
    ) -> QueuedMessage:
        """Store a message, and run it when its lane is free; `waits` for a person at the end."""
        now = self._engine.now
        person = conversation.person
        posted = channel == ROOM
        assert parent is not None or not posted
        sender = parent.agent if posted and parent is not None else person.name
        self.enqueued += 1
        message = QueuedMessage(
            id=self.enqueued,
            message_id=message_id,
            channel=channel,
            sender=sender,
            sender_id=None if posted else person.sender_id,
            message=text,
            agent=agent,
            from_agent=None if parent is None else parent.agent,
            conversation=conversation,
            conversation_id=conversation.id,
            parent_id=None if parent is None else parent.message_id,
            hop=0 if parent is None else parent.hop + 1,
            team_id=team_id,
            reply_to=None if posted else person.reply_to,
            batch_key=ROOM if posted else None if parent is not None else person.batch_key,
            created_at=now,
            due_at=now + delay,
            available_at=now + delay,
            updated_at=now,
            ready=delay == 0,
            status=MessageState.PENDING if hold_reason is None else MessageState.HELD,
            last_error=hold_reason,
            fails_for_good=waits and hold_reason is None,
        )
        self._open[message.id] = message
        conversation.open += 1
        lane = self._lanes[agent]
        lane.newest_at = now
        self._journal.text(agent, "user", channel, message.from_agent or sender, message_id, text)
        optional = {
            "sender_id": message.sender_id,
            "from_agent": message.from_agent,
            "parent_id": message.parent_id,
            "team_id": team_id,
        }
        enqueued = MessageEnqueued(
            message,
            channel=channel,
            sender=sender,
            hop=message.hop,
            available_at=message.available_at,
            **{name: value for name, value in optional.items() if value is not None},
        )
        self._journal.event(enqueued)
        if hold_reason is None:
            self.make_pending(message)
        else:
            self._journal.event(MessageHeld(message, reason=hold_reason))
        return message

    def make_pending(self, message: QueuedMessage) -> None:
        """Put a message into its lane, now or when it is due."""
        message.status = MessageState.PENDING
        if message.ready:
            lane = self._lanes[message.agent]
            heappush(lane.waiting, (message.due_at, message.id, message))
            self.claim(lane)
        else:
            self._engine.call_at(message.available_at, self._make_ready, message)

    def free(self, agent: str) -> SimulatedLane:
        """The lane of an agent whose run ended."""
        lane = self._lanes[agent]
        lane.busy = False
        return lane

    def delay(self, lane: SimulatedLane, wait: int) -> None:
        """Claim nothing from a lane for this many milliseconds."""
        lane.not_before = self._engine.now + wait
        self._engine.call_at(lane.not_before, self.claim, lane)

    def claim(self, lane: SimulatedLane) -> None:
        """Start a run, if the lane is free and has a message."""
        now = self._engine.now
        if lane.busy or lane.paused or not lane.waiting or lane.not_before > now:
            return
        messages = self._choose_batch(lane)
        worker = self._workers[self._random.getrandbits(4) % WORKERS]
        run = self._model.plan(lane.profile, messages, worker, now, self.incidents)
        lane.busy = True
        if run.finished_at >= self._engine.end:
            # It would still run at the end; the history ends with no run in progress.
            for each in messages:
                heappush(lane.waiting, (each.due_at, each.id, each))
            return
        lane.claimed_at, lane.claimed_by = run.claimed_at, worker
        for each in messages:
            each.runs += 1
            each.claimed_by = worker
        if self._journal.detailed:
            self._engine.call_at(run.claimed_at, self._tell_claimed, run)
            self._engine.call_at(run.started_at, self._tell_started, run)
        self._engine.call_at(run.finished_at, self.end_run, run)

    def finish(self, message: QueuedMessage, state: MessageState) -> None:
        """Finish a message in this state."""
        message.status = state
        message.updated_at = self._engine.now
        self._journal.finished(message)
        self.drop(message)

    def drop(self, message: QueuedMessage) -> None:
        """Forget a message; its conversation ends with the last one."""
        del self._open[message.id]
        conversation = message.conversation
        conversation.open -= 1
        if conversation.open == 0 and conversation.team is not None and self._journal.detailed:
            about = MessageRef(message.agent, conversation.id, conversation.id)
            self._journal.event(TeamChainEnd(about, team=conversation.team))

    def rows(self) -> list[LaneRow]:
        """The lanes as they are now."""
        return [self._lane_row(each) for each in self._lanes.values()]

    def _make_ready(self, message: QueuedMessage) -> None:
        message.ready = True
        self.make_pending(message)

    def _choose_batch(self, lane: SimulatedLane) -> list[QueuedMessage]:
        """The first message, and those near it that its run answers as well."""
        waiting = lane.waiting
        primary = heappop(waiting)[2]
        if not waiting or primary.batch_key in (ALONE, None):
            return [primary]
        key, limit = primary.batch_key, self._claim_limit - 1
        near = [each for each in waiting[:BATCH_WINDOW] if each[2].batch_key == key]
        if not near:
            return [primary]
        taken = sorted(near)[:limit]
        rows = {each[1] for each in taken}
        lane.waiting = [each for each in waiting if each[1] not in rows]
        heapify(lane.waiting)
        return [primary, *(each[2] for each in taken)]

    def _tell_claimed(self, run: Run) -> None:
        ids = [each.message_id for each in run.messages]
        self._journal.event(MessageReceived(run.primary, messages=ids, worker=run.worker))

    def _tell_started(self, run: Run) -> None:
        ids = [each.message_id for each in run.messages]
        posts = sum(each.channel == ROOM for each in run.messages)
        batch = self._engine.ids.new("chatroom_batch") if posts > 1 else None
        provider = run.agent.model.provider
        self._journal.event(
            ChainStepStart(run.primary, provider=provider, messages=ids, batch=batch)
        )

    def _lane_row(self, lane: SimulatedLane) -> LaneRow:
        pending = [
            each
            for each in self._open.values()
            if each.agent == lane.profile.id and each.status is MessageState.PENDING
        ]
        ready = [each.due_at for each in pending if each.ready]
        delayed = lane.paused or lane.not_before > self._engine.end
        return LaneRow(
            agent=lane.profile.id,
            pending=len(pending),
            head_key=None if delayed else min(ready, default=None),
            newest_at=lane.newest_at,
            not_before=lane.not_before if lane.not_before > self._engine.end else None,
            claimed_by=lane.claimed_by,
            claimed_at=lane.claimed_at,
        )


def _no_end(run: Run) -> None:
    raise AssertionError(run)
