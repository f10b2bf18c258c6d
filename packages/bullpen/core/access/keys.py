"""API keys: scopes, reach, expiry, creation and revocation."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum

from sqlalchemy import Column, bindparam, insert, select, update

from bullpen.core.clock import MINUTE
from bullpen.core.errors import BadKey, NoAccess, OutOfReach, ScopeTooSmall, UnknownKey
from bullpen.core.events.append import append_event
from bullpen.core.events.company import KeyAdded, KeyRevoked
from bullpen.core.ids import check_name
from bullpen.core.models import API_KEYS
from bullpen.core.roster.agents import check_display_name
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import KEY_PREFIX, describe_unknown

SECRET_BYTES = 32
USED_AT_INTERVAL = MINUTE

K = API_KEYS.c


class Scope(StrEnum):
    """The rights of a key."""

    PUBLISH = "publish"
    """Act for people: send messages, fetch answers, upload files, post in rooms."""
    CLAIM = "claim"
    """Work on messages: claim, extend, complete, fail, release."""
    READ = "read"
    """Read everything."""
    APPROVE = "approve"
    """Manage messages and responses: cancel, resume, retry, drop."""
    ADMIN = "admin"
    """Everything, including agents, settings and keys."""


class KeyKind(StrEnum):
    """The kind of a key."""

    OWNER = "owner"
    """The token in the home, which is not in the database."""
    KEY = "key"
    BROWSER = "browser"
    LINK = "link"
    """A login link for one browser, which can be used once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key without its secret."""

    id: str
    kind: KeyKind
    name: str
    scopes: frozenset[Scope]
    agents: frozenset[str] | None = None
    """The agents that it reaches; None means all."""
    created_at: int = 0
    expires_at: int | None = None
    used_at: int | None = None
    revoked_at: int | None = None
    made_by: str | None = None
    """The key that created it, or `OWNER_ID` for the owner's token; None on the machine itself."""
    token_hash: str = field(default="", repr=False)
    """The hash of the token, for the owner's key only."""

    @property
    def bounded_id(self) -> str | None:
        """Its id, if its pending messages are limited; None for the owner's token."""
        return None if self.kind is KeyKind.OWNER else self.id

    def has_scope(self, scope: Scope) -> bool:
        """Whether the key has this scope; `admin` includes all."""
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def can_reach(self, agent: str | None) -> bool:
        """Whether the key reaches an agent; None (no agent) needs a key that reaches all agents."""
        return self.agents is None or agent in self.agents

    def valid(self, now: int) -> bool:
        """Whether the key is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


OWNER_ID = "owner"
INVALID = "invalid or revoked token"

OWNER_KEY = Key(id=OWNER_ID, kind=KeyKind.OWNER, name="owner", scopes=frozenset(Scope))


def new_secret() -> str:
    """A new random secret."""
    return KEY_PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def hash_secret(secret: str) -> str:
    """The hash of a secret. Secrets are long and random, so one round is enough."""
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()


def _key_from_row(
    id_: str,
    kind: str,
    name: str,
    scopes: str,
    agents: str | None,
    created_at: int,
    expires_at: int | None,
    used_at: int | None,
    revoked_at: int | None,
    made_by: str | None,
) -> Key:
    return Key(
        id=id_,
        kind=KeyKind(kind),
        name=name,
        scopes=frozenset(Scope(each) for each in scopes.split()),
        agents=None if agents is None else frozenset(agents.split()),
        created_at=created_at,
        expires_at=expires_at,
        used_at=used_at,
        revoked_at=revoked_at,
        made_by=made_by,
    )


def _columns() -> tuple[Column[object], ...]:
    return (
        *(K.id, K.kind, K.name, K.scopes, K.agents),
        *(K.created_at, K.expires_at, K.used_at, K.revoked_at, K.made_by),
    )


FIND_BY_HASH: Statement[Key] = Statement(
    lambda: select(*_columns()).where(K.hash == bindparam("digest")), _key_from_row
)
FIND_BY_ID: Statement[Key] = Statement(
    lambda: select(*_columns()).where(K.id == bindparam("key")), _key_from_row
)
LOCK_BY_ID: Statement[Key] = Statement(
    lambda: select(*_columns()).where(K.id == bindparam("key")).with_for_update(), _key_from_row
)
LOCK_MADE_BY: Statement[Key] = Statement(
    lambda: (
        select(*_columns())
        .where(K.made_by == bindparam("maker"))
        .order_by(K.created_at, K.id)
        .with_for_update()
    ),
    _key_from_row,
)
LIST: Statement[Key] = Statement(
    lambda: select(*_columns()).where(K.kind != bindparam("kind")).order_by(K.created_at, K.id),
    _key_from_row,
)
INSERT: Statement[None] = Statement(
    lambda: insert(API_KEYS).values({column.name: bindparam(column.name) for column in K})
)
REVOKE: Statement[None] = Statement(
    lambda: (
        update(API_KEYS)
        .where(K.id == bindparam("key"), K.revoked_at.is_(None))
        .values(revoked_at=bindparam("now"))
    )
)
SET_USED_AT: Statement[None] = Statement(
    lambda: update(API_KEYS).where(K.id == bindparam("key")).values(used_at=bindparam("now"))
)


def add_key(
    tx: Transaction,
    name: str,
    scopes: Collection[Scope],
    agents: Collection[str] | None = None,
    expires_at: int | None = None,
    made_by: str | None = None,
) -> tuple[Key, str]:
    """Create a key; returns it and its secret, which is not stored."""
    check_display_name(name, tx.settings.message_bytes)
    if not name:
        raise BadKey("the key has no name", hint="Give it a name that says what it is for.")
    if not scopes:
        raise BadKey(f"the key {name!r} has no scopes", hint="Give it at least one scope.")
    if agents is not None and not agents:
        raise BadKey(f"the key {name!r} reaches no agents", hint="Name at least one agent.")
    if expires_at is not None and expires_at <= tx.now:
        raise BadKey(f"the key {name!r} would already be expired", hint="Use a later expiry time.")
    for agent in agents or ():
        check_name(agent)
    key, secret = insert_key(tx, KeyKind.KEY, name, scopes, agents, expires_at, made_by)
    append_event(tx, KeyAdded(key=key.id, name=name))
    return key, secret


def find_key(tx: Transaction, secret: str) -> Key | None:
    """The valid key or browser login with this secret; None if there is none."""
    key = tx.one(FIND_BY_HASH, {"digest": hash_secret(secret)})
    return key if key is not None and key.kind is not KeyKind.LINK and key.valid(tx.now) else None


def still_valid(tx: Transaction, key: Key) -> bool:
    """Whether a key or browser login that was valid before is still valid.

    The owner's key is not in the database; `OwnerToken.still_valid` handles it as well.
    """
    stored = tx.one(FIND_BY_ID, {"key": key.id})
    return stored is not None and stored.valid(tx.now)


def list_keys(tx: Transaction) -> list[Key]:
    """All keys and browser logins, including revoked and expired ones."""
    return tx.all(LIST, {"kind": KeyKind.LINK.value})


def revoke_key(tx: Transaction, key_id: str) -> list[Key]:
    """Revoke a key or browser login and all keys that it created; returns those that were valid."""
    key = tx.one(LOCK_BY_ID, {"key": key_id})
    if key is None or key.kind is KeyKind.LINK:
        raise unknown_key(tx, key_id)
    return [*end_key(tx, key), *revoke_made_by(tx, key_id)]


def unknown_key(tx: Transaction, key_id: str) -> UnknownKey:
    """The error for an unknown id or name, with a suggestion."""
    known = [name for key in list_keys(tx) for name in (key.id, key.name)]
    return UnknownKey(describe_unknown("key", key_id, known))


def revoke_made_by(tx: Transaction, maker: str, *, keep_keys: bool = False) -> list[Key]:
    """Revoke the keys that this key or the owner's token created, directly or indirectly.

    With `keep_keys`, only login links and browser logins. Returns the keys that were valid.
    """
    revoked: list[Key] = []
    makers = [maker]
    while makers:
        for key in tx.all(LOCK_MADE_BY, {"maker": makers.pop()}):
            if keep_keys and key.kind is KeyKind.KEY:
                continue
            # Revoked ones are followed as well: a logged out browser may have created keys.
            makers.append(key.id)
            revoked += end_key(tx, key)
    return [key for key in revoked if key.kind is not KeyKind.LINK]


def end_key(tx: Transaction, key: Key) -> list[Key]:
    """Revoke this key alone; returns it if it was valid."""
    if not tx.change(REVOKE, {"key": key.id, "now": tx.now}):
        return []
    if key.kind is not KeyKind.LINK:
        append_event(tx, KeyRevoked(key=key.id))
    return [key] if key.valid(tx.now) else []


def record_use(tx: Transaction, key: Key) -> None:
    """Record the time of a key's last use."""
    tx.write(SET_USED_AT, {"key": key.id, "now": tx.now})


def get_maker(tx: Transaction, key: Key) -> Key:
    """The key that created this one; the owner's, if it was created on the machine."""
    if key.made_by is None or key.made_by == OWNER_ID:
        return OWNER_KEY
    maker = tx.one(FIND_BY_ID, {"key": key.made_by})
    if maker is None:
        raise NoAccess(INVALID)
    return maker


def lock_maker(tx: Transaction, maker: Key) -> None:
    """Raise an error if the key is no longer valid; a revocation waits until it is unlocked."""
    if maker.kind is not KeyKind.OWNER:
        stored = tx.one(LOCK_BY_ID, {"key": maker.id})
        if stored is None or not stored.valid(tx.now):
            raise NoAccess(INVALID)


def insert_key(
    tx: Transaction,
    kind: KeyKind,
    name: str,
    scopes: Collection[Scope],
    agents: Collection[str] | None,
    expires_at: int | None,
    made_by: str | None,
) -> tuple[Key, str]:
    """Insert a key of any kind; returns it and its secret."""
    secret = new_secret()
    key = Key(
        id=tx.ids.new("key"),
        kind=kind,
        name=name,
        scopes=frozenset(scopes),
        agents=None if agents is None else frozenset(agents),
        created_at=tx.now,
        expires_at=expires_at,
        made_by=made_by,
    )
    tx.write(
        INSERT,
        {
            "id": key.id,
            "kind": kind.value,
            "name": name,
            "hash": hash_secret(secret),
            "scopes": " ".join(sorted(key.scopes)),
            "agents": None if key.agents is None else " ".join(sorted(key.agents)),
            "created_at": tx.now,
            "expires_at": expires_at,
            "used_at": None,
            "revoked_at": None,
            "made_by": made_by,
        },
    )
    return key, secret


def add_key_as(
    tx: Transaction,
    by: Key,
    name: str,
    scopes: Collection[Scope],
    agents: Collection[str] | None = None,
    expires_at: int | None = None,
) -> tuple[Key, str]:
    """Create a key on behalf of another, which must have at least the same rights."""
    missing = sorted(scope for scope in scopes if not by.has_scope(scope))
    if missing:
        scopes_text = f"scope {missing[0]}" if len(missing) == 1 else f"scopes {', '.join(missing)}"
        raise ScopeTooSmall(f"the key {by.name!r} lacks the {scopes_text}")
    if by.agents is not None and (agents is None or not by.agents.issuperset(agents)):
        raise OutOfReach(f"the key {by.name!r} can only create keys for its own agents")
    lock_maker(tx, by)
    end = _latest_end(tx, by)
    if end is not None and (expires_at is None or expires_at > end):
        raise BadKey(
            f"a new key cannot expire later than the key {by.name!r} that creates it",
            hint=f"Use an expiry time of {end} or earlier.",
        )
    return add_key(tx, name, scopes, agents, expires_at, made_by=by.id)


def _latest_end(tx: Transaction, by: Key) -> int | None:
    """The latest expiry of keys that this one creates; None means no limit.

    For a browser login, the expiry of the key that created it counts.
    """
    while by.kind is KeyKind.BROWSER:
        by = get_maker(tx, by)
    return by.expires_at


def list_keys_as(tx: Transaction, by: Key) -> list[Key]:
    """The keys that another key may see: all, or those for agents that it reaches."""
    return [key for key in list_keys(tx) if _can_see(by, key)]


def revoke_key_as(tx: Transaction, by: Key, key_id: str) -> list[Key]:
    """Revoke a key on behalf of another, which must be able to see it."""
    if key_id not in {key.id for key in list_keys_as(tx, by)}:
        raise UnknownKey(describe_unknown("key", key_id))
    return revoke_key(tx, key_id)


def _can_see(by: Key, other: Key) -> bool:
    return by.agents is None or (other.agents is not None and other.agents <= by.agents)
