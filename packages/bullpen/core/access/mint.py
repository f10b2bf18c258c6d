"""What one key does with others: makes those that may no more than itself, and closes them."""

from __future__ import annotations

from collections.abc import Collection

from bullpen.core.access.key import Key, KeyKind, Scope
from bullpen.core.access.keys import add_key, list_keys, revoke_key
from bullpen.core.errors import BadKey, OutOfReach, ScopeTooSmall, UnknownKey
from bullpen.core.store.transaction import Transaction


def add_key_as(
    tx: Transaction,
    by: Key,
    name: str,
    scopes: Collection[Scope],
    agents: Collection[str] | None = None,
    expires_at: int | None = None,
) -> tuple[Key, str]:
    """A new key and its secret, if it may no more than the one that asks for it."""
    missing = sorted(scope for scope in scopes if not by.has_scope(scope))
    if missing:
        raise ScopeTooSmall(f"the key {by.name!r} has not the scopes {', '.join(missing)}")
    if by.agents is not None and (agents is None or not by.agents.issuperset(agents)):
        raise OutOfReach(f"the key {by.name!r} makes keys for its own agents only")
    # A browser's end is not its owner's.
    end = by.expires_at if by.kind is KeyKind.KEY else None
    if end is not None and (expires_at is None or expires_at > end):
        raise BadKey(
            f"the key {by.name!r} makes no key that lasts longer than itself",
            hint=f"Give an end of {end} or before.",
        )
    return add_key(tx, name, scopes, agents, expires_at)


def list_keys_as(tx: Transaction, by: Key) -> list[Key]:
    """The keys that this one may know of: all, or those for some of its own agents."""
    return [key for key in list_keys(tx) if _can_see(by, key)]


def revoke_key_as(tx: Transaction, by: Key, key_id: str) -> None:
    """Revoke a key that this one may know of."""
    if key_id not in {key.id for key in list_keys_as(tx, by)}:
        raise UnknownKey(f"there is no key {key_id[:40]!r}")
    revoke_key(tx, key_id)


def _can_see(by: Key, other: Key) -> bool:
    return by.agents is None or (other.agents is not None and other.agents <= by.agents)
