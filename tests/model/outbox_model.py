"""The outbox in plain Python: deliveries, parts, and look-ups of what is unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from bullpen.core.clock import HOUR, MINUTE, SECOND
from bullpen.core.states import ResponseState

S = ResponseState

ATTEMPTS = 3
LAPSES = 4
LEASE = 60 * SECOND
TELL_AFTER = 10 * MINUTE
LIFE = 24 * HOUR


@dataclass(slots=True)
class Letter:
    """A response; what is true of its part on the platform is `arrived`."""

    id: int
    available_at: int
    expires_at: int
    status: ResponseState = S.PENDING
    attempts: int = 0
    parts: int = 0
    receipts: list[str] = field(default_factory=list)
    begun: int | None = None
    """The number of the part that was begun last."""
    last: bool = False
    sending: bool = False
    arrived: bool = False
    labelled: bool = False
    token: str | None = None
    lapses: int = 0
    """The leases in a row that ended before a part was begun."""
    recover_at: int | None = None
    recoveries: int | None = None
    tell_at: int | None = None

    @property
    def counted(self) -> bool:
        """Whether the part that was begun last has its receipt."""
        return self.begun is not None and self.begun < self.parts

    @property
    def complete(self) -> bool:
        """Whether its last part was sent."""
        return self.counted and self.last


class OutboxModel:
    """Every verb of the outbox; a verb of a client needs the token of its lease."""

    def __init__(self, now: Callable[[], int]) -> None:
        self.now = now
        self.letters: dict[int, Letter] = {}
        self.events: Counter[str] = Counter()
        self.arrivals: Counter[tuple[int, int]] = Counter()

    def add(self, id_: int) -> None:
        self.letters[id_] = Letter(id_, self.now(), self.now() + LIFE)
        self.events["response_ready"] += 1

    def held(self, token: str, status: ResponseState) -> Letter | None:
        """The response under this token, if the token still counts for verbs of this state."""
        for each in self.letters.values():
            looked_up = status is S.PENDING or each.recover_at is not None
            if each.token == token and each.status is status and looked_up:
                return each
        return None

    # Leases

    def due(self, limit: int) -> list[int]:
        """Decide what is due; gives what is to be leased."""
        found = [e for e in self.letters.values() if e.status is S.PENDING]
        found = [e for e in found if e.available_at <= self.now()]
        leased: list[int] = []
        for each in sorted(found, key=lambda e: e.id):
            if len(leased) == limit:
                break
            if each.sending:
                self.lose(each)
            elif each.complete:
                self.end(each, S.ACKED)
            elif each.expires_at <= self.now() or (each.lapses + 1 >= LAPSES and each.token):
                self.end(each, S.DEAD)
            else:
                leased.append(each.id)
        return leased

    def leased(self, id_: int, token: str) -> None:
        each = self.letters[id_]
        # A lease that lapsed leaves its attempt to the next one.
        lapsed = each.token is not None
        each.lapses = each.lapses + 1 if lapsed else 0
        each.token, each.attempts = token, each.attempts + (not lapsed)
        each.available_at = self.now() + LEASE

    def renew(self, each: Letter) -> None:
        each.lapses = 0
        each.available_at = self.now() + LEASE

    def due_look_ups(self, limit: int) -> list[int]:
        found = [
            (each.recover_at, each.id)
            for each in self.letters.values()
            if each.status is S.UNKNOWN and each.recover_at is not None
        ]
        return [id_ for at, id_ in sorted(found) if at <= self.now()][:limit]

    def leased_look_up(self, id_: int, token: str) -> None:
        each = self.letters[id_]
        each.token, each.recover_at = token, self.now() + LEASE

    # Parts

    def begin(self, each: Letter, last: bool, arrived: bool) -> None:
        each.begun, each.last, each.sending, each.arrived = each.parts, last, True, arrived
        self.arrivals[each.id, each.parts] += arrived
        self.renew(each)

    def count(self, each: Letter, receipt: str) -> None:
        each.parts, each.sending = each.parts + 1, False
        each.receipts.append(receipt)

    def end_part(self, each: Letter, receipt: str) -> None:
        if not each.counted:
            self.count(each, receipt)
        self.renew(each)

    def reschedule(self, each: Letter, after: int, counted: bool) -> None:
        at = self.now() + after
        if (counted and each.attempts >= ATTEMPTS) or at >= each.expires_at:
            self.end(each, S.DEAD)
            return
        each.token, each.sending, each.available_at = None, False, at
        each.attempts -= not counted

    def lose(self, each: Letter) -> None:
        """Nobody knows whether the part arrived."""
        each.status, each.token, each.sending = S.UNKNOWN, None, False
        each.recover_at, each.recoveries = self.now(), None
        each.tell_at = self.now() + TELL_AFTER
        self.events["response_unconfirmed"] += 1

    def end(self, each: Letter, status: ResponseState) -> None:
        each.status, each.token, each.sending = status, None, False
        each.recover_at = each.recoveries = each.tell_at = None
        acked = status is S.ACKED
        self.events["response_delivered" if acked else "response_dead"] += 1

    # Look-ups

    def found(self, each: Letter, receipt: str) -> None:
        self.count(each, receipt)
        if each.last:
            self.end(each, S.ACKED)
        else:
            each.attempts -= 1
            self.go_on(each)

    def not_sent(self, each: Letter) -> None:
        if each.attempts >= ATTEMPTS:
            self.end(each, S.DEAD)
        else:
            self.go_on(each)

    def go_on(self, each: Letter) -> None:
        each.status, each.token, each.available_at = S.PENDING, None, self.now()
        each.recover_at = each.recoveries = each.tell_at = None
        self.events["response_settled"] += 1

    def give_up(self, each: Letter, again: int | None) -> None:
        each.token, each.recover_at = None, again
        each.recoveries = (each.recoveries or 0) + 1
        self.tell(each)

    def look_again(self, each: Letter, after: int) -> bool:
        at = self.now() + after
        if each.tell_at is None or at > each.tell_at:
            at = max(at, self.now() + 10 * MINUTE)
            self.give_up(each, at if at < each.expires_at else None)
            return at < each.expires_at
        each.token, each.recover_at = None, at
        each.recoveries = (each.recoveries or 0) + 1
        return True

    def prove(self, each: Letter, part: int, receipt: str) -> bool:
        if each.status is S.ACKED or each.begun != part or each.counted:
            return False
        if each.status is S.UNKNOWN:
            self.found(each, receipt)
            return True
        leased = each.token is not None
        self.count(each, receipt)
        if each.status is S.PENDING and not leased and each.last:
            self.end(each, S.ACKED)
        return True

    def tell(self, each: Letter) -> None:
        if each.tell_at is not None:
            self.events["response_unknown"] += 1
        each.tell_at = None

    def tell_overdue(self) -> None:
        for each in self.letters.values():
            if each.tell_at is not None and each.tell_at <= self.now():
                self.tell(each)

    def maintain(self) -> None:
        self.tell_overdue()
        for each in self.letters.values():
            if each.status is not S.PENDING or each.available_at > self.now():
                continue
            if each.sending:
                self.lose(each)
            elif each.expires_at <= self.now():
                self.end(each, S.ACKED if each.complete else S.DEAD)

    # People

    def retry(self, each: Letter) -> None:
        each.labelled |= each.status is S.UNKNOWN
        each.status, each.token, each.attempts = S.PENDING, None, 0
        each.available_at, each.expires_at = self.now(), self.now() + LIFE
        each.recover_at = each.recoveries = each.tell_at = None
        self.events["response_retried"] += 1

    def drop(self, each: Letter) -> None:
        each.labelled |= each.sending or each.status is S.UNKNOWN
        self.end(each, S.DEAD)
