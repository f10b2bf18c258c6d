"""Complete a run: its answers, handoffs, room posts and history in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote

from sqlalchemy import bindparam, select

from bullpen.core.answers.aggregate import add_part, is_at_rest, lock_conversation, send_aggregate
from bullpen.core.answers.attachments import MAX_FILES, RefusedFile, shorten_to_file, split_allowed
from bullpen.core.answers.compose import ParsedAnswer, parse_answer
from bullpen.core.events.append import append_event
from bullpen.core.events.conversation import FileRefused, TeamChainEnd
from bullpen.core.heartbeats.run import finish_heartbeat, is_heartbeat, strip_silent_answer
from bullpen.core.history import INSERT_HISTORY
from bullpen.core.message import (
    INTERNAL,
    INTERNAL_CHANNELS,
    Answer,
    Claim,
    Message,
    NewMessage,
    Outcome,
    RoomPost,
    RunOutput,
)
from bullpen.core.models import MESSAGES
from bullpen.core.models.archive import is_follow_up
from bullpen.core.models.base import const
from bullpen.core.outbox.notices import notify_all
from bullpen.core.queue.conversations import conversation_totals, count_by_state
from bullpen.core.queue.finish import finish, lock_target_lanes
from bullpen.core.roster.agents import load_address_book
from bullpen.core.roster.teams import DeliveryMode, Team, find_team, teams_of
from bullpen.core.routing.address import AddressBook
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import sanitise_text

M = MESSAGES.c

NO_LIMITS = Team(id="", leader="", members=())

LIMIT_REASON_PREFIX = "the conversation has "
"""How each reason begins, so that what waits for a limit is known from what waits for others."""

SELECT_HELD_AT_LIMIT: Statement[tuple[int]] = Statement(
    lambda: (
        select(M.id)
        .where(
            is_follow_up(),
            M.status == const(MessageState.HELD.value),
            M.last_error.like(bindparam("reason")),
        )
        .limit(const(1))
    )
)


def find_exceeded_limit(
    tx: Transaction, primary: Message, team: Team | None, more: int, cost: float
) -> str | None:
    """Why `more` messages on from this one need a person's leave; None if they do not."""
    settings = tx.settings
    own = team or NO_LIMITS
    hops = _own_or_setting(own.max_hops, settings.max_hops)
    if primary.hop + 1 > hops:
        return f"{LIMIT_REASON_PREFIX}gone on for {hops} handoffs in a row"
    # Two runs of one conversation do not both take its last place.
    lock_conversation(tx, primary.conversation_id)
    counts = count_by_state(tx, primary.conversation_id)
    made = counts.total() - counts[MessageState.HELD.value]
    messages = _own_or_setting(own.max_messages, settings.max_messages)
    if made + more > messages:
        return f"{LIMIT_REASON_PREFIX}{made} messages of at most {messages}"
    most = _own_or_setting(own.max_cost, settings.max_cost)
    if most > 0:
        spent = cost + conversation_totals(tx, primary.conversation_id).cost
        if spent >= most:
            return f"{LIMIT_REASON_PREFIX}cost {spent:.2f} dollars of at most {most:.2f}"
    return None


def is_held_at_limit(tx: Transaction, primary: Message) -> bool:
    """Whether something of this conversation waits at a limit already."""
    asked = {"conversation": primary.conversation_id, "reason": f"{LIMIT_REASON_PREFIX}%"}
    return tx.one(SELECT_HELD_AT_LIMIT, asked) is not None


def _own_or_setting(own: float | None, setting: float) -> float:
    return setting if own is None else own


EMPTY_DIRECTORY = AddressBook(agents={}, teams={})

HANDOFF_DIVISOR = 8
"""A handoff may take this part of the longest message; a longer one goes as a file."""

MAX_NOTES = 16
"""So many things that could not be done are told, one by one."""


def complete(
    tx: Transaction, claim: Claim, said: RunOutput, roots: Sequence[Path]
) -> list[Message]:
    """Finish a claim with what was said; files leave only from below these directories."""
    primary = claim.primary
    text = sanitise_text(said.text)
    if is_heartbeat(primary):
        text = strip_silent_answer(text)
    rooms, directory = _load_directory(tx, primary.agent) if "[" in text else ({}, EMPTY_DIRECTORY)
    composed = parse_answer(text, primary.agent, directory, rooms)
    named = tuple(dict.fromkeys((*said.files, *composed.files)))
    files, refused = _check_files(primary, named, roots)
    notes = limit_notes((*composed.notes, *(str(each) for each in refused)))
    team = None if primary.team_id is None else find_team(tx, primary.team_id)
    outcome = _outcome(tx, claim, said, composed, rooms)
    reason = _check_limits(tx, claim, outcome, team)
    told_before = reason is None or is_held_at_limit(tx, primary)
    if reason is not None:
        outcome = _hold_outcome(outcome, reason)
    answers = _answers(tx, primary, composed, files, notes, said.metadata)
    aggregate = team is not None and team.delivery is DeliveryMode.AGGREGATE
    waits = is_heartbeat(primary) or aggregate
    done = finish(tx, claim, outcome if waits else replace(outcome, answers=answers))
    if is_heartbeat(primary):
        finish_heartbeat(tx, primary, answers[0] if answers else None)
    elif aggregate:
        for answer in answers:
            add_part(tx, primary, answer)
    _record_notes(tx, primary, notes, refused)
    if not told_before and reason is not None:
        notify_all(tx, primary, _limit_text(primary, reason))
    if team is not None:
        _end_if_at_rest(tx, primary, team)
    return done


def limit_notes(notes: Sequence[str]) -> tuple[str, ...]:
    """The notes; of many, the first."""
    if len(notes) <= MAX_NOTES:
        return tuple(notes)
    return (*notes[:MAX_NOTES], f"and {len(notes) - MAX_NOTES} more of the kind")


def _load_directory(tx: Transaction, agent: str) -> tuple[dict[str, Team], AddressBook]:
    return {team.id: team for team in teams_of(tx, agent)}, load_address_book(tx)


def _outcome(
    tx: Transaction, claim: Claim, said: RunOutput, composed: ParsedAnswer, rooms: dict[str, Team]
) -> Outcome:
    primary = claim.primary
    handoffs = []
    for number, each in enumerate(composed.handoffs):
        text, files = _shorten_for_agent(tx, primary, f"handoff{number}", each.text)
        team = each.team or primary.team_id
        handoffs.append(NewMessage(agent=each.agent, message=text, files=files, team_id=team))
    posts = []
    for number, post in enumerate(composed.posts):
        text, files = _shorten_for_agent(tx, primary, f"post{number}", post.text)
        text = "\n".join((text, *(f"[file: {file}]" for file in files)))
        members = tuple(agent for agent in rooms[post.team].members if agent != primary.agent)
        posts.append(RoomPost(team_id=post.team, message=text, to=members))
    return Outcome(
        handoffs=tuple(handoffs),
        room_posts=tuple(posts),
        said=sanitise_text(said.text),
        usage=said.usage,
    )


def _check_files(
    primary: Message, named: Sequence[str], roots: Sequence[Path]
) -> tuple[tuple[str, ...], tuple[RefusedFile, ...]]:
    """The files that leave with the answer, and those that do not."""
    if not _for_person(primary):
        return (), tuple(
            RefusedFile(each, "no person waits for this answer") for each in named[:MAX_FILES]
        )
    return split_allowed(named, roots)


def _answers(
    tx: Transaction,
    primary: Message,
    composed: ParsedAnswer,
    files: tuple[str, ...],
    notes: Sequence[str],
    metadata: str | None,
) -> tuple[Answer, ...]:
    """What the person is told: one answer, or none if there is nothing in it."""
    if not _for_person(primary):
        return ()
    settings = tx.settings
    name = f"answer_{primary.message_id}"
    text, whole = shorten_to_file(composed.text, settings.answer_characters, settings.files, name)
    if notes:
        text = "\n\n".join([*([text] if text else []), "\n".join(f"({note})" for note in notes)])
    if not text and not files:
        return ()
    return (Answer(message=text, files=(*files, *whole), metadata=metadata),)


def _for_person(primary: Message) -> bool:
    return is_heartbeat(primary) or primary.channel not in INTERNAL_CHANNELS


def _shorten_for_agent(
    tx: Transaction, primary: Message, name: str, text: str
) -> tuple[str, tuple[str, ...]]:
    most = max(1, tx.settings.message_bytes // HANDOFF_DIVISOR)
    return shorten_to_file(text, most, tx.settings.files, f"{name}_{primary.message_id}")


def _check_limits(tx: Transaction, claim: Claim, outcome: Outcome, team: Team | None) -> str | None:
    more = len(outcome.handoffs) + sum(len(post.to) for post in outcome.room_posts)
    if more == 0:
        return None
    lock_target_lanes(tx, claim.token, outcome)
    return find_exceeded_limit(tx, claim.primary, team, more, outcome.usage.cost)


def _hold_outcome(outcome: Outcome, reason: str) -> Outcome:
    return replace(
        outcome,
        handoffs=tuple(replace(each, hold=reason) for each in outcome.handoffs),
        room_posts=tuple(replace(each, hold=reason) for each in outcome.room_posts),
    )


def _limit_text(primary: Message, reason: str) -> str:
    conversation = quote(primary.conversation_id)  # a client may have chosen it
    return (
        f"@{primary.agent} goes no further by itself: {reason}. What it wrote to others is held.\n"
        f"To let it go on: bullpen queue resume --conversation {conversation}\n"
        f"To end it: bullpen queue cancel --conversation {conversation}"
    )


def _record_notes(
    tx: Transaction, primary: Message, notes: Sequence[str], refused: Sequence[RefusedFile]
) -> None:
    for note in notes:
        values = {"agent": primary.agent, "message_id": primary.message_id, "role": "note"}
        values.update(channel=INTERNAL, sender="bullpen", content=note)
        tx.write(INSERT_HISTORY, {**values, "now": tx.now})
    for each in refused:
        append_event(tx, FileRefused(primary, file=each.path[:500], reason=each.why))


def _end_if_at_rest(tx: Transaction, primary: Message, team: Team) -> None:
    # Of two runs that end at once, the second sees the first: so one of them is the last.
    lock_conversation(tx, primary.conversation_id)
    if is_at_rest(tx, primary.conversation_id):
        sent = send_aggregate(tx, primary.conversation_id)
        ended = (
            TeamChainEnd(primary, team=team.id)
            if sent is None
            else TeamChainEnd(primary, team=team.id, answers=sent.answers)
        )
        append_event(tx, ended)
