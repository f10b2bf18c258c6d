"""bullpen channel: the channels on which people write, their state and their pauses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from pkgutil import resolve_name

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command
from bullpen.cli.errors import UsageError
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.options import Count
from bullpen.cli.output import format_count, format_duration, format_fields, format_state
from bullpen.core.channels.health import pause_channel, resume_channel
from bullpen.core.channels.people import find_owner
from bullpen.core.clock import format_time, owner_zone_name, poll_until
from bullpen.core.errors import ServiceFailed
from bullpen.core.inspect.channels import (
    NOT_SET_UP,
    ChannelRecord,
    channel_fields,
    check_client,
    client_names,
    get_channel,
    list_channels,
)
from bullpen.core.inspect.responses import find_response
from bullpen.core.message import Answer
from bullpen.core.outbox.write import send_to_person
from bullpen.core.registry import CHANNELS, ChannelInfo
from bullpen.core.settings import Settings
from bullpen.core.states import OPEN_RESPONSE_STATES, ResponseState
from bullpen.core.store.open import open_store
from bullpen.core.store.transaction import Transaction

HEADING = ("CHANNEL", "STATE", "SINCE", "LAST MESSAGE", "DETAILS")
EMPTY = "No channel is set up. Next: bullpen channel setup slack"
TEST_TEXT = "test"
TEST_SECONDS = 30
POLL_SECONDS = 0.2
FIELD_COLUMNS = 14
DEGRADED_STATUS = 3

name_argument = click.argument("name", shell_complete=completion.channels)


@click.group(cls=LazyGroup, modules={"setup": "bullpen.cli.channel_setup:setup"})
def channel() -> None:
    """Set up channels such as Slack, and show their state.

    A channel is Slack, SMS, WhatsApp, Discord, Telegram, or one of an installed package. A further
    account of a platform has the platform's name and a name of its own, such as slack-sage.

    \b
    Examples:
      bullpen channel setup telegram
      bullpen channel list
      bullpen channel test telegram
    """


@command(channel, people_only="list channels", tx="read", listing=True)
@click.option("--all", "-a", "every", is_flag=True, help="Include channels that are not set up.")
def list_(tx: Transaction, every: bool) -> Result:
    """List channels and their states.

    \b
    Examples:
      bullpen channel list
      bullpen channel list --all
    """
    found = list_channels(tx, client_names() if every else ())
    return Result(
        [channel_fields(each) for each in found],
        rows=[HEADING, *(_row(each, tx.now) for each in found)],
        ids=(each.channel for each in found),
        empty=EMPTY,
        hints=_list_hints(found),
    )


@command(channel, people_only="show channels", tx="read")
@name_argument
def status(tx: Transaction, name: str) -> Result:
    """Show the state of one channel.

    The exit status is 3 if the channel does not work.

    \b
    Example:
      bullpen channel status slack
    """
    record = get_channel(tx, name)
    return Result(
        channel_fields(record),
        _describe(record, tx),
        status=0 if record.works else DEGRADED_STATUS,
        hints=list(_next_steps(record)),
    )


@command(channel, people_only="pause channels", tx="write")
@name_argument
def pause(tx: Transaction, name: str) -> Result:
    """Stop a channel from receiving and sending.

    Its service keeps running. Responses wait, and messages that people write meanwhile are fetched
    after `bullpen channel resume`, as far as the platform keeps them.

    \b
    Example:
      bullpen channel pause slack
    """
    record = get_channel(tx, name)
    if record.missing:
        raise _not_set_up(record)
    changed = pause_channel(tx, name)
    text = f"Paused {name}. Next: bullpen channel resume {name}"
    return _moved(tx, name, text if changed else f"{name} is already paused.")


@command(channel, people_only="resume channels", tx="write")
@name_argument
def resume(tx: Transaction, name: str) -> Result:
    """End the pause of a channel.

    \b
    Example:
      bullpen channel resume slack
    """
    record = get_channel(tx, name)
    if resume_channel(tx, name):
        text = f"Resumed {name}."
    elif record.works:
        text = f"{name} is not paused."
    else:
        text = f"{name} is not paused. It is tried again now."
    return _moved(tx, name, text)


@command(channel, people_only="send tests")
@name_argument
@click.option(
    "--timeout",
    "seconds",
    type=Count(1, 600),
    default=TEST_SECONDS,
    show_default=True,
    help="Seconds to wait for the delivery.",
)
def test(settings: Settings, name: str, seconds: int) -> Result:
    """Send "test" to the owner on a channel.

    The owner is `owner_id` if `owner_channel` is this channel, else a person with the tier owner.
    The command waits until the platform has accepted the message.

    \b
    Example:
      bullpen channel test slack
    """
    with closing(open_store(settings)) as store:
        with store.write() as tx:
            record = get_channel(tx, name)
            if record.missing:
                raise _not_set_up(record)
            owner = find_owner(tx, name)
            id_ = send_to_person(
                tx, Answer(message=TEST_TEXT), channel=name, sender="owner", sender_id=owner
            )

        def settled() -> ResponseState | None:
            with store.read() as tx:
                state = ResponseState(find_response(tx, id_).status)
            return None if state in OPEN_RESPONSE_STATES else state

        state = poll_until(settled, seconds, POLL_SECONDS)
        with store.read() as tx:
            response = find_response(tx, id_)
            record = get_channel(tx, name)
    document = {"channel": name, "to": owner, "response": response.id, "state": response.status}
    document["error"] = response.last_error
    if state is ResponseState.ACKED:
        return Result(document, f"Delivered to {owner} on {name}.")
    why = response.last_error or record.reason or f"{name} is {record.state}"
    text = f"Not delivered within {format_count(seconds, 'second')}: {why}."
    hints = [f"Next: bullpen channel status {name}, bullpen response show {response.id}"]
    return Result(document, text, status=1, hints=hints)


@command(channel, people_only="print manifests")
@name_argument
@click.option(
    "--app", metavar="NAME", default="Bullpen", show_default=True, help="Name of the app."
)
def manifest(settings: Settings, name: str, app: str) -> Result:
    """Print the manifest of the app that a platform imports.

    Slack creates an app from it, with all scopes and events. Settings such as `transport` and
    `public_url` are applied.

    \b
    Example:
      bullpen channel manifest slack > manifest.json
    """
    if not app.strip():
        raise click.UsageError("the name of the app is empty")
    info = CHANNELS.find(name)
    if not isinstance(info, ChannelInfo) or not info.manifest:
        known = [each.name for each in CHANNELS.built_in.values() if each.manifest]
        raise UsageError(
            f"channel {name!r} has no manifest", f"Channels with one: {', '.join(known)}."
        )
    document: object = resolve_name(info.manifest)(app, settings.account(name))
    return Result(document, json.dumps(document, indent=2, ensure_ascii=False))


def _not_set_up(record: ChannelRecord) -> ServiceFailed:
    return ServiceFailed(
        f"{record.channel} is not set up: {record.missing[0]} is not set",
        hint=f"Run: bullpen channel setup {record.channel}",
    )


def _moved(tx: Transaction, name: str, text: str) -> Result:
    check_client(name)
    return Result(channel_fields(get_channel(tx, name)), text)


def _row(record: ChannelRecord, now: int) -> tuple[str, ...]:
    return (
        record.channel,
        format_state(record.state),
        "" if record.since is None else format_duration(now - record.since),
        format_age(record.last_message_at, now),
        record.details,
    )


def format_age(moment: int | None, now: int) -> str:
    """How long ago something was; empty if it never was."""
    return "" if moment is None else f"{format_duration(now - moment)} ago"


def _list_hints(records: Sequence[ChannelRecord]) -> list[str]:
    hints = []
    if any(each.waiting for each in records):
        hints.append("Next: bullpen pairing list --waiting")
    if broken := [each for each in records if not each.works and each.state != NOT_SET_UP]:
        hints.append(f"Next: bullpen channel status {broken[0].channel}")
    return hints


def _describe(record: ChannelRecord, tx: Transaction) -> Iterator[str]:
    zone = owner_zone_name(tx.settings)

    def at(moment: int | None) -> str | None:
        if moment is None:
            return None
        return f"{format_time(moment, zone)} ({format_duration(tx.now - moment)} ago)"

    yield from format_fields(
        ("channel", record.channel),
        ("platform", record.platform if record.platform != record.channel else None),
        ("state", format_state(record.state)),
        ("since", at(record.since)),
        ("code", record.code or None),
        ("reason", record.reason or None),
        ("what to do", record.hint or None),
        ("missing", ", ".join(record.missing) or None),
        ("paused", "yes" if record.paused else None),
        ("last message", at(record.last_message_at)),
        ("last sent", at(record.last_sent_at)),
        ("connections", record.connections if record.works else None),
        ("caught up", at(record.caught_up_at)),
        ("", record.caught_up),
        ("requests", record.waiting or None),
        ("last probe", at(record.last_probe_at)),
        width=FIELD_COLUMNS,
    )
    findings: object = json.loads(record.findings) if record.findings else []
    for each in findings if isinstance(findings, list) else []:
        if isinstance(each, dict):
            yield f"  {'ok' if each.get('ok') is True else 'failed'}  {each.get('text')}"


def _next_steps(record: ChannelRecord) -> Iterator[str]:
    name = record.channel
    if record.missing:
        yield f"Next: bullpen channel setup {name}"
    elif record.paused:
        yield f"Next: bullpen channel resume {name}"
    elif not record.works:
        yield f"Next: bullpen logs {name}, bullpen restart {name}"
    if record.waiting:
        yield f"Next: bullpen pairing list --channel {name}"
