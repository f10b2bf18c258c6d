"""Finish a run in one transaction: store answers, handoffs, room posts and history, or fail it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from shlex import quote

from bullpen.core.access.outgoing import outgoing_mask
from bullpen.core.answers.aggregate import add_part, is_at_rest, lock_conversation, send_aggregate
from bullpen.core.answers.attachments import (
    MAX_FILES,
    MayBeSent,
    RefusedFile,
    shorten_to_file,
    split_allowed,
)
from bullpen.core.answers.compose import ParsedAnswer, parse_answer
from bullpen.core.answers.limits import find_exceeded_limit, is_held_at_limit
from bullpen.core.events.append import append_event
from bullpen.core.events.conversation import FileRefused, TeamChainEnd
from bullpen.core.file_records import is_used_in, message_place, record_uses, stored_name
from bullpen.core.heartbeats.run import (
    fail_heartbeat,
    finish_heartbeat,
    is_heartbeat,
    strip_silent_answer,
)
from bullpen.core.history import record_note
from bullpen.core.message import (
    INTERNAL_CHANNELS,
    Answer,
    Claim,
    Failure,
    Message,
    NewMessage,
    Outcome,
    RoomPost,
    RunOutput,
)
from bullpen.core.outbox.notices import notify_all
from bullpen.core.queue.fail import fail_claim
from bullpen.core.queue.finish import finish, lock_target_lanes
from bullpen.core.roster.agents import load_address_book
from bullpen.core.roster.teams import DeliveryMode, Team, find_team, teams_of
from bullpen.core.routing.address import AddressBook
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import sanitise_text
from bullpen.core.workspace.safe_files import Root

EMPTY_BOOK = AddressBook(agents={}, teams={})

HANDOFF_DIVISOR = 8
"""The fraction of `message_bytes` that a handoff or post may have; a longer one becomes a file."""

MAX_NOTES = 16
"""The most notes about failed parts that are listed; the rest are counted."""


def attach_nothing_more(_: str) -> bool:
    """A run on this machine has no key of its own."""
    return False


def complete(
    tx: Transaction,
    claim: Claim,
    output: RunOutput,
    roots: Sequence[Root],
    may_attach: MayBeSent = attach_nothing_more,
) -> None:
    """Finish a claim with the output of its run; files are sent only from these directories.

    From the directory of files, a run may send the files of its conversation; from `output.files`,
    those that `may_attach` allows to its API key.
    """
    primary = claim.primary
    mask = outgoing_mask(tx)
    text = mask(sanitise_text(output.text))
    output = replace(
        output,
        text=text,
        metadata=None if output.metadata is None else mask(output.metadata),
    )
    if is_heartbeat(primary):
        text = strip_silent_answer(text)
    rooms, book = _load_recipients(tx, primary.agent) if "[" in text else ({}, EMPTY_BOOK)
    parsed = parse_answer(text, primary.agent, book, rooms)
    files, refused = _check_files(tx, primary, output.files, parsed.files, roots, may_attach)
    notes = _limit_notes((*parsed.notes, *(str(each) for each in refused)))
    answers = _build_answers(tx, primary, parsed, files, notes, output.metadata)
    outcome = _build_outcome(tx, primary, output, parsed, rooms)
    team = None if primary.team_id is None else find_team(tx, primary.team_id)
    exceeded = _find_exceeded_limit(tx, claim, outcome, team)
    # Checked before this run holds messages of the conversation.
    is_first_excess = exceeded is not None and not is_held_at_limit(tx, primary)
    if exceeded is not None:
        outcome = _hold_outcome(outcome, exceeded)
    _finish(tx, claim, outcome, answers, team)
    _record_notes(tx, primary, notes, refused)
    if exceeded is not None and is_first_excess:
        notify_all(tx, primary, _limit_text(primary, exceeded))
    if team is not None:
        _end_if_at_rest(tx, primary, team)


def fail(tx: Transaction, token: str, failure: Failure) -> None:
    """End this claim as failed, and count the failure of a heartbeat."""
    failure = replace(failure, error=outgoing_mask(tx)(failure.error))
    for message in fail_claim(tx, token, failure):
        if is_heartbeat(message):
            fail_heartbeat(tx, message, failure.error)


def _load_recipients(tx: Transaction, agent: str) -> tuple[dict[str, Team], AddressBook]:
    """The teams in whose rooms the agent may post, and the recipients that it may address."""
    return {team.id: team for team in teams_of(tx, agent)}, load_address_book(tx)


def _check_files(
    tx: Transaction,
    primary: Message,
    attached: Sequence[str],
    tagged: Sequence[str],
    roots: Sequence[Root],
    may_attach: MayBeSent,
) -> tuple[tuple[str, ...], tuple[RefusedFile, ...]]:
    """The files to send with the answer, and the refused ones."""
    paths = tuple(dict.fromkeys((*attached, *tagged)))
    if not _is_for_person(primary):
        return (), tuple(
            RefusedFile(each, "nobody receives this answer") for each in paths[:MAX_FILES]
        )
    place = message_place(primary)
    uploads = {stored_name(tx.settings, each) for each in attached}

    def may_be_sent(name: str) -> bool:
        return (name in uploads and may_attach(name)) or is_used_in(
            tx, name, primary.conversation_id, primary.agent, place
        )

    return split_allowed(paths, roots, may_be_sent)


def _limit_notes(notes: Sequence[str]) -> tuple[str, ...]:
    """The notes, or the first ones of many."""
    if len(notes) <= MAX_NOTES:
        return tuple(notes)
    return (*notes[:MAX_NOTES], f"and {len(notes) - MAX_NOTES} more such notes")


def _build_answers(
    tx: Transaction,
    primary: Message,
    parsed: ParsedAnswer,
    files: tuple[str, ...],
    notes: Sequence[str],
    metadata: str | None,
) -> tuple[Answer, ...]:
    """The answer to the person; empty if it has no text and no files."""
    if not _is_for_person(primary):
        return ()
    settings = tx.settings
    name = f"answer_{primary.message_id}"
    text, whole = shorten_to_file(parsed.text, settings.answer_characters, settings.files, name)
    if notes:
        text = "\n\n".join([*([text] if text else []), "\n".join(f"({note})" for note in notes)])
    if not text and not files:
        return ()
    return (Answer(message=text, files=(*files, *whole), metadata=metadata),)


def _is_for_person(primary: Message) -> bool:
    return is_heartbeat(primary) or primary.channel not in INTERNAL_CHANNELS


def _build_outcome(
    tx: Transaction,
    primary: Message,
    output: RunOutput,
    parsed: ParsedAnswer,
    rooms: dict[str, Team],
) -> Outcome:
    """The handoffs, posts and history; the answers are added after the limits were checked."""
    handoffs = []
    for number, each in enumerate(parsed.handoffs):
        text, files = _shorten_for_agent(tx, primary, f"handoff{number}", each.text)
        team = each.team or primary.team_id
        handoffs.append(NewMessage(agent=each.agent, message=text, files=files, team_id=team))
    posts = []
    for number, post in enumerate(parsed.posts):
        text, files = _shorten_for_agent(tx, primary, f"post{number}", post.text)
        text = "\n".join((text, *(f"[file: {file}]" for file in files)))
        record_uses(tx, files, primary.conversation_id, primary.agent, place=None)
        members = tuple(agent for agent in rooms[post.team].members if agent != primary.agent)
        posts.append(RoomPost(team_id=post.team, message=text, to=members))
    return Outcome(
        handoffs=tuple(handoffs),
        room_posts=tuple(posts),
        transcript=output.text,
        usage=output.usage,
    )


def _shorten_for_agent(
    tx: Transaction, primary: Message, name: str, text: str
) -> tuple[str, tuple[str, ...]]:
    max_chars = max(1, tx.settings.message_bytes // HANDOFF_DIVISOR)
    return shorten_to_file(text, max_chars, tx.settings.files, f"{name}_{primary.message_id}")


def _find_exceeded_limit(
    tx: Transaction, claim: Claim, outcome: Outcome, team: Team | None
) -> str | None:
    """The limit that the outcome's messages exceed, if any; locks their lanes."""
    more = len(outcome.handoffs) + sum(len(post.to) for post in outcome.room_posts)
    if more == 0:
        return None
    lock_target_lanes(tx, claim.token, outcome)
    return find_exceeded_limit(tx, claim.primary, team, more, outcome.usage.cost)


def _hold_outcome(outcome: Outcome, reason: str) -> Outcome:
    return replace(
        outcome,
        handoffs=tuple(replace(each, hold_reason=reason) for each in outcome.handoffs),
        room_posts=tuple(replace(each, hold_reason=reason) for each in outcome.room_posts),
    )


def _finish(
    tx: Transaction,
    claim: Claim,
    outcome: Outcome,
    answers: tuple[Answer, ...],
    team: Team | None,
) -> None:
    """Finish the claim; its answers go to the person, the heartbeat or the aggregate."""
    primary = claim.primary
    if is_heartbeat(primary):
        finish(tx, claim, outcome)
        finish_heartbeat(tx, primary, answers[0] if answers else None)
    elif team is not None and team.delivery is DeliveryMode.AGGREGATE:
        finish(tx, claim, outcome)
        for answer in answers:
            add_part(tx, primary, answer)
    else:
        finish(tx, claim, replace(outcome, answers=answers))


def _record_notes(
    tx: Transaction, primary: Message, notes: Sequence[str], refused: Sequence[RefusedFile]
) -> None:
    for note in notes:
        record_note(tx, primary.agent, primary.message_id, note)
    for each in refused:
        append_event(tx, FileRefused(primary, file=each.path[:500], reason=each.why))


def _limit_text(primary: Message, reason: str) -> str:
    conversation = quote(primary.conversation_id)  # a client may have chosen it
    return (
        f"@{primary.agent} cannot hand on work: {reason}. Its messages to other agents are held.\n"
        f"To resume them, run: bullpen queue resume --conversation {conversation}\n"
        f"To cancel them, run: bullpen queue cancel --conversation {conversation}"
    )


def _end_if_at_rest(tx: Transaction, primary: Message, team: Team) -> None:
    # If two runs end at the same time, the second waits here until the first has ended.
    lock_conversation(tx, primary.conversation_id)
    if is_at_rest(tx, primary.conversation_id):
        sent = send_aggregate(tx, primary.conversation_id)
        ended = (
            TeamChainEnd(primary, team=team.id)
            if sent is None
            else TeamChainEnd(primary, team=team.id, answers=sent.answers)
        )
        append_event(tx, ended)
