"""The outcomes of runs: answers, handoffs and posts, failures, and what people do about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bullpen.core.clock import DAY, HOUR, MINUTE, SECOND
from bullpen.core.events.company import LanePaused, LaneResumed, RoomPosted
from bullpen.core.events.conversation import ChainHandoff, ChainStepDone
from bullpen.core.events.message import (
    MessageCancelled,
    MessageDead,
    MessageDropped,
    MessageFailed,
    MessageHeld,
    MessageReleased,
    MessageResumed,
    MessageRetried,
)
from bullpen.core.ids import SYSTEM_AUTHOR
from bullpen.core.message import ALONE, INTERNAL, INTERNAL_CHANNELS, ROOM, ErrorKind, Failure, Usage
from bullpen.core.queue.attempts import AttemptOutcome, fingerprint
from bullpen.core.queue.dead_letters import death_notice
from bullpen.core.queue.disposition import (
    ERROR_PREVIEW_CHARS,
    RELEASED,
    DelayLane,
    Disposition,
    FailurePolicy,
    PauseLane,
    decide,
)
from bullpen.core.states import MessageState
from bullpen.ops.demo.company import TEAMMATES
from bullpen.ops.demo.deliveries import Deliveries
from bullpen.ops.demo.engine import Engine
from bullpen.ops.demo.lanes import Lanes
from bullpen.ops.demo.rows import AttemptRow, Journal
from bullpen.ops.demo.runs import Run, RunModel
from bullpen.ops.demo.state import QueuedMessage, SimulatedLane
from bullpen.ops.demo.texts import ANSWERS, POSTS, TASKS, pick
from bullpen.ops.demo.traffic import next_office_hour

POSTS_IN_ALL = 1500
"""About how many posts the rooms get; each is a message for every teammate."""
POST_SHARE = 0.02
"""At most this share of completed runs posts."""
INTERIM_SHARE = 0.3
"""The share of runs that hand work on and answer as well."""
MAX_HOP = 4
CANCELLED_SHARE = 0.2
"""The share of held messages that a person cancels."""
DROPPED_SHARE = 0.35
"""The share of dead messages that a person drops; the others are retried."""
UNDECIDED_FOR = 2 * DAY
"""Nobody has decided yet about some dead messages of the last days."""
UNDECIDED_SHARE = 0.5


class Outcomes:
    """Ends runs with all of their consequences."""

    def __init__(
        self,
        engine: Engine,
        journal: Journal,
        model: RunModel,
        lanes: Lanes,
        deliveries: Deliveries,
    ) -> None:
        plan = engine.plan
        self._engine = engine
        self._random = engine.random
        self._journal = journal
        self._model = model
        self._lanes = lanes
        self._deliveries = deliveries
        self._policy = FailurePolicy(
            retry=engine.retry, max_attempts=plan.max_attempts, max_crashes=plan.max_crashes
        )
        self._post_share = min(POST_SHARE, POSTS_IN_ALL / plan.attempts)

    def end(self, run: Run) -> None:
        """End a run, with all of its consequences, and start the next one."""
        lane = self._lanes.free(run.agent.id)
        now = self._engine.now
        for each in run.messages:
            each.updated_at = now
        match run.end:
            case AttemptOutcome.COMPLETED:
                self._complete(run)
            case AttemptOutcome.RELEASED:
                self._release(run)
            case AttemptOutcome.CANCELLED:
                self._cancel_run(run)
            case ErrorKind() as kind:
                self._fail(run, kind, lane)
            case _:
                raise AssertionError(run.end)
        self._lanes.claim(lane)

    def ask_for_approval(self, message: QueuedMessage) -> None:
        """Let a person decide about a held message within some hours."""
        self._plan_by_hand(self._approve, message, 3 * HOUR)

    def _plan_by_hand(
        self, action: Callable[[QueuedMessage], None], message: QueuedMessage, within: int
    ) -> None:
        """Let a person do something in office hours."""
        later = self._engine.now + self._random.randrange(5 * MINUTE, within)
        moment = next_office_hour(later)
        if moment != later:
            moment += self._random.randrange(HOUR // 2)
        self._engine.call_at(moment, action, message)

    def _approve(self, message: QueuedMessage) -> None:
        """A person decides about a held message."""
        message.updated_at = self._engine.now
        if self._random.random() < CANCELLED_SHARE:
            self._cancel(message)
            return
        message.last_error = None
        self._journal.event(MessageResumed(message))
        self._lanes.make_pending(message)

    def _complete(self, run: Run) -> None:
        primary, random = run.primary, self._random
        targets = [] if primary.hop >= MAX_HOP else self._handoffs(run)
        self._record(run, AttemptOutcome.COMPLETED, self._model.usage(run))
        for agent in targets:
            internal = primary.channel in INTERNAL_CHANNELS
            self._lanes.enqueue(
                primary.conversation,
                message_id=self._engine.ids.new("internal"),
                agent=agent,
                text=pick(TASKS[agent], self._lanes.enqueued),
                channel=INTERNAL if internal else primary.channel,
                team_id=primary.team_id,
                parent=primary,
            )
            if self._journal.detailed:
                self._journal.event(ChainHandoff(primary, to=agent))
        if primary.channel != ROOM and random.random() < self._post_share:
            self._post(primary)
        answers = primary.channel not in INTERNAL_CHANNELS and (
            not targets or random.random() < INTERIM_SHARE
        )
        text = pick(ANSWERS[run.agent.id], primary.id)
        said = self._journal.text(
            *(primary.agent, "assistant", primary.channel, primary.agent, primary.message_id, text)
        )
        if self._journal.detailed:
            ids = [each.message_id for each in run.messages]
            done = ChainStepDone(primary, messages=ids, responses=int(answers))
            self._journal.event(done, said)
        if answers:
            self._deliveries.add(primary, text)
        for each in run.messages:
            self._lanes.finish(each, MessageState.COMPLETED)

    def _handoffs(self, run: Run) -> list[str]:
        random = self._random
        return [agent for agent, share in run.agent.handoffs if random.random() < share]

    def _post(self, primary: QueuedMessage) -> None:
        """Post in the room of the agent's team; every teammate gets the post."""
        team = next((each for each, who in TEAMMATES.items() if primary.agent in who), None)
        if team is None:
            return
        text = pick(POSTS, self._lanes.enqueued)
        post = self._journal.post(team, primary.agent, text)
        self._journal.event(RoomPosted(team=team, post=post, author=primary.agent))
        for agent in TEAMMATES[team]:
            if agent != primary.agent:
                self._lanes.enqueue(
                    primary.conversation,
                    message_id=self._engine.ids.new("chat"),
                    agent=agent,
                    text=text,
                    channel=ROOM,
                    team_id=team,
                    parent=primary,
                )

    def _fail(self, run: Run, kind: ErrorKind, lane: SimulatedLane) -> None:
        usage = self._model.usage(run)
        retry_after = None
        if kind is ErrorKind.RATE_LIMIT:
            retry_after = self._random.randrange(5, 60) * SECOND
        failure = Failure(kind=kind, error=run.error, retry_after=retry_after, usage=usage)
        in_batch = len(run.messages) > 1
        decided = [
            (each, decide(each.as_message(), failure, self._policy, in_batch=in_batch))
            for each in run.messages
        ]
        self._record(
            run,
            AttemptOutcome.CRASHED if kind is ErrorKind.CRASH else AttemptOutcome.FAILED,
            usage,
            kind,
            dead=sum(each.state is MessageState.DEAD for _, each in decided),
            wait=decided[0][1].wait or None,
        )
        match decided[0][1].lane:
            case PauseLane(reason):
                self._pause(lane, reason)
            case DelayLane(wait):
                self._lanes.delay(lane, wait)
            case None:
                pass
        for message, disposition in decided:
            self._apply(message, disposition, failure)

    def _apply(self, message: QueuedMessage, to: Disposition, failure: Failure) -> None:
        now, error = self._engine.now, failure.error[:ERROR_PREVIEW_CHARS]
        message.retry_count += to.retries
        message.crash_count += to.crashes
        message.last_error = to.error or message.last_error
        message.error_kind = to.error_kind or message.error_kind
        if to.alone:
            message.batch_key = ALONE
        message.ready = to.wait == 0
        message.available_at = now + to.wait
        kind = failure.kind.value
        match to.state:
            case MessageState.DEAD:
                self._make_dead(message, kind, failure.error)
            case MessageState.HELD:
                message.status = MessageState.HELD
                self._journal.event(MessageHeld(message, kind=kind, error=error, wait=to.wait))
                self.ask_for_approval(message)
            case _:
                if self._journal.detailed:
                    self._journal.event(
                        MessageFailed(message, kind=kind, error=error, wait=to.wait)
                    )
                self._lanes.make_pending(message)

    def _make_dead(self, message: QueuedMessage, kind: str, error: str) -> None:
        """Make a message a dead letter, and tell its sender."""
        message.status = MessageState.DEAD
        self._journal.event(
            MessageDead(
                message,
                kind=kind,
                error=error[:ERROR_PREVIEW_CHARS],
                channel=message.channel,
                team_id=message.team_id,
                sender_id=message.sender_id,
                fingerprint=fingerprint(error),
            )
        )
        if message.channel not in INTERNAL_CHANNELS:
            text = death_notice(message.agent, message.message_id, error)
            self._deliveries.add(message, text)
            self._journal.text(
                *(message.agent, "assistant", message.channel, SYSTEM_AUTHOR),
                *(message.message_id, text),
            )
        if not message.fails_for_good:
            self._plan_by_hand(self._decide_about_dead, message, 8 * HOUR)

    def _release(self, run: Run) -> None:
        """The processor restarts: the messages are pending again in their old places."""
        self._record(run, AttemptOutcome.RELEASED, self._model.usage(run))
        if self._journal.detailed:
            ids = [each.message_id for each in run.messages]
            reason = f"{run.worker} is stopping"
            self._journal.event(MessageReleased(run.primary, messages=ids, reason=reason))
        self._give_back(run.messages)

    def _cancel_run(self, run: Run) -> None:
        """A person cancels the primary while it runs."""
        self._record(run, AttemptOutcome.CANCELLED, self._model.usage(run))
        if self._journal.detailed and len(run.messages) > 1:
            ids = [each.message_id for each in run.messages[1:]]
            reason = "another message of the run was cancelled"
            self._journal.event(MessageReleased(run.messages[1], messages=ids, reason=reason))
        self._cancel(run.primary)
        self._give_back(run.messages[1:])

    def _give_back(self, messages: Sequence[QueuedMessage]) -> None:
        for each in messages:
            each.available_at = self._engine.now + RELEASED.wait
            each.ready = True
            self._lanes.make_pending(each)

    def _cancel(self, message: QueuedMessage) -> None:
        message.last_error = "cancelled"
        self._journal.event(MessageCancelled(message, reason=message.last_error))
        self._lanes.finish(message, MessageState.CANCELLED)

    def _pause(self, lane: SimulatedLane, reason: str) -> None:
        """Pause a lane, until the owner has logged in again."""
        lane.paused = True
        self._journal.event(LanePaused(agent=lane.profile.id, reason=reason))
        now = self._engine.now
        end = max([each.end for each in self._lanes.incidents if each.begin <= now], default=now)
        resumed_at = max(end, now) + self._random.randrange(1, 10) * MINUTE
        self._engine.call_at(resumed_at, self._resume_lane, lane)

    def _resume_lane(self, lane: SimulatedLane) -> None:
        lane.paused = False
        self._journal.event(LaneResumed(agent=lane.profile.id, reason=None))
        self._lanes.claim(lane)

    def _decide_about_dead(self, message: QueuedMessage) -> None:
        """A person retries or drops a dead message; about some they decide later."""
        now, chance = self._engine.now, self._random.random()
        if now > self._engine.end - UNDECIDED_FOR and self._random.random() < UNDECIDED_SHARE:
            return
        if chance < DROPPED_SHARE:
            self._journal.event(MessageDropped(message))
            self._lanes.drop(message)
            return
        message.retry_count = message.crash_count = 0
        message.ready = True
        message.available_at = message.updated_at = now
        self._journal.event(MessageRetried(message))
        self._lanes.make_pending(message)

    def _record(
        self,
        run: Run,
        outcome: AttemptOutcome,
        usage: Usage,
        kind: ErrorKind | None = None,
        *,
        dead: int = 0,
        wait: int | None = None,
    ) -> None:
        """Record the attempt; the primary is still as it was claimed."""
        primary = run.primary
        self._journal.attempt(
            AttemptRow(
                message_id=primary.message_id,
                messages=len(run.messages),
                agent=primary.agent,
                worker=run.worker,
                outcome=outcome.value,
                error_kind=None if kind is None else kind.value,
                error=None if kind is None else run.error,
                fingerprint=None if kind is None else fingerprint(run.error),
                retry_count=primary.retry_count,
                provider=usage.provider,
                model=usage.model,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cost=usage.cost,
                conversation_id=primary.conversation_id,
                hop=primary.hop,
                team_id=primary.team_id,
                channel=primary.channel,
                enqueued_at=primary.created_at,
                claimed_at=run.claimed_at,
                started_at=run.claimed_at if usage.started_at is None else usage.started_at,
                finished_at=run.finished_at,
                sender=primary.sender,
                sender_id=primary.sender_id,
                from_agent=primary.from_agent,
                available_at=primary.available_at,
                conversation_at=primary.conversation_at,
                attempt=primary.runs,
                dead=dead,
                wait=wait,
            )
        )
