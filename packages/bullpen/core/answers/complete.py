"""complete: a run said this. Tags, files and limits seen to, all of it in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sqlalchemy import bindparam, insert

from bullpen.core.answers.compose import Composed, compose
from bullpen.core.answers.files import Refused, sort_out
from bullpen.core.answers.gather import at_rest, keep, send_gathered
from bullpen.core.answers.limits import limited_before, over_limit
from bullpen.core.answers.long import shorten
from bullpen.core.answers.said import Said, clean
from bullpen.core.events.append import EventType, tell
from bullpen.core.message import INTERNAL, ROOM, Claim, Message, NewMessage
from bullpen.core.models import AGENT_MESSAGES
from bullpen.core.outbox.people import tell_all
from bullpen.core.outcome import Answer, Outcome, RoomPost
from bullpen.core.queue.finish import finish, lock_targets
from bullpen.core.roster.everyone import everyone
from bullpen.core.roster.team import Delivery, Team
from bullpen.core.roster.teams import find_team, teams_of
from bullpen.core.routing.directory import Directory
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

NOBODY = Directory(agents={}, teams={})

HANDOFF_SHARE = 8
"""A handoff may take this part of the longest message; a longer one goes as a file."""

NOTE: Statement[None] = Statement(
    insert(AGENT_MESSAGES).values(
        agent_id=bindparam("agent"),
        role="note",
        channel=INTERNAL,
        sender="bullpen",
        message_id=bindparam("message_id"),
        content=bindparam("content"),
        created_at=bindparam("now"),
    )
)


def complete(tx: Transaction, claim: Claim, said: Said, roots: Sequence[Path]) -> list[Message]:
    """Finish a claim with what was said; files leave only from below these directories."""
    primary = claim.primary
    text = clean(said.text)
    rooms, directory = _addresses(tx, primary.agent) if "[" in text else ({}, NOBODY)
    composed = compose(text, primary.agent, directory, rooms)
    files, refused = sort_out((*said.files, *composed.files), roots)
    notes = (*composed.notes, *(str(each) for each in refused))
    team = None if primary.team_id is None else find_team(tx, primary.team_id)
    outcome = _outcome(tx, claim, said, composed, rooms)
    reason = _limit(tx, claim, outcome, team)
    told_before = reason is None or limited_before(tx, primary)
    if reason is not None:
        outcome = _held(outcome, reason)
    answer = _answer(tx, claim, composed, files, notes, said.metadata)
    aggregate = team is not None and team.delivery is Delivery.AGGREGATE
    person = primary.channel not in (ROOM, INTERNAL)
    if person and not aggregate:
        outcome = replace(outcome, answers=(answer,))
    done = finish(tx, claim, outcome)
    if person and aggregate:
        keep(tx, primary, answer)
    _note(tx, primary, notes, refused)
    if not told_before and reason is not None:
        tell_all(tx, primary, _limit_text(primary, reason))
    if team is not None and at_rest(tx, primary.conversation_id):
        sent = aggregate and send_gathered(tx, primary.conversation_id)
        if not sent:
            tell(tx, EventType.TEAM_CHAIN_END, primary, team=team.id)
    return done


def _addresses(tx: Transaction, agent: str) -> tuple[dict[str, Team], Directory]:
    return {team.id: team for team in teams_of(tx, agent)}, everyone(tx)


def _outcome(
    tx: Transaction, claim: Claim, said: Said, composed: Composed, rooms: dict[str, Team]
) -> Outcome:
    primary = claim.primary
    handoffs = []
    for number, each in enumerate(composed.handoffs):
        text, files = _fitting(tx, claim, f"handoff{number}", each.text)
        team = each.team or primary.team_id
        handoffs.append(NewMessage(agent=each.agent, message=text, files=files, team_id=team))
    posts = []
    for number, post in enumerate(composed.posts):
        text, _ = _fitting(tx, claim, f"post{number}", post.text)
        members = tuple(agent for agent in rooms[post.team].members if agent != primary.agent)
        posts.append(RoomPost(team_id=post.team, message=text, to=members))
    return Outcome(
        handoffs=tuple(handoffs), room_posts=tuple(posts), said=clean(said.text), usage=said.usage
    )


def _answer(
    tx: Transaction,
    claim: Claim,
    composed: Composed,
    files: tuple[str, ...],
    notes: Sequence[str],
    metadata: str | None,
) -> Answer:
    path = tx.settings.files / f"answer_{claim.primary.message_id}.md"
    text, whole = shorten(composed.text, tx.settings.answer_characters, path)
    if notes:
        text = "\n\n".join([*([text] if text else []), "\n".join(f"({note})" for note in notes)])
    return Answer(message=text, files=(*files, *whole), metadata=metadata)


def _fitting(tx: Transaction, claim: Claim, name: str, text: str) -> tuple[str, tuple[str, ...]]:
    path = tx.settings.files / f"{name}_{claim.primary.message_id}.md"
    return shorten(text, max(1, tx.settings.message_bytes // HANDOFF_SHARE), path)


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
    return (
        f"@{primary.agent} goes no further by itself: {reason}. What it wrote to others is held.\n"
        f"To let it go on: bullpen queue let-go --conversation {primary.conversation_id}\n"
        f"To end it: bullpen queue cancel --conversation {primary.conversation_id}"
    )


def _note(
    tx: Transaction, primary: Message, notes: Sequence[str], refused: Sequence[Refused]
) -> None:
    for note in notes:
        values = {"agent": primary.agent, "message_id": primary.message_id}
        tx.write(NOTE, {**values, "content": note, "now": tx.now})
    for each in refused:
        tell(tx, EventType.FILE_REFUSED, primary, file=each.path[:500], reason=each.why)
