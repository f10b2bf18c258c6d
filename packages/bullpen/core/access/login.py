"""Browser logins: a one-time link that is exchanged for a cookie."""

from __future__ import annotations

from bullpen.core.access.keys import (
    FIND_BY_HASH,
    OWNER_KEY,
    REVOKE,
    Key,
    KeyKind,
    end_key,
    get_maker,
    hash_secret,
    insert_key,
    lock_maker,
    revoke_made_by,
)
from bullpen.core.clock import DAY, MINUTE
from bullpen.core.errors import NoAccess
from bullpen.core.events.append import append_event
from bullpen.core.events.company import KeyAdded
from bullpen.core.store.transaction import Transaction

LINK_MINUTES = 5
BROWSER_DAYS = 30


def create_login_link(tx: Transaction, by: Key | None = None) -> tuple[str, int]:
    """Create a login link for one browser; returns its secret and its expiry in a few minutes.

    The browser gets the rights of the key that created the link, and its login expires no later
    than the key. A link created on the machine, without a key, has the owner's rights.
    """
    maker = OWNER_KEY if by is None else by
    lock_maker(tx, maker)
    end = _earlier(tx.now + LINK_MINUTES * MINUTE, maker.expires_at)
    made_by = None if by is None else by.id
    scopes, agents = maker.scopes, maker.agents
    return insert_key(tx, KeyKind.LINK, "link", scopes, agents, end, made_by)[1], end


def is_login_link(tx: Transaction, secret: str) -> bool:
    """Whether this is the secret of an unused login link."""
    return _find_link(tx, secret) is not None


def redeem_login_link(tx: Transaction, secret: str, name: str) -> tuple[Key, str] | None:
    """Exchange an unused login link for a browser login; returns its key and secret."""
    link = _find_link(tx, secret)
    if link is None:
        return None
    maker = get_maker(tx, link)
    # Lock the creating key first, like a revocation does: one of the two waits for the other.
    try:
        lock_maker(tx, maker)
    except NoAccess:
        return None
    # Of two browsers with one link, only the first one is logged in.
    if not tx.change(REVOKE, {"key": link.id, "now": tx.now}):
        return None
    end = _earlier(tx.now + BROWSER_DAYS * DAY, maker.expires_at)
    key, cookie = insert_key(tx, KeyKind.BROWSER, name, link.scopes, link.agents, end, link.made_by)
    append_event(tx, KeyAdded(key=key.id, name=name))
    return key, cookie


def log_out(tx: Transaction, browser: Key) -> None:
    """Revoke a browser login and the links and logins that it created; its API keys stay valid."""
    end_key(tx, browser)
    revoke_made_by(tx, browser.id, keep_keys=True)


def _find_link(tx: Transaction, secret: str) -> Key | None:
    link = tx.one(FIND_BY_HASH, {"digest": hash_secret(secret)})
    return link if link and link.kind is KeyKind.LINK and link.valid(tx.now) else None


def _earlier(end: int, limit: int | None) -> int:
    return end if limit is None else min(end, limit)
