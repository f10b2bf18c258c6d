"""bullpen key: keys for the API, their scopes and their revocation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command, read_transaction, write_transaction
from bullpen.cli.errors import UsageError
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.options import Count, yes
from bullpen.cli.output import confirm, format_count
from bullpen.core.access.keys import Key, Scope, add_key, list_keys, revoke_key
from bullpen.core.clock import DAY, SECOND
from bullpen.core.errors import UnknownKey
from bullpen.core.roster.agents import get_agent
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import describe_unknown

SCOPES = click.Choice([each.value for each in Scope])


@click.group(cls=LazyGroup)
def key() -> None:
    """Manage keys for the API.

    \b
    Example:
      bullpen key add dashboard --scope read
    """


@command(key, people_only="create keys", tx="write")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=SCOPES,
    multiple=True,
    required=True,
    help="Scope of the key. Repeatable.",
)
@click.option(
    "--agent",
    "agents",
    metavar="AGENT",
    multiple=True,
    show_default="all agents",
    shell_complete=completion.agents,
    help="Agent that the key may use. Repeatable.",
)
@click.option(
    "--days", type=Count(1, 36_500), show_default="no expiry", help="Expire after N days."
)
def add(
    tx: Transaction,
    name: str,
    scopes: tuple[str, ...],
    agents: tuple[str, ...],
    days: int | None,
) -> Result:
    """Create a key and print its secret.

    The secret is shown only once. Standard output has the secret alone.

    \b
    Example:
      bullpen key add worker --scope claim --agent coder --days 90 > worker.key
    """
    for each in agents:
        get_agent(tx, each)
    expires_at = None if days is None else tx.now + days * DAY
    key, secret = add_key(tx, name, [Scope(each) for each in scopes], agents or None, expires_at)
    hint = f"The secret is not shown again. To revoke it: bullpen key revoke {key.id}"
    return Result({**_key_fields(key, tx.now), "key": secret}, secret, hints=[hint])


@command(key, people_only="list keys", tx="read", listing=True)
def list_(tx: Transaction) -> Result:
    """List keys and browser logins.

    Revoked and expired ones are included.

    \b
    Example:
      bullpen key list
    """
    keys = list_keys(tx)
    rows = [("KEY", "KIND", "STATE", "SCOPES", "AGENTS", "CREATED BY", "LAST USED", "NAME")]
    rows += [
        (
            *(each.id, each.kind.value, _describe_state(each, tx.now)),
            ",".join(sorted(each.scopes)),
            "all" if each.agents is None else ",".join(sorted(each.agents)),
            *(each.made_by or "-", _format_day(each.used_at), each.name),
        )
        for each in keys
    ]
    return Result(
        [_key_fields(each, tx.now) for each in keys],
        rows=rows,
        ids=(each.id for each in keys),
        empty="No keys. Next: bullpen key add dashboard --scope read",
    )


@command(key, people_only="revoke keys")
@click.argument(
    "key", metavar="ID|NAME...", nargs=-1, required=True, shell_complete=completion.keys
)
@yes
def revoke(settings: Settings, key: tuple[str, ...], yes: bool) -> Result:
    """Revoke keys and browser logins.

    Everything that they created over the API is revoked as well: keys, login links and browser
    logins. They are invalid from the next request on.

    \b
    Examples:
      bullpen key revoke dashboard
      bullpen key revoke key_a1b2c3d4
    """
    with read_transaction(settings) as tx:
        known = list_keys(tx)
        chosen = {each.id: each for name in key for each in [_find_key(name, known, tx.now)]}
    confirm("\n".join(_describe_revocation(each) for each in chosen.values()), yes)
    with write_transaction(settings) as tx:
        revoked = [each.id for id_ in sorted(chosen) for each in revoke_key(tx, id_)]
    ids = list(dict.fromkeys([*chosen, *revoked]))
    return Result({"revoked": ids}, [f"Revoked {each}." for each in ids])


def _find_key(name: str, keys: Sequence[Key], now: int) -> Key:
    """The key of this id, or the only valid one of this name."""
    by_id = {each.id: each for each in keys}
    if name in by_id:
        return by_id[name]
    named = [each for each in keys if each.name == name]
    valid = [each for each in named if each.valid(now)] or named
    if len(valid) == 1:
        return valid[0]
    if valid:
        ids = ", ".join(each.id for each in valid)
        raise UsageError(
            f"{format_count(len(valid), 'key')} are named {name!r}: {ids}",
            "Give the id of the key to revoke.",
        )
    names = [each.name for each in keys if each.valid(now)]
    raise UnknownKey(describe_unknown("key", name, [*by_id, *names]))


def _describe_revocation(key: Key) -> str:
    used = _format_day(key.used_at)
    return f"Revoke {key.id} ({key.name}, last used: {used}) and everything that it created"


def _key_fields(key: Key, now: int) -> dict[str, object]:
    return {
        "id": key.id,
        "kind": key.kind.value,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "agents": None if key.agents is None else sorted(key.agents),
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "used_at": key.used_at,
        "revoked_at": key.revoked_at,
        "made_by": key.made_by,
        "valid": key.valid(now),
    }


def _describe_state(key: Key, now: int) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if not key.valid(now):
        return "expired"
    return "valid" if key.expires_at is None else f"until {_format_day(key.expires_at)}"


def _format_day(moment: int | None) -> str:
    if moment is None:
        return "never"
    return datetime.fromtimestamp(moment / SECOND, UTC).date().isoformat()
