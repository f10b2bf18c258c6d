"""bullpen response: list, show, read and send responses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from shlex import quote
from typing import Any, assert_never

import click

from bullpen.cli import completion
from bullpen.cli.command import (
    Result,
    acting_run,
    command,
    json_requested,
    read_transaction,
    write_transaction,
)
from bullpen.cli.filters import StateType, check_delivery_channel, parse_filters, response_filters
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.options import MAX_LIMIT, limit_option
from bullpen.cli.output import echo, format_count, format_duration, format_state, one_line
from bullpen.core.answers.attachments import RefusedFile, resolve_allowed
from bullpen.core.clock import format_time, owner_zone_name
from bullpen.core.errors import BadText, IllegalMove
from bullpen.core.file_records import is_used_in
from bullpen.core.inspect.responses import (
    ResponseRecord,
    find_response,
    list_deliverable,
    newest_responses,
)
from bullpen.core.message import PULL_CHANNELS, Answer, reply_place
from bullpen.core.models.base import decode_texts
from bullpen.core.outbox.hold import Hold, find_hold
from bullpen.core.outbox.manage import ack_response
from bullpen.core.outbox.write import send_to_person
from bullpen.core.queue.reach import Run, require_recipient
from bullpen.core.roster.agents import allowed_roots, files_root, get_agent
from bullpen.core.settings import Settings
from bullpen.core.states import NO_REASON, UNDELIVERED_STATES, ResponseState
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import visible
from bullpen.core.workspace.safe_files import Root

CLI = "cli"
"""The channel of the command line, and the default channel of notices to the owner."""

HEADING = ("RESPONSE", "AGE", "FROM", "TO", "STATE", "TEXT OR ERROR")
TEXT_CHARS = 100
RECIPIENT_CHARS = 40
QUESTION_CHARS = 200

NO_RESPONSES = "No responses match. Next: fewer filters, or --archived."
LOST_NEXT_STEPS = "Next: bullpen response show ID, bullpen response retry ID"


@click.group(
    cls=LazyGroup,
    modules={
        "ack": "bullpen.cli.response_bulk:ack",
        "drop": "bullpen.cli.response_bulk:drop",
        "retry": "bullpen.cli.response_bulk:retry",
    },
)
def response() -> None:
    """Read, list, retry and send responses to people.

    A response has a number, and the id of the message that it answers. Commands take both.

    \b
    Examples:
      bullpen response read
      bullpen response list --state dead
      bullpen response send --channel telegram --to 4711 "the report is ready"
    """


@command(response, tx="read", listing=True)
@response_filters("channel", "agent", "sender", "error", "since", "before")
@click.option(
    "--state",
    "states",
    type=StateType(ResponseState),
    multiple=True,
    help="Only in this state. Repeatable.",
)
@click.option("--archived", is_flag=True, help="Include archived responses.")
@limit_option()
def list_(
    tx: Transaction,
    /,
    states: tuple[str, ...],
    archived: bool,
    limit: int,
    **filters: Any,  # noqa: ANN401 - the filters
) -> Result:
    """List responses, newest first.

    Delivered responses are archived after a day.

    \b
    Examples:
      bullpen response list --channel telegram --state dead
      bullpen response list --state dead --state unknown --since 2h
    """
    wanted = [ResponseState(each) for each in dict.fromkeys(states)]
    selection = parse_filters(tx, filters)
    responses = newest_responses(tx, selection, wanted, limit, archived=archived)
    hints = []
    if len(responses) == limit:
        hints.append("There may be more. Use --limit to show more.")
    if any(each.status in UNDELIVERED_STATES for each in responses):
        hints.append(LOST_NEXT_STEPS)
    return Result(
        responses,
        rows=response_rows(responses, tx.now),
        empty=NO_RESPONSES,
        hints=hints,
        ids=(str(each.id) for each in responses),
    )


@command(response, people_only="read responses")
@click.option(
    "--channel",
    type=click.Choice(sorted(PULL_CHANNELS)),
    default=CLI,
    show_default=True,
    help="Channel to read.",
)
def read(settings: Settings, channel: str) -> None:
    """Print and ack your unread responses, oldest first.

    Unread responses are answers that you did not wait for, answers to schedules and heartbeats, and
    notices of Bullpen.

    \b
    Example:
      bullpen response read
    """
    with read_transaction(settings) as tx:
        responses = list_deliverable(tx, channel, 0, MAX_LIMIT)
    zone = owner_zone_name(settings)
    lines = (_read_line(each, zone) for each in responses)
    shown = Result(responses, lines if responses else "No unread responses.")
    shown.print(json_requested())  # before they count as read
    with write_transaction(settings) as tx:
        for each in responses:
            with suppress(IllegalMove):  # another reader was faster
                ack_response(tx, each.id)
    if len(responses) == MAX_LIMIT:
        echo("There are more. Next: bullpen response read", err=True)


@command(response, in_runs=True)
@click.argument("text")
@click.option("--channel", metavar="NAME", required=True, help="Channel of the person.")
@click.option(
    "--to", "sender_id", metavar="ID", required=True, help="Id of the person on that channel."
)
@click.option("--file", "files", metavar="PATH", multiple=True, help="File to attach. Repeatable.")
def send(
    settings: Settings, text: str, channel: str, sender_id: str, files: tuple[str, ...]
) -> Result:
    """Send TEXT to a person.

    In its run, an agent may write only to people who wrote to it.

    \b
    Example:
      bullpen response send --channel telegram --to 4711 "the report is ready"
    """
    run = acting_run()
    agent = "" if run is None else run.agent
    check_delivery_channel(channel)
    with write_transaction(settings) as tx:
        if run is not None:
            require_recipient(tx, run, channel, sender_id)
        message_id = send_to_person(
            tx,
            Answer(message=text, files=_check_files(tx, files, run, channel, sender_id)),
            channel=channel,
            sender=sender_id,
            sender_id=sender_id,
            agent=agent,
        )
        number = find_response(tx, message_id).id
    return Result(
        {"message_id": message_id, "response": number},
        f"Enqueued response {number} to {channel}:{sender_id}. "
        f"Next: bullpen response show {number}",
    )


@command(response, tx="read")
@click.argument("response_id", metavar="ID", shell_complete=completion.responses)
def show(tx: Transaction, response_id: str) -> Result:
    """Show a response with its text and delivery state.

    \b
    Examples:
      bullpen response show 12
      bullpen response show proactive_a1b2c3d4
    """
    record, now = find_response(tx, response_id), tx.now
    reason, steps = explain_response(record, find_hold(tx), now), next_steps(record)
    return Result(
        {**asdict(record), "why": reason, "next": steps},
        _lines(record, reason, owner_zone_name(tx.settings)),
        hints=[f"Next: {step}" for step in steps],
    )


def _check_files(
    tx: Transaction, files: Sequence[str], run: Run | None, channel: str, sender_id: str
) -> tuple[str, ...]:
    """The real paths of the files; a run may send its agent's and the conversation's files."""
    settings, place = tx.settings, reply_place(channel, sender_id, sender_id, None)
    roots: Sequence[Root] = (files_root(settings),)
    conversations: Sequence[str] = ("",)
    if run is not None:
        roots = allowed_roots(settings, get_agent(tx, run.agent))
        if (channel, f"#{sender_id}") in run.recipients:
            conversations = ("", *run.conversations)

    def may_be_sent(name: str) -> bool:
        return run is None or any(
            is_used_in(tx, name, conversation, run.agent, place) for conversation in conversations
        )

    resolved = [resolve_allowed(file, roots, may_be_sent) for file in files]
    for each in resolved:
        if isinstance(each, RefusedFile):
            raise BadText(str(each), hint="Copy it into the agent's directory, or upload it.")
    return tuple(str(each) for each in resolved)


def response_rows(responses: Sequence[ResponseRecord], now: int) -> list[tuple[str, ...]]:
    """A table of responses."""
    return [HEADING, *(_row(each, now) for each in responses)]


def explain_response(record: ResponseRecord, hold: Hold | None, now: int) -> str:
    """The state of the response with its reason, in a sentence."""
    reason = record.last_error or NO_REASON
    match ResponseState(record.status):
        case ResponseState.PENDING:
            return _explain_pending(record, hold, now)
        case ResponseState.ACKED:
            return (
                "Delivered."
                if record.channel not in PULL_CHANNELS
                else "Delivered (read, or auto-acked after a day)."
            )
        case ResponseState.DEAD:
            return f"Not delivered: {reason}"
        case ResponseState.UNKNOWN if record.tell_at is not None:
            return f"Sent; the {record.channel} client checks whether it arrived: {reason}"
        case ResponseState.UNKNOWN:
            return f"Sent, but the channel did not confirm the delivery: {reason}"
        case never:
            assert_never(never)


def next_steps(record: ResponseRecord) -> list[str]:
    """The commands that a person may run next."""
    match ResponseState(record.status):
        case ResponseState.PENDING if record.channel in PULL_CHANNELS:
            channel = "" if record.channel == CLI else f" --channel {quote(record.channel)}"
            return [f"bullpen response read{channel}"]
        case ResponseState.PENDING:
            return [f"bullpen response drop {record.id}"]
        case ResponseState.DEAD:
            return [f"bullpen response retry {record.id}"]
        case ResponseState.UNKNOWN:
            return [
                f"bullpen response retry {record.id} (may be delivered twice)",
                f"bullpen response drop {record.id}",
            ]
        case ResponseState.ACKED:
            return []
        case never:
            assert_never(never)


def _explain_pending(record: ResponseRecord, hold: Hold | None, now: int) -> str:
    if record.channel in PULL_CHANNELS:
        return "Not read yet."
    if hold is not None:
        return f"On hold: {hold.reason}"
    tried = ""
    if record.delivery_attempts:
        attempts = format_count(record.delivery_attempts, "failed attempt")
        tried = f" {attempts}: {record.last_error or NO_REASON}"
    if record.available_at > now:
        wait = format_duration(record.available_at - now)
        return f"Being sent, or retried in {wait}.{tried}"
    return f"Waiting for the {record.channel} client.{tried}"


def _lines(record: ResponseRecord, reason: str, zone: str) -> Iterator[str]:
    pending = record.status == ResponseState.PENDING
    fields = [
        ("response", str(record.id)),
        ("state", record.status),
        ("from", _author(record)),
        ("to", _recipient(record)),
        ("answers", one_line(f"{record.message_id} {record.original_message}", QUESTION_CHARS)),
        ("created", format_time(record.created_at, zone)),
        ("acked", "" if record.acked_at is None else format_time(record.acked_at, zone)),
        ("expires", format_time(record.expires_at, zone) if pending else ""),
        ("attempts", str(record.delivery_attempts or "")),
        ("parts sent", str(record.parts_sent or "")),
        (
            "duplicate",
            "possible: may have been delivered before" if record.possible_duplicate else "",
        ),
        ("files", ", ".join(decode_texts(record.files))),
    ]
    for name, value in fields:
        if value:
            yield f"{name:<10} {value}"
    yield f"\n{record.message}\n"
    yield reason


def _row(record: ResponseRecord, now: int) -> tuple[str, ...]:
    age = format_duration(now - record.created_at)
    lost = record.status in UNDELIVERED_STATES and record.last_error
    text = f"Error: {record.last_error}" if lost else record.message
    return (
        *(str(record.id), age, _author(record), _recipient(record)),
        *(format_state(record.status), one_line(text, TEXT_CHARS)),
    )


def _read_line(record: ResponseRecord, zone: str) -> str:
    files = [f"[file: {name}]" for name in decode_texts(record.files)]
    text = "\n".join([*([record.message] if record.message else []), *files])
    return f"{format_time(record.created_at, zone)}  {_author(record)}: {visible(text)}"


def _author(record: ResponseRecord) -> str:
    return f"@{record.agent}" if record.agent else "Bullpen"


def _recipient(record: ResponseRecord) -> str:
    return one_line(f"{record.channel}:{record.sender_id or record.sender}", RECIPIENT_CHARS)
