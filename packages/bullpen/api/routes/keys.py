"""/api/keys and /api/audit: API keys and the audit log."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field

from bullpen.api.context import caller, read, require_reach, write
from bullpen.api.route import ADMIN, Routes
from bullpen.api.schemas import Answer, Done, Number, Page, Rows, StrictBody, page_end
from bullpen.core.access.audit import list_audit_entries
from bullpen.core.access.keys import KeyKind, Scope, add_key_as, list_keys_as, revoke_key_as
from bullpen.core.errors import UnknownKey
from bullpen.core.models import AUDIT_LOG

routes = Routes("keys", "API keys and their scopes.")
audit_routes = Routes("audit", "The audit log.")


class NewKey(StrictBody):
    """A new key."""

    name: Annotated[str, Field(min_length=1, max_length=200, description="The key's name.")]
    scopes: list[Scope] = Field(min_length=1, max_length=16)
    agents: list[Annotated[str, Field(max_length=32)]] | None = Field(
        None, max_length=1000, description="The agents that the key reaches; null: all."
    )
    expires_at: Number | None = Field(None, description="The time when the key expires.")


def _sorted_agents(agents: Collection[str] | None) -> list[str] | None:
    return None if agents is None else sorted(agents)


AgentSet = Annotated[list[str] | None, BeforeValidator(_sorted_agents)]


class KeyAnswer(Answer):
    """A key, without its secret."""

    id: str
    kind: KeyKind
    name: str
    scopes: Annotated[list[Scope], BeforeValidator(sorted)]
    agents: AgentSet
    created_at: int
    expires_at: int | None
    used_at: int | None
    revoked_at: int | None
    made_by: str | None = Field(
        description="The id of the key that created it; `owner`: the owner's token; null: the "
        "command line on the machine."
    )
    valid: bool = Field(description="Whether the key is neither revoked nor expired.")


class NewKeyAnswer(KeyAnswer, Done):
    """The new key, with its secret."""

    key: str = Field(description="The secret, shown only once and not stored.")


class Revoked(Done):
    """The revoked keys."""

    revoked: list[str] = Field(description="The keys and logins that were valid until now.")


class KeyList(Rows[KeyAnswer]):
    """Keys."""


class KeyPath(BaseModel):
    """Selects a key."""

    key_id: str = Field(max_length=100, description="The key's id, which is not a secret.")


@routes.get("/api/keys", ADMIN)
def keys() -> KeyList:
    """List keys and browser logins, also the past ones.

    A key for some agents gets only the keys for those agents.
    """
    with read() as tx:
        keys = list_keys_as(tx, caller())
        return KeyList.of(KeyAnswer.from_row(each, valid=each.valid(tx.now)) for each in keys)


@routes.post("/api/keys", ADMIN)
def add(body: NewKey) -> NewKeyAnswer:
    """Create a key.

    A key cannot create a key with more scopes, more agents or a later expiry than its own. The new
    key becomes invalid when the key that created it is revoked or expires.
    """
    with write() as tx:
        key, secret = add_key_as(tx, caller(), body.name, body.scopes, body.agents, body.expires_at)
        return NewKeyAnswer.from_row(key, valid=key.valid(tx.now), key=secret)


@routes.delete("/api/keys/<key_id>", ADMIN, UnknownKey)
def revoke(path: KeyPath) -> Revoked:
    """Revoke a key or browser login, with all that it created."""
    with write() as tx:
        revoked = revoke_key_as(tx, caller(), path.key_id)
    return Revoked(revoked=[each.id for each in revoked])


class AuditEntryAnswer(Answer):
    """An action, or a refused action."""

    id: int
    key_id: str
    key_name: str
    action: str
    target: str = Field(description="The path of the request.")
    outcome: str = Field(description="`done`, or the code of the error.")
    request_id: str
    address: str
    created_at: int


class AuditEntryList(Rows[AuditEntryAnswer]):
    """Entries of the audit log."""


@audit_routes.get("/api/audit", ADMIN)
def audit(query: Page) -> AuditEntryList:
    """List the audit log.

    Newest first; with `since_id`, the later entries, oldest first. Requires a key that reaches all
    agents.
    """
    require_reach(None)
    last = page_end(AUDIT_LOG, query)
    with read() as tx:
        rows = list_audit_entries(tx, query.since_id, query.limit, last)
    return AuditEntryList.page(rows, query)
