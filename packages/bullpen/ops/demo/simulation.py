"""The simulation of a history: from a plan to rows, in the order of time and with bounded memory.

It keeps only what is unfinished. Each lane runs one claim at a time, as a processor does, and a
failed run has the consequences that `decide` says. The rows are those that Bullpen would have
written itself, without those that retention would have removed since.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from random import Random
from typing import Generic, TypeVar

from bullpen.core.clock import DAY, HOUR, MINUTE, SECOND
from bullpen.core.events.channel import PairingApproved, PairingAsked
from bullpen.core.events.conversation import AgentRouted, TeamChainStart
from bullpen.ops.demo.company import PLACES, TARGETS, Person, Target, make_people
from bullpen.ops.demo.deliveries import Deliveries
from bullpen.ops.demo.engine import Engine
from bullpen.ops.demo.lanes import Lanes
from bullpen.ops.demo.outcomes import Outcomes
from bullpen.ops.demo.plan import MAX_ARCHIVED, HistoryPlan
from bullpen.ops.demo.rows import ChatRow, Journal, Row, Rows, SenderRow
from bullpen.ops.demo.runs import RunModel
from bullpen.ops.demo.state import Conversation
from bullpen.ops.demo.texts import QUESTIONS, pick
from bullpen.ops.demo.traffic import TrafficHour, in_hour, plan_incidents, plan_traffic

FAVOURITE_SHARE = 0.6
BURST_SHARE = 0.08
"""The share of messages after which the same person soon writes another one."""
DELAYED_SHARE = 0.004
HELD_SHARE = 0.002
MEASURED_AFTER = 500
"""The number of messages of people after which the runs that they cause are measured."""
APPROVAL = "the message asks for a refund over 500 dollars"
OWNER = "owner"

Arrival = tuple[Person, Target]
Item = TypeVar("Item")


class _Choice(Generic[Item]):
    """Picks items by weight."""

    def __init__(self, items: Sequence[Item], weight: Callable[[Item], float]) -> None:
        self._items = items
        self._weights = list(accumulate(weight(each) for each in items))

    @property
    def first(self) -> Item:
        """The first item."""
        return self._items[0]

    def pick(self, random: Random) -> Item:
        """One of the items."""
        weights = self._weights
        return self._items[bisect(weights, random.random() * weights[-1], 0, len(weights) - 1)]


class Simulation:
    """A company's work between two times."""

    def __init__(self, plan: HistoryPlan) -> None:
        self._plan = plan
        random = self._random = Random(plan.seed)  # noqa: S311 - not a secret
        self._hours = plan_traffic(random, plan.since, plan.until)
        self._incidents = plan_incidents(random, plan.since, plan.until)
        self._people = make_people(random, plan.since, plan.until)
        engine = self._engine = Engine(plan, random)
        journal = self._journal = Journal(engine, self._detailed_from())
        self._model = RunModel(random, plan.attempts, self._hours, plan.lease_seconds * SECOND)
        self._deliveries = Deliveries(engine, journal, self._incidents)
        self._lanes = Lanes(engine, journal, self._model)
        self._outcomes = Outcomes(engine, journal, self._model, self._lanes, self._deliveries)
        self._lanes.end_run = self._outcomes.end
        self._by_place = [
            _Choice(
                [each for each in self._people if each.place == place], lambda each: each.weight
            )
            for place in range(len(PLACES))
        ]
        self._targets = _Choice(TARGETS, lambda each: each.share)
        self._arrivals = 0

    @property
    def now(self) -> int:
        """The time up to which rows were given."""
        return self._engine.now

    def run(self) -> Iterator[Rows]:
        """Give the rows in the order of time, part by part."""
        for person in self._people:
            if person.joins_at > self._plan.since:
                self._engine.call_at(person.joins_at, self._pair, person)
        for action, minutes in self._waiting_at_end():
            person = self._by_place[0].pick(self._random)
            arrival = (
                person if person.joins_at == self._plan.since else self._by_place[0].first,
                self._targets.pick(self._random),
            )
            self._engine.call_at(self._plan.until - minutes * MINUTE, action, arrival)
        left = sum(each.weight for each in self._hours)
        for hour in self._hours:
            self._lanes.incidents = in_hour(self._incidents, hour.begin, hour.end)
            for time, person, target in self._arrivals_of(hour, left):
                self._engine.run_until(time)
                self._arrive((person, target))
                if self._journal.is_full:
                    yield self._journal.take()
            self._engine.run_until(hour.end)
            left -= hour.weight
            if self._journal.is_full:
                yield self._journal.take()
        self._journal.unfinished(self._lanes.rest(), self._deliveries.rest())
        rows = self._journal.take()
        rows.tables["senders"] = self._sender_rows()
        rows.tables["chats"] = self._chat_rows()
        rows.lanes = self._lanes.rows()
        yield rows

    def _waiting_at_end(self) -> list[tuple[Callable[[Arrival], None], int]]:
        """Messages that wait for a person or their time at the end, and how long before it."""
        return [
            *((self._arrive_held, minutes) for minutes in (35, 130, 410)),
            *((self._arrive_failing, minutes) for minutes in (50, 170, 320, 560)),
            *((self._arrive_delayed, minutes) for minutes in (20, 90)),
        ]

    def _detailed_from(self) -> int:
        """The time from which about `MAX_ARCHIVED` messages remain."""
        total = sum(each.weight for each in self._hours)
        archived = 0.0
        for hour in reversed(self._hours):
            if hour.end <= self._plan.live_from:
                archived += hour.weight / total * self._plan.attempts
            if archived > MAX_ARCHIVED:
                return hour.end
        return self._plan.since

    def _arrivals_of(self, hour: TrafficHour, left: float) -> list[tuple[int, Person, Target]]:
        """The messages of people in an hour, such that the history has the attempts it should."""
        done = self._journal.attempts
        # What is known of the runs that a message causes, after a while from the history itself.
        known = min(1.0, self._arrivals / MEASURED_AFTER)
        causes = self._model.per_arrival
        if known:
            measured = (done + self._lanes.unfinished) / self._arrivals
            causes = known * measured + (1 - known) * causes
        missing = max(0, self._plan.attempts - done - self._lanes.unfinished)
        expected = missing * hour.weight / left / causes
        random = self._random
        count = max(0, round(random.gauss(expected, expected**0.5)))
        length = hour.end - hour.begin
        times = sorted([hour.begin + int(random.random() * length) for _ in range(count)])
        places = random.choices(range(len(PLACES)), hour.weights, k=count)
        found = []
        for time, place in zip(times, places, strict=True):
            choice = self._by_place[place]
            person = choice.pick(random)
            if person.joins_at > time:
                person = choice.first
            other = random.random() >= FAVOURITE_SHARE
            found.append((time, person, self._targets.pick(random) if other else person.favourite))
        return found

    def _arrive(self, arrival: Arrival) -> None:
        """A person writes to an agent or a team."""
        random = self._random
        delay = random.randrange(MINUTE, 4 * HOUR) if random.random() < DELAYED_SHARE else 0
        hold_reason = APPROVAL if random.random() < HELD_SHARE else None
        self._write_to(arrival, delay=delay, hold_reason=hold_reason)
        if random.random() < BURST_SHARE:
            later = self._engine.now + random.randrange(4 * SECOND, 60 * SECOND)
            self._engine.call_at(later, self._arrive, arrival)

    def _arrive_held(self, arrival: Arrival) -> None:
        self._write_to(arrival, hold_reason=APPROVAL, waits=True)

    def _arrive_failing(self, arrival: Arrival) -> None:
        self._write_to(arrival, waits=True)

    def _arrive_delayed(self, arrival: Arrival) -> None:
        self._write_to(arrival, delay=DAY)

    def _write_to(
        self,
        arrival: Arrival,
        *,
        delay: int = 0,
        hold_reason: str | None = None,
        waits: bool = False,
    ) -> None:
        person, target = arrival
        now = self._engine.now
        self._arrivals += 1
        person.first_at = person.first_at or now
        person.last_at = now
        message_id = self._engine.ids.new(person.channel)
        conversation = Conversation(message_id, now, target.team, person)
        message = self._lanes.enqueue(
            conversation,
            message_id=message_id,
            agent=target.agent,
            text=pick(QUESTIONS[target.agent], self._lanes.enqueued),
            channel=person.channel,
            team_id=target.team,
            delay=delay,
            hold_reason=hold_reason,
            waits=waits,
        )
        if hold_reason is not None and not waits:
            self._outcomes.ask_for_approval(message)
        if self._journal.detailed:
            self._journal.event(AgentRouted(message, team=target.team))
            if target.team is not None:
                self._journal.event(TeamChainStart(message, team=target.team))

    def _pair(self, person: Person) -> None:
        """A new person asks for pairing, and is approved."""
        where = {"channel": person.channel, "name": person.name}
        self._journal.event(PairingAsked(**where, sender_id=person.sender_id))
        self._journal.event(
            PairingApproved(
                **where, tier=person.tier, sender_id=person.sender_id, chat=None, by=OWNER
            )
        )

    def _sender_rows(self) -> list[Row]:
        return [
            SenderRow(
                channel=each.channel,
                sender_id=each.sender_id,
                name=each.name,
                tier=each.tier,
                approved_at=each.joins_at,
                approved_by=OWNER,
                first_at=min(each.joins_at, each.first_at or each.joins_at),
                last_at=each.last_at or each.joins_at,
            )
            for each in self._people
        ]

    def _chat_rows(self) -> list[Row]:
        return [
            ChatRow(
                channel=each.channel,
                chat=each.chat,
                direct=True,
                name=each.name,
                person=each.sender_id,
                last_in_at=each.last_at or each.joins_at,
                last_out_at=each.last_out_at,
                created_at=each.joins_at,
                updated_at=each.last_at or each.joins_at,
            )
            for each in self._people
        ]
