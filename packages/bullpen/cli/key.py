"""bullpen key: who may use the API, and for what."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import click

from bullpen.cli import completion
from bullpen.cli.command import read_transaction, require_person, write_transaction
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.output import as_json, confirm, print_json, print_result, print_table, yes
from bullpen.core.access.keys import Key, Scope, add_key, list_keys, revoke_key
from bullpen.core.clock import DAY, SECOND
from bullpen.core.errors import UnknownKey
from bullpen.core.settings import Settings

SCOPES = click.Choice([each.value for each in Scope])


@click.group(cls=LazyGroup, modules={})
def key() -> None:
    """Make keys for the API, and take them back.

    \b
    Example:
      bullpen key add dashboard --scope read
    """


@key.command()
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
@as_json
@click.pass_obj
def add(
    settings: Settings,
    name: str,
    scopes: tuple[str, ...],
    agents: tuple[str, ...],
    days: int | None,
    as_json: bool,
) -> None:
    """Make a key, and print its secret: this once, and never again.

    \b
    Example:
      bullpen key add worker --scope claim --agent coder --days 90 > worker.key
    """
    require_person("make keys")
    with write_transaction(settings) as tx:
        made, secret = add_key(
            tx,
            name,
            [Scope(each) for each in scopes],
            agents or None,
            None if days is None else tx.now + days * DAY,
        )
    if as_json:
        print_json({**_document(made, True), "key": secret})
        return
    click.echo(secret)
    click.echo(f"It is shown this once. Next: bullpen key revoke {made.id}", err=True)


@key.command(name="list")
@as_json
@click.pass_obj
def list_(settings: Settings, as_json: bool) -> None:
    """List the keys and the browsers that came in, those of the past included.

    \b
    Example:
      bullpen key list
    """
    require_person("see keys")
    with read_transaction(settings) as tx:
        found, now = list_keys(tx), tx.now
    if as_json:
        print_json([_document(each, each.valid(now)) for each in found])
        return
    rows = [("KEY", "KIND", "STATE", "SCOPES", "AGENTS", "LAST USED", "NAME")]
    rows += [
        (
            *(each.id, each.kind.value, _state(each, now), _words(sorted(each.scopes))),
            *(_agents(each), _day(each.used_at, "never"), each.name),
        )
        for each in found
    ]
    print_table(rows, "There are no keys. Next: bullpen key add dashboard --scope read")


@key.command()
@click.argument("key_id", nargs=-1, required=True, shell_complete=completion.keys)
@yes
@as_json
@click.pass_obj
def revoke(settings: Settings, key_id: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Close keys or browsers, in force with the next request.

    \b
    Example:
      bullpen key revoke key_a1b2c3d4
    """
    require_person("take keys back")
    with read_transaction(settings) as tx:
        known = {each.id: each for each in list_keys(tx)}
    confirm("\n".join(_what(each, known) for each in key_id), yes)
    with write_transaction(settings) as tx:
        for each in sorted(set(key_id)):
            revoke_key(tx, each)
    print_result(
        as_json, {"revoked": list(key_id)}, *(f"{each} opens nothing any more" for each in key_id)
    )


def _what(key_id: str, known: Mapping[str, Key]) -> str:
    found = known.get(key_id)
    if found is None:
        raise UnknownKey(f"there is no key {key_id[:40]!r}")
    return f"Close {found.id} ({found.name}), last used {_day(found.used_at, 'never')}"


def _document(found: Key, valid: bool) -> dict[str, object]:
    return {
        "id": found.id,
        "kind": found.kind.value,
        "name": found.name,
        "scopes": sorted(found.scopes),
        "agents": None if found.agents is None else sorted(found.agents),
        "created_at": found.created_at,
        "expires_at": found.expires_at,
        "used_at": found.used_at,
        "revoked_at": found.revoked_at,
        "valid": valid,
    }


def _state(found: Key, now: int) -> str:
    if found.revoked_at is not None:
        return "revoked"
    if not found.valid(now):
        return "expired"
    return "valid" if found.expires_at is None else f"until {_day(found.expires_at, '')}"


def _agents(found: Key) -> str:
    return "all" if found.agents is None else _words(sorted(found.agents))


def _words(words: list[Scope] | list[str]) -> str:
    return ",".join(words)


def _day(moment: int | None, otherwise: str) -> str:
    if moment is None:
        return otherwise
    return datetime.fromtimestamp(moment / SECOND, UTC).date().isoformat()
