"""/api/keys and /api/audit: keys for the API, and the log of what was done with them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from flask import Response
from pydantic import BaseModel, Field, RootModel

from bullpen.api.context import caller, read, require_reach, write
from bullpen.api.route import ADMIN, Routes
from bullpen.api.schemas import Done, Number, Page, StrictBody, list_response, page_end
from bullpen.core.access.audit import AuditEntry, list_audit_entries
from bullpen.core.access.keys import Key, KeyKind, Scope, add_key_as, list_keys_as, revoke_key_as
from bullpen.core.errors import UnknownKey
from bullpen.core.models import AUDIT_LOG

audit_routes = Routes("audit", "Who did what over the API.")


class AuditEntryAnswer(BaseModel):
    """One thing that was done, or refused."""

    id: int
    key_id: str
    key_name: str
    action: str
    target: str = Field(description="the path that was asked for")
    outcome: str = Field(description="`done`, or the code of the error")
    request_id: str
    address: str
    created_at: int

    @classmethod
    def of(cls, deed: AuditEntry) -> AuditEntryAnswer:
        """The line, as it is shown."""
        return cls.model_validate(asdict(deed))


class AuditEntryList(RootModel[list[AuditEntryAnswer]]):
    """Lines of the log."""


@audit_routes.get("/api/audit", ADMIN)
def audit(query: Page) -> Annotated[Response, AuditEntryList]:
    """List what was done, the latest first; with `since_id` what came after it, the oldest first.

    For keys that reach all agents.
    """
    require_reach(None)
    last = page_end(AUDIT_LOG, query.since_id)
    with read() as tx:
        found = list_audit_entries(tx, query.since_id, query.limit, last)
    rows = AuditEntryList([AuditEntryAnswer.of(each) for each in found])
    return list_response(rows, [each.id for each in found], query)


routes = Routes("keys", "Keys for the API, each with scopes, and revoked at once.")


class NewKey(StrictBody):
    """What the key is to be for."""

    name: Annotated[str, Field(min_length=1, max_length=200, description="what it is for")]
    scopes: list[Scope] = Field(min_length=1, max_length=16)
    agents: list[Annotated[str, Field(max_length=32)]] | None = Field(
        None, max_length=1000, description="the agents that it reaches; null is all"
    )
    expires_at: Number | None = Field(None, description="when it opens nothing any more")


class KeyAnswer(BaseModel):
    """A key, without its secret."""

    id: str
    kind: KeyKind
    name: str
    scopes: list[Scope]
    agents: list[str] | None
    created_at: int
    expires_at: int | None
    used_at: int | None
    revoked_at: int | None
    valid: bool = Field(description="whether it still opens anything")

    @classmethod
    def of(cls, key: Key, now: int) -> KeyAnswer:
        """The key, as it is shown."""
        return cls(
            id=key.id,
            kind=key.kind,
            name=key.name,
            scopes=sorted(key.scopes),
            agents=None if key.agents is None else sorted(key.agents),
            created_at=key.created_at,
            expires_at=key.expires_at,
            used_at=key.used_at,
            revoked_at=key.revoked_at,
            valid=key.valid(now),
        )


class NewKeyAnswer(KeyAnswer, Done):
    """The new key, with its secret."""

    key: str = Field(description="the secret: shown this once, and stored nowhere")


class KeyList(RootModel[list[KeyAnswer]]):
    """Keys."""


class KeyPath(BaseModel):
    """Which key."""

    key_id: str = Field(max_length=100, description="the key's id; it is no secret")


@routes.get("/api/keys", ADMIN)
def keys() -> KeyList:
    """List the keys and the browsers that were let in, those of the past included.

    A key for some agents sees those that are for these alone.
    """
    with read() as tx:
        return KeyList([KeyAnswer.of(each, tx.now) for each in list_keys_as(tx, caller())])


@routes.post("/api/keys", ADMIN)
def add(body: NewKey) -> NewKeyAnswer:
    """Make a key. No key makes one that may more, reaches more or lasts longer than itself."""
    with write() as tx:
        key, secret = add_key_as(tx, caller(), body.name, body.scopes, body.agents, body.expires_at)
        shown = KeyAnswer.of(key, tx.now)
    return NewKeyAnswer(**shown.model_dump(), key=secret)


@routes.delete("/api/keys/<key_id>", ADMIN, UnknownKey)
def revoke(path: KeyPath) -> Done:
    """Close a key or a browser: it opens nothing with the next request."""
    with write() as tx:
        revoke_key_as(tx, caller(), path.key_id)
    return Done()
