"""The queue in plain Python: what its documents promise, in dicts and lists and without SQL.

What is written once and for all (events, responses, attempts, what was said) goes to `log`, whose
readers empty it; messages are named there by their numbers, because their ids are the store's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from bullpen.core.clock import HOUR, SECOND
from bullpen.core.errors import (
    BadDelay,
    DeadlinePassed,
    DuplicateMessage,
    IllegalMove,
    LaneClosed,
    LaneError,
    LaneFull,
    StaleToken,
    UnknownAgent,
    UnknownMessage,
)
from bullpen.core.message import INTERNAL, ROOM, ErrorKind, Failure, NewMessage, Outcome
from bullpen.core.queue.lanes import Batching, Overflow
from bullpen.core.states import LaneState, MessageState
from tests.model.book import Book, Item, address

M, L = MessageState, LaneState
OVER = (M.DEAD, M.CANCELLED, M.EXPIRED)
"""From where a person may retry or drop."""

OWN_FAULT = (ErrorKind.RETRYABLE, ErrorKind.PERMANENT, ErrorKind.NEEDS_PERSON, ErrorKind.CRASH)
"""What may lie in a message; the rest is the lane's matter."""

DYING = 2_000
"""So long a lane waits for the end of a run that was cancelled."""

WINDOW = 256
"""How far a claim looks for what it may answer along."""


def _number(keys: Sequence[tuple[str, str]], receipts: dict[tuple[str, str], int]) -> int | None:
    """The message of the first key that is known, which the other keys mean from now on."""
    number = next((receipts[each] for each in keys if each in receipts), None)
    if number is not None:
        for each in keys:
            receipts.setdefault(each, number)
    return number


class QueueModel(Book):
    """Every verb of the queue."""

    # The way in

    def enqueue(self, news: Sequence[NewMessage]) -> list[tuple[int, bool]]:
        """Numbers, and whether each is new; a redelivery gets the number of the first."""
        keys = [[(new.channel, each) for each in new.event_ids] for new in news]
        receipts = dict(self.receipts)
        known = [_number(mine, receipts) for mine in keys]
        seen: set[tuple[str, str]] = set()
        fresh = []
        for new, mine, number in zip(news, keys, known, strict=True):
            if number is None and seen.isdisjoint(mine):
                fresh.append(new)
            if number is None:
                seen.update(mine)
        for new in fresh:
            self._check(new)
        self._open(fresh)
        waiting, added, answers = iter(fresh), dict[tuple[str, str], int](), []
        for mine, number in zip(keys, known, strict=True):
            first = _number(mine, added) if number is None else number
            answers.append(
                (self._add(next(waiting)) if first is None else first, first is not None)
            )
            if number is None:
                added.update((key, answers[-1][0]) for key in mine if key not in added)
        self.receipts = receipts | added
        return [(number, not again) for number, again in answers]

    def _check(self, new: NewMessage) -> None:
        if new.delay < 0:
            raise BadDelay("below zero")
        if new.deadline is not None and new.deadline <= self.clock():
            raise DeadlinePassed("over already")

    def _check_ids(self, news: Sequence[NewMessage]) -> None:
        """A client's own id is taken once, whatever the lanes would say."""
        taken = {
            self.names.get(each.number, each.new.message_id or ""): each.status
            for each in self.items.values()
        }
        for asked in (new.message_id for new in news if new.message_id is not None):
            if asked in taken:
                raise DuplicateMessage(asked, taken[asked])
            taken[asked] = M.PENDING

    def _open(self, news: Sequence[NewMessage]) -> None:
        """Make sure that the lanes take them, make room where that is the policy.

        What is held takes no place, and no lane refuses it.
        """
        if {new.agent for new in news} - self.lanes.keys():
            raise UnknownAgent("one of them")
        self._check_ids(news)
        counts = Counter(new.agent for new in news if new.hold_reason is None)
        over = {}
        for agent, count in counts.items():
            lane, waiting = self.lanes[agent], len(self.pending(agent))
            if lane.state in (L.DRAINING, L.ARCHIVED):
                raise LaneClosed(agent)
            depth = lane.policy.max_depth
            over[agent] = 0 if depth is None else max(0, waiting + count - depth)
            if over[agent] > (waiting if lane.policy.overflow is Overflow.DROP_OLDEST else 0):
                raise LaneFull(agent)
        for agent, count in over.items():
            self._bury_oldest(agent, count)

    def _bury_oldest(self, agent: str, count: int) -> None:
        """The oldest of its lane are dead, delayed or not."""
        for item in sorted(self.pending(agent), key=lambda each: each.number)[:count]:
            self._move(item, M.DEAD)
            self._announce(item)

    def _add(self, new: NewMessage) -> int:
        now, lane = self.clock(), self.lanes[new.agent]
        lane.newest_at = max(lane.newest_at, now)
        self.count += 1
        item = Item(
            number=self.count,
            new=new,
            status=M.PENDING if new.hold_reason is None else M.HELD,
            sort_key=0,
            due_at=lane.newest_at + new.delay,
            available_at=now + new.delay,
            ready=new.delay == 0,
            deadline=new.deadline,
            created_at=now,
            updated_at=now,
        )
        self.items[item.number] = item
        self._sort(item)
        self.log.said.append((new.agent, "user", new.message))
        self._event("message_enqueued", item)
        if new.hold_reason is not None:
            self._event("message_held", item)
        return item.number

    # Claims

    def claimable(self, agent: str | None) -> set[str]:
        """The lanes of which a claim may take one now: who was served longest ago comes first."""
        self.make_due()
        asked = self.lanes if agent is None else {agent} & self.lanes.keys()
        heads = {
            each: (self.lanes[each].claimed_at, head)
            for each in asked
            if (head := self.head(each)) is not None
        }
        return {each for each, head in heads.items() if head == min(heads.values())}

    def take(self, agent: str, token: str, limit: int | None, expires: int) -> list[int]:
        """The numbers of the batch, the primary first."""
        lane = self.lanes[agent]
        most = self.settings.claim_limit if limit is None else limit
        most = 1 if lane.policy.batching is Batching.ONE else most
        ready = [each for each in self.pending(agent) if each.ready][: max(self.window, most)]
        first = address(ready[0].new)
        keys = {ROOM} if first is None else {first, ROOM}
        others = [] if ready[0].alone else ready[1:]
        along = [each for each in others if address(each.new) in keys and not each.alone]
        batch = [ready[0], *along[: most - 1]]
        for item in batch:
            self._move(item, M.PROCESSING)
        lane.token, lane.expires, lane.claimed_at = token, expires, self.clock()
        lane.batch = tuple(item.number for item in batch)
        self._event("message_received", batch[0])
        return list(lane.batch)

    def extend(self, token: str, expires: int) -> int:
        """The lease's new end."""
        self.lanes[self._agent(token)].expires = expires
        return expires

    def finish(self, token: str, outcome: Outcome) -> list[int]:
        """The numbers of what was completed."""
        for new in outcome.handoffs:
            self._check(new)
        targets = {new.agent for new in outcome.handoffs}
        targets.update(agent for post in outcome.room_posts for agent in post.to)
        if targets - self.lanes.keys():
            raise UnknownAgent("a target")
        batch = self._end(token)
        primary = batch[0]
        for item in batch:
            self._move(item, M.COMPLETED)
        spoken = [answer.message for answer in outcome.answers]
        spoken += [f"@{new.agent}: {new.message}" for new in outcome.handoffs]
        spoken += [post.message for post in outcome.room_posts]
        self.log.said.extend((primary.new.agent, "assistant", text) for text in spoken)
        for new in outcome.handoffs:
            self._deliver(self._child(primary, new))
            self._event("chain_handoff", primary)
        for post in outcome.room_posts:
            self.log.posts.append((post.team_id, primary.new.agent, post.message))
            self.log.events.append(("room_posted", None, None))
            for agent in post.to:
                blank = NewMessage(agent=agent, message=post.message, team_id=post.team_id)
                copied = self._child(primary, blank)
                self._deliver(
                    replace(
                        copied,
                        channel=ROOM,
                        sender=primary.new.agent,
                        sender_id=None,
                        reply_to=None,
                    )
                )
        self._attempt(batch, "completed")
        self._event("chain_step_done", primary)
        for seq, answer in enumerate(outcome.answers):
            self._respond(primary, seq, answer.message)
        return [item.number for item in batch]

    def _child(self, primary: Item, new: NewMessage) -> NewMessage:
        asked = primary.new
        return replace(
            new,
            channel=INTERNAL if asked.channel == ROOM else asked.channel,
            sender=asked.sender,
            sender_id=asked.sender_id,
            reply_to=asked.reply_to,
            from_agent=asked.agent,
            conversation_id=self.conversation(primary),
            parent_id=self.names[primary.number],
            hop=asked.hop + 1,
        )

    def _deliver(self, new: NewMessage) -> None:
        """What a lane does not take waits for a person."""
        try:
            self._open([new])
        except LaneError as error:
            new = replace(new, hold_reason=str(error))
        self._add(new)

    def fail(self, token: str, failure: Failure) -> None:
        """What becomes of each message depends on the kind."""
        kind = failure.kind
        lane = self.lanes[self._agent(token)]
        batch = self._end(token)
        for item in batch:
            item.alone = item.alone or kind in OWN_FAULT
            tries = item.retry_count + (kind in (ErrorKind.RETRYABLE, ErrorKind.PERMANENT))
            crashes = item.crash_count + (kind is ErrorKind.CRASH)
            tired = tries >= lane.max_attempts and kind is ErrorKind.RETRYABLE
            broken = crashes >= self.settings.max_crashes and kind is ErrorKind.CRASH
            dies = tired or broken or kind is ErrorKind.PERMANENT
            spared = len(batch) > 1 and (dies or kind is ErrorKind.NEEDS_PERSON)
            if not spared:
                item.retry_count, item.crash_count = tries, crashes
            if dies and not spared:
                self._back(item, M.DEAD)
                self._announce(item)
            elif kind is ErrorKind.NEEDS_PERSON and not spared:
                self._back(item, M.HELD)
                self._event("message_held", item)
            else:
                retryable = kind is ErrorKind.RETRYABLE
                wait = self._wait(tries, failure.retry_after) if retryable else 0
                self._back(item, M.PENDING, wait)
                self._event("message_failed", item)
        if kind is ErrorKind.RATE_LIMIT:
            lane.not_before = self.clock() + max(1, self._wait(1, failure.retry_after))
        if kind in (ErrorKind.AUTH, ErrorKind.QUOTA, ErrorKind.SETUP):
            if lane.state is not L.PAUSED:
                self._respond(batch[0], 0, None)
            self.move_lane(batch[0].new.agent, L.PAUSED)
        if batch[0].status is M.HELD:
            self._respond(batch[0], 0, None)
        self._attempt(batch, "crashed" if kind is ErrorKind.CRASH else "failed", kind.value)

    def _wait(self, failures: int, retry_after: int | None) -> int:
        if retry_after is not None:
            return max(0, retry_after)
        base = self.settings.retry_base_seconds * SECOND
        ceiling = min(self.settings.retry_max_seconds * SECOND, base * 2 ** (failures - 1))
        return max(base, int(ceiling * self.chance))

    def release(self, token: str) -> None:
        """Nobody is to blame."""
        batch = self._end(token)
        for item in batch:
            self._back(item, M.PENDING)
        self._attempt(batch, "released")
        self._event("message_released", batch[0])

    def reap(self) -> int:
        """Every lease that is over is a crash."""
        over = [
            lane.token
            for lane in self.lanes.values()
            if lane.token is not None and lane.expires <= self.clock()
        ]
        for token in sorted(over):
            self.fail(token, Failure(kind=ErrorKind.CRASH, error="gone"))
        return len(over)

    def _agent(self, token: str) -> str:
        agent = self.claims().get(token)
        if agent is None:
            raise StaleToken(token)
        return agent

    def _end(self, token: str) -> list[Item]:
        lane = self.lanes[self._agent(token)]
        batch = [self.items[number] for number in lane.batch]
        lane.token, lane.batch = None, ()
        self.stale.append(token)
        return batch

    def _back(self, item: Item, status: MessageState, wait: int = 0) -> None:
        self._move(item, status)
        item.ready, item.available_at = wait == 0, self.clock() + wait

    # What people and time do

    def cancel(self, name: str) -> None:
        """End it, and its run; what the run was to answer besides waits again."""
        item = self._find(name, M.PENDING, M.PROCESSING, M.HELD)
        if item.status is M.PROCESSING:
            lane = self.lanes[item.new.agent]
            assert lane.token is not None
            batch = self._end(lane.token)
            lane.not_before = self.clock() + DYING
            for each in batch:
                self._back(each, M.CANCELLED if each is item else M.PENDING)
            self._attempt(batch, "cancelled")
            others = [each for each in batch if each is not item]
            if others:
                self._event("message_released", others[0])
        else:
            self._move(item, M.CANCELLED)
        self._event("message_cancelled", item)

    def cancel_conversation(self, conversation: str) -> int:
        """End what that message set off, and itself."""
        found = [
            self.names[each.number]
            for each in sorted(
                self.live(M.PENDING, M.PROCESSING, M.HELD),
                key=lambda each: (each.new.agent, each.number),
            )
            if self.conversation(each) == conversation
        ]
        for name in found:
            self.cancel(name)
        return len(found)

    def hold(self, name: str) -> None:
        """It waits for a person."""
        item = self._find(name, M.PENDING)
        self._move(item, M.HELD)
        self._event("message_held", item)

    def let_go(self, name: str) -> None:
        """It takes its old place."""
        item = self._find(name, M.HELD)
        self._reopens(item)
        self._move(item, M.PENDING)
        self._event("message_let_go", item)

    def retry(self, name: str) -> None:
        """It takes its old place, its tries forgotten and its deadline lifted."""
        item = self._find(name, *OVER)
        self._reopens(item)
        self._back(item, M.PENDING)
        item.retry_count = item.crash_count = 0
        item.deadline = None
        self._event("message_retried", item)

    def drop(self, name: str) -> None:
        """It is gone; its id is free."""
        item = self._find(name, *OVER)
        self._event("message_dropped", item)
        del self.items[item.number]

    def archive(self) -> int:
        """What has been finished for the retention's time is kept aside."""
        before = self.clock() - self.settings.retention_hours * HOUR
        old = [e for e in self.live(M.COMPLETED, M.CANCELLED, M.EXPIRED) if e.updated_at <= before]
        for item in old:
            item.archived = True
        return len(old)

    def make_due(self) -> None:
        """Deadlines and delays that are over; a claim does this first."""
        now = self.clock()
        for item in self.live(M.PENDING):
            if item.deadline is not None and item.deadline <= now:
                self._move(item, M.EXPIRED)
                self._event("message_expired", item)
            elif item.available_at <= now:
                item.ready = True

    def _reopens(self, item: Item) -> None:
        """An archived lane takes nothing back."""
        if self.lanes[item.new.agent].state is L.ARCHIVED:
            raise LaneClosed(item.new.agent)

    def _find(self, name: str, *allowed: MessageState) -> Item:
        for item in self.items.values():
            if self.names[item.number] == name and not item.archived:
                if item.status not in allowed:
                    raise IllegalMove(f"{name} is {item.status}")
                return item
        raise UnknownMessage(name)
