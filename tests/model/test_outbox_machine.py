"""Whatever happens to deliveries, the outbox does what the model says: on both databases.

Clients, look-ups and the platform tell the truth, so no part arrives twice without a label.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from bullpen.core.clock import HOUR, MINUTE, SECOND
from bullpen.core.errors import StaleToken
from bullpen.core.maintenance.recovery import end_stale_deliveries
from bullpen.core.message import Answer
from bullpen.core.outbox.delivery import (
    ack,
    begin_part,
    end_part,
    mark_undeliverable,
    mark_unknown,
    reschedule,
)
from bullpen.core.outbox.leases import lease_responses
from bullpen.core.outbox.manage import ack_response, drop_response, retry_response
from bullpen.core.outbox.parts import PartReceipt, SendingPart, decode_receipts
from bullpen.core.outbox.recovery import (
    cannot_tell,
    found,
    lease_unknown,
    look_again,
    not_sent,
    prove,
    tell_overdue,
)
from bullpen.core.outbox.write import add_response
from bullpen.core.settings import Durability
from bullpen.core.states import ResponseState
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from tests.model.audit import Reader
from tests.model.outbox_model import ATTEMPTS, LAPSES, Letter, OutboxModel
from tests.model.test_queue_machine import TIMES
from tests.outbox.outgoing import asked
from tests.stores import FakeClock, Stores

S = ResponseState
EXAMPLES = {"sqlite": 150, "postgresql": 30}
STEPS = 40
ROWS = (
    "SELECT id, status, delivery_attempts, parts_sent, part_receipts, sending, possible_duplicate,"
    " claim_token, coalesce(lapses, 0), expires_at, recover_at, recoveries, tell_at,"
    " CASE WHEN status = 'pending' THEN available_at END FROM responses ORDER BY id"
)
EVENTS = "SELECT type, count(*) FROM events GROUP BY type"

PICKS = st.integers(0, 1_000)
LIMITS = st.integers(1, 3)
WAITS = st.sampled_from((0, SECOND, MINUTE, 11 * MINUTE))


class OutboxMachine(RuleBasedStateMachine):
    """One history of an outbox."""

    def __init__(self, store: Store, reader: Reader) -> None:
        super().__init__()
        reader.empty()
        self.store, self.reader = store, reader
        self.clock = FakeClock()
        store.clock = self.clock
        self.model = OutboxModel(self.clock.now)
        self.tokens: list[str] = []
        self._names = itertools.count(1)

    @invariant()
    def the_store_is_as_the_model_says(self) -> None:
        rows = self.reader.rows(ROWS)
        assert len(rows) == len(self.model.letters)
        for row, each in zip(rows, self.model.letters.values(), strict=True):
            receipts = [receipt.id for receipt in decode_receipts(row[4])]
            store = (*row[:4], receipts, bool(row[5]), bool(row[6]), *row[7:])
            available = each.available_at if each.status is S.PENDING else None
            model = (
                *(each.id, each.status.value, each.attempts, each.parts, each.receipts),
                *(each.sending, each.labelled, each.token, each.lapses, each.expires_at),
                *(each.recover_at, each.recoveries, each.tell_at, available),
            )
            assert store == model
        assert Counter(dict(self.reader.rows(EVENTS))) == +self.model.events

    @invariant()
    def no_part_arrived_twice_without_a_label(self) -> None:
        for (id_, part), count in self.model.arrivals.items():
            assert count <= 1 or self.model.letters[id_].labelled, (id_, part)

    @invariant()
    def what_is_acked_by_its_client_arrived(self) -> None:
        for each in self.model.letters.values():
            assert all(self.model.arrivals[each.id, part] for part in range(each.parts)), each

    @rule()
    def answer(self) -> None:
        with self.store.write() as tx:
            add_response(tx, asked(f"slack_{next(self._names)}"), Answer(message="hi"))
        self.model.add(max(row[0] for row in self.reader.rows("SELECT id FROM responses")))

    @rule(by=st.sampled_from((SECOND, 30 * SECOND, MINUTE, 11 * MINUTE, 25 * HOUR)))
    def time_passes(self, by: int) -> None:
        self.clock.advance(by)

    @rule(limit=LIMITS)
    def lease(self, limit: int) -> None:
        with self.store.write() as tx:
            taken = lease_responses(tx, "slack", "client", limit)
        assert [each.id for each in taken] == self.model.due(limit)
        for each in taken:
            self.model.leased(each.id, each.claim_token or "")
            self.tokens.append(each.claim_token or "")

    @rule(limit=LIMITS)
    def lease_look_ups(self, limit: int) -> None:
        with self.store.write() as tx:
            taken = lease_unknown(tx, "slack", "client", limit)
        assert [each.id for each in taken] == self.model.due_look_ups(limit)
        for each in taken:
            self.model.leased_look_up(each.id, each.claim_token or "")
            self.tokens.append(each.claim_token or "")

    @rule(last=st.booleans(), arrived=st.booleans(), killed=st.booleans())
    def lose_an_answer(self, last: bool, arrived: bool, killed: bool) -> None:
        """The whole way to an unknown outcome: the client is killed, or gets no answer."""
        if not any(each.available_at <= self.clock.now() for each in self._pending()):
            self.answer()
        self.lease(3)
        for each in self._pending():
            if each.token is not None and not (each.sending or each.complete):
                token, part = each.token, SendingPart(each.parts, upto=7, last=last)
                self._do(each, partial(begin_part, token=token, part=part))
                self.model.begin(each, last, arrived)
                if not killed:
                    self._do(each, partial(mark_unknown, token=token, error="no answer"))
                    self.model.lose(each)
        if killed:
            self.clock.advance(MINUTE)

    @rule(times=st.integers(1, ATTEMPTS))
    def never_arrive(self, times: int) -> None:
        """Each time a look-up finds that the part was not sent."""
        for _ in range(times):
            self.lose_an_answer(last=True, arrived=False, killed=False)
            self.lease_look_ups(3)
            for pick in range(1, 4):
                self.ask_the_platform(pick)

    @rule(times=st.integers(1, LAPSES))
    def lapse(self, times: int) -> None:
        """Each time a client leases responses, and stops before it begins one."""
        for _ in range(times):
            self.lease(3)
            self.clock.advance(MINUTE)

    def _pending(self) -> list[Letter]:
        return [each for each in self.model.letters.values() if each.status is S.PENDING]

    # What a client does with the token of a delivery

    @precondition(lambda self: self.tokens)
    @rule(pick=PICKS, last=st.booleans(), arrived=st.booleans())
    def begin(self, pick: int, last: bool, arrived: bool) -> None:
        token, each = self._held(pick, S.PENDING)
        if each is not None and (each.sending or each.complete):
            return
        part = SendingPart(0 if each is None else each.parts, upto=7, last=last)
        self._do(each, lambda tx: begin_part(tx, token, part))
        if each is not None:
            self.model.begin(each, last, arrived)

    @precondition(lambda self: self.tokens)
    @rule(pick=PICKS)
    def end(self, pick: int) -> None:
        token, each = self._held(pick, S.PENDING)
        if each is not None and not (each.counted or (each.sending and each.arrived)):
            return
        receipt = self._receipt(each)
        self._do(each, lambda tx: end_part(tx, token, PartReceipt(receipt)))
        if each is not None:
            self.model.end_part(each, receipt)

    @precondition(lambda self: self.tokens)
    @rule(pick=PICKS)
    def ack(self, pick: int) -> None:
        token, each = self._held(pick, S.PENDING)
        if each is None or each.complete:
            self._do(each, lambda tx: ack(tx, token))
            if each is not None:
                self.model.end(each, S.ACKED)

    @precondition(lambda self: self.tokens)
    @rule(pick=PICKS, after=WAITS, counted=st.booleans())
    def reschedule(self, pick: int, after: int, counted: bool) -> None:
        token, each = self._held(pick, S.PENDING)
        if each is not None and each.sending and each.arrived:
            return
        self._do(each, lambda tx: reschedule(tx, token, "busy", retry_after=after, counted=counted))
        if each is not None:
            self.model.reschedule(each, after, counted)

    @precondition(lambda self: self.tokens)
    @rule(pick=PICKS)
    def get_no_answer(self, pick: int) -> None:
        token, each = self._held(pick, S.PENDING)
        if each is None or each.sending:
            self._do(each, lambda tx: mark_unknown(tx, token, "no answer"))
            if each is not None:
                self.model.lose(each)

    @precondition(lambda self: self.tokens)
    @rule(pick=PICKS)
    def get_refused(self, pick: int) -> None:
        token, each = self._held(pick, S.PENDING)
        if each is None or not each.arrived:
            self._do(each, lambda tx: mark_undeliverable(tx, token, "no such chat"))
            if each is not None:
                self.model.end(each, S.DEAD)

    # What a client does with the token of a look-up

    @precondition(lambda self: self.tokens)
    @rule(pick=PICKS)
    def ask_the_platform(self, pick: int) -> None:
        token, each = self._held(pick, S.UNKNOWN)
        if each is not None and each.arrived:
            receipt = self._receipt(each)
            self._do(each, lambda tx: found(tx, token, receipt))
            self.model.found(each, receipt)
            return
        self._do(each, lambda tx: not_sent(tx, token))
        if each is not None:
            self.model.not_sent(each)

    @precondition(lambda self: self.tokens)
    @rule(pick=PICKS)
    def ask_in_vain(self, pick: int) -> None:
        token, each = self._held(pick, S.UNKNOWN)
        self._do(each, lambda tx: cannot_tell(tx, token, "no history"))
        if each is not None:
            self.model.give_up(each, None)

    @precondition(lambda self: self.tokens)
    @rule(pick=PICKS, after=WAITS)
    def ask_later(self, pick: int, after: int) -> None:
        token, each = self._held(pick, S.UNKNOWN)
        again = self._do(each, lambda tx: look_again(tx, token, after))
        if each is not None:
            assert again == self.model.look_again(each, after)

    # What comes by itself

    @precondition(lambda self: self.model.letters)
    @rule(pick=PICKS, off=st.sampled_from((0, 0, 0, 1, -1)))
    def be_told_by_the_platform(self, pick: int, off: int) -> None:
        letters = list(self.model.letters.values())
        on_their_way = [each for each in letters if each.arrived and not each.counted]
        letters = (on_their_way if pick % 4 else []) or letters
        each = letters[pick % len(letters)]
        if each.begun is None or not (each.arrived or off):
            return
        part, receipt = each.begun + off, self._receipt(each)
        with self.store.write() as tx:
            changed = prove(tx, "slack", each.id, part, receipt)
        assert changed == self.model.prove(each, part, receipt)

    @rule()
    def tell_people(self) -> None:
        with self.store.write() as tx:
            tell_overdue(tx, 100)
        self.model.tell_overdue()

    @rule()
    def maintain(self) -> None:
        end_stale_deliveries(self.store)
        self.model.maintain()

    @precondition(lambda self: self.model.letters)
    @rule(pick=PICKS, verb=st.sampled_from(("retry", "drop", "ack")))
    def be_decided_by_a_person(self, pick: int, verb: str) -> None:
        each = self._pick(pick)
        is_open = each.status in (S.PENDING, S.UNKNOWN)
        if verb == "retry" and each.status in (S.DEAD, S.UNKNOWN):
            self._do(each, lambda tx: retry_response(tx, each.id))
            self.model.retry(each)
        elif verb == "drop" and is_open:
            self._do(each, lambda tx: drop_response(tx, each.id))
            self.model.drop(each)
        elif verb == "ack" and is_open:
            self._do(each, lambda tx: ack_response(tx, each.id))
            self.model.end(each, S.ACKED)

    def _pick(self, pick: int) -> Letter:
        letters = list(self.model.letters.values())
        return letters[pick % len(letters)]

    def _held(self, pick: int, status: ResponseState) -> tuple[str, Letter | None]:
        """A token that counts for a state, and its response; now and then one that may not."""
        if pick % 4:
            letters = self.model.letters.values()
            tokens = [each.token for each in letters if each.token and each.status is status]
        else:
            tokens = []
        tokens = tokens or self.tokens[-6:]
        token = tokens[pick % len(tokens)]
        return token, self.model.held(token, status)

    def _receipt(self, each: Letter | None) -> str:
        return "stale" if each is None else f"{each.id}-{each.begun}"

    def _do(self, each: Letter | None, verb: Callable[[Transaction], object]) -> object:
        """Run a verb; with a token that holds nothing, it must refuse."""
        try:
            with self.store.write() as tx:
                done = verb(tx)
        except StaleToken:
            assert each is None
            return None
        assert each is not None, "a void token was accepted"
        return done


@pytest.mark.timeout(600 + 300 * TIMES)
def test_every_history_of_the_outbox_is_as_the_model_says(
    stores: Stores, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bullpen.core.outbox.leases.MAX_LAPSES", LAPSES)
    made = stores.settings(kind, delivery_attempts=ATTEMPTS, durability=Durability.FAST)
    with stores.opened(made) as store, closing(Reader(store)) as reader:

        class Machine(OutboxMachine):
            def __init__(self) -> None:
                super().__init__(store, reader)

        run_state_machine_as_test(
            Machine,
            settings=hypothesis_settings(
                max_examples=max(1, round(EXAMPLES[kind] * TIMES)),
                stateful_step_count=STEPS,
                deadline=None,
                print_blob=True,
                report_multiple_bugs=False,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
            ),
        )
