"""What Hypothesis may ask of the queue: few agents, ids and moments, so that they meet."""

from __future__ import annotations

from hypothesis import strategies as st

from bullpen.core.clock import HOUR, MINUTE, SECOND
from bullpen.core.message import (
    ROOM,
    Answer,
    ErrorKind,
    Failure,
    NewMessage,
    Outcome,
    Priority,
    ReplyTo,
    RoomPost,
)
from bullpen.core.queue.lanes import Batching, LanePolicy, Ordering, Overflow
from bullpen.core.states import LaneState

AGENTS = ("ada", "bob", "cyd")
STRANGER = "nobody"

PICKS = st.integers(0, 40)
"""Which of those that there are; taken modulo their number."""

OFTEN = st.sampled_from((True, True, True, True, False))
SELDOM = st.sampled_from((False,) * 7 + (True,))
agents = st.sampled_from(AGENTS)
some_agents = st.sampled_from((*AGENTS * 12, STRANGER))
_delays = st.sampled_from((0,) * 24 + (1, *(SECOND, MINUTE) * 3, -1))
_deadlines = st.sampled_from((None,) * 20 + (1, *(5 * SECOND, 2 * HOUR) * 3, -1))
_client_ids = st.sampled_from((None,) * 20 + ("mine_1", "mine_2", "mine_3"))
_event_ids = st.sampled_from(
    ((),) * 14 + (*(("evt_1",), ("evt_2",)), ("evt_1", "evt_2"), ("evt_3", "evt_1"))
)
_priorities = st.sampled_from(Priority)
_addresses = st.sampled_from(
    (None, None, ReplyTo("c1"), ReplyTo("c1", "t1", "m1"), ReplyTo("c1", "t1", "m2"))
)


@st.composite
def people(draw: st.DrawFn) -> NewMessage:
    """A person's message. Its text is a name that the machine gives; its deadline is relative."""
    return NewMessage(
        agent=draw(some_agents),
        message="",
        channel=draw(st.sampled_from(("api", "slack"))),
        sender="Kim",
        sender_id=draw(st.sampled_from(("u1", "u1", "u2"))),
        message_id=draw(_client_ids),
        event_ids=draw(_event_ids),
        reply_to=draw(_addresses),
        conversation_id=draw(st.sampled_from((None,) * 9 + ("talk",))),
        priority=draw(_priorities),
        delay=draw(_delays),
        deadline=draw(_deadlines),
        hold_reason=draw(st.sampled_from((None,) * 9 + ("approval",))),
    )


@st.composite
def teammates(draw: st.DrawFn) -> NewMessage:
    """What one agent hands to another, or posts in a room."""
    room = draw(st.booleans())
    return NewMessage(
        agent=draw(some_agents),
        message="",
        channel=ROOM if room else "api",
        sender="bob" if room else "Kim",
        from_agent="bob",
        team_id="dev" if room else None,
        priority=draw(_priorities),
        delay=draw(_delays),
        deadline=draw(_deadlines),
    )


messages = st.one_of(people(), people(), teammates())


@st.composite
def _handoffs(draw: st.DrawFn) -> NewMessage:
    return NewMessage(
        agent=draw(some_agents),
        message="",
        message_id=draw(_client_ids),
        priority=draw(_priorities),
        delay=draw(_delays),
        deadline=draw(_deadlines),
        hold_reason=draw(st.sampled_from((None,) * 9 + ("hop limit",))),
    )


@st.composite
def _posts(draw: st.DrawFn) -> RoomPost:
    to = draw(st.lists(some_agents, max_size=2))
    return RoomPost(team_id="dev", message="", to=tuple(to))


@st.composite
def outcomes(draw: st.DrawFn) -> Outcome:
    """What a run leaves; the machine gives the texts."""
    answers = draw(st.sampled_from((1, 1, 1, 1, 2, 0)))
    return Outcome(
        answers=tuple(Answer(message="") for _ in range(answers)),
        handoffs=tuple(draw(st.lists(_handoffs(), max_size=3))),
        room_posts=tuple(draw(st.lists(_posts(), max_size=1))),
    )


failures = st.builds(
    Failure,
    kind=st.sampled_from(ErrorKind),
    error=st.just("it broke"),
    retry_after=st.sampled_from((None, None, None, 0, 1, 30 * SECOND, -1)),
)

policies = st.builds(
    LanePolicy,
    ordering=st.sampled_from(Ordering),
    batching=st.sampled_from((Batching.ALL, Batching.ALL, Batching.ONE)),
    max_depth=st.sampled_from((None, None, None, 1, 2, 5)),
    overflow=st.sampled_from(Overflow),
    max_attempts=st.sampled_from((None, 1, 2, 3)),
)

lane_states = st.sampled_from(
    (*LaneState, LaneState.ACTIVE, LaneState.ACTIVE, LaneState.PAUSED, LaneState.DRAINING)
)
pauses = st.sampled_from((1, 500, SECOND, 5 * SECOND, 30 * SECOND, MINUTE, 10 * MINUTE, 25 * HOUR))
leases = st.sampled_from((None, None, None, 1, 10 * MINUTE))
limits = st.sampled_from((None, None, None, 1, 2, 6))
