"""bullpen key: who may use the API, and for what."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command, read_transaction, write_transaction
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.options import yes
from bullpen.cli.output import confirm
from bullpen.core.access.keys import Key, Scope, add_key, list_keys, revoke_key
from bullpen.core.clock import DAY, SECOND
from bullpen.core.errors import UnknownKey
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction

SCOPES = click.Choice([each.value for each in Scope])


@click.group(cls=LazyGroup)
def key() -> None:
    """Make keys for the API, and take them back.

    \b
    Example:
      bullpen key add dashboard --scope read
    """


@command(key, people_only="make keys", tx="write")
@click.argument("name")
@click.option("--scope", "scopes", type=SCOPES, multiple=True, required=True, help="What for.")
@click.option(
    "--agent",
    "agents",
    multiple=True,
    shell_complete=completion.agents,
    help="An agent that it reaches, instead of all.",
)
@click.option("--days", type=click.IntRange(1, 36_500), help="It opens nothing after so many days.")
def add(
    tx: Transaction,
    name: str,
    scopes: tuple[str, ...],
    agents: tuple[str, ...],
    days: int | None,
) -> Result:
    """Make a key, and print its secret: this once, and never again.

    \b
    Example:
      bullpen key add worker --scope claim --agent coder --days 90 > worker.key
    """
    expires_at = None if days is None else tx.now + days * DAY
    key, secret = add_key(tx, name, [Scope(each) for each in scopes], agents or None, expires_at)
    hint = f"It is shown this once. Next: bullpen key revoke {key.id}"
    return Result({**_key_fields(key, tx.now), "key": secret}, secret, hints=[hint])


@command(key, people_only="see keys", tx="read", listing=True)
def list_(tx: Transaction) -> Result:
    """List the keys and the browsers that came in, those of the past included.

    \b
    Example:
      bullpen key list
    """
    keys = list_keys(tx)
    rows = [("KEY", "KIND", "STATE", "SCOPES", "AGENTS", "MADE BY", "LAST USED", "NAME")]
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
        empty="There are no keys. Next: bullpen key add dashboard --scope read",
    )


@command(key, people_only="take keys back")
@click.argument("key_id", nargs=-1, required=True, shell_complete=completion.keys)
@yes
def revoke(settings: Settings, key_id: tuple[str, ...], yes: bool) -> Result:
    """Revoke keys or browser logins, and all that they made, from the next request on.

    \b
    Example:
      bullpen key revoke key_a1b2c3d4
    """
    with read_transaction(settings) as tx:
        keys = {each.id: each for each in list_keys(tx)}
    confirm("\n".join(_describe_revocation(each, keys) for each in key_id), yes)
    with write_transaction(settings) as tx:
        revoked = [key.id for each in sorted(set(key_id)) for key in revoke_key(tx, each)]
    ids = list(dict.fromkeys([*key_id, *revoked]))
    return Result({"revoked": ids}, [f"Revoked {each}" for each in ids])


def _describe_revocation(key_id: str, keys: Mapping[str, Key]) -> str:
    key = keys.get(key_id)
    if key is None:
        raise UnknownKey(f"there is no key {key_id[:40]!r}")
    return (
        f"Revoke {key.id} ({key.name}) and all that it made, last used {_format_day(key.used_at)}"
    )


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
