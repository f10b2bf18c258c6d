"""Does to a store and to the model whatever Hypothesis thinks of, and compares."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bullpen.core.answers.complete import fail
from bullpen.core.answers.leases import expire_leases
from bullpen.core.errors import BullpenError, DuplicateMessage, UnknownAgent
from bullpen.core.maintenance.retention import ARCHIVE_MESSAGES
from bullpen.core.message import Failure, NewMessage, Outcome
from bullpen.core.queue.claim import claim, extend
from bullpen.core.queue.conversations import cancel_conversation
from bullpen.core.queue.enqueue import enqueue, enqueue_many
from bullpen.core.queue.fail import release
from bullpen.core.queue.finish import finish
from bullpen.core.queue.lanes import (
    LanePolicy,
    archive_lane,
    configure_lane,
    create_lane,
    drain_lane,
    pause_lane,
    resume_lane,
)
from bullpen.core.queue.manage import cancel, drop, hold, resume, retry
from bullpen.core.queue.timers import run_timers
from bullpen.core.states import LaneState, MessageState
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from tests.model import strategies as ask
from tests.model.audit import Audit, Reader
from tests.model.numbered_ids import NumberedIds
from tests.model.queue_model import OVER, WINDOW, QueueModel
from tests.stores import FakeClock

M, L = MessageState, LaneState
Mine = TypeVar("Mine")
Theirs = TypeVar("Theirs")

CHANCE = 0.5
PEOPLE: dict[str, tuple[Callable[[Transaction, str], object], tuple[MessageState, ...]]] = {
    "cancel": (cancel, (M.PENDING, M.PROCESSING, M.HELD)),
    "hold": (lambda tx, name: hold(tx, name, "wait"), (M.PENDING,)),
    "let_go": (resume, (M.HELD,)),
    "retry": (retry, OVER),
    "drop": (drop, OVER),
}
LANE_VERBS: dict[LaneState, Callable[[Transaction, str], object]] = {
    L.ACTIVE: resume_lane,
    L.PAUSED: lambda tx, agent: pause_lane(tx, agent, "why"),
    L.DRAINING: drain_lane,
    L.ARCHIVED: archive_lane,
}


class QueueMachine(RuleBasedStateMachine):
    """One history of a queue."""

    def __init__(self, store: Store, reader: Reader) -> None:
        super().__init__()
        reader.empty()
        self.store = store
        self.clock = FakeClock()
        self.ids = NumberedIds()
        store.clock, store.ids, store.chance = self.clock, self.ids, lambda: CHANCE
        self.model = QueueModel(store.settings, self.clock.now, WINDOW, CHANCE)
        self.audit = Audit(reader, self.model)
        self.abandoned: set[str] = set()
        """Tokens of workers that died."""
        self.long = False
        """Whether there were very many messages: once is enough."""
        self._texts = itertools.count(1)

    @initialize(policies=st.tuples(ask.policies, ask.policies, ask.policies))
    def lanes(self, policies: Sequence[LanePolicy]) -> None:
        for agent, policy in zip(ask.AGENTS, policies, strict=True):
            self._create(agent, policy)

    @invariant()
    def the_store_is_as_the_model_says(self) -> None:
        self.audit.check()

    def teardown(self) -> None:
        self.audit.finish()

    # The way in

    @rule(new=ask.messages, again=ask.PICKS, collides=ask.SELDOM)
    def enqueue_one(self, new: NewMessage, again: int, collides: bool) -> None:
        if collides and self.model.items:
            self.ids.repeated = self.model.names[self._pick([*self.model.items], again)]
        self._enqueue([new])

    @rule(news=st.lists(ask.messages, min_size=2, max_size=6))
    def enqueue_several(self, news: list[NewMessage]) -> None:
        self._enqueue(news)

    @rule(new=ask.people(), agent=ask.agents, count=st.integers(3, 11))
    def enqueue_a_crowd(self, new: NewMessage, agent: str, count: int) -> None:
        plain = replace(new, agent=agent, message_id=None, event_ids=(), delay=0, deadline=None)
        self._enqueue([plain] * count)

    @precondition(lambda self: not self.long)
    @rule(new=ask.people(), agent=ask.agents, between=st.integers(252, 257))
    def enqueue_more_than_a_claim_sees(self, new: NewMessage, agent: str, between: int) -> None:
        self.long = True
        plain = replace(new, agent=agent, message_id=None, event_ids=(), delay=0, deadline=None)
        other = replace(plain, sender_id="u3", reply_to=None)
        self._enqueue([plain, *[other] * between, plain])

    # Claims

    @rule(
        worker=st.sampled_from(("w1", "w2")),
        agent=st.one_of(st.none(), st.none(), ask.some_agents),
        limit=ask.limits,
        lease=ask.leases,
    )
    def claim(self, worker: str, agent: str | None, limit: int | None, lease: int | None) -> None:
        self._claim(worker, agent, limit, lease)

    @rule(limit=ask.limits)
    def claim_all_that_can_be(self, limit: int | None) -> None:
        while self._claim("w1", None, limit, None):
            self.audit.check()

    @precondition(lambda self: self.alive())
    @rule(pick=ask.PICKS, lease=ask.leases)
    def extend(self, pick: int, lease: int | None) -> None:
        self._extend(self._pick(self.alive(), pick), lease)

    @rule(pick=ask.PICKS, outcome=ask.outcomes())
    def finish(self, pick: int, outcome: Outcome) -> None:
        for token in self._run(pick):
            self._finish(token, outcome)

    @rule(pick=ask.PICKS, failure=ask.failures)
    def fail(self, pick: int, failure: Failure) -> None:
        for token in self._run(pick):
            self._fail(token, failure)

    @precondition(lambda self: self.alive())
    @rule(pick=ask.PICKS)
    def release(self, pick: int) -> None:
        for token in self._run(pick):
            self._release(token)

    @precondition(lambda self: self.alive())
    @rule(pick=ask.PICKS)
    def the_worker_dies(self, pick: int) -> None:
        self.abandoned.add(self._pick(self.alive(), pick))

    @rule(pick=ask.PICKS, times=st.integers(1, 3))
    def leases_end(self, pick: int, times: int) -> None:
        for _ in range(times):
            self._run(pick)
            ends = [lane.expires for lane in self.model.lanes.values() if lane.token is not None]
            self.clock.advance(max([end - self.clock.now() for end in ends] + [0]))
            self._equal(self.model.reap, expire_leases)
            self.audit.check()

    @precondition(lambda self: self.model.claims())
    @rule()
    def reap(self) -> None:
        self._equal(self.model.reap, expire_leases)

    @precondition(lambda self: self.model.stale)
    @rule(
        pick=ask.PICKS,
        verb=st.sampled_from(("extend", "finish", "fail", "release")),
        outcome=ask.outcomes(),
        failure=ask.failures,
    )
    def use_a_stale_token(self, pick: int, verb: str, outcome: Outcome, failure: Failure) -> None:
        token = self._pick(self.model.stale, -1 - pick)
        match verb:
            case "extend":
                self._extend(token, None)
            case "finish":
                self._finish(token, outcome)
            case "fail":
                self._fail(token, failure)
            case _:
                self._release(token)

    # People and time

    @precondition(lambda self: self.model.names)
    @rule(
        pick=ask.PICKS,
        verb=st.sampled_from((*PEOPLE, "retry")),
        fit=ask.OFTEN,
        archived=ask.SELDOM,
    )
    def handle_a_message(self, pick: int, verb: str, fit: bool, archived: bool) -> None:
        real, states = PEOPLE[verb]
        fitting = [self.model.names[each.number] for each in self.model.live(*states)]
        every = [*self.model.names.values(), "api_unknown1"]
        name = self._pick(fitting if fit and fitting else every, pick)
        for agent in ask.AGENTS if archived else ():
            self.move_a_lane(agent=agent, state=L.ARCHIVED)
            self.audit.check()
        verbs: dict[str, Callable[[str], None]] = {
            "cancel": self.model.cancel,
            "hold": self.model.hold,
            "let_go": self.model.let_go,
            "retry": self.model.retry,
            "drop": self.model.drop,
        }
        self._both(lambda: verbs[verb](name), lambda tx: real(tx, name))

    @rule(new=ask.people(), agent=ask.agents, count=st.integers(2, 4), pick=ask.PICKS)
    def cancel_one_of_a_batch(self, new: NewMessage, agent: str, count: int, pick: int) -> None:
        """Every message that leaves the run has its event: the cancelled one and the others."""
        self.enqueue_a_crowd(new=new, agent=agent, count=count)
        self.audit.check()
        self._claim("w1", agent, None, None)
        self.audit.check()
        running = [
            self.model.names[number] for lane in self.model.lanes.values() for number in lane.batch
        ]
        if running:
            name = self._pick(running, pick)
            self._both(lambda: self.model.cancel(name), lambda tx: cancel(tx, name))

    @precondition(lambda self: self.model.items)
    @rule(pick=ask.PICKS)
    def cancel_a_conversation(self, pick: int) -> None:
        conversation = self.model.conversation(self._pick([*self.model.items.values()], pick))
        self._equal(
            lambda: self.model.cancel_conversation(conversation),
            lambda tx: cancel_conversation(tx, conversation),
        )

    @rule(agent=ask.some_agents, state=ask.lane_states)
    def move_a_lane(self, agent: str, state: LaneState) -> None:
        verb = LANE_VERBS[state]
        self._both(lambda: self.model.move_lane(agent, state), lambda tx: verb(tx, agent))

    @rule()
    def resume_the_lanes(self) -> None:
        for agent in ask.AGENTS:
            self.move_a_lane(agent=agent, state=L.ACTIVE)
            self.audit.check()

    @rule(agent=ask.some_agents, policy=ask.policies, created=st.booleans())
    def configure_a_lane(self, agent: str, policy: LanePolicy, created: bool) -> None:
        if created and agent != ask.STRANGER:
            self._create(agent, policy)
        else:
            self._both(
                lambda: self.model.configure(agent, policy),
                lambda tx: configure_lane(tx, agent, policy),
            )

    @rule(pause=ask.pauses)
    def time_passes(self, pause: int) -> None:
        self.clock.advance(pause)

    @rule(back=st.sampled_from((1, 5_000, 600_000)))
    def the_clock_is_set_back(self, back: int) -> None:
        self._both(self.model.make_due, run_timers)  # so that what is over stays over
        for lane in self.model.lanes.values():
            if lane.not_before is not None and lane.not_before <= self.clock.now():
                lane.not_before = None
        self.audit.check()
        self.clock.set_by(-back)

    @precondition(lambda self: self.model.live(M.PENDING))
    @rule()
    def deadlines_are_looked_at(self) -> None:
        self._both(self.model.make_due, run_timers)

    @rule(pause=st.sampled_from((0, 25 * 3_600_000)))
    def prune(self, pause: int) -> None:
        self.clock.advance(pause)
        self._equal(self.model.archive, ARCHIVE_MESSAGES.remove_batch)

    # Both at once

    def alive(self) -> list[str]:
        """The tokens of runs whose workers live."""
        return sorted(self.model.claims().keys() - self.abandoned)

    def _run(self, pick: int) -> list[str]:
        """A run; claimed now if there was none, asked for now if nothing waited."""
        new = NewMessage(agent=ask.AGENTS[pick % 3], message="", sender_id="u1")
        for asks in (False, True):
            if asks and not self.alive():
                self._enqueue([new])
                self.audit.check()
            if not self.alive():
                self._claim("w1", None, None, None)
                self.audit.check()
        return [self._pick(self.alive(), pick)] if self.alive() else []

    def _pick(self, those: Sequence[Mine], pick: int) -> Mine:
        return those[pick % len(those)]

    def _text(self, new: NewMessage) -> NewMessage:
        deadline = None if new.deadline is None else self.clock.now() + new.deadline
        return replace(new, message=f"m{next(self._texts)}", deadline=deadline)

    def _enqueue(self, drafts: Sequence[NewMessage]) -> None:
        news = [self._text(new) for new in drafts]
        done = self._both(
            lambda: self.model.enqueue(news),
            lambda tx: [enqueue(tx, news[0])] if len(news) == 1 else enqueue_many(tx, news),
        )
        self.ids.repeated = None
        if done is not None:
            mine, theirs = done
            expected = [(self.model.names[number], fresh) for number, fresh in mine]
            _same([(each.message_id, each.fresh) for each in theirs], expected)

    def _claim(self, worker: str, agent: str | None, limit: int | None, lease: int | None) -> bool:
        if agent is not None and agent not in self.model.lanes:
            with pytest.raises(UnknownAgent), self.store.write() as tx:
                claim(tx, worker, agent=agent)
            return False
        with self.store.write(durable=False) as tx:
            taken = claim(tx, worker, agent=agent, limit=limit, lease=lease)
        free = self.model.claimable(agent)
        if taken is None:
            assert not free, f"nothing was claimed while {free} wait"
            return False
        assert taken.agent in free, f"{taken.agent} was claimed instead of {free}"
        expires = self.clock.now() + self._lease(lease)
        _same(taken.lease_expires_at, expires)
        batch = self.model.take(taken.agent, taken.token, limit, expires)
        names = [self.model.names[number] for number in batch]
        _same([each.message_id for each in taken.messages], names)
        items = [self.model.items[number] for number in batch]
        tries = [(each.retry_count, each.crash_count) for each in items]
        _same([(each.retry_count, each.crash_count) for each in taken.messages], tries)
        return True

    def _lease(self, lease: int | None) -> int:
        return self.store.settings.lease_seconds * 1000 if lease is None else lease

    def _extend(self, token: str, lease: int | None) -> None:
        expires = self.clock.now() + self._lease(lease)
        self._equal(lambda: self.model.extend(token, expires), lambda tx: extend(tx, token, lease))

    def _finish(self, token: str, draft: Outcome) -> None:
        outcome = Outcome(
            answers=tuple(replace(each, message=f"a{next(self._texts)}") for each in draft.answers),
            handoffs=tuple(self._text(each) for each in draft.handoffs),
            room_posts=tuple(
                replace(each, message=f"p{next(self._texts)}") for each in draft.room_posts
            ),
        )
        done = self._both(
            lambda: self.model.finish(token, outcome), lambda tx: finish(tx, token, outcome)
        )
        if done is not None:
            mine, theirs = done
            _same(theirs, [self.model.names[each] for each in mine])

    def _fail(self, token: str, failure: Failure) -> None:
        self._both(lambda: self.model.fail(token, failure), lambda tx: fail(tx, token, failure))

    def _release(self, token: str) -> None:
        self._both(lambda: self.model.release(token), lambda tx: release(tx, token))

    def _create(self, agent: str, policy: LanePolicy) -> None:
        self._both(
            lambda: self.model.create(agent, policy), lambda tx: create_lane(tx, agent, policy)
        )

    def _equal(self, model: Callable[[], Mine], real: Callable[[Transaction], Mine]) -> None:
        done = self._both(model, real)
        if done is not None:
            _same(done[1], done[0])

    def _both(
        self, model: Callable[[], Mine], real: Callable[[Transaction], Theirs]
    ) -> tuple[Mine, Theirs] | None:
        """What both gave, or None if both refused for the same reason."""
        expected = self._modelled(model)
        try:
            with self.store.write() as tx:
                theirs = real(tx)
        except BullpenError as error:
            found: Theirs | BullpenError = error
        else:
            found = theirs
        if isinstance(found, BullpenError):
            _same(_told(found), _told(expected))
            return None
        assert not isinstance(expected, BullpenError), f"the model refused {found!r}: {expected!r}"
        self.audit.adopt()
        return expected, found

    def _modelled(self, model: Callable[[], Mine]) -> Mine | BullpenError:
        try:
            with self.model.atomic():
                return model()
        except BullpenError as error:
            return error


def _told(answer: object) -> object:
    """The kind of an error, and what a client learns from it; words may differ."""
    if isinstance(answer, DuplicateMessage):
        return type(answer), answer.message_id, answer.status
    return type(answer) if isinstance(answer, BullpenError) else answer


def _same(found: object, expected: object) -> None:
    assert found == expected, f"the store gave {found!r}, the model {expected!r}"
