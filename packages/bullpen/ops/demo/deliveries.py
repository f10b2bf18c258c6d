"""Deliveries of a simulation: responses that are stored, tried and delivered, or not."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from bullpen.core.clock import HOUR, MINUTE
from bullpen.core.events.response import (
    ResponseDead,
    ResponseDelivered,
    ResponseOutcome,
    ResponseReady,
    ResponseRetried,
    ResponseUnknown,
)
from bullpen.core.states import ResponseState
from bullpen.ops.demo.company import CHANNELS_BY_NAME
from bullpen.ops.demo.engine import Engine
from bullpen.ops.demo.rows import Journal
from bullpen.ops.demo.state import QueuedMessage, StoredResponse
from bullpen.ops.demo.texts import DELIVERY_ERRORS
from bullpen.ops.demo.traffic import Incident, next_office_hour

MAX_TRIES = 8
REFUSED_SHARE = 0.0015
UNKNOWN_SHARE = 0.0004
LEFT_ALONE_SHARE = 0.3
"""The share of undelivered responses that nobody retries."""
PARTS = (1, 1, 1, 1, 1, 1, 2, 2, 3, 4)
NOT_CONFIRMED = "sent without a confirmation"


class Deliveries:
    """The responses that are not delivered yet."""

    def __init__(self, engine: Engine, journal: Journal, incidents: Sequence[Incident]) -> None:
        self._engine = engine
        self._random = random = engine.random
        self._journal = journal
        self._keep = engine.plan.response_hours * HOUR
        self._outages = [each for each in incidents if each.channel is not None]
        self._spread = [math.exp(random.gauss(0, 0.6)) for _ in range(1024)]
        self._rows = 0
        self._open: dict[int, StoredResponse] = {}

    def add(self, to: QueuedMessage, text: str) -> None:
        """Store a response to the person of this conversation, and deliver it."""
        now = self._engine.now
        self._rows += 1
        response = StoredResponse(
            id=self._rows,
            message_id=to.message_id,
            agent=to.agent,
            conversation_id=to.conversation_id,
            person=to.conversation.person,
            message=text,
            original_message=to.message,
            created_at=now,
            expires_at=now + self._keep,
            available_at=now,
            parts=PARTS[self._random.getrandbits(10) % len(PARTS)],
        )
        if self._journal.detailed:
            ready = ResponseReady(to, channel=response.channel)
            self._journal.event(ready, response.id)
        self._open[response.id] = response
        self._deliver(response)

    def rest(self) -> list[StoredResponse]:
        """Those that are pending, dead or unknown."""
        return list(self._open.values())

    def _deliver(self, response: StoredResponse) -> None:
        """Plan the end of the delivery: its time and its outcome."""
        random = self._random
        channel = CHANNELS_BY_NAME[response.channel]
        time = self._engine.now
        response.delivery_attempts, response.outcome = 0, ResponseState.DEAD
        refused = random.random() < REFUSED_SHARE
        while response.delivery_attempts < MAX_TRIES:
            response.delivery_attempts += 1
            time += 1 + int(
                channel.milliseconds * self._spread[random.getrandbits(10)] * response.parts
            )
            if refused:
                response.last_error = DELIVERY_ERRORS[channel.name]
                break
            if not self._fails(channel.name, channel.failures, time):
                unknown = random.random() < UNKNOWN_SHARE
                response.outcome = ResponseState.UNKNOWN if unknown else ResponseState.ACKED
                response.last_error = NOT_CONFIRMED if unknown else None
                break
            response.last_error = f"{channel.name} did not answer"
            if response.delivery_attempts < MAX_TRIES:
                time += self._engine.retry.delay(response.delivery_attempts)
        response.available_at = time
        if time < self._engine.end:
            self._engine.call_at(time, self._end, response)
        else:
            response.delivery_attempts, response.last_error = 0, None
            response.available_at = response.created_at

    def _fails(self, channel: str, share: float, time: int) -> bool:
        for each in self._outages:
            if each.channel == channel and each.begin <= time < each.end:
                share = each.share
        return self._random.random() < share

    def _end(self, response: StoredResponse) -> None:
        """The platform took the last part, or the delivery is given up."""
        response.status = response.outcome
        match response.status:
            case ResponseState.ACKED:
                self._record(ResponseDelivered, response)
                self._close(response)
            case ResponseState.UNKNOWN:
                self._record(ResponseUnknown, response)
                self._plan_by_hand(self._confirm, response)
            case _:
                self._record(ResponseDead, response)
                if self._random.random() >= LEFT_ALONE_SHARE:
                    self._plan_by_hand(self._try_again, response)

    def _plan_by_hand(self, action: Callable[[StoredResponse], None], to: StoredResponse) -> None:
        """Let a person do something in office hours."""
        later = self._engine.now + self._random.randrange(10 * MINUTE, 5 * HOUR)
        self._engine.call_at(next_office_hour(later), action, to)

    def _confirm(self, response: StoredResponse) -> None:
        """A person found that an unconfirmed response had arrived."""
        response.status, response.last_error = ResponseState.ACKED, None
        self._record(ResponseDelivered, response)
        self._close(response)

    def _try_again(self, response: StoredResponse) -> None:
        """A person retries a response that was not delivered."""
        response.status, response.last_error = ResponseState.PENDING, None
        response.expires_at = self._engine.now + self._keep
        self._record(ResponseRetried, response)
        self._deliver(response)

    def _record(self, kind: type[ResponseOutcome], response: StoredResponse) -> None:
        self._journal.event(
            kind(
                response,
                channel=response.channel,
                error=response.last_error,
                response=response.id,
                tries=response.delivery_attempts,
                waited=self._engine.now - response.created_at,
                parts=response.parts_sent,
                sender_id=response.sender_id,
            )
        )

    def _close(self, response: StoredResponse) -> None:
        del self._open[response.id]
        response.acked_at = response.person.last_out_at = self._engine.now
        self._journal.delivered(response)
