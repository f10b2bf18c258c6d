"""Deliveries of a simulation: responses that are stored, tried and delivered, or not."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random

from bullpen.core.clock import HOUR, MINUTE
from bullpen.core.events.response import (
    ResponseDead,
    ResponseDelivered,
    ResponseOutcome,
    ResponseReady,
    ResponseRetried,
    ResponseUnknown,
)
from bullpen.core.retry import RetryPolicy
from bullpen.core.states import ResponseState
from bullpen.ops.demo.agenda import Agenda
from bullpen.ops.demo.company import CHANNELS_BY_NAME
from bullpen.ops.demo.in_flight import QueuedMessage, StoredResponse
from bullpen.ops.demo.incidents import Incident
from bullpen.ops.demo.journal import Journal
from bullpen.ops.demo.plan import HistoryPlan
from bullpen.ops.demo.texts import DELIVERY_ERRORS
from bullpen.ops.demo.traffic import next_office_hour

MAX_TRIES = 8
REFUSED_SHARE = 0.0015
UNKNOWN_SHARE = 0.0004
LEFT_ALONE_SHARE = 0.3
"""The share of undelivered responses that nobody retries."""
PARTS = (1, 1, 1, 1, 1, 1, 2, 2, 3, 4)
NOT_CONFIRMED = "sent without a confirmation"


class Deliveries:
    """The responses that are not delivered yet."""

    def __init__(
        self,
        plan: HistoryPlan,
        agenda: Agenda,
        journal: Journal,
        random: Random,
        retry: RetryPolicy,
        incidents: Sequence[Incident],
    ) -> None:
        self._agenda = agenda
        self._journal = journal
        self._random = random
        self._retry = retry
        self._keep = plan.response_hours * HOUR
        self._outages = [each for each in incidents if each.channel is not None]
        self._spread = [math.exp(random.gauss(0, 0.6)) for _ in range(1024)]
        self._rows = 0
        self._open: dict[int, StoredResponse] = {}

    def add(self, to: QueuedMessage, text: str) -> None:
        """Store a response to the person of this conversation, and deliver it."""
        now = self._agenda.now
        self._rows += 1
        response = StoredResponse(
            row=self._rows,
            message_id=to.message_id,
            agent=to.agent,
            conversation_id=to.conversation_id,
            person=to.conversation.person,
            text=text,
            question=to.text,
            created_at=now,
            expires_at=now + self._keep,
            available_at=now,
            parts=PARTS[self._random.getrandbits(10) % len(PARTS)],
        )
        if self._journal.detailed:
            ready = ResponseReady(to, channel=response.person.channel)
            self._journal.event(ready, response.row)
        self._open[response.row] = response
        self._deliver(response)

    def rest(self) -> list[StoredResponse]:
        """Those that are pending, dead or unknown."""
        return list(self._open.values())

    def _deliver(self, response: StoredResponse) -> None:
        """Plan the end of the delivery: its time and its outcome."""
        random = self._random
        channel = CHANNELS_BY_NAME[response.person.channel]
        time = self._agenda.now
        response.tries, response.outcome = 0, ResponseState.DEAD
        refused = random.random() < REFUSED_SHARE
        while response.tries < MAX_TRIES:
            response.tries += 1
            time += 1 + int(
                channel.milliseconds * self._spread[random.getrandbits(10)] * response.parts
            )
            if refused:
                response.error = DELIVERY_ERRORS[channel.name]
                break
            if not self._fails(channel.name, channel.failures, time):
                unknown = random.random() < UNKNOWN_SHARE
                response.outcome = ResponseState.UNKNOWN if unknown else ResponseState.ACKED
                response.error = NOT_CONFIRMED if unknown else None
                break
            response.error = f"{channel.name} did not answer"
            if response.tries < MAX_TRIES:
                time += self._retry.delay(response.tries)
        response.available_at = time
        if time < self._agenda.end:
            self._agenda.plan(time, self._end, response)
        else:
            response.tries, response.error = 0, None
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
        later = self._agenda.now + self._random.randrange(10 * MINUTE, 5 * HOUR)
        self._agenda.plan(next_office_hour(later), action, to)

    def _confirm(self, response: StoredResponse) -> None:
        """A person found that an unconfirmed response had arrived."""
        response.status, response.error = ResponseState.ACKED, None
        self._record(ResponseDelivered, response)
        self._close(response)

    def _try_again(self, response: StoredResponse) -> None:
        """A person retries a response that was not delivered."""
        response.status, response.error = ResponseState.PENDING, None
        response.expires_at = self._agenda.now + self._keep
        self._record(ResponseRetried, response)
        self._deliver(response)

    def _record(self, kind: type[ResponseOutcome], response: StoredResponse) -> None:
        delivered = response.status is ResponseState.ACKED
        self._journal.event(
            kind(
                response,
                channel=response.person.channel,
                error=response.error,
                response=response.row,
                tries=response.tries,
                waited=self._agenda.now - response.created_at,
                parts=response.parts if delivered else 0,
                sender_id=response.person.sender_id,
            )
        )

    def _close(self, response: StoredResponse) -> None:
        del self._open[response.row]
        response.person.last_out_at = self._agenda.now
        self._journal.delivered(response)
