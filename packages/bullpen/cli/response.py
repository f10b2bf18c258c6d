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
from bullpen.cli.filters import parse_filters, response_filters
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.options import MAX_LIMIT, limit_option
from bullpen.cli.output import echo, format_duration, format_state, one_line
from bullpen.core.answers.attachments import RefusedFile, resolve_allowed
from bullpen.core.clock import format_time, owner_zone_name
from bullpen.core.errors import BadText, IllegalMove
from bullpen.core.file_records import is_used_in
from bullpen.core.inspect.responses import (
    ResponseRecord,
    get_response,
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
from bullpen.core.states import UNDELIVERED_STATES, ResponseState
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import visible
from bullpen.core.workspace.safe_files import Root

CLI = "cli"
"""The channel of the command line; the owner's notices go there unless the settings say else."""

HEADING = ("RESPONSE", "AGE", "FROM", "TO", "STATE", "TEXT", "WHY")
TEXT_CHARS = 60
REASON_CHARS = 100
QUESTION_CHARS = 200

NO_RESPONSES = "There is none like that. Next: fewer filters, or --archived."
LOST_NEXT_STEPS = "Next: bullpen response show ID, bullpen response retry ID"


@click.group(
    cls=LazyGroup,
    modules={
        "drop": "bullpen.cli.response_bulk:drop",
        "retry": "bullpen.cli.response_bulk:retry",
    },
)
def response() -> None:
    """Read what agents wrote to you, look at what goes out, write to people.

    \b
    Examples:
      bullpen response read
      bullpen response list --state dead
      bullpen response send --channel telegram --to 4711 "the report is ready"
    """


@command(response, tx="read")
@response_filters("channel", "agent", "sender", "error", "since", "before")
@click.option(
    "--state",
    "states",
    type=click.Choice([each.value for each in ResponseState]),
    multiple=True,
    help="Only those in this state, or in these.",
)
@click.option("--archived", is_flag=True, help="Those that were archived after a day as well.")
@limit_option()
def list_(
    tx: Transaction,
    /,
    states: tuple[str, ...],
    archived: bool,
    limit: int,
    **filters: Any,  # noqa: ANN401 - the filters
) -> Result:
    """List what goes out and what went out within the last day, the newest first.

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
        hints.append("There may be more: --limit shows them.")
    if any(each.status in UNDELIVERED_STATES for each in responses):
        hints.append(LOST_NEXT_STEPS)
    return Result(responses, rows=response_rows(responses, tx.now), empty=NO_RESPONSES, hints=hints)


@command(response, people_only="read what is for people")
@click.option(
    "--channel",
    type=click.Choice(sorted(PULL_CHANNELS)),
    default=CLI,
    show_default=True,
    help="Where it lies until somebody reads it.",
)
def read(settings: Settings, channel: str) -> None:
    """Show what waits to be read, the oldest first; afterwards it has been read.

    It is what came to you unasked, or after you had stopped waiting: notices of Bullpen's, answers
    of schedules, what heartbeats had to say.

    \b
    Example:
      bullpen response read
    """
    with read_transaction(settings) as tx:
        responses = list_deliverable(tx, channel, 0, MAX_LIMIT)
    zone = owner_zone_name(settings)
    lines = (_read_line(each, zone) for each in responses)
    shown = Result(responses, lines if responses else "There is nothing that you have not read.")
    shown.print(json_requested())  # before they count as read
    with write_transaction(settings) as tx:
        for each in responses:
            with suppress(IllegalMove):  # another reader was quicker
                ack_response(tx, each.id)
    if len(responses) == MAX_LIMIT:
        echo("There is more. Next: bullpen response read", err=True)


@command(response, in_runs=True)
@click.argument("text")
@click.option("--channel", required=True, help="Where the person is.")
@click.option("--to", "sender_id", required=True, help="The person's id on that channel.")
@click.option("--file", "files", multiple=True, help="A file that goes along.")
def send(
    settings: Settings, text: str, channel: str, sender_id: str, files: tuple[str, ...]
) -> Result:
    """Send a person a message that answers nothing.

    In its run an agent may write to people who wrote to it.

    \b
    Example:
      bullpen response send --channel telegram --to 4711 "the report is ready"
    """
    run = acting_run()
    agent = "" if run is None else run.agent
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
    return Result({"message_id": message_id}, f"{message_id} is on its way")


@command(response, tx="read")
@click.argument("response_id", shell_complete=completion.responses)
def show(tx: Transaction, response_id: str) -> Result:
    """Show one response, archived or not: its text, and how far it came on its way.

    \b
    Example:
      bullpen response show 12
    """
    record, now = get_response(tx, response_id), tx.now
    reason, steps = explain_response(record, find_hold(tx), now), next_steps(record)
    return Result(
        {**asdict(record), "why": reason, "next": steps},
        _lines(record, reason, owner_zone_name(tx.settings)),
        hints=[f"Next: {step}" for step in steps],
    )


def _check_files(
    tx: Transaction, files: Sequence[str], run: Run | None, channel: str, sender_id: str
) -> tuple[str, ...]:
    """The real paths of the files; a run sends its agent's own, and what the person has part in."""
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
    """Why the response is in its state, in a sentence."""
    why = record.last_error or "nobody said why"
    match ResponseState(record.status):
        case ResponseState.PENDING:
            return _explain_pending(record, hold, now)
        case ResponseState.ACKED:
            return (
                "It got there."
                if record.channel not in PULL_CHANNELS
                else "It was read, or its day is over."
            )
        case ResponseState.DEAD:
            return f"It is not delivered any more: {why}"
        case ResponseState.UNKNOWN:
            return f"It was sent, and nobody knows whether it got there: {why}"
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
                f"bullpen response retry {record.id} (it may arrive twice)",
                f"bullpen response drop {record.id}",
            ]
        case ResponseState.ACKED:
            return []
        case never:
            assert_never(never)


def _explain_pending(record: ResponseRecord, hold: Hold | None, now: int) -> str:
    if record.channel in PULL_CHANNELS:
        return "It waits to be read."
    if hold is not None:
        return f"It waits, for nothing goes out: {hold.reason}"
    tried = ""
    if record.delivery_attempts:
        times = "once" if record.delivery_attempts == 1 else f"{record.delivery_attempts} times"
        tried = f" It was tried {times}: {record.last_error or 'nobody said why'}"
    if record.available_at > now:
        wait = format_duration(record.available_at - now)
        return f"It is on its way, or tried again in {wait}.{tried}"
    return f"It waits for the client of {record.channel} to take it.{tried}"


def _lines(record: ResponseRecord, reason: str, zone: str) -> Iterator[str]:
    pending = record.status == ResponseState.PENDING
    fields = [
        ("response", str(record.id)),
        ("state", record.status),
        ("from", _author(record)),
        ("to", _recipient(record)),
        ("answers", one_line(f"{record.message_id} {record.original_message}", QUESTION_CHARS)),
        ("said", format_time(record.created_at, zone)),
        ("arrived", "" if record.acked_at is None else format_time(record.acked_at, zone)),
        ("expires", format_time(record.expires_at, zone) if pending else ""),
        ("tries", str(record.delivery_attempts or "")),
        ("parts sent", str(record.parts_sent or "")),
        ("repeat", "it may have arrived before" if record.possible_duplicate else ""),
        ("files", ", ".join(decode_texts(record.files))),
    ]
    for name, value in fields:
        if value:
            yield f"{name:<10} {value}"
    yield f"\n{record.message}\n"
    yield reason


def _row(record: ResponseRecord, now: int) -> tuple[str, ...]:
    age = format_duration(now - record.created_at)
    return (
        *(str(record.id), age, _author(record), _recipient(record)),
        format_state(record.status),
        *(one_line(record.message, TEXT_CHARS), one_line(record.last_error or "", REASON_CHARS)),
    )


def _read_line(record: ResponseRecord, zone: str) -> str:
    files = [f"[file: {name}]" for name in decode_texts(record.files)]
    text = "\n".join([*([record.message] if record.message else []), *files])
    return f"{format_time(record.created_at, zone)}  {_author(record)}: {visible(text)}"


def _author(record: ResponseRecord) -> str:
    return f"@{record.agent}" if record.agent else "Bullpen"


def _recipient(record: ResponseRecord) -> str:
    return one_line(f"{record.channel}:{record.sender_id or record.sender}", TEXT_CHARS)
