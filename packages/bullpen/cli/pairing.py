"""bullpen pairing: the people and groups that may write to the agents on a channel."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.options import limit_option
from bullpen.cli.output import confirm, format_duration, format_state
from bullpen.core.channels.chats import Access
from bullpen.core.channels.people import (
    PairingRecord,
    approve_request,
    change_access,
    change_tier,
    find_pairing,
    list_pairings,
    list_waiting_pairings,
    unpair,
)
from bullpen.core.channels.senders import Tier, is_owner
from bullpen.core.inspect.channels import check_client, list_channels
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction

OWNER = "owner"
"""Who decides on the command line."""

TIERS = click.Choice([Tier.OWNER.value, Tier.MEMBER.value, Tier.GUEST.value])
ACCESSES = click.Choice([each.value for each in Access])
WAITING = "waiting"
HEADING = ("CHANNEL", "ID", "KIND", "NAME", "TIER", "CODE", "LAST MESSAGE")
EMPTY = "Nobody is paired, and no request is waiting. Next: bullpen channel list"

channel_argument = click.argument("channel", shell_complete=completion.channels)
id_argument = click.argument("id_", metavar="ID", shell_complete=completion.senders)


@click.group(cls=LazyGroup)
def pairing() -> None:
    """Manage people and groups on channels.

    An unpaired person who writes to a bot gets a code. They are answered once you approve it. A
    group is approved the same way; in a group, only paired people are answered.

    \b
    Examples:
      bullpen pairing list
      bullpen pairing approve K7M2XQ4B
    """


@command(pairing, people_only="list people", tx="read", listing=True)
@click.option(
    "--channel", metavar="CHANNEL", help="Only on this channel.", shell_complete=completion.channels
)
@click.option("--waiting", is_flag=True, help="Only requests that wait for approval.")
@limit_option(100)
def list_(tx: Transaction, channel: str | None, waiting: bool, limit: int) -> Result:
    """List people and groups, and the requests that wait.

    Requests come first, the oldest first. The code of a request is valid for an hour.

    \b
    Examples:
      bullpen pairing list
      bullpen pairing list --channel slack --json
    """
    if channel is not None:
        check_client(channel)
    found = [each for each in list_waiting_pairings(tx) if channel in (None, each.channel)]
    requests = len(found)
    if not waiting:
        names = [channel] if channel else [each.channel for each in list_channels(tx)]
        found += [each for name in names for each in list_pairings(tx, name, limit)]
    found = found[:limit]
    return Result(
        [_fields(each, tx.now) for each in found],
        rows=[HEADING, *(_row(each, tx.now) for each in found)],
        ids=(each.id for each in found),
        empty="No request is waiting." if waiting else EMPTY,
        hints=["Next: bullpen pairing approve CODE"] if requests else [],
    )


@command(pairing, people_only="approve pairing", tx="write")
@click.argument("code", shell_complete=completion.pairing_codes)
@click.option(
    "--tier", type=TIERS, default=Tier.MEMBER.value, show_default=True, help="Tier of the person."
)
@click.option(
    "--access",
    type=ACCESSES,
    default=Access.MEMBERS.value,
    show_default=True,
    help="Who is answered in the group.",
)
def approve(tx: Transaction, code: str, tier: str, access: str) -> Result:
    """Approve a person or a group.

    A guest can write to the default agent. A member can also choose an agent and start new
    sessions. An owner can do everything that you can. In a group with the access `everyone`,
    unpaired people are guests.

    \b
    Examples:
      bullpen pairing approve K7M2XQ4B
      bullpen pairing approve K7M2XQ4B --tier guest
      bullpen pairing approve P3WX9ZHD --access everyone
    """
    done = approve_request(tx, code, Tier(tier), OWNER, access=Access(access))
    what = f"Approved the group {_name(done)} on {done.channel} for {done.tier}."
    if not done.group:
        what = f"Approved {_name(done)} on {done.channel} as {done.tier}."
    return Result(_fields(done, tx.now), what, hints=_owner_hints(tx, done))


@command(pairing, people_only="revoke pairing", tx="write", ignore_unknown_options=True)
@channel_argument
@id_argument
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def revoke(tx: Transaction, channel: str, id_: str, yes: bool) -> Result:
    """Make a person or a group unpaired.

    A waiting request ends. They get a new code when they write again; to refuse that as well, block
    them.

    \b
    Example:
      bullpen pairing revoke telegram 4711
    """
    check_client(channel)
    found = find_pairing(tx, channel, id_)
    confirm(f"Unpair {_name(found) if found else id_} on {channel}", yes)
    unpair(tx, channel, id_, OWNER)
    name = _name(found) if found else id_
    return Result({"channel": channel, "id": id_}, f"Unpaired {name} on {channel}.")


@command(pairing, people_only="block people", tx="write", ignore_unknown_options=True)
@channel_argument
@id_argument
def block(tx: Transaction, channel: str, id_: str) -> Result:
    """Ignore everything that a person writes.

    They get no answer and no code. `bullpen pairing revoke` ends it.

    \b
    Example:
      bullpen pairing block telegram 4711
    """
    check_client(channel)
    done = change_tier(tx, channel, id_, Tier.BLOCKED, OWNER)
    return Result(_fields(done, tx.now), f"Blocked {_name(done)} on {channel}.")


@command(pairing, people_only="change tiers", tx="write", ignore_unknown_options=True)
@channel_argument
@id_argument
@click.argument("tier", metavar="TIER", type=click.Choice([*TIERS.choices, *ACCESSES.choices]))
def tier(tx: Transaction, channel: str, id_: str, tier: str) -> Result:
    """Change the tier of a person, or the access of a group.

    TIER is `owner`, `member` or `guest`. For a group it is `members` or `everyone`. A person who
    has not written yet can get a tier as well; they need no code then.

    \b
    Examples:
      bullpen pairing tier slack U0123456789 owner
      bullpen pairing tier slack C0123456789 everyone
    """
    check_client(channel)
    before = find_pairing(tx, channel, id_)
    if tier in ACCESSES.choices:
        done = change_access(tx, channel, id_, Access(tier), OWNER)
        return Result(
            _fields(done, tx.now),
            f"The group {_name(done)} on {channel} has the access {done.tier}.",
        )
    if before is not None and before.group:
        raise click.UsageError(f"the group {id_} has no tier, but the access members or everyone")
    done = change_tier(tx, channel, id_, Tier(tier), OWNER)
    notes = [] if before else [f"Note: nobody with the id {id_} has written on {channel} yet."]
    return Result(
        _fields(done, tx.now),
        f"{_name(done)} on {channel} has the tier {done.tier}.",
        notes=notes,
        hints=_owner_hints(tx, done),
    )


def _owner_hints(tx: Transaction, done: PairingRecord) -> Sequence[str]:
    """How the first owner gets notices on this channel."""
    settings: Settings = tx.settings
    if done.group or done.tier != Tier.OWNER or is_owner(settings, done.channel, done.id):
        return ()
    if settings.owner_id:
        return ()
    words = f"owner_channel {done.channel} owner_id {quote(done.id)}"
    return (f"To get notices and questions there: bullpen config set {words}",)


def _name(record: PairingRecord) -> str:
    return f"{record.name} ({record.id})" if record.name else record.id


def _row(record: PairingRecord, now: int) -> tuple[str, ...]:
    state = WAITING if record.waits(now) else record.tier or "unpaired"
    code = ""
    if record.waits(now) and record.code_expires_at is not None:
        code = f"{record.code} ({format_duration(record.code_expires_at - now)} left)"
    last = "" if record.last_at is None else f"{format_duration(now - record.last_at)} ago"
    kind = "group" if record.group else "person"
    return (record.channel, record.id, kind, record.name, format_state(state), code, last)


def _fields(record: PairingRecord, now: int) -> dict[str, object]:
    waits = record.waits(now)
    return {
        "channel": record.channel,
        "id": record.id,
        "name": record.name,
        "kind": "group" if record.group else "person",
        "tier": record.tier,
        "waiting": waits,
        "code": record.code if waits else None,
        "code_expires_at": record.code_expires_at if waits else None,
        "first_at": record.first_at,
        "last_at": record.last_at,
        "approved_at": record.approved_at,
        "approved_by": record.approved_by,
    }
