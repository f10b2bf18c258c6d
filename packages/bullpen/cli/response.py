"""bullpen response: list, show, read and send responses."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, assert_never

import click

from bullpen.cli import completion
from bullpen.cli.command import read_transaction, require_person, write_transaction
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.options import RESPONSE_STATES, message_selection, response_filters
from bullpen.cli.output import (
    MAX_LIMIT,
    as_json,
    format_duration,
    limit_option,
    one_line,
    print_json,
    print_result,
    print_table,
    sanitize,
)
from bullpen.cli.queue import require_visible, visible_agent
from bullpen.core.answers.attachments import RefusedFile, resolve_allowed
from bullpen.core.clock import format_time, owner_zone_name
from bullpen.core.errors import BadText, IllegalMove
from bullpen.core.inspect.responses import (
    ResponseRecord,
    get_response,
    list_deliverable,
    newest_responses,
)
from bullpen.core.message import PULL_CHANNELS, Answer
from bullpen.core.outbox.hold import Hold, find_hold
from bullpen.core.outbox.manage import ack_response
from bullpen.core.outbox.write import send_to_person
from bullpen.core.settings import Settings
from bullpen.core.states import ResponseState

CLI = "cli"
"""The channel of whoever sits here; the owner is told things there unless the settings say else."""


@click.group(
    cls=LazyGroup,
    modules={
        "drop": "bullpen.cli.response_bulk:drop",
        "list": "bullpen.cli.response:list_",
        "read": "bullpen.cli.response:read",
        "retry": "bullpen.cli.response_bulk:retry",
        "send": "bullpen.cli.response:send",
        "show": "bullpen.cli.response:show",
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


HEADING = ("RESPONSE", "AGE", "FROM", "TO", "STATE", "TEXT", "WHY")
TEXT_CHARS = 60
REASON_CHARS = 100


def response_rows(found: Sequence[ResponseRecord], now: int) -> list[tuple[str, ...]]:
    """These, with a heading."""
    return [HEADING, *(_row(each, now) for each in found)]


def author(seen: ResponseRecord) -> str:
    """Who says it."""
    return f"@{seen.agent}" if seen.agent else "Bullpen"


def recipient(seen: ResponseRecord) -> str:
    """Who gets it."""
    return one_line(f"{seen.channel}:{seen.sender_id or seen.sender}", TEXT_CHARS)


def file_names(seen: ResponseRecord) -> list[str]:
    """The files that go along."""
    return [str(each) for each in json.loads(seen.files or "[]")]


def _row(seen: ResponseRecord, now: int) -> tuple[str, ...]:
    return (
        *(
            str(seen.id),
            format_duration(now - seen.created_at),
            author(seen),
            recipient(seen),
            seen.status,
        ),
        *(one_line(seen.message, TEXT_CHARS), one_line(seen.last_error or "", REASON_CHARS)),
    )


NO_RESPONSES = "There is none like that. Next: fewer filters, or --archived."
LOST_NEXT_STEPS = "Next: bullpen response show ID, bullpen response retry ID"


@click.command(name="list")
@response_filters("channel", "agent", "sender", "error", "since", "before")
@click.option(
    "--state",
    "states",
    type=RESPONSE_STATES,
    multiple=True,
    help="Only those in this state, or in these.",
)
@click.option("--archived", is_flag=True, help="Those that were archived after a day as well.")
@limit_option()
@as_json
@click.pass_obj
def list_(
    settings: Settings,
    /,
    states: tuple[str, ...],
    archived: bool,
    limit: int,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - the filters
) -> None:
    """List what goes out and what went out within the last day, the newest first.

    \b
    Examples:
      bullpen response list --channel telegram --state dead
      bullpen response list --state dead --state unknown --since 2h
    """
    given["agent"] = visible_agent(given["agent"])
    wanted = [ResponseState(each) for each in dict.fromkeys(states)]
    with read_transaction(settings) as tx:
        chosen = message_selection(tx.now, given)
        found = newest_responses(tx, chosen, wanted, limit, archived=archived)
        now = tx.now
    if as_json:
        print_json(found)
        return
    print_table(response_rows(found, now), NO_RESPONSES)
    if len(found) == limit:
        click.echo("There may be more: --limit shows them.", err=True)
    if any(each.status in (ResponseState.DEAD, ResponseState.UNKNOWN) for each in found):
        click.echo(LOST_NEXT_STEPS, err=True)


@click.command()
@click.option(
    "--channel",
    type=click.Choice(sorted(PULL_CHANNELS)),
    default=CLI,
    show_default=True,
    help="Where it lies until somebody reads it.",
)
@as_json
@click.pass_obj
def read(settings: Settings, channel: str, as_json: bool) -> None:
    """Show what waits to be read, the oldest first; afterwards it has been read.

    It is what came to you unasked, or after you had stopped waiting: notices of Bullpen's, answers
    of schedules, what heartbeats had to say.

    \b
    Example:
      bullpen response read
    """
    require_person("read what is for people")
    with read_transaction(settings) as tx:
        found = list_deliverable(tx, channel, 0, MAX_LIMIT)
    if as_json:
        print_json(found)
    elif found:
        _show(found, owner_zone_name(settings))
    else:
        click.echo("There is nothing that you have not read.")
    with write_transaction(settings) as tx:  # now that it was shown
        for each in found:
            with suppress(IllegalMove):  # somebody else was quicker
                ack_response(tx, each.id)
    if len(found) == MAX_LIMIT:
        click.echo("There is more. Next: bullpen response read", err=True)


def _show(found: Sequence[ResponseRecord], here: str) -> None:
    for each in found:
        named = [f"[file: {file}]" for file in file_names(each)]
        text = "\n".join([*([each.message] if each.message else []), *named])
        click.echo(f"{format_time(each.created_at, here)}  {author(each)}: {sanitize(text)}")


@click.command()
@click.argument("text")
@click.option("--channel", required=True, help="Where the person is.")
@click.option("--to", "sender_id", required=True, help="The person's id on that channel.")
@click.option("--file", "files", multiple=True, help="A file that goes along.")
@as_json
@click.pass_obj
def send(
    settings: Settings,
    text: str,
    channel: str,
    sender_id: str,
    files: tuple[str, ...],
    as_json: bool,
) -> None:
    """Send a person a message that answers nothing.

    \b
    Example:
      bullpen response send --channel telegram --to 4711 "the report is ready"
    """
    agent = os.environ.get("BULLPEN_AGENT", "")
    roots = (settings.workspace / agent, settings.files) if agent else (settings.files,)
    found = [resolve_allowed(file, roots) for file in files]
    for each in found:
        if isinstance(each, RefusedFile):
            raise BadText(str(each), hint="Copy it to a place from where files may leave.")
    with write_transaction(settings) as tx:
        message_id = send_to_person(
            tx,
            Answer(message=text, files=tuple(str(each) for each in found)),
            channel=channel,
            sender=sender_id,
            sender_id=sender_id,
            agent=agent,
        )
    print_result(as_json, {"message_id": message_id}, f"{message_id} is on its way")


def explain_response(found: ResponseRecord, hold: Hold | None, now: int) -> str:
    """In words, why."""
    why = found.last_error or "nobody said why"
    match ResponseState(found.status):
        case ResponseState.PENDING:
            return _explain_pending(found, hold, now)
        case ResponseState.ACKED:
            return (
                "It got there."
                if found.channel not in PULL_CHANNELS
                else "It was read, or its day is over."
            )
        case ResponseState.DEAD:
            return f"It is not delivered any more: {why}"
        case ResponseState.UNKNOWN:
            return f"It was sent, and nobody knows whether it got there: {why}"
        case never:
            assert_never(never)


def next_steps(found: ResponseRecord) -> list[str]:
    """Commands for a person."""
    match ResponseState(found.status):
        case ResponseState.PENDING if found.channel in PULL_CHANNELS:
            channel = "" if found.channel == CLI else f" --channel {found.channel}"
            return [f"bullpen response read{channel}"]
        case ResponseState.PENDING:
            return [f"bullpen response drop {found.id}"]
        case ResponseState.DEAD:
            return [f"bullpen response retry {found.id}"]
        case ResponseState.UNKNOWN:
            return [
                f"bullpen response retry {found.id} (it may arrive twice)",
                f"bullpen response drop {found.id}",
            ]
        case ResponseState.ACKED:
            return []
        case never:
            assert_never(never)


def _explain_pending(found: ResponseRecord, hold: Hold | None, now: int) -> str:
    if found.channel in PULL_CHANNELS:
        return "It waits to be read."
    if hold is not None:
        return f"It waits, for nothing goes out: {hold.reason}"
    tried = ""
    if found.delivery_attempts:
        times = "once" if found.delivery_attempts == 1 else f"{found.delivery_attempts} times"
        tried = f" It was tried {times}: {found.last_error or 'nobody said why'}"
    if found.available_at > now:
        wait = format_duration(found.available_at - now)
        return f"It is on its way, or tried again in {wait}.{tried}"
    return f"It waits for the client of {found.channel} to take it.{tried}"


QUESTION_CHARS = 200


@click.command()
@click.argument("response_id", shell_complete=completion.responses)
@as_json
@click.pass_obj
def show(settings: Settings, response_id: str, as_json: bool) -> None:
    """Show one response, archived or not: its text, and how far it came on its way.

    \b
    Example:
      bullpen response show 12
    """
    with read_transaction(settings) as tx:
        found, hold, now = get_response(tx, response_id), find_hold(tx), tx.now
    require_visible(f"response {found.id}", found.agent)
    why = explain_response(found, hold, now)
    if as_json:
        print_json({**asdict(found), "why": why, "next": next_steps(found)})
        return
    zone = owner_zone_name(settings)
    for name, value in _fields(found, zone):
        if value:
            click.echo(f"{name:<10} {value}")
    click.echo(f"\n{sanitize(found.message)}\n")
    click.echo(sanitize(why))
    for line in next_steps(found):
        click.echo(f"Next: {line}", err=True)


def _fields(found: ResponseRecord, zone: str) -> list[tuple[str, str]]:
    pending = found.status == ResponseState.PENDING
    return [
        ("response", str(found.id)),
        ("state", found.status),
        ("from", author(found)),
        ("to", recipient(found)),
        ("answers", one_line(f"{found.message_id} {found.original_message}", QUESTION_CHARS)),
        ("said", format_time(found.created_at, zone)),
        ("arrived", "" if found.acked_at is None else format_time(found.acked_at, zone)),
        ("expires", format_time(found.expires_at, zone) if pending else ""),
        ("tries", str(found.delivery_attempts or "")),
        ("parts sent", str(found.parts_sent or "")),
        ("repeat", "it may have arrived before" if found.possible_duplicate else ""),
        ("files", ", ".join(file_names(found))),
    ]
