"""A key: who asks, and what that one may do."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from enum import StrEnum

SECRET_BYTES = 32
SECRET_PREFIX = "bp_"


class Scope(StrEnum):
    """What a key is for."""

    PUBLISH = "publish"
    """Speak for people: send messages, take answers, upload files, post in rooms."""
    CLAIM = "claim"
    """Work: claim, extend, complete, fail, release."""
    READ = "read"
    """Look at everything, and change nothing."""
    APPROVE = "approve"
    """Decide about messages and answers: cancel, let go, retry, drop, send again."""
    ADMIN = "admin"
    """Everything, agents, settings and keys included."""


class KeyKind(StrEnum):
    """What the secret is."""

    OWNER = "owner"
    """The token in the home; it is in no table."""
    KEY = "key"
    BROWSER = "browser"
    LINK = "link"
    """It lets one browser in, once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key, without its secret."""

    id: str
    kind: KeyKind
    name: str
    scopes: frozenset[Scope]
    agents: frozenset[str] | None = None
    """The agents that it reaches; None is all."""
    created_at: int = 0
    expires_at: int | None = None
    used_at: int | None = None
    revoked_at: int | None = None

    def has_scope(self, scope: Scope) -> bool:
        """Whether it has this scope; `admin` has all."""
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def can_reach(self, agent: str | None) -> bool:
        """Whether this agent is one of its own; what belongs to no agent is for unlimited keys."""
        return self.agents is None or agent in self.agents

    def valid(self, now: int) -> bool:
        """Whether it still opens anything."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


OWNER_KEY = Key(id="owner", kind=KeyKind.OWNER, name="owner", scopes=frozenset(Scope))


def new_secret() -> str:
    """A secret that nobody guesses."""
    return SECRET_PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def hash_secret(secret: str) -> str:
    """What is stored of a secret: it is long and random, so one round of a hash will do."""
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()
