"""complete: a run said this. Tags, files and limits seen to, all of it in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote

from bullpen.core.answers.compose import Composed, compose
from bullpen.core.answers.conversation import lock_conversation
from bullpen.core.answers.files import MOST, Refused, sort_out
from bullpen.core.answers.gather import at_rest, keep, send_gathered
from bullpen.core.answers.limits import limited_before, over_limit
from bullpen.core.answers.long import shorten
from bullpen.core.answers.said import Said, clean
from bullpen.core.events.append import EventType, tell
from bullpen.core.heartbeats.answered import beat_answered, is_heartbeat, without_word
from bullpen.core.history.say import SAY
from bullpen.core.message import INTERNAL, UNHEARD, Claim, Message, NewMessage
from bullpen.core.outbox.people import tell_all
from bullpen.core.outcome import Answer, Outcome, RoomPost
from bullpen.core.queue.finish import finish, lock_targets
from bullpen.core.roster.everyone import everyone
from bullpen.core.roster.team import Delivery, Team
from bullpen.core.roster.teams import find_team, teams_of
from bullpen.core.routing.directory import Directory
from bullpen.core.store.transaction import Transaction

NOBODY = Directory(agents={}, teams={})

HANDOFF_SHARE = 8
"""A handoff may take this part of the longest message; a longer one goes as a file."""

MOST_NOTES = 16
"""So many things that could not be done are told, one by one."""


def complete(tx: Transaction, claim: Claim, said: Said, roots: Sequence[Path]) -> list[Message]:
    """Finish a claim with what was said; files leave only from below these directories."""
    primary = claim.primary
    text = clean(said.text)
    if is_heartbeat(primary):
        text = without_word(text)
    rooms, directory = _addresses(tx, primary.agent) if "[" in text else ({}, NOBODY)
    composed = compose(text, primary.agent, directory, rooms)
    named = tuple(dict.fromkeys((*said.files, *composed.files)))
    files, refused = _sorted(primary, named, roots)
    notes = few((*composed.notes, *(str(each) for each in refused)))
    team = None if primary.team_id is None else find_team(tx, primary.team_id)
    outcome = _outcome(tx, claim, said, composed, rooms)
    reason = _limit(tx, claim, outcome, team)
    told_before = reason is None or limited_before(tx, primary)
    if reason is not None:
        outcome = _held(outcome, reason)
    answers = _answers(tx, primary, composed, files, notes, said.metadata)
    aggregate = team is not None and team.delivery is Delivery.AGGREGATE
    waits = is_heartbeat(primary) or aggregate
    done = finish(tx, claim, outcome if waits else replace(outcome, answers=answers))
    if is_heartbeat(primary):
        beat_answered(tx, primary, answers[0] if answers else None)
    elif aggregate:
        for answer in answers:
            keep(tx, primary, answer)
    _note(tx, primary, notes, refused)
    if not told_before and reason is not None:
        tell_all(tx, primary, _limit_text(primary, reason))
    if team is not None:
        _end_chain(tx, primary, team)
    return done


def few(notes: Sequence[str]) -> tuple[str, ...]:
    """The notes; of many, the first."""
    if len(notes) <= MOST_NOTES:
        return tuple(notes)
    return (*notes[:MOST_NOTES], f"and {len(notes) - MOST_NOTES} more of the kind")


def _addresses(tx: Transaction, agent: str) -> tuple[dict[str, Team], Directory]:
    return {team.id: team for team in teams_of(tx, agent)}, everyone(tx)


def _outcome(
    tx: Transaction, claim: Claim, said: Said, composed: Composed, rooms: dict[str, Team]
) -> Outcome:
    primary = claim.primary
    handoffs = []
    for number, each in enumerate(composed.handoffs):
        text, files = _fitting(tx, primary, f"handoff{number}", each.text)
        team = each.team or primary.team_id
        handoffs.append(NewMessage(agent=each.agent, message=text, files=files, team_id=team))
    posts = []
    for number, post in enumerate(composed.posts):
        text, files = _fitting(tx, primary, f"post{number}", post.text)
        text = "\n".join((text, *(f"[file: {file}]" for file in files)))
        members = tuple(agent for agent in rooms[post.team].members if agent != primary.agent)
        posts.append(RoomPost(team_id=post.team, message=text, to=members))
    return Outcome(
        handoffs=tuple(handoffs), room_posts=tuple(posts), said=clean(said.text), usage=said.usage
    )


def _sorted(
    primary: Message, named: Sequence[str], roots: Sequence[Path]
) -> tuple[tuple[str, ...], tuple[Refused, ...]]:
    """The files that leave with the answer, and those that do not."""
    if not _for_person(primary):
        return (), tuple(Refused(each, "no person waits for this answer") for each in named[:MOST])
    return sort_out(named, roots)


def _answers(
    tx: Transaction,
    primary: Message,
    composed: Composed,
    files: tuple[str, ...],
    notes: Sequence[str],
    metadata: str | None,
) -> tuple[Answer, ...]:
    """What the person is told: one answer, or none if there is nothing in it."""
    if not _for_person(primary):
        return ()
    settings = tx.settings
    name = f"answer_{primary.message_id}"
    text, whole = shorten(composed.text, settings.answer_characters, settings.files, name)
    if notes:
        text = "\n\n".join([*([text] if text else []), "\n".join(f"({note})" for note in notes)])
    if not text and not files:
        return ()
    return (Answer(message=text, files=(*files, *whole), metadata=metadata),)


def _for_person(primary: Message) -> bool:
    return is_heartbeat(primary) or primary.channel not in UNHEARD


def _fitting(
    tx: Transaction, primary: Message, name: str, text: str
) -> tuple[str, tuple[str, ...]]:
    most = max(1, tx.settings.message_bytes // HANDOFF_SHARE)
    return shorten(text, most, tx.settings.files, f"{name}_{primary.message_id}")


def _limit(tx: Transaction, claim: Claim, outcome: Outcome, team: Team | None) -> str | None:
    more = len(outcome.handoffs) + sum(len(post.to) for post in outcome.room_posts)
    if more == 0:
        return None
    lock_targets(tx, claim.token, outcome)
    return over_limit(tx, claim.primary, team, more, outcome.usage.cost)


def _held(outcome: Outcome, reason: str) -> Outcome:
    return replace(
        outcome,
        handoffs=tuple(replace(each, hold=reason) for each in outcome.handoffs),
        room_posts=tuple(replace(each, hold=reason) for each in outcome.room_posts),
    )


def _limit_text(primary: Message, reason: str) -> str:
    conversation = quote(primary.conversation_id)  # a client may have chosen it
    return (
        f"@{primary.agent} goes no further by itself: {reason}. What it wrote to others is held.\n"
        f"To let it go on: bullpen queue let-go --conversation {conversation}\n"
        f"To end it: bullpen queue cancel --conversation {conversation}"
    )


def _note(
    tx: Transaction, primary: Message, notes: Sequence[str], refused: Sequence[Refused]
) -> None:
    for note in notes:
        values = {"agent": primary.agent, "message_id": primary.message_id, "role": "note"}
        values.update(channel=INTERNAL, sender="bullpen", content=note)
        tx.write(SAY, {**values, "now": tx.now})
    for each in refused:
        tell(tx, EventType.FILE_REFUSED, primary, file=each.path[:500], reason=each.why)


def _end_chain(tx: Transaction, primary: Message, team: Team) -> None:
    # Of two runs that end at once, the second sees the first: so one of them is the last.
    lock_conversation(tx, primary.conversation_id)
    if at_rest(tx, primary.conversation_id):
        sent = send_gathered(tx, primary.conversation_id)
        answers = {} if sent is None else {"answers": sent.answers}
        tell(tx, EventType.TEAM_CHAIN_END, primary, team=team.id, **answers)
